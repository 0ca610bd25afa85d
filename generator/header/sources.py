"""Find a header and what it includes, and make copies that a preprocessor keeps all facts of.

A preprocessor throws away what the ABI model needs: comments, SAL words that are defined as
nothing, ORT_API_CALL on Linux.  So the copies have their comments cut out (and kept aside), and
the macros that must survive are defined under another name.  Line numbers stay as they were.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ..spec.abi import Location
from ..spec.ctype import is_sal
from .errors import HeaderError

MAIN_HEADER = "onnxruntime_c_api.h"
STUBS = Path(__file__).resolve().parent / "stubs"
SHADOW = "ort_shadow_"
"""Prefix under which the copies define the macros of :data:`KEPT` and the SAL words."""
KEPT = {
    "ORT_API_CALL": "ort_mark_api_call",
    "ORT_MUST_USE_RESULT": "ort_mark_must_use",
    "ORTCHAR_T": "ORTCHAR_T",
}
"""Macros that differ by platform, and the word that stands for them in the preprocessed text."""
MISSING = "ort_missing_include"

BELOW = ("", "onnxruntime", "onnxruntime/core/session", "core/session")
"""Where below an include folder the main header may be."""
_LOOK_IN = (*BELOW, *(f"include/{folder}".rstrip("/") for folder in BELOW))
_COMMENT = re.compile(
    r"""//(?:\\\n|[^\n])*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|/\*""", re.S
)
_DIRECTIVE = re.compile(
    r"^([ \t]*#[ \t]*)(include|define|undef|ifdef|ifndef|if|elif|line|\d+)\b[ \t]*(.*)$", re.M
)
_TARGET = re.compile(r'(?:"([^"\n]+)"|<([^>\n]+)>)')
_WORD = re.compile(r"[A-Za-z_]\w*")
_DEFINED = re.compile(r"(\bdefined[ \t]*\(?[ \t]*)([A-Za-z_]\w*)")


@dataclass(slots=True)
class Source:
    """One header: where it is, its comments, and the copy that goes to the preprocessor."""

    path: Path
    label: str
    text: str = ""
    comments: list[tuple[int, int, str]] = field(default_factory=list)
    """First line, last line and text of each comment."""
    own: bool = True
    """False for the stub headers that come with this package."""
    _lines: list[str] | None = None

    @property
    def lines(self) -> list[str]:
        """The lines of the copy, without comments."""
        if self._lines is None:
            self._lines = self.text.split("\n")
        return self._lines


def find_below(path: Path) -> Path | None:
    """The main header in a folder, at the usual places below it; None where there is none."""
    candidates = (path / folder / MAIN_HEADER for folder in _LOOK_IN)
    return next((found for found in candidates if found.is_file()), None)


def locate(path: Path) -> Path:
    """The main header that a path names: a file, or a folder that has one in a usual place."""
    if path.is_dir():
        found = find_below(path)
        if found is not None:
            return found
        raise HeaderError(
            f"no {MAIN_HEADER} in '{path}'",
            hint=f"give the folder that has {MAIN_HEADER}, or the file itself",
        )
    if not path.exists():
        raise HeaderError(f"'{path}' does not exist", hint=f"give the path of {MAIN_HEADER}")
    return path


class SourceSet:
    """A header with all that it includes; the copies are numbered, ``f0.h`` is the first."""

    def __init__(self, main: Path, include_dirs: Sequence[Path] = ()) -> None:
        self.include_dirs = [*include_dirs]
        self.sources: list[Source] = []
        self._numbers: dict[Path, int] = {}
        self._add(main, main)
        at = 0
        while at < len(self.sources):
            self._prepare(self.sources[at])
            at += 1

    def _add(self, path: Path, shown: Path) -> int:
        key = path.resolve()
        if key not in self._numbers:
            self._numbers[key] = len(self.sources)
            own = not key.is_relative_to(STUBS)
            self.sources.append(Source(path, str(shown) if own else f"<{path.name}>", own=own))
        return self._numbers[key]

    def _prepare(self, source: Source) -> None:
        try:
            raw = source.path.read_bytes()
        except OSError as error:
            raise HeaderError(f"cannot be read: {error.strerror}", Location(source.label)) from None
        if b"\0" in raw:
            raise HeaderError(
                "this is not a text file in UTF-8", Location(source.label), "save it as UTF-8"
            )
        text = raw.decode("utf-8-sig", "replace").replace("\r\n", "\n").replace("\r", "\n")
        text = self._cut_comments(source, text)
        folder = source.path.parent

        def rewrite(match: re.Match[str]) -> str:
            lead, keyword, rest = match.groups()
            if keyword == "include":
                return self._include(match, lead, rest, folder)
            if keyword == "line" or keyword.isdigit():
                # Places are those in this file, not in one that it was made from.
                return ""
            if keyword in ("if", "elif"):
                return f"{lead}{keyword} {_DEFINED.sub(_shadow_defined, rest)}"
            name = _WORD.match(rest)
            if name is not None and (name[0] in KEPT or is_sal(name[0])):
                return f"{lead}{keyword} {SHADOW}{rest}"
            return match[0]

        source.text = _DIRECTIVE.sub(rewrite, text)

    def _include(self, match: re.Match[str], lead: str, rest: str, folder: Path) -> str:
        target = _TARGET.match(rest)
        if target is None:
            # Nothing, or a name that a macro makes up: neither is in the API's headers.
            name = rest.replace('"', "'").strip() or "nothing"
            return f'{MISSING}("{name}")'
        quoted, angled = target.groups()
        found = self._find(quoted, angled, folder)
        if found is None:
            return f'{MISSING}("{quoted or angled}")'
        return f'{lead}include "f{found}.h"'

    def _find(self, quoted: str | None, angled: str | None, folder: Path) -> int | None:
        name = quoted or angled or ""
        folders = [folder, *self.include_dirs, STUBS] if quoted else [STUBS, *self.include_dirs]
        for place in folders:
            candidate = place / name
            if candidate.is_file():
                return self._add(candidate, candidate)
        return None

    def _cut_comments(self, source: Source, text: str) -> str:
        starts = [0]
        starts.extend(m.end() for m in re.finditer("\n", text))

        def cut(match: re.Match[str]) -> str:
            word = match[0]
            if word[0] != "/":
                return word
            first = bisect_right(starts, match.start())
            if word == "/*":
                raise HeaderError("a comment is never closed", Location(source.label, first))
            newlines = word.count("\n")
            source.comments.append((first, first + newlines, word))
            return " " + "\n" * newlines

        return _COMMENT.sub(cut, text)


def _shadow_defined(match: re.Match[str]) -> str:
    name = match[2]
    return f"{match[1]}{SHADOW if name in KEPT or is_sal(name) else ''}{name}"
