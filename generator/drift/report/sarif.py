"""The report as SARIF 2.1.0, which code scanning services and editors show beside the code."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from urllib.parse import quote

from ... import __version__
from ...spec.abi import Location
from ..finding import Finding, Severity
from ..rules import RULES, Rule
from .model import Report, fingerprint, shown_path

SCHEMA_URI = "https://json.schemastore.org/sarif-2.1.0.json"
ROOT_ID = "SRCROOT"
_LEVELS = {
    Severity.BREAKING: "error",
    Severity.UNREADABLE: "error",
    Severity.SOURCE: "warning",
    Severity.CONTRACT: "warning",
    Severity.ADDITIVE: "note",
    Severity.DOCUMENTATION: "note",
}


def render(report: Report, color: bool = False) -> str:
    """One run with every registered rule; accepted findings are results that are suppressed."""
    root = report.repository
    numbers = {rule: index for index, rule in enumerate(RULES)}
    results = [_result(root, f, numbers) for f in report.findings]
    for accepted in report.accepted:
        result = _result(root, accepted.finding, numbers)
        result["suppressions"] = [{"kind": "external", "justification": accepted.reason}]
        results.append(result)
    run = {
        "tool": {
            "driver": {
                "name": "ort-interop-gen",
                "semanticVersion": __version__,
                "rules": [_rule(report, rule) for rule in RULES.values()],
            }
        },
        "automationDetails": {"id": f"ort-interop-gen/{report.command}/"},
        "originalUriBaseIds": {
            ROOT_ID: {"description": {"text": "The root folder of the checked repository."}}
        },
        "columnKind": "unicodeCodePoints",
        "invocations": [
            {
                "executionSuccessful": True,
                "exitCode": report.exit_code,
                "toolExecutionNotifications": [
                    {"level": "note", "message": {"text": text}}
                    for text in (
                        *report.notes,
                        *(f"stale baseline entry: {s}" for s in report.stale),
                    )
                ],
            }
        ],
        "results": results,
    }
    log = {"$schema": SCHEMA_URI, "version": "2.1.0", "runs": [run]}
    return json.dumps(log, indent=2) + "\n"


def _rule(report: Report, rule: Rule) -> dict[str, Any]:
    severity = next(
        (o.severity for o in report.overrides if o.rule == rule.id and o.severity), rule.severity
    )
    return {
        "id": rule.id,
        "name": _name(rule),
        "shortDescription": {"text": f"{rule.title}."},
        "fullDescription": {"text": rule.description},
        "help": {"text": f"{rule.hint[0].upper()}{rule.hint[1:]}."},
        "defaultConfiguration": {"level": _LEVELS[severity]},
        "properties": {"tags": [rule.severity.value]},
    }


def _name(rule: Rule) -> str:
    """A readable name, which the standard wants to differ from the id."""
    words = rule.id.split("-") if "-" in rule.id else rule.title.split()
    return "".join(word.capitalize() for word in words)


def _result(root: Path, finding: Finding, numbers: dict[str, int]) -> dict[str, Any]:
    text = f"{finding.symbol}: {finding.message}" if finding.symbol else finding.message
    if finding.expected or finding.actual:
        text += (
            f"\nExpected: {finding.expected or 'nothing'}\nActual: {finding.actual or 'nothing'}"
        )
    if finding.hint:
        text += f"\nHint: {finding.hint}"
    result: dict[str, Any] = {
        "ruleId": finding.rule,
        "ruleIndex": numbers[finding.rule],
        "level": _LEVELS[finding.severity],
        "message": {"text": text},
        "partialFingerprints": {"finding/v1": fingerprint(finding)},
    }
    sides = [
        (finding.header_loc, "the header's side"),
        (finding.spec_loc, "the expected side"),
    ]
    placed = [(loc, what) for loc, what in sides if shown_path(loc, root) is not None]
    placed.sort(key=lambda side: not _inside(root, side[0]))
    if placed:
        location = _location(root, placed[0][0])
        if finding.symbol:
            location["logicalLocations"] = [{"fullyQualifiedName": finding.symbol}]
        result["locations"] = [location]
    if len(placed) > 1:
        result["relatedLocations"] = [
            {"id": 1, **_location(root, placed[1][0]), "message": {"text": placed[1][1]}}
        ]
    return result


def _inside(root: Path, loc: Location) -> bool:
    """Whether code scanning can show the file: only what is in the repository."""
    return not Path(shown_path(loc, root) or "/").is_absolute()


def _location(root: Path, loc: Location) -> dict[str, Any]:
    path = shown_path(loc, root) or ""
    if _inside(root, loc):
        artifact = {"uri": quote(path), "uriBaseId": ROOT_ID}
    else:
        artifact = {"uri": Path(path).as_uri()}
    # A place without a line is the whole file; services want a region all the same.
    region = {"startLine": max(loc.line, 1)}
    if loc.column:
        region["startColumn"] = loc.column
    return {"physicalLocation": {"artifactLocation": artifact, "region": region}}
