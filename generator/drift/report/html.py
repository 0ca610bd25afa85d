"""The report as one self-contained page for a browser."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from ... import __version__
from ...spec.abi import Location
from ..finding import Finding
from ..rules import RULES, Rule
from .model import ORDER, Report, fingerprint
from .source import Difference, Excerpt, Sources, Span, changed_words, difference
from .text import NAMES

_TEMPLATE = "page.html.j2"


@dataclass(frozen=True, slots=True)
class Side:
    """One side of a finding as the page shows it."""

    name: str
    text: Markup
    place: str
    excerpt: tuple[tuple[int, Markup], ...]


@dataclass(frozen=True, slots=True)
class Row:
    """One finding as the page shows it."""

    finding: Finding
    anchor: str
    sides: tuple[Side, ...]


@dataclass(frozen=True, slots=True)
class Group:
    """The findings of one rule, which are what the page's table of contents lists."""

    rule: Rule
    severity: str
    rows: tuple[Row, ...]


def render(report: Report, color: bool = False) -> str:
    """The page; it needs neither a network nor, to be read, scripts."""
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    sources = Sources()
    groups = []
    for severity, found in report.grouped():
        for rule in dict.fromkeys(f.rule for f in found):
            rows = tuple(_row(report, f, sources) for f in found if f.rule == rule)
            groups.append(Group(RULES[rule], severity.value, rows))
    return environment.get_template(_TEMPLATE).render(
        report=report,
        groups=groups,
        severities=[(s.value, NAMES[s].partition(": ")[2], report.count(s)) for s in ORDER],
        version=__version__,
        prose=_prose,
    )


def _row(report: Report, finding: Finding, sources: Sources) -> Row:
    between = difference(finding.expected, finding.actual)
    sides = (
        _side(report, finding, sources, "expected", finding.spec_loc, between),
        _side(report, finding, sources, "actual", finding.header_loc, between),
    )
    return Row(finding, f"f-{fingerprint(finding)}", tuple(s for s in sides if s is not None))


def _side(
    report: Report,
    finding: Finding,
    sources: Sources,
    name: str,
    loc: Location,
    between: Difference,
) -> Side | None:
    if name == "expected":
        tag, text, other, spans = "del", between.expected, between.actual, between.removed
    else:
        tag, text, other, spans = "ins", between.actual, between.expected, between.added
    path = report.place(loc)
    if not text and path is None:
        return None
    place = "" if path is None else str(Location(path, loc.line))
    lines = sources.excerpt(loc, changed_words(text, spans, other), finding.symbol)
    shown = tuple((line.line, _marked(line, tag)) for line in lines)
    return Side(name, _mark(text, spans, tag), place, shown)


def _marked(excerpt: Excerpt, tag: str) -> Markup:
    return _mark(excerpt.text, excerpt.marks, tag)


def _mark(text: str, spans: tuple[Span, ...], tag: str) -> Markup:
    """Text with its spans in an element; everything else escaped."""
    parts, at = [], 0
    for start, end in spans:
        parts += [escape(text[at:start]), Markup(f"<{tag}>{{}}</{tag}>").format(text[start:end])]
        at = end
    return Markup("").join([*parts, escape(text[at:])])


def _prose(text: str) -> Markup:
    """A sentence in which backticks enclose code."""
    parts = text.split("`")
    if len(parts) % 2 == 0:
        return escape(text)
    return Markup("").join(
        Markup("<code>{}</code>").format(part) if at % 2 else escape(part)
        for at, part in enumerate(parts)
    )
