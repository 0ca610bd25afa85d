"""The report as JSON; ``schemas/report.schema.json`` documents it."""

from __future__ import annotations

import json
from typing import Any

from ... import __version__
from ...spec.abi import Location
from ..finding import Finding
from .model import ORDER, Accepted, Report, fingerprint

SCHEMA = 1


def render(report: Report, color: bool = False) -> str:
    """The whole report as one JSON object."""
    data: dict[str, Any] = {
        "schema": SCHEMA,
        "tool": {"name": "ort-interop-gen", "version": __version__},
        "command": report.command,
        "expected": report.expected,
        "actual": report.actual,
        "fail_on": report.fail_on,
        "exit_code": report.exit_code,
        "summary": {
            **{severity.value: report.count(severity) for severity in ORDER},
            "accepted": len(report.accepted),
        },
        "findings": [_finding(report, f) for f in report.findings],
        "accepted": [_accepted(report, a) for a in report.accepted],
        "overrides": [
            {
                "rule": o.rule,
                "severity": o.severity.value if o.severity else "off",
                "default": o.default.value,
                "reason": o.reason,
            }
            for o in report.overrides
        ],
        "stale": list(report.stale),
        "notes": list(report.notes),
    }
    return json.dumps(data, indent=2) + "\n"


def _finding(report: Report, finding: Finding) -> dict[str, Any]:
    return {
        "rule": finding.rule,
        "severity": finding.severity.value,
        "symbol": finding.symbol,
        "message": finding.message,
        "expected": finding.expected,
        "actual": finding.actual,
        "spec": _location(report, finding.spec_loc),
        "header": _location(report, finding.header_loc),
        "hint": finding.hint,
        "fingerprint": fingerprint(finding),
    }


def _accepted(report: Report, accepted: Accepted) -> dict[str, Any]:
    return {
        **_finding(report, accepted.finding),
        "reason": accepted.reason,
        "accepted_by": accepted.by,
    }


def _location(report: Report, loc: Location) -> dict[str, Any] | None:
    path = report.place(loc)
    if path is None:
        return None
    return {"file": path, "line": loc.line or None, "column": loc.column or None}
