"""The report as a comment on a pull request."""

from __future__ import annotations

import re

from ...spec.abi import Location
from ..finding import Finding, Severity
from .model import Report

LIMIT = 60_000
"""Characters; the hosts that show such comments refuse longer ones (GitHub: 65,536)."""
_ICONS = {
    Severity.BREAKING: "🔴",
    Severity.UNREADABLE: "⚫",
    Severity.SOURCE: "🟠",
    Severity.CONTRACT: "🟣",
    Severity.ADDITIVE: "🟢",
    Severity.DOCUMENTATION: "🔵",
}
_SPECIAL = re.compile(r"([\\`*_{}\[\]<>|#~@])")


def render(report: Report, color: bool = False) -> str:
    """A table for each severity; what does not fit is counted, never dropped unsaid."""
    versus = "" if report.command == "lint-docs" else f" against {escape(report.expected)}"
    parts = [
        f"### ort-interop-gen {report.command}: {escape(report.actual)}{versus}\n\n"
        f"**{escape(report.summary())}**\n"
    ]
    room = LIMIT - len(parts[0])
    for severity, group in report.grouped():
        head = (
            f"\n#### {_ICONS[severity]} {severity.value} ({len(group)})\n\n"
            "| symbol | what | expected → actual | where |\n| --- | --- | --- | --- |\n"
        )
        rows: list[str] = []
        room -= len(head) + 120
        for finding in group:
            row = _row(report, finding)
            if len(row) > room:
                rows.append(
                    f"| … | {len(group) - len(rows)} more that do not fit here; "
                    "see the text or JSON report | | |\n"
                )
                break
            room -= len(row)
            rows.append(row)
        parts += [head, *rows]
    if report.accepted:
        lines = "".join(
            f"- {code(a.finding.symbol)} ({a.finding.rule}): {escape(a.reason)}\n"
            for a in report.accepted
        )
        details = f"\n<details><summary>{len(report.accepted)} accepted</summary>\n\n{lines}\n</details>\n"
        if len(details) <= room:
            parts.append(details)
    return "".join(parts)


def _row(report: Report, finding: Finding) -> str:
    what = f"{escape(finding.message)} (`{finding.rule}`)"
    if finding.hint:
        what += f"<br>*{escape(finding.hint)}*"
    change = " → ".join(code(t) if t else "nothing" for t in (finding.expected, finding.actual))
    if not (finding.expected or finding.actual):
        change = ""
    places = [
        code(str(Location(path, loc.line)))
        for loc in (finding.header_loc, finding.spec_loc)
        if (path := report.place(loc)) is not None
    ]
    return f"| {code(finding.symbol)} | {what} | {change} | {'<br>'.join(places)} |\n"


def escape(text: str) -> str:
    """Text that Markdown shows as it is, inside a table too."""
    return " ".join(_SPECIAL.sub(r"\\\1", text).split())


def code(text: str) -> str:
    """A code span; backticks inside need a longer fence, and a table ends cells at any ``|``."""
    text = " ".join(text.split()).replace("|", "\\|")
    fence = "`" * (max(map(len, re.findall("`+", text)), default=0) + 1)
    pad = " " if "`" in text else ""
    return f"{fence}{pad}{text}{pad}{fence}"
