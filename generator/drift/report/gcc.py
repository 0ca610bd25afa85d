"""One line a finding, in the form of a compiler's errors: build logs and editors find their way."""

from __future__ import annotations

from ...spec.abi import Location
from ..finding import Finding
from .model import FAIL_ON, Report


def render(report: Report, color: bool = False) -> str:
    """``file:line: error: symbol: message [rule]``, then a note for the other side."""
    lines = [line for finding in report.findings for line in _lines(report, finding)]
    return "".join(f"{line}\n" for line in [*lines, f"{report.actual}: {report.summary()}"])


def _lines(report: Report, finding: Finding) -> list[str]:
    level = "error" if finding.severity in FAIL_ON[report.fail_on] else "warning"
    change = f" (expected {finding.expected or 'nothing'}, is {finding.actual or 'nothing'})"
    if not (finding.expected or finding.actual):
        change = ""
    symbol = f"{finding.symbol}: " if finding.symbol else ""
    lines = [
        f"{_place(report, finding.header_loc)}: {level}: {symbol}{finding.message}{change} [{finding.rule}]"
    ]
    if report.place(finding.spec_loc) is not None:
        lines.append(f"{_place(report, finding.spec_loc)}: note: what was expected is here")
    return lines


def _place(report: Report, loc: Location) -> str:
    path = report.place(loc)
    return report.actual if path is None else str(Location(path, loc.line, loc.column))
