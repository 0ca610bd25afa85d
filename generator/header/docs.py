"""Documentation comments, found by where they stand and reduced to what the checks need."""

from __future__ import annotations

import re

from ..spec.abi import Doc
from .sources import Source

_SINCE = re.compile(r"[\\@]since\s+(?:Version\s+)?1\.(\d+)")
_PARAM = re.compile(r"[\\@]param(?:\s*\[\s*([a-z, ]*?)\s*\])?\s+([A-Za-z_]\w*)")
_BLOCK = ("/**", "/*!")
_COMMAND = re.compile(r"[\\@](?:brief|since|param)\b")
_LINE = ("///", "//!")


class Docs:
    """The documentation comments of one header."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.ending: dict[int, str] = {}
        self.trailing: dict[int, str] = {}
        previous = (0, "")
        for first, last, text in source.comments:
            lead = text[:3]
            if lead in _BLOCK or lead in _LINE:
                if text.startswith(("/**/", "////")):
                    continue
            elif lead[:2] != "/*" or not _COMMAND.search(text):
                # A plain comment is documentation too where its author wrote commands in it.
                continue
            if text[3:4] == "<":
                self.trailing[first] = text
                continue
            if lead in _LINE:
                if previous[0] == first - 1:
                    text = f"{previous[1]}\n{text}"
                previous = (last, text)
            self.ending[last] = text

    def before(self, line: int) -> str:
        """The comment that ends on ``line`` or above it with nothing but blank lines between."""
        lines = self.source.lines
        at = line
        while at > 0:
            found = self.ending.get(at)
            if found is not None:
                return found
            at -= 1
            if at > 0 and lines[at - 1].strip() and at not in self.ending:
                return ""
        return ""

    def of(self, first: int, last: int) -> Doc | None:
        """The documentation of a declaration that spans some lines."""
        text = self.before(first)
        after = self.trailing.get(last) or self.trailing.get(first)
        if after:
            text = f"{text}\n{after}" if text else after
        return parse_doc(text) if text else None


def parse_doc(text: str) -> Doc:
    """Reduce a comment to its text, its ``\\since`` and its ``\\param`` commands."""
    since = _SINCE.search(text)
    params = tuple(((match[1] or "").replace(" ", ""), match[2]) for match in _PARAM.finditer(text))
    return Doc(text, int(since[1]) if since else None, params)
