"""The report that a person reads in a terminal: grouped, with both sides' sources."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import click

from ...spec.abi import Location
from ..finding import Finding, Severity
from .model import Report
from .source import Excerpt, Sources, Span, changed_words, difference

NAMES = {
    Severity.BREAKING: "breaking: compiled code misbehaves",
    Severity.UNREADABLE: "unreadable: nothing is known of these parts",
    Severity.SOURCE: "source: code must change to compile",
    Severity.CONTRACT: "contract: what callers may rely on changed",
    Severity.ADDITIVE: "additive: new, and not in what was expected",
    Severity.DOCUMENTATION: "documentation: comments contradict declarations",
}
_COLORS = {
    Severity.BREAKING: "red",
    Severity.UNREADABLE: "red",
    Severity.SOURCE: "yellow",
    Severity.CONTRACT: "magenta",
    Severity.ADDITIVE: "green",
    Severity.DOCUMENTATION: "cyan",
}


_MANY, _FIRST = 10, 3
"""If more findings than the one number say the same, only the other number of them is shown in full."""


def _said(finding: Finding) -> tuple[str, ...]:
    return finding.rule, finding.message, finding.expected, finding.actual


def render(report: Report, color: bool = False) -> str:
    """The whole report, ending with the summary line."""
    return "".join(f"{line}\n" for line in _Writer(report, color).lines())


class _Writer:
    def __init__(self, report: Report, color: bool) -> None:
        self.report = report
        self.color = color
        self.sources = Sources()

    def style(self, text: str, **how: str | bool) -> str:
        return click.style(text, **how) if self.color else text  # type: ignore[arg-type]

    def lines(self) -> Iterator[str]:
        report = self.report
        for severity, group in report.grouped():
            title = f"{NAMES[severity]} ({len(group)})"
            yield self.style(title, bold=True, fg=_COLORS[severity])
            yield ""
            alike = Counter(map(_said, group))
            shown: Counter[tuple[str, ...]] = Counter()
            for finding in group:
                said = _said(finding)
                shown[said] += 1
                if alike[said] <= _MANY or shown[said] <= _FIRST:
                    yield from self.finding(finding)
                    yield ""
            for said, count in alike.items():
                if count > _MANY:
                    yield from self.rest([f for f in group if _said(f) == said][_FIRST:])
                    yield ""
        for override in report.overrides:
            to = override.severity.value if override.severity else "off"
            yield (
                f"{override.rule}: {to} instead of {override.default.value},"
                f" set at {override.loc}: {override.reason}"
            )
        for accepted in report.accepted:
            yield f"accepted: [{accepted.finding.rule}] {accepted.finding.symbol}: {accepted.reason}"
        for stale in report.stale:
            yield f"baseline: matches nothing any more, remove it: {stale}"
        yield from report.notes
        summary = f"{report.actual} against {report.expected}: {report.summary()}"
        if report.command == "lint-docs":
            summary = f"{report.actual}: {report.summary()}"
        good = not report.findings
        yield self.style(
            summary, bold=True, fg="green" if good else "red" if report.failing else "yellow"
        )

    def rest(self, findings: list[Finding]) -> Iterator[str]:
        """What is said of each of these was shown above; only where they are is new."""
        first = findings[0]
        head = self.style(
            f"{first.severity.value}[{first.rule}]", fg=_COLORS[first.severity], bold=True
        )
        yield f"{head} and {len(findings)} more, of which the same is true:"
        for finding in findings:
            place = self.place(finding.header_loc) or self.place(finding.spec_loc)
            yield f"  {self.style('-->', fg='blue')} {place} {self.style(finding.symbol, bold=True)}"

    def finding(self, finding: Finding) -> Iterator[str]:
        head = self.style(
            f"{finding.severity.value}[{finding.rule}]", fg=_COLORS[finding.severity], bold=True
        )
        yield f"{head} {self.style(finding.symbol, bold=True)}"
        yield from (f"  {line}" for line in finding.message.splitlines())
        between = difference(finding.expected, finding.actual)
        sides = (
            (
                "expected",
                finding.expected,
                finding.actual,
                finding.spec_loc,
                between.removed,
                "red",
            ),
            (
                "actual",
                finding.actual,
                finding.expected,
                finding.header_loc,
                between.added,
                "green",
            ),
        )
        for name, text, other, loc, spans, color in sides:
            place = self.place(loc)
            if not text and not place:
                continue
            yield f"  {name + ':':<9} {self.marked(text, spans, color)}".rstrip()
            underline = self.underline(text, spans, color)
            if underline:
                yield f"  {'':9} {underline}"
            if place:
                yield f"    {self.style('-->', fg='blue')} {place}"
                words = changed_words(text, spans, other)
                for excerpt in self.sources.excerpt(loc, words, finding.symbol):
                    yield from self.excerpt(excerpt, color)
        if finding.hint:
            yield f"  {self.style('hint:', bold=True)} {finding.hint}"

    def place(self, loc: Location) -> str:
        path = self.report.place(loc)
        if path is None:
            return ""
        return str(Location(path, loc.line, loc.column))

    def excerpt(self, excerpt: Excerpt, color: str) -> Iterator[str]:
        gutter = self.style(f"{excerpt.line:>6} | ", fg="blue")
        yield gutter + self.marked(excerpt.text, excerpt.marks, color)
        underline = self.underline(excerpt.text, excerpt.marks, color)
        if underline:
            yield f"{self.style('       | ', fg='blue')}{underline}"

    def marked(self, text: str, spans: tuple[Span, ...], color: str) -> str:
        parts, at = [], 0
        for start, end in spans:
            parts += [text[at:start], self.style(text[start:end], fg=color, bold=True)]
            at = end
        return "".join([*parts, text[at:]])

    def underline(self, text: str, spans: tuple[Span, ...], color: str) -> str:
        """Carets below the spans; none where everything differs, which says nothing."""
        marks = [" "] * len(text)
        for start, end in spans:
            marks[start:end] = "^" * (end - start)
        line = "".join(marks).rstrip()
        whole = len(spans) == 1 and spans[0] == (0, len(text))
        return "" if not line or whole else self.style(line, fg=color)
