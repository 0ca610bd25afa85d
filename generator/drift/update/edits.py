"""Edits of a spec file by line, and how values are written in YAML."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from ...spec.model import Source
from ...spec.yamlfile import Path_

_PLAIN = re.compile(r"[A-Za-z_][\w ()*.<>+&/-]*\Z")
_PLAIN_BLOCK = re.compile(r"[A-Za-z_][\w ()*.<>+&/,\[\]-]*\Z")


@dataclass(slots=True)
class Edits:
    """The edits of one file, kept until all are known; places are 0-based."""

    lines: list[str]
    before: dict[int, list[str]] = field(default_factory=dict)
    after: dict[int, list[str]] = field(default_factory=dict)
    within: list[tuple[int, int, int, str]] = field(default_factory=list)
    dropped: set[int] = field(default_factory=set)
    sections: dict[str, list[str]] = field(default_factory=dict)
    """New sections, which go to the end of the file."""

    def put_before(self, line: int, new: Iterable[str]) -> None:
        self.before.setdefault(line, []).extend(new)

    def put_after(self, line: int, new: Iterable[str]) -> None:
        self.after.setdefault(line, []).extend(new)

    def replace(self, line: int, start: int, end: int, new: str) -> None:
        self.within.append((line, start, end, new))

    def drop(self, first: int, last: int) -> None:
        self.dropped.update(range(first, last + 1))

    def text(self) -> str:
        lines = list(self.lines)
        for number, start, end, new in sorted(self.within, reverse=True):
            lines[number] = lines[number][:start] + new + lines[number][end:]
        out: list[str] = []
        for number, line in enumerate(lines):
            out += self.before.get(number, ())
            if number not in self.dropped:
                out.append(line)
            out += self.after.get(number, ())
        if self.sections:
            while out and not out[-1].strip():
                out.pop()
            for name, rows in self.sections.items():
                out += [f"{name}:", *rows]
            out.append("")
        return "\n".join(out)


class File:
    """One spec file: where its nodes are, and the edits of it."""

    def __init__(self, source: Source, text: str) -> None:
        self.source = source
        self.name = source.document.file
        self.edits = Edits(text.split("\n"))

    @property
    def lines(self) -> list[str]:
        return self.edits.lines

    def place(self, path: Path_) -> tuple[int, int]:
        """0-based line and column of a node."""
        mark = self.source.document.marks[path]
        return mark.line - 1, mark.column - 1

    def dash(self, path: Path_) -> int:
        """The column of the dash of a sequence's item; -1 where the sequence is in flow style."""
        line, column = self.place(path)
        lead = self.lines[line][:column]
        at = lead.rfind("- ")
        return at if at >= 0 and not lead[at + 1 :].strip() and not lead[:at].strip("- ") else -1

    def last_line(self, path: Path_) -> int:
        """The last line of a sequence's item."""
        line, _ = self.place(path)
        dash = self.dash(path)
        last = line
        for number in range(line + 1, len(self.lines)):
            text = self.lines[number]
            body = text.lstrip(" ")
            if not body or (body.startswith("#") and len(text) - len(body) <= dash):
                continue
            if len(text) - len(body) <= dash:
                break
            last = number
        return last

    def count(self, path: Path_) -> int:
        """How many items a sequence has."""
        count = 0
        while (*path, count) in self.source.document.marks:
            count += 1
        return count


def scalar(text: str) -> str:
    """Text as a YAML scalar on a line of its own."""
    return text if _PLAIN_BLOCK.match(text) else json.dumps(text)


def flow(text: str) -> str:
    """Text as a YAML scalar inside brackets."""
    return text if _PLAIN.match(text) else json.dumps(text)


def indented(rows: Iterable[str]) -> list[str]:
    """Rows one level down."""
    return [f"  {row}" for row in rows]


def at_column(column: int, rows: Iterable[str]) -> list[str]:
    """Rows moved to the right."""
    return [" " * column + row for row in rows]
