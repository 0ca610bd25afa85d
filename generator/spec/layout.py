"""Where a C compiler puts the fields of a struct, on LP64 (Linux) and LLP64 (64-bit Windows).

Both data models are computed side by side, so that a spec or a header can be checked for Windows
on Linux and the other way round.  No packing pragmas and no bit-fields: the API has neither.
"""

from __future__ import annotations

from dataclasses import dataclass

from .abi import Abi, Enum, Struct
from .ctype import FIXED, POINTER_SIZE, Array, CType, FunctionType, Named, Pointer, Record

INT_MIN, INT_MAX, UINT_MAX = -(2**31), 2**31 - 1, 2**32 - 1

Measure = tuple[int, int]
"""Size and alignment in bytes."""
Measures = tuple[Measure, Measure]
"""The same type on LP64 and on LLP64."""

_POINTER: Measures = ((POINTER_SIZE, POINTER_SIZE), (POINTER_SIZE, POINTER_SIZE))


@dataclass(frozen=True, slots=True)
class LayoutProblem:
    """A field whose place cannot be known: its type is incomplete, unknown or contains itself."""

    struct: str
    field: str
    message: str


class _Unmeasurable(Exception):
    pass


def enum_measures(enum: Enum) -> Measures:
    """The storage of an enum: ``int``, unless GCC needs a wider type for a constant's value.

    MSVC and MinGW keep ``int`` storage for the values that the API uses; the wider form follows
    GCC on both, because MSVC truncates such a constant and the header would be wrong already.
    """
    low = min((c.value for c in enum.constants), default=0)
    high = max((c.value for c in enum.constants), default=0)
    wide = not (low >= INT_MIN and high <= (INT_MAX if low < 0 else UINT_MAX))
    measure = (8, 8) if wide else (4, 4)
    return measure, measure


class _Engine:
    def __init__(self, abi: Abi) -> None:
        self.abi = abi
        self.structs: dict[str, Measures] = {}
        self.problems: list[LayoutProblem] = []
        self.active: set[str] = set()
        self.failed: set[str] = set()

    def measure(self, ctype: CType) -> Measures:
        match ctype:
            case Pointer():
                return _POINTER
            case Named(name):
                return self.named(name)
            case Array(of, length):
                if length is None:
                    raise _Unmeasurable("an array without a length has no size")
                (size, align), (size_win, align_win) = self.measure(of)
                return (size * length, align), (size_win * length, align_win)
            case Record(kind, members):
                return self.aggregate(kind, [t for _, t in members])[1]
            case FunctionType():
                raise _Unmeasurable("a function has no size; a pointer to it was meant")
        raise AssertionError(f"unknown type node {ctype!r}")

    def named(self, name: str) -> Measures:
        if name in FIXED:
            width = FIXED[name]
            return (width.lp64, width.lp64), (width.llp64, width.llp64)
        if name in self.structs:
            return self.structs[name]
        if name in self.abi.enums:
            return enum_measures(self.abi.enums[name])
        if name in self.active:
            raise _Unmeasurable(f"'{name}' contains itself by value")
        if name in self.abi.typedefs:
            self.active.add(name)
            try:
                return self.measure(self.abi.typedefs[name].type)
            finally:
                self.active.discard(name)
        if name in self.abi.structs:
            measures = self.struct(self.abi.structs[name])
            if measures is None:
                raise _Unmeasurable(f"the layout of '{name}' is not known")
            return measures
        if name in self.abi.opaque:
            raise _Unmeasurable(f"'{name}' is opaque; only pointers to it may be used")
        raise _Unmeasurable(f"'{name}' is not a known type")

    def aggregate(self, kind: str, types: list[CType]) -> tuple[list[tuple[int, int]], Measures]:
        offsets: list[list[int]] = [[], []]
        ends, aligns = [0, 0], [1, 1]
        for ctype in types:
            for at, (size, align) in enumerate(self.measure(ctype)):
                aligns[at] = max(aligns[at], align)
                if kind == "union":
                    offsets[at].append(0)
                    ends[at] = max(ends[at], size)
                else:
                    start = -(-ends[at] // align) * align
                    offsets[at].append(start)
                    ends[at] = start + size
        sizes = [-(-end // align) * align for end, align in zip(ends, aligns, strict=True)]
        return (
            list(zip(offsets[0], offsets[1], strict=True)),
            ((sizes[0], aligns[0]), (sizes[1], aligns[1])),
        )

    def struct(self, struct: Struct) -> Measures | None:
        if struct.name in self.structs:
            return self.structs[struct.name]
        if struct.name in self.failed:
            return None
        self.active.add(struct.name)
        try:
            for item in struct.fields:
                try:
                    self.measure(item.type)
                except _Unmeasurable as problem:
                    self.problems.append(LayoutProblem(struct.name, item.name, str(problem)))
                    self.failed.add(struct.name)
            if struct.name in self.failed:
                return None
            offsets, measures = self.aggregate(struct.kind, [f.type for f in struct.fields])
        finally:
            self.active.discard(struct.name)
        for item, (lp64, llp64) in zip(struct.fields, offsets, strict=True):
            item.offset, item.offset_win64 = lp64, llp64
        struct.size, struct.size_win64 = measures[0][0], measures[1][0]
        self.structs[struct.name] = measures
        return measures


def members_of(abi: Abi, record: Record) -> list[tuple[str, CType, tuple[int, int]]]:
    """Name, type and offset (LP64, LLP64) of each member of an anonymous struct or union."""
    offsets, _ = _Engine(abi).aggregate(record.kind, [ctype for _, ctype in record.members])
    return [(*member, at) for member, at in zip(record.members, offsets, strict=True)]


def compute(abi: Abi) -> list[LayoutProblem]:
    """Fill in the offset of every field and the size of every struct of ``abi``, for both models.

    A struct that cannot be laid out keeps ``None`` in both places and is named in the result.
    """
    engine = _Engine(abi)
    for struct in abi.structs.values():
        engine.struct(struct)
    return engine.problems
