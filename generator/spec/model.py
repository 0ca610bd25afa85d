"""The resolved spec: one value that every later stage works from."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from .abi import (
    NOWHERE,
    Abi,
    Constant,
    Doc,
    Enum,
    Export,
    Field,
    Function,
    Location,
    Macro,
    Opaque,
    Param,
    Struct,
    Typedef,
    function_pointer,
)
from .backend import BackendSpec
from .ctype import Named, Record, parse_declaration, parse_type
from .layout import compute
from .schema import (
    ConstantSpec,
    Element,
    EnumSpec,
    ExportSpec,
    FieldSpec,
    FunctionSpec,
    HandleSpec,
    ParamSpec,
    Semantics,
    SlotSpec,
    SpecFile,
    StructSpec,
    TypedefSpec,
    Versions,
)
from .yamlfile import Document

STATUS = Named("OrtStatusPtr")
STATUS_SAL = ("_Check_return_", "_Ret_maybenull_")


@dataclass(frozen=True, slots=True)
class Source:
    """One spec file: its parsed content and where each node of it stands."""

    document: Document
    file: SpecFile


@dataclass(frozen=True, slots=True)
class Backend:
    """One backend's spec with its places."""

    name: str
    spec: BackendSpec
    document: Document


@dataclass(frozen=True, slots=True)
class ParamMeaning:
    """What is known of a parameter beyond its type."""

    name: str
    direction: str
    nullable: bool
    doc: str = ""


@dataclass(frozen=True, slots=True)
class Meaning:
    """What is known of a function beyond its types, from the spec's semantic fields and from SAL."""

    doc: str = ""
    params: tuple[ParamMeaning, ...] = ()
    creates: str | None = None
    releases: str | None = None
    borrows: tuple[tuple[str, str], ...] = ()
    unsupported: str | None = None
    threads: str | None = None
    errors: tuple[tuple[str, str], ...] = ()


@dataclass
class Model:
    """A whole, consistent spec.  ``at`` narrows it to what one release has."""

    sources: tuple[Source, ...]
    versions: Versions
    backends: dict[str, Backend] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._abis: dict[int, Abi] = {}
        self.semantics: dict[str, Meaning] = dict(_meanings(self.sources))
        self.docs: dict[str, str] = dict(_docs(self.sources))
        self.handles: dict[str, HandleSpec] = {
            h.type: h for s in self.sources for h in s.file.handles
        }
        self.struct_kinds: dict[str, str] = {
            s.name: s.kind for f in self.sources for s in f.file.structs
        }
        self.version_fields: dict[str, str] = {
            s.name: s.version_field for f in self.sources for s in f.file.structs if s.version_field
        }
        self.flag_enums: frozenset[str] = frozenset(
            e.name for f in self.sources for e in f.file.enums if e.flags
        )
        self.optional_exports: frozenset[str] = frozenset(
            e.name for f in self.sources for e in f.file.functions if e.optional
        )

    @property
    def floor(self) -> int:
        """The oldest release with the interop API."""
        return self.versions.floor

    @property
    def newest(self) -> int:
        """The newest release whose public tables the spec knows."""
        return self.versions.newest

    @property
    def ep_structs(self) -> int:
        """The newest release whose EP structs the spec knows whole."""
        return self.versions.ep_structs

    @property
    def abi(self) -> Abi:
        """The ABI of the newest release."""
        return self.at(self.newest)

    def at(self, release: int) -> Abi:
        """What a release has, in declaration order, with layouts computed."""
        if release not in self._abis:
            self._abis[release] = _narrow(self.sources, release)
        return self._abis[release]

    def renames(self) -> Iterator[tuple[str, ConstantSpec]]:
        """Every renamed enumerator with its enum's name."""
        for source in self.sources:
            for enum in source.file.enums:
                for constant in enum.constants:
                    if constant.renamed is not None:
                        yield enum.name, constant


def header_at(element: Element, default: str, release: int) -> str:
    """The header that declares an element in a release."""
    if element.moved is not None and release < element.moved.release:
        return element.moved.header
    return element.header or default


def _narrow(sources: tuple[Source, ...], release: int) -> Abi:
    abi = Abi(release, f"1.{release}")
    for source in sources:
        _Narrower(source, release, abi).run()
    abi.macros["ORT_API_VERSION"] = Macro("ORT_API_VERSION", str(release))
    compute(abi)
    return abi


class _Narrower:
    """Adds what one spec file says of one release to an Abi."""

    def __init__(self, source: Source, release: int, abi: Abi) -> None:
        self.marks = source.document.marks
        self.file = source.file
        self.release = release
        self.abi = abi

    def loc(self, *path: str | int) -> Location:
        return self.marks.get(path, NOWHERE)

    def has(self, since: int | None) -> bool:
        return since is None or since <= self.release

    def header(self, element: Element) -> str:
        return header_at(element, self.file.header, self.release)

    def run(self) -> None:
        file, abi = self.file, self.abi
        for index, enum in enumerate(file.enums):
            if self.has(enum.since):
                abi.enums[enum.name] = self.enum(enum, index)
        for index, opaque in enumerate(file.opaque):
            if self.has(opaque.since):
                abi.opaque[opaque.name] = Opaque(
                    opaque.name, self.header(opaque), opaque.since, self.loc("opaque", index)
                )
        for index, struct in enumerate(file.structs):
            if self.has(struct.since):
                abi.structs[struct.name] = self.struct(struct, index)
        for index, typedef in enumerate(file.typedefs):
            if self.has(typedef.since):
                abi.typedefs[typedef.name] = self.typedef(typedef, index)
        for index, export in enumerate(file.functions):
            if self.has(export.since):
                abi.functions[export.name] = self.export(export, index)
        for index, macro in enumerate(file.macros):
            if self.has(macro.since):
                abi.macros[macro.name] = Macro(macro.name, macro.value, self.loc("macros", index))

    def enum(self, enum: EnumSpec, index: int) -> Enum:
        constants = []
        for at, constant in enumerate(enum.constants):
            since = constant.since if constant.since is not None else enum.since
            if not self.has(since):
                continue
            loc = self.loc("enums", index, "constants", at)
            name = constant.name
            renamed = constant.renamed
            if renamed is not None and self.release < renamed.release:
                name = renamed.name
            elif renamed is not None and renamed.alias:
                self.abi.macros[renamed.name] = Macro(renamed.name, constant.name, loc)
            constants.append(Constant(name, constant.value, since, None, loc))
        return Enum(
            enum.name,
            tuple(constants),
            self.header(enum),
            enum.since,
            None,
            self.loc("enums", index),
        )

    def struct(self, struct: StructSpec, index: int) -> Struct:
        fields = []
        for at, member in enumerate(struct.fields):
            since = member.since if member.since is not None else struct.since
            if not self.has(since):
                continue
            loc = self.loc("structs", index, "fields", at)
            doc = (
                Doc(since=member.documented_since) if member.documented_since is not None else None
            )
            if isinstance(member, SlotSpec):
                function = self.function(member, ("structs", index, "fields", at))
                fields.append(
                    Field(
                        member.slot, function_pointer(function), function, since, doc=doc, loc=loc
                    )
                )
            else:
                name, ctype = field_type(member)
                fields.append(Field(name, ctype, None, since, doc=doc, loc=loc))
        return Struct(
            struct.name,
            tuple(fields),
            "struct",
            self.header(struct),
            since=struct.since,
            loc=self.loc("structs", index),
        )

    def function(self, spec: FunctionSpec, path: tuple[str | int, ...]) -> Function:
        params = []
        for at, item in enumerate(spec.params):
            text = param_text(item, self.release)
            found = parse_declaration(text)
            loc = self.loc(*path, "params", at)
            params.append(Param(found.name, found.type, found.sal, loc))
        if spec.returns == "status":
            return Function(STATUS, tuple(params), STATUS_SAL, True, True)
        returns = parse_type(spec.returns)
        return Function(
            returns, tuple(params), tuple(spec.return_sal), spec.must_use, spec.call == "api"
        )

    def typedef(self, typedef: TypedefSpec, index: int) -> Typedef:
        loc = self.loc("typedefs", index)
        if typedef.function is not None:
            function = self.function(typedef.function, ("typedefs", index, "function"))
            return Typedef(
                typedef.name,
                function_pointer(function),
                function,
                self.header(typedef),
                typedef.since,
                None,
                loc,
            )
        ctype = parse_type(typedef.type or "void")
        return Typedef(typedef.name, ctype, None, self.header(typedef), typedef.since, None, loc)

    def export(self, export: ExportSpec, index: int) -> Export:
        function = self.function(export.function, ("functions", index, "function"))
        return Export(
            export.name,
            function,
            self.header(export),
            export.since,
            None,
            self.loc("functions", index),
        )


def param_text(item: str | ParamSpec, release: int) -> str:
    """How a parameter is declared in a release."""
    if isinstance(item, str):
        return item
    earlier = [b for b in item.before if release < b.release]
    return min(earlier, key=lambda b: b.release).decl if earlier else item.decl


def field_type(member: FieldSpec) -> tuple[str, Any]:
    """The name and type of a data field."""
    if member.union:
        found = [parse_declaration(text) for text in member.union]
        return member.field, Record("union", tuple((d.name, d.type) for d in found))
    declared = parse_declaration(member.field)
    return declared.name, declared.type


@lru_cache(maxsize=4096)
def direction_of(text: str) -> str:
    """A parameter's direction as SAL tells it; without SAL, a parameter is read."""
    sal = " ".join(parse_declaration(text).sal)
    if "_Inout_" in sal:
        return "inout"
    if "_Out" in sal:
        return "out"
    return "in"


@lru_cache(maxsize=4096)
def nullable_of(text: str) -> bool:
    """Whether SAL lets a pointer parameter be null."""
    sal = parse_declaration(text).sal
    return any("_opt_" in s.partition("(")[0] for s in sal)


def _param_meaning(item: str | ParamSpec, docs: dict[str, str]) -> ParamMeaning:
    text = item if isinstance(item, str) else item.decl
    name = parse_declaration(text).name
    direction, nullable, doc = direction_of(text), nullable_of(text), docs.get(name, "")
    if isinstance(item, ParamSpec):
        direction = item.direction or direction
        nullable = nullable if item.nullable is None else item.nullable
        doc = item.doc or doc
    return ParamMeaning(name, direction, nullable, doc)


def _meaning(function: FunctionSpec, note: Semantics, docs: dict[str, str]) -> Meaning:
    return Meaning(
        note.doc or "",
        tuple(_param_meaning(p, docs) for p in function.params),
        note.creates,
        note.releases,
        tuple((b.param, b.until) for b in note.borrows),
        note.unsupported,
        note.threads,
        tuple((e.code, e.when) for e in note.errors),
    )


def _functions(source: Source) -> Iterator[tuple[str, FunctionSpec]]:
    for struct in source.file.structs:
        for member in struct.fields:
            if isinstance(member, SlotSpec):
                yield f"{struct.name}.{member.slot}", member
    for typedef in source.file.typedefs:
        if typedef.function is not None:
            yield typedef.name, typedef.function
    for export in source.file.functions:
        yield export.name, export.function


def _meanings(sources: tuple[Source, ...]) -> Iterator[tuple[str, Meaning]]:
    notes = {note.slot: note for source in sources for note in source.file.annotate}
    for source in sources:
        for name, function in _functions(source):
            note = notes.get(name)
            yield name, _meaning(function, note or function, note.params if note else {})


def _docs(sources: tuple[Source, ...]) -> Iterator[tuple[str, str]]:
    """The documentation of types, constants and fields by (dotted) name."""
    for source in sources:
        elements: list[Element] = [
            *source.file.enums,
            *source.file.structs,
            *source.file.opaque,
            *source.file.typedefs,
        ]
        for element in elements:
            if element.doc:
                yield element.name, element.doc
        for enum in source.file.enums:
            for constant in enum.constants:
                if constant.doc:
                    yield constant.name, constant.doc
        for struct in source.file.structs:
            for member in struct.fields:
                if isinstance(member, FieldSpec) and member.doc:
                    yield f"{struct.name}.{field_type(member)[0]}", member.doc
        for handle in source.file.handles:
            yield handle.type, handle.doc
