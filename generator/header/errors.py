"""What can go wrong while a header is read."""

from __future__ import annotations

from dataclasses import dataclass

from ..spec.abi import NOWHERE, Location
from ..spec.ctype import Named

UNREADABLE = Named("<unreadable>")
"""The type of a field that could not be read."""


class HeaderError(Exception):
    """The header cannot be read at all; ``hint`` says what to do about it."""

    def __init__(self, message: str, loc: Location = NOWHERE, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.loc = loc
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.loc}: {self.message}" if self.loc != NOWHERE else self.message


@dataclass(frozen=True, slots=True)
class Unreadable:
    """One declaration that could not be taken in, while the rest of the header was."""

    loc: Location
    message: str
    text: str = ""
    symbol: str = ""
    """``Struct.field``, ``Struct`` or a function's name, where it can be told."""
