"""What all parts of a comparison share."""

from __future__ import annotations

from collections.abc import Collection
from typing import TypeAlias

from ...header.errors import Unreadable
from ...spec.abi import (
    NOWHERE,
    Abi,
    Constant,
    Doc,
    Enum,
    Export,
    Field,
    Location,
    Opaque,
    Struct,
    Typedef,
)
from ...spec.ctype import CType
from ..finding import Finding
from ..rules import RULES
from .spelling import plain_chars, spelled_out

Type: TypeAlias = "Enum | Struct | Opaque | Typedef"


class Context:
    """Both sides of a comparison, what was found so far, and the questions that every part asks.

    ``base`` is what messages call the first side.
    """

    def __init__(
        self, spec: Abi, header: Abi, unreadable: Collection[Unreadable], base: str
    ) -> None:
        self.base = base
        self.spec = spec
        self.header = header
        self.unreadable = unreadable
        self.unread = {name for u in unreadable for name in u.hidden}
        self.unread_owners = {s.partition(".")[0] for s in self.unread}
        self.lacks = spec.lacks | header.lacks
        self.plain = "path_char" in self.lacks
        self.files = (_files(spec), _files(header))
        self.found: list[Finding] = []
        self.users: tuple[dict[str, frozenset[str]], dict[str, frozenset[str]]] | None = None

    def add(
        self,
        rule: str,
        symbol: str,
        message: str,
        expected: str = "",
        actual: str = "",
        spec_loc: Location = NOWHERE,
        header_loc: Location = NOWHERE,
        hint: str = "",
    ) -> None:
        """Report a finding, with the severity and (unless one is given) the hint of its rule."""
        known = RULES[rule]
        self.found.append(
            Finding(
                rule,
                known.severity,
                symbol,
                message,
                expected,
                actual,
                spec_loc,
                header_loc,
                hint or known.hint,
            )
        )

    def same_type(self, old: CType, new: CType) -> bool:
        """Whether two types are one to a compiler, as far as both sides record it."""
        if old == new:
            return True
        one, other = spelled_out(old, self.spec), spelled_out(new, self.header)
        if one == other:
            return True
        return self.plain and plain_chars(one) == plain_chars(other)

    def same_field(self, old: Field, new: Field) -> bool:
        return self.same_type(old.type, new.type)

    def since(
        self,
        symbol: str,
        old: Struct | Enum | Typedef | Field | Export | Constant,
        new: Struct | Enum | Typedef | Field | Export | Constant,
    ) -> None:
        """Whether the header's comment names another release for an element than the spec does."""
        stated = new.since
        doc: Doc | None = old.doc
        expected = doc.since if doc is not None and doc.since is not None else old.since
        # Where the spec knows that ORT's comment is wrong, a header that has corrected it is right.
        if stated is None or expected is None or stated in (expected, old.since):
            return
        self.add(
            "since-changed",
            symbol,
            f"says since 1.{stated}, {self.base} 1.{expected}: version gates go wrong",
            f"1.{expected}",
            f"1.{stated}",
            old.loc,
            new.loc,
        )

    def declared_in(self, name: str, old: Type | Export, new: Type | Export) -> None:
        """Whether an element went to a header that the first side does not have."""
        before, after = self.files
        if not old.header or new.header in before or old.header not in after:
            return
        if isinstance(old, Opaque) and "opaque_header" in self.lacks:
            return
        self.add(
            "header-moved",
            name,
            f"is declared in {new.header} now: copies and includes of {old.header} alone lack it",
            old.header,
            new.header,
            old.loc,
            new.loc,
        )

    def main_file(self) -> str:
        """The header's main file: the place of what is not there."""
        version = self.header.macros.get("ORT_API_VERSION")
        return version.loc.file if version else NOWHERE.file


def types_of(abi: Abi) -> dict[str, Type]:
    """All types by name."""
    return {**abi.opaque, **abi.typedefs, **abi.enums, **abi.structs}


def _files(abi: Abi) -> frozenset[str]:
    return frozenset(e.header for e in (*types_of(abi).values(), *abi.functions.values()))
