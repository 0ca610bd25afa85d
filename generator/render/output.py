"""One file that a target renders."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePosixPath

LANGUAGES = {
    ".c": "c",
    ".h": "c",
    ".py": "python",
    ".pyi": "python",
    ".json": "json",
    ".md": "text",
    ".txt": "text",
    ".typed": "text",
}
"""The language of a file by its suffix; any other file is ``text``."""


@dataclass(frozen=True, slots=True)
class Output:
    """One file to write: its POSIX path below the output folder, its text and its language.

    ``language`` is ``c``, ``python``, ``json`` or ``text``; it says how the text is formatted and
    parsed before anything is written.  A ``verbatim`` text is parsed but not formatted.
    """

    path: str
    text: str
    language: str
    verbatim: bool = False


def language_of(path: str) -> str:
    """The language of a file by its name."""
    return LANGUAGES.get(PurePosixPath(path).suffix, "text")
