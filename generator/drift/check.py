"""Check a header against the spec of the release that the header declares."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ..header.errors import HeaderError
from ..header.reader import HeaderResult, read_views
from ..spec.abi import NOWHERE, Location
from ..spec.cache import Releases
from .finding import Finding, Severity, severity_order

CLEAN, DRIFT, NOT_CHECKED = 0, 1, 2
VIEWS = ("linux", "windows")


@dataclass(frozen=True, slots=True)
class CheckResult:
    """What a check found; ``exit_code`` is 0 without findings, 1 with some, 2 if nothing was compared."""

    exit_code: int
    header: Path
    release: int | None
    """The header's ORT_API_VERSION; None where it could not be read."""
    compared_with: int | None
    """The release of the spec that it was compared with: the header's, or the newest known."""
    findings: tuple[Finding, ...]
    message: str
    """One sentence: the outcome, or why there is none."""
    hint: str = ""
    loc: Location = NOWHERE
    """Where in the header the reason is that nothing was compared."""
    headers: tuple[HeaderResult, ...] = ()


def run_check(
    model: Releases,
    header: Path | str,
    *,
    views: Sequence[str] = VIEWS,
    preprocessor: str = "auto",
    include_dirs: Sequence[Path | str] = (),
) -> CheckResult:
    """Compare a header, as each platform sees it, with the spec narrowed to the header's release.

    A header of a release before the interop API cannot be compared: that is exit code 2, as is a
    header that cannot be read.  A header newer than the spec is compared with the newest release
    that the spec knows, and ``release-new`` says so.
    """
    path = Path(header)
    try:
        results = read_views(path, views, preprocessor=preprocessor, include_dirs=include_dirs)
    except HeaderError as error:
        return CheckResult(NOT_CHECKED, path, None, None, (), error.message, error.hint, error.loc)
    release = results[0].abi.api_version
    shown = results[0].files[0]
    if release < model.floor:
        return CheckResult(
            NOT_CHECKED,
            shown,
            release,
            None,
            (),
            f"it declares API version {release}, release 1.{release}; the interop API starts "
            f"at 1.{model.floor} (API version {model.floor}), so there is nothing to compare",
            f"use the headers of onnxruntime 1.{model.floor} or newer",
            results[0].abi.macros["ORT_API_VERSION"].loc,
            tuple(results),
        )
    compared = min(release, model.newest)
    spec = model.at(compared)
    # Imported here, because the compiler can start before.
    from .compare import compare, compare_view

    first = results[0]
    found = [(first.view, compare(spec, first.abi, first.unreadable))]
    for r in results[1:]:
        if r.abi.structs is first.abi.structs:
            declared = [f for f in found[0][1] if f.symbol not in first.abi.platform]
            findings_of = declared + compare_view(spec, r.abi)
        else:
            findings_of = compare(spec, r.abi, r.unreadable)
        found.append((r.view, findings_of))
    findings = merged(found)
    names = " and ".join(r.view for r in results)
    if findings:
        message = (
            f"{shown} differs from the spec of 1.{compared}: {summary(findings)} ({names} view)"
        )
    else:
        message = (
            f"{shown} agrees with the spec of 1.{compared} ({names} view, "
            f"preprocessed by {results[0].preprocessor})"
        )
    return CheckResult(
        DRIFT if findings else CLEAN,
        shown,
        release,
        compared,
        findings,
        message,
        headers=tuple(results),
    )


def merged(views: Iterable[tuple[str, list[Finding]]]) -> tuple[Finding, ...]:
    """The findings of all views, each once; one that not every view has says which one does."""
    merged: dict[tuple[str, str, str, str], Finding] = {}
    seen: dict[tuple[str, str, str, str], list[str]] = {}
    count = 0
    for view, findings in views:
        count += 1
        for finding in findings:
            key = (finding.rule, finding.symbol, finding.expected, finding.actual)
            if finding.rule == "platform-macro":
                key = (*key[:3], view)
            merged.setdefault(key, finding)
            if view not in seen.setdefault(key, []):
                seen[key].append(view)
    shown = (
        f if len(seen[key]) == count else replace(f, message=_only(f, seen[key][0]))
        for key, f in merged.items()
    )
    return tuple(sorted(shown, key=severity_order))


def _only(finding: Finding, view: str) -> str:
    return finding.message if view in finding.message else f"{finding.message} ({view} view)"


def summary(findings: Sequence[Finding]) -> str:
    """How many findings of each severity, the worst first."""
    counts = {severity: sum(f.severity is severity for f in findings) for severity in Severity}
    return ", ".join(f"{count} {severity.value}" for severity, count in counts.items() if count)


def report_lines(findings: Iterable[Finding]) -> list[str]:
    """Findings as text: the place in the header, the rule, and both sides with their places."""
    lines: list[str] = []
    for finding in findings:
        symbol = f"{finding.symbol}: " if finding.symbol else ""
        lines.append(
            f"{finding.header_loc}: {finding.severity.value} [{finding.rule}] {symbol}{finding.message}"
        )
        if finding.expected:
            lines.append(f"    spec:   {finding.expected}  ({finding.spec_loc})")
        elif finding.spec_loc.line:
            lines.append(f"    spec:   has no such element here  ({finding.spec_loc})")
        if finding.actual:
            lines.append(f"    header: {finding.actual}")
        if finding.hint:
            lines.append(f"    hint:   {finding.hint}")
    return lines
