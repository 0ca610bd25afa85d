"""Hold the spec against what is known from elsewhere before anything is rendered from it.

Two witnesses: the recorded facts that the project carries, always; and a real header, when one is
given or installed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from ..spec.facts import load_all
from .errors import render_error
from .find_header import FoundHeader

if TYPE_CHECKING:
    from ..drift.finding import Finding
    from ..spec import Model

_STOPPING = ("breaking", "source", "unreadable")
"""Severities of findings that code must not be generated over."""


@dataclass(slots=True)
class CrossCheck:
    """What was compared, in words, and what was found; ``stops`` if rendering must not go on."""

    report: list[str] = field(default_factory=list)
    findings: list[str] = field(default_factory=list)
    stops: bool = False

    def add(self, name: str, findings: Sequence[Finding], required: bool) -> None:
        """Take in the findings against one witness."""
        serious = [f for f in findings if f.severity.value in _STOPPING]
        self.findings.extend(f"{name}: {describe(f)}" for f in serious)
        self.stops = self.stops or (required and bool(serious))
        lesser = len(findings) - len(serious)
        also = f", {lesser} lesser differences" if lesser else ""
        verdict = f"{len(serious)} contradictions" if serious else "agrees with the spec"
        self.report.append(f"{name}: {verdict}{also}")


def describe(finding: Finding) -> str:
    """One finding on one line, with both places where they are known."""
    places = [str(loc) for loc in (finding.spec_loc, finding.header_loc) if loc.line]
    where = f" ({' / '.join(places)})" if places else ""
    return f"{finding.severity.value}: {finding.symbol}: {finding.message}{where}"


def check_facts(model: Model, folder: Path) -> CrossCheck:
    """Compare every recorded release with the spec narrowed to it."""
    from ..drift.compare import compare

    result = CrossCheck()
    agree = []
    for release, facts in load_all(folder).items():
        findings = compare(model.at(release), facts)
        if findings:
            result.add(f"facts of {facts.release}", findings, required=True)
        else:
            agree.append(facts.release)
    if agree:
        result.report.insert(0, f"facts: the spec agrees with the records of {', '.join(agree)}")
    elif not result.report:
        result.report.append(f"facts: no records in {folder}")
    return result


def check_header(model: Model, header: FoundHeader | None) -> CrossCheck:
    """Compare a real header with the spec of the release that it declares."""
    if header is None:
        return CrossCheck(
            [
                "header: none given or found (looked at --header, ORT_INCLUDE_DIR, pkg-config, "
                "CMAKE_PREFIX_PATH, CONDA_PREFIX)"
            ]
        )
    from ..drift.check import NOT_CHECKED, run_check

    result = CrossCheck()
    checked = run_check(model, header.path)
    name = f"header {header.path} (by {header.by})"
    if checked.exit_code != NOT_CHECKED:
        result.add(name, checked.findings, header.required)
    elif header.required:
        raise render_error(checked.message, checked.hint, checked.loc)
    else:
        result.report.append(f"{name}: not compared: {checked.message}")
    return result
