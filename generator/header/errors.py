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
    names: frozenset[str] = frozenset()
    """What else the text seems to declare, such as all that follows a brace that is never closed."""

    @property
    def hidden(self) -> frozenset[str]:
        """Everything of which nothing is known because of this, by dotted name."""
        owner = self.symbol.partition(".")[0]
        if not owner:
            return self.names
        return self.names | {self.symbol, *(f"{owner}.{name}" for name in self.names)}
