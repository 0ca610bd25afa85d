"""What every report format is given: the findings of one comparison and what became of them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from ...spec.abi import Location
from ..finding import Finding, Severity

ORDER: tuple[Severity, ...] = tuple(Severity)
"""The severities from the worst to the least."""

FAIL_ON: dict[str, frozenset[Severity]] = {
    "breaking": frozenset({Severity.BREAKING, Severity.UNREADABLE}),
    "source": frozenset({Severity.BREAKING, Severity.UNREADABLE, Severity.SOURCE}),
    "contract": frozenset(
        {Severity.BREAKING, Severity.UNREADABLE, Severity.SOURCE, Severity.CONTRACT}
    ),
    "additive": frozenset(set(Severity) - {Severity.DOCUMENTATION}),
    "any": frozenset(Severity),
}
"""What each ``--fail-on`` fails on.  What could not be read may hide anything, so it always fails."""


def fingerprint(finding: Finding) -> str:
    """Names a finding across runs: it stays while lines move, and changes when the change does."""
    parts = (finding.rule, finding.symbol, finding.expected, finding.actual)
    return hashlib.sha256("\0".join(parts).encode("utf-8", "replace")).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class Override:
    """A rule whose severity was set by configuration; ``severity`` None turns the rule off."""

    rule: str
    severity: Severity | None
    reason: str
    loc: Location
    default: Severity


@dataclass(frozen=True, slots=True)
class Accepted:
    """A finding that does not count, and why: a baseline names it, or its rule is off."""

    finding: Finding
    reason: str
    by: str


@dataclass(frozen=True, slots=True)
class Report:
    """The outcome of a ``check``, ``diff`` or ``lint-docs`` run."""

    command: str
    expected: str
    """The side that is taken for right: the spec, or the older header."""
    actual: str
    findings: tuple[Finding, ...] = ()
    accepted: tuple[Accepted, ...] = ()
    overrides: tuple[Override, ...] = ()
    """The overrides that changed the severity of a finding here."""
    stale: tuple[str, ...] = ()
    """Entries of the baseline that match nothing any more, in words."""
    notes: tuple[str, ...] = ()
    fail_on: str = "any"
    root: Path = field(default_factory=Path.cwd)
    """Paths below this folder are shown relative to it."""

    @property
    def failing(self) -> tuple[Finding, ...]:
        """The findings that make the run fail."""
        return tuple(f for f in self.findings if f.severity in FAIL_ON[self.fail_on])

    @property
    def exit_code(self) -> int:
        """0 when nothing found counts, else 1."""
        return 1 if self.failing else 0

    def count(self, severity: Severity) -> int:
        return sum(f.severity is severity for f in self.findings)

    def grouped(self) -> list[tuple[Severity, list[Finding]]]:
        """The findings by severity, the worst first; empty groups are left out."""
        groups = [(s, [f for f in self.findings if f.severity is s]) for s in ORDER]
        return [(severity, group) for severity, group in groups if group]

    def summary(self) -> str:
        """One line that says it all."""
        counts = [f"{len(group)} {severity.value}" for severity, group in self.grouped()]
        total = len(self.findings)
        if not total:
            text = "no differences" if self.command != "lint-docs" else "no faults"
        else:
            text = f"{total} finding{'s' if total > 1 else ''}: {', '.join(counts)}"
        if self.accepted:
            text += f"; {len(self.accepted)} more accepted"
        if total and not self.failing:
            text += f"; none fails the run (--fail-on {self.fail_on})"
        return text

    def place(self, loc: Location) -> str | None:
        """A location's file as reports show it: POSIX, below the root where it is; None if unknown."""
        return shown_path(loc, self.root)

    @property
    def repository(self) -> Path:
        """The root of the repository around ``root``, which code scanning resolves paths from."""
        folders = (self.root, *self.root.resolve().parents)
        return next((f for f in folders if (f / ".git").exists()), self.root)


def ordered(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """The worst first, then as they stand in the header, then in the spec."""

    def key(finding: Finding) -> tuple[int, str, int, str, int, str, str]:
        header, spec = finding.header_loc, finding.spec_loc
        return (
            ORDER.index(finding.severity),
            header.file,
            header.line,
            spec.file,
            spec.line,
            finding.symbol,
            finding.rule,
        )

    return tuple(sorted(findings, key=key))


def shown_path(loc: Location, root: Path) -> str | None:
    if loc.file.startswith("<"):
        return None
    path = Path(loc.file).absolute()
    for full in (path, path.resolve()):
        if full.is_relative_to(root.resolve()):
            return full.relative_to(root.resolve()).as_posix()
    return path.as_posix()
