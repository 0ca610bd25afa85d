"""The ABI of one release as plain facts: what a compiler would see, with where it was written.

A spec narrowed to a release, a recorded facts file and a parsed header all become an :class:`Abi`,
so that every comparison in the project is between two values of one kind.  Locations and
documentation never take part in equality.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from .ctype import ByFields, CType, FunctionType, Pointer, decay

NO_LOCATION_FILE = "<unknown>"


@dataclass(frozen=True, slots=True)
class Location(ByFields):
    """Where an element was read: a file, a 1-based line and, where known, a 1-based column."""

    file: str = NO_LOCATION_FILE
    line: int = 0
    column: int = 0

    def __str__(self) -> str:
        column = f":{self.column}" if self.column else ""
        return f"{self.file}:{self.line}{column}" if self.line else self.file


NOWHERE = Location()

ASPECTS = {
    "path_char": "whether a `char` is an ORTCHAR_T",
    "must_use": "whether a result must be used",
    "calling_convention": "whether a function is declared with ORT_API_CALL",
    "sal_arguments": "the arguments of SAL annotations",
    "callback_return_sal": "SAL annotations on the results of typedefs and exported functions",
    "opaque_header": "which header declares an opaque type",
}
"""Facts that some records leave out, with their meaning."""


@dataclass(slots=True)
class Doc(ByFields):
    """A documentation comment of a header, reduced to the facts that the checks need."""

    text: str = ""
    since: int | None = None
    params: tuple[tuple[str, str], ...] = ()
    """``(direction, name)`` of each ``\\param``, in order; direction is ``in``, ``out``, ``in,out`` or empty."""


@dataclass(slots=True)
class Param(ByFields):
    """A parameter of a slot, callback or exported function."""

    name: str
    type: CType
    sal: tuple[str, ...] = ()
    loc: Location = field(default=NOWHERE, compare=False)


@dataclass(slots=True)
class Function(ByFields):
    """A signature with what the header says about it beside the types."""

    returns: CType
    params: tuple[Param, ...] = ()
    return_sal: tuple[str, ...] = ()
    must_use: bool = False
    """The result carries ``warn_unused_result`` (``ORT_MUST_USE_RESULT``)."""
    api_call: bool = True
    """Declared with ``ORT_API_CALL`` (``__stdcall`` on 32-bit Windows); False for plain C callbacks."""
    variadic: bool = False

    @property
    def type(self) -> FunctionType:
        return FunctionType(self.returns, tuple(decay(p.type) for p in self.params), self.variadic)


@dataclass(slots=True)
class Field(ByFields):
    """A field of a struct, or a slot of a function table (then ``function`` is set)."""

    name: str
    type: CType
    function: Function | None = None
    since: int | None = None
    offset: int | None = None
    offset_win64: int | None = None
    doc: Doc | None = field(default=None, compare=False)
    loc: Location = field(default=NOWHERE, compare=False)


@dataclass(slots=True)
class Struct(ByFields):
    """A complete struct or union, with its layout where it is known."""

    name: str
    fields: tuple[Field, ...]
    kind: str = "struct"
    header: str = ""
    size: int | None = None
    size_win64: int | None = None
    since: int | None = None
    doc: Doc | None = field(default=None, compare=False)
    loc: Location = field(default=NOWHERE, compare=False)

    def field(self, name: str) -> Field | None:
        return next((f for f in self.fields if f.name == name), None)


@dataclass(slots=True)
class Constant(ByFields):
    """An enumerator with its value as a C compiler has it (a signed int)."""

    name: str
    value: int
    since: int | None = None
    doc: Doc | None = field(default=None, compare=False)
    loc: Location = field(default=NOWHERE, compare=False)


@dataclass(slots=True)
class Enum(ByFields):
    name: str
    constants: tuple[Constant, ...]
    header: str = ""
    since: int | None = None
    doc: Doc | None = field(default=None, compare=False)
    loc: Location = field(default=NOWHERE, compare=False)


@dataclass(slots=True)
class Typedef(ByFields):
    """A typedef that is not just the name of a struct or enum; callbacks carry ``function``."""

    name: str
    type: CType
    function: Function | None = None
    header: str = ""
    since: int | None = None
    doc: Doc | None = field(default=None, compare=False)
    loc: Location = field(default=NOWHERE, compare=False)


@dataclass(slots=True)
class Export(ByFields):
    """A function that the library exports by name."""

    name: str
    function: Function
    header: str = ""
    since: int | None = None
    doc: Doc | None = field(default=None, compare=False)
    loc: Location = field(default=NOWHERE, compare=False)


@dataclass(slots=True)
class Opaque(ByFields):
    """A struct that is only ever used through pointers."""

    name: str
    header: str = ""
    since: int | None = None
    loc: Location = field(default=NOWHERE, compare=False)


@dataclass(slots=True)
class Macro(ByFields):
    """An object-like macro that is part of the ABI, with its replacement text."""

    name: str
    value: str
    loc: Location = field(default=NOWHERE, compare=False)


@dataclass(slots=True)
class Abi:
    """All facts of one release, by name and in declaration order."""

    api_version: int
    release: str = ""
    enums: dict[str, Enum] = field(default_factory=dict)
    structs: dict[str, Struct] = field(default_factory=dict)
    opaque: dict[str, Opaque] = field(default_factory=dict)
    typedefs: dict[str, Typedef] = field(default_factory=dict)
    functions: dict[str, Export] = field(default_factory=dict)
    macros: dict[str, Macro] = field(default_factory=dict)
    partial: bool = False
    """Only a part of the release is known (a delta record): what is missing here says nothing."""
    lacks: frozenset[str] = frozenset()
    """What this record does not tell, of :data:`ASPECTS`: comparisons leave it out."""
    platform: dict[str, str] = field(default_factory=dict)
    """A header's own text for the macros that differ by platform, such as ORT_API_CALL."""
    platform_locs: dict[str, Location] = field(default_factory=dict, compare=False)
    """Where the header defines these, for the view that was read."""

    def signatures(self) -> Iterator[tuple[str, Function]]:
        """Every signature with a dotted name for messages."""
        for struct in self.structs.values():
            for slot in struct.fields:
                if slot.function is not None:
                    yield f"{struct.name}.{slot.name}", slot.function
        for typedef in self.typedefs.values():
            if typedef.function is not None:
                yield typedef.name, typedef.function
        for export in self.functions.values():
            yield export.name, export.function


def function_pointer(function: Function) -> Pointer:
    """The field or typedef type that holds such a function."""
    return Pointer(function.type)
