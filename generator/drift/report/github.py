"""GitHub workflow commands: one annotation a finding, shown beside the line it is about."""

from __future__ import annotations

from ...spec.abi import Location
from ..finding import Finding, Severity
from .model import FAIL_ON, Report, shown_path

_QUIET = {Severity.ADDITIVE, Severity.DOCUMENTATION}


def render(report: Report, color: bool = False) -> str:
    """A line for each finding, and the summary as a notice."""
    lines = [_annotation(report, finding) for finding in report.findings]
    title = _property(f"ort-interop-gen {report.command}")
    lines.append(f"::notice title={title}::{_text(report.summary())}")
    return "".join(f"{line}\n" for line in lines)


def _annotation(report: Report, finding: Finding) -> str:
    if finding.severity in FAIL_ON[report.fail_on]:
        level = "error"
    else:
        level = "notice" if finding.severity in _QUIET else "warning"
    properties = []
    place = _place(report, finding)
    if place is not None:
        properties.append(f"file={_property(place.file)}")
        if place.line:
            properties.append(f"line={place.line}")
        if place.column:
            properties.append(f"col={place.column}")
    properties.append(f"title={_property(f'{finding.severity.value}: {finding.rule}')}")
    message = f"{finding.symbol}: {finding.message}"
    if finding.expected or finding.actual:
        message += (
            f"\nexpected: {finding.expected or 'nothing'}\nactual: {finding.actual or 'nothing'}"
        )
    if finding.hint:
        message += f"\nhint: {finding.hint}"
    return f"::{level} {','.join(properties)}::{_text(message)}"


def _place(report: Report, finding: Finding) -> Location | None:
    """Where to show it: in the repository if either side is there, the header's side first."""
    known = [
        Location(path, loc.line, loc.column)
        for loc in (finding.header_loc, finding.spec_loc)
        if (path := shown_path(loc, report.repository)) is not None
    ]
    inside = [loc for loc in known if not _outside(loc.file)]
    return next(iter(inside or known), None)


def _outside(path: str) -> bool:
    return path.startswith(("/", "..")) or path[1:2] == ":"


def _text(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _text(text).replace(":", "%3A").replace(",", "%2C")
