"""Source excerpts, and which words of two declarations differ."""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass, field
from pathlib import Path

from ...spec.abi import Location

_WORD = re.compile(r"[A-Za-z_]\w*|\d\w*|\s+|[^\w\s]")
MAX_WIDTH = 160
Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Excerpt:
    """One line of a file with the parts of it that matter."""

    line: int
    text: str
    marks: tuple[Span, ...] = ()


@dataclass(frozen=True, slots=True)
class Difference:
    """Two texts and the spans of each that the other does not have."""

    expected: str
    actual: str
    removed: tuple[Span, ...]
    added: tuple[Span, ...]


def difference(expected: str, actual: str) -> Difference:
    """Compare two declarations word by word."""
    left, right = _WORD.findall(expected), _WORD.findall(actual)
    matcher = difflib.SequenceMatcher(None, left, right, autojunk=False)
    removed: list[Span] = []
    added: list[Span] = []
    for kind, i1, i2, j1, j2 in matcher.get_opcodes():
        if kind == "equal":
            continue
        for words, low, high, spans in ((left, i1, i2, removed), (right, j1, j2, added)):
            start = sum(map(len, words[:low]))
            end = start + sum(map(len, words[low:high]))
            if end > start:
                spans.append((start, end))
    return Difference(expected, actual, tuple(removed), tuple(added))


def changed_words(text: str, spans: tuple[Span, ...], other: str) -> set[str]:
    """The identifiers and numbers inside some spans; none where the other side has nothing at all."""
    if not other:
        return set()
    return {w for start, end in spans for w in re.findall(r"\w+", text[start:end])}


@dataclass(slots=True)
class Sources:
    """The files that findings point into, read once; a file that cannot be read has no lines."""

    _files: dict[str, list[str]] = field(default_factory=dict)

    def lines(self, file: str) -> list[str]:
        if file not in self._files:
            lines: list[str] = []
            if not file.startswith("<"):
                try:
                    text = Path(file).read_text(encoding="utf-8-sig", errors="replace")
                    lines = text.splitlines()
                except OSError:
                    pass
            self._files[file] = lines
        return self._files[file]

    def excerpt(self, loc: Location, words: set[str], symbol: str = "") -> list[Excerpt]:
        """The line of a location and up to two more in which one of the words stands.

        The words are marked; where none of them is found, the symbol's own name is.
        """
        lines = self.lines(loc.file)
        if not 0 < loc.line <= len(lines):
            return []
        found = [_excerpt(loc.line, lines[loc.line - 1], words)]
        if loc.file.endswith(".json"):  # a record has a line for each declaration
            lines = lines[: loc.line]
        for number in range(loc.line + 1, min(loc.line + 12, len(lines)) + 1):
            previous, text = lines[number - 2], lines[number - 1]
            if len(found) == 3 or not text.strip() or previous.rstrip().endswith((";", "}")):
                break
            candidate = _excerpt(number, text, words)
            if candidate.marks:
                found.append(candidate)
        if not any(e.marks for e in found):
            name = symbol.rpartition(".")[2]
            found[0] = _excerpt(loc.line, lines[loc.line - 1], {name} if name else set())
        return found


def _excerpt(number: int, text: str, words: set[str]) -> Excerpt:
    text = text.expandtabs(4).rstrip()
    if len(text) > MAX_WIDTH:
        text = text[: MAX_WIDTH - 1] + "…"
    marks = tuple(m.span() for m in re.finditer(r"\w+", text) if m[0] in words)
    return Excerpt(number, text, marks)
