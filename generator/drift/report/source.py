"""Source excerpts, and which words of two declarations differ."""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection
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


@dataclass(frozen=True, slots=True)
class Word:
    """A word that differs, and the one behind it, which tells its place in a line from others."""

    text: str
    follower: str = ""


def changed_words(text: str, spans: tuple[Span, ...], other: str) -> set[Word]:
    """The identifiers and numbers inside some spans; none where the other side has nothing at all."""
    if not other:
        return set()
    words = list(re.finditer(r"\w+", text))
    followers = [m[0] for m in words[1:]] + [""]
    return {
        Word(match[0], follower)
        for match, follower in zip(words, followers, strict=False)
        if any(start <= match.start() < end for start, end in spans)
    }


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

    def excerpt(self, loc: Location, words: set[Word], symbol: str = "") -> list[Excerpt]:
        """The line of a location and up to two more in which one of the words stands.

        The words are marked; where none of them is found, the symbol's own name is.
        """
        lines = self.lines(loc.file)
        if not 0 < loc.line <= len(lines):
            return []
        if loc.file.endswith(".json"):  # a record has a line for each declaration
            lines = lines[: loc.line]
        last = loc.line
        while last < min(loc.line + 12, len(lines)) and lines[last].strip():
            if lines[last - 1].rstrip().endswith((";", "}")):
                break
            last += 1
        texts = {n: _clipped(lines[n - 1]) for n in range(loc.line, last + 1)}
        marks = _marks(texts, words) or _marks(texts, {w.text for w in words})
        first = texts[loc.line]
        if not any(marks.values()):
            name = symbol.rpartition(".")[2]
            marks = _marks({loc.line: first}, {name}) if name else {}
        found = [Excerpt(loc.line, first, marks.get(loc.line, ()))]
        return (
            found
            + [
                Excerpt(n, text, marks[n])
                for n, text in texts.items()
                if n > loc.line and n in marks
            ][:2]
        )


def _clipped(text: str) -> str:
    text = text.expandtabs(4).rstrip()
    return text if len(text) <= MAX_WIDTH else text[: MAX_WIDTH - 1] + "…"


def _marks(lines: dict[int, str], words: Collection[Word | str]) -> dict[int, tuple[Span, ...]]:
    """Where the words stand, by line; a :class:`Word` only where its follower comes next."""
    found: dict[int, list[Span]] = {}
    tokens = [(n, m) for n, text in lines.items() for m in re.finditer(r"\w+", text)]
    followers = [*(match[0] for _, match in tokens[1:]), ""][: len(tokens)]
    for (number, match), follower in zip(tokens, followers, strict=True):
        if match[0] in words or Word(match[0], follower) in words:
            found.setdefault(number, []).append(match.span())
    return {number: tuple(spans) for number, spans in found.items()}
