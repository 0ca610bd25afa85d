"""Errors of spec files: each with its place and what to do, all of a run together."""

from __future__ import annotations

from dataclasses import dataclass

from .abi import NOWHERE, Location


@dataclass(frozen=True, slots=True)
class Problem:
    """One fault of an input file."""

    loc: Location
    message: str
    hint: str = ""

    def __str__(self) -> str:
        hint = f"\n    hint: {self.hint}" if self.hint else ""
        where = "" if self.loc == NOWHERE else f"{self.loc}: "
        return f"{where}error: {self.message}{hint}"


class SpecErrors(Exception):
    """Every problem that was found, in file and line order."""

    def __init__(self, problems: list[Problem]) -> None:
        self.problems = sorted(problems, key=lambda p: (p.loc.file, p.loc.line, p.loc.column))
        super().__init__("\n".join(map(str, self.problems)))

    def __reduce__(self) -> tuple[type[SpecErrors], tuple[list[Problem]]]:
        """Pickle by the problems: an exception's default is its message."""
        return type(self), (self.problems,)
