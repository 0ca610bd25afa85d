"""What all parts of an update share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property

from ...spec.abi import Abi, Field
from ...spec.ctype import CType, by_value, names_in
from ...spec.model import Model
from .edits import Edits, File

REVIEW = "# review: "
"""How the comment starts that marks what was written."""


@dataclass(frozen=True, slots=True)
class Change:
    """One thing that was written: what, and in which spec file."""

    file: str
    symbol: str
    what: str

    def __str__(self) -> str:
        return f"{self.file}: {self.symbol}: {self.what}"


class Work:
    """The spec as it was, the header, the files with their edits, and since when things are."""

    def __init__(
        self,
        model: Model,
        texts: Mapping[str, str],
        header: Abi,
        records: Mapping[int, Abi],
        rewords: Callable[[str], bool] = lambda symbol: True,
    ) -> None:
        self.rewords = rewords
        """Whether the parameters of a function may be written anew."""
        self.reworded: set[str] = set()
        self.model = model
        self.texts = texts
        self.header = header
        self.release = header.api_version
        self.old = model.at(model.newest)
        self.files = [File(s, texts[s.document.file]) for s in model.sources]
        self.target = self.files[-1]
        self.backends: dict[str, Edits] = {}
        self.changes: list[Change] = []
        self.records = [
            abi for number, abi in sorted(records.items())
            if number <= self.release and not abi.partial
        ]  # fmt: skip

    def note(self, file: File, symbol: str, what: str) -> None:
        self.changes.append(Change(file.name, symbol, what))

    def since(
        self, has: Callable[[Abi], bool], documented: int | None = None
    ) -> tuple[int, int | None]:
        """The release that brought an element, and what its comment says where that is another one."""
        first, before = self.release, 0
        for abi in self.records:
            if has(abi):
                first = abi.api_version
                break
            before = abi.api_version
        if first > self.model.newest:
            before = max(before, self.model.newest)
        elif before == 0 and first == self.release:
            before = first - 1
        if documented is None or documented == first:
            return first, None
        return (documented, None) if before < documented <= first else (first, documented)

    def member_since(self, owner: str, item: Field) -> tuple[int, int | None]:
        def find(abi: Abi) -> Field | None:
            struct = abi.structs.get(owner)
            return struct.field(item.name) if struct else None

        found = [f for f in map(find, self.records) if f is not None]
        documented = item.since or next((f.since for f in found if f.since), None)
        return self.since(lambda abi: find(abi) is not None, documented)

    @cached_property
    def embedded(self) -> set[str]:
        """Structs that are held by value: to grow them moves what follows, whoever has a version."""
        every = (item for s in self.header.structs.values() for item in s.fields)
        return {name for item in every for name in by_value(item.type)}

    @cached_property
    def enumerators(self) -> set[str]:
        """The names of all enumerators that the spec has, their earlier names among them."""
        every = [c for s in self.model.sources for e in s.file.enums for c in e.constants]
        return {c.name for c in every} | {c.renamed.name for c in every if c.renamed}

    @cached_property
    def used_since(self) -> dict[str, int]:
        """The earliest release with a slot or field that mentions a type, directly or by another type."""
        found: dict[str, int] = {}

        def use(ctype: CType, since: int) -> None:
            for name in names_in(ctype):
                if since < found.get(name, self.release + 1):
                    found[name] = since
                    typedef, struct = self.header.typedefs.get(name), self.header.structs.get(name)
                    for inner in [typedef.type] if typedef else []:
                        use(inner, since)
                    for item in struct.fields if struct and name not in self.old.structs else ():
                        use(item.type, since)

        for struct in self.header.structs.values():
            known = self.old.structs.get(struct.name)
            for item in struct.fields if known else ():
                if known is not None and known.field(item.name) is None:
                    use(item.type, self.member_since(struct.name, item)[0])
        return found
