"""Lift annotations out of preprocessed text, so that a plain C parser can read the rest.

Each one is replaced by as many spaces and kept with its offset; the builder hands it to the
declaration that it stands in.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from dataclasses import dataclass
from itertools import islice

from .sources import KEPT

API_CALL = KEPT["ORT_API_CALL"]
MUST_USE = KEPT["ORT_MUST_USE_RESULT"]
STDCALL = frozenset({API_CALL, "__stdcall", "_stdcall"})
OTHER_CALLS = frozenset({"__cdecl", "_cdecl", "__fastcall", "__thiscall", "__vectorcall"})

_WORD = re.compile(
    r"\b(?:_[A-Z][A-Za-z]*(?:_[a-z]+)*_"
    rf"|{API_CALL}|{MUST_USE}"
    r"|__attribute__|__attribute|__declspec|__asm__|__asm|__extension__"
    r"|__?(?:stdcall|cdecl|fastcall|thiscall|vectorcall)"
    r"|__restrict__|__restrict|__inline__|__inline|__forceinline"
    r"|__volatile__|__volatile|__const__|__const)\b"
)
_QUALIFIERS = ("__volatile", "__const")
_CALLED = re.compile(r"\s*\(")
_PAREN = re.compile(r"[();{}]")
_MOST_PARENS = 400
"""An annotation with more parentheses in it is not looked at to its end."""
_TAKES_ARGUMENTS = ("__attribute", "__declspec", "__asm")
_LAYOUT = re.compile(r"\b(?:__)?(?:packed|aligned|align|mode|vector_size|ms_struct)(?:__)?\b")
_MUST_USE = re.compile(r"\b(?:__)?warn_unused_result(?:__)?\b|\bnodiscard\b")
_STDCALL_ATTRIBUTE = re.compile(r"\b(?:__)?(?:stdcall|ms_abi)(?:__)?\b")


@dataclass(slots=True)
class Markers:
    """All annotations of a text in order; ``words[i]`` was found at ``offsets[i]``."""

    text: str
    offsets: list[int]
    words: list[str]

    def between(self, start: int, end: int) -> list[str]:
        """The annotations with ``start <= offset < end``."""
        return self.words[bisect_left(self.offsets, start) : bisect_left(self.offsets, end)]

    def unbalanced(self) -> list[int]:
        """Offsets of annotations whose parenthesis never closes."""
        return [o for o, w in zip(self.offsets, self.words, strict=True) if w.endswith("(")]


def lift(text: str) -> Markers:
    """Blank every annotation of ``text``, line breaks excepted, and record it."""
    offsets: list[int] = []
    words: list[str] = []
    parts: list[str] = []
    at = 0
    for match in _WORD.finditer(text):
        start, end = match.span()
        if start < at:
            continue
        word = match[0]
        if word.startswith(_QUALIFIERS):
            # Compilers' own spellings of what belongs to the type.
            parts += [text[at:start], word.strip("_").ljust(end - start)]
            at = end
            continue
        if word[1] != "_" or word.startswith(_TAKES_ARGUMENTS):
            end = _arguments(text, end, word)
            if end < 0:
                offsets.append(start)
                words.append(f"{word}(")
                continue
            word = text[start:end]
        offsets.append(start)
        words.append(" ".join(word.split()))
        parts.append(text[at:start])
        parts.append(re.sub(r"[^\n]", " ", word) if "\n" in word else " " * (end - start))
        at = end
    parts.append(text[at:])
    return Markers("".join(parts), offsets, words)


def _arguments(text: str, end: int, word: str) -> int:
    """Where an annotation ends, its arguments included; -1 where they never close."""
    called = _CALLED.match(text, end)
    if called is None or word in STDCALL or word in OTHER_CALLS or word in (API_CALL, MUST_USE):
        return end
    depth = 0
    for paren in islice(_PAREN.finditer(text, called.end() - 1), _MOST_PARENS):
        if paren[0] not in "()":
            return -1
        depth += 1 if paren[0] == "(" else -1
        if depth == 0:
            return paren.end()
    return -1


def is_annotation(word: str) -> bool:
    """Whether a recorded word is SAL, with or without arguments."""
    return word[0] == "_" and word[1:2].isupper()


def is_must_use(word: str) -> bool:
    return word == MUST_USE or (
        word.startswith("__attribute") and _MUST_USE.search(word) is not None
    )


def is_api_call(word: str) -> bool:
    """Whether a word asks for the calling convention of ORT_API_CALL."""
    return word in STDCALL or (
        word.startswith("__attribute") and _STDCALL_ATTRIBUTE.search(word) is not None
    )


def changes_layout(word: str) -> bool:
    """Whether an attribute changes sizes or offsets in a way that the layout engine does not know."""
    return word.startswith(("__attribute", "__declspec")) and _LAYOUT.search(word) is not None


def is_platform_word(word: str) -> bool:
    """Whether an annotation is there on one platform only and tells nothing of the ABI."""
    if word.startswith("_Return_type_success_"):
        return True
    return word.startswith(_TAKES_ARGUMENTS) and not (changes_layout(word) or is_must_use(word))
