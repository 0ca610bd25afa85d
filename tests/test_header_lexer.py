"""The short lexer is pycparser's own, faster: the same tokens at the same places."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ort_interop_gen.header.lexer import ShortLexer, lexer_class
from pycparser.c_lexer import CLexer

HEADERS = Path(__file__).parent / "data" / "headers"
PIECES = [
    *("int", "FxT", "L", "u8", "x1", "_In_", "typedef", "0x1F", "017", "1.5e3", "'a'", '"text"', "L'a'"),
    *(" ", "\t", "\n", "\f", "\v", "\r", "\\\n", "(", ")", "{", "}", ",", ";", "*", "*=", "=", "==", "["),
    *("]", "[[", "]]", "...", "->", "<<=", "#", "#pragma once\n", '# 3 "f.h"\n', "@", "`", "\u00e9", "'", '"'),
]  # fmt: skip


def tokens(lexer: type[CLexer], text: str) -> list[object]:
    faults: list[object] = []
    made = lexer(lambda *fault: faults.append(fault))
    made.input(text, "f.h")
    found: list[object] = []
    while (token := made.token()) is not None:
        found.append((token.type, token.value, token.lineno, token.column, token.filename))
    return [*found, *faults]


def test_the_short_lexer_is_in_use_here() -> None:
    assert lexer_class() is ShortLexer


@pytest.mark.parametrize("path", sorted(HEADERS.glob("*.h")), ids=lambda p: p.name)
def test_the_fixtures_have_the_same_tokens(path: Path) -> None:
    text = path.read_text()
    assert tokens(ShortLexer, text) == tokens(CLexer, text)


@given(st.lists(st.sampled_from(PIECES), max_size=30).map("".join))
def test_any_text_has_the_same_tokens(text: str) -> None:
    assert tokens(ShortLexer, text) == tokens(CLexer, text)


def test_another_pycparser_gets_its_own_lexer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(CLexer, "_make_token")
    assert lexer_class() is CLexer
