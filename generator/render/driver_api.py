"""What templates need of a driver's API: declarations, roles, entry points and assertions, as C."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from ..spec.abi import Abi, Function
from ..spec.backend import BackendSpec, DriverExtension, DriverFunction
from ..spec.ctype import CType, Record, declare, parse_declaration
from ..spec.driver import ROOM, driver_abi, signature
from ..spec.layout import members_of
from .escape import wrap


@dataclass(frozen=True, slots=True)
class EntryPoint:
    """A function of the driver: its slot in the table of entry points, and its signature."""

    name: str
    symbol: str
    slot: str
    optional: bool
    pointer: str
    """The slot's declaration."""
    pointer_type: str
    """The type of a pointer to the function, for the vendor's declaration."""
    when: str | None


@dataclass(frozen=True, slots=True)
class Role:
    """The name that shared sources know an element of the driver's API by."""

    role: str
    name: str


@dataclass(frozen=True, slots=True)
class Extension:
    """A row of a platform's table of extensions."""

    role: str
    name: str
    call: str | None


@dataclass(frozen=True, slots=True)
class Option:
    """An option of graphics interop, as C names."""

    key: str
    macro: str
    field: str
    kind: str
    type: str
    doc: str


OPTION_TYPES = {"handle": "uintptr_t", "index": "uint32_t", "flag": "bool", "text": "const char*"}
"""What each kind of option is in C."""
OPTION_TEXT = "EP_OPTION_TEXT"
"""The one kind that ``EpOptionKind`` of ``ep_options.h`` does not have: it is used as it is."""


@dataclass(frozen=True, slots=True)
class DriverApi:
    """A driver's API, ready for templates."""

    types: tuple[str, ...]
    """Declarations in the order in which they need each other, without semicolons."""
    type_roles: tuple[Role, ...]
    macros: tuple[tuple[str, int], ...]
    constant_roles: tuple[Role, ...]
    functions: tuple[EntryPoint, ...]
    results: tuple[str, ...]
    """The constants of the result enum, one for each value."""
    statuses: tuple[tuple[str, str], ...]
    """Results that become another status than the default one."""
    assertions: tuple[tuple[str | None, str], ...]
    """Conditions that a header of the API must meet: when it has the element, and the expression."""
    kinds: tuple[tuple[str, str, str], ...]
    """Structs that say what they are: name, first field, and the constant in it."""
    extension_roles: tuple[str, ...]
    extensions: tuple[tuple[Extension, ...], ...]
    """The extensions on Windows, and those elsewhere."""
    options: tuple[Option, ...]
    values: tuple[Option, ...]
    """Those that are numbers."""
    options_doc: tuple[str, ...]
    """Lines for the author of an application; an empty one before each paragraph."""


def driver_api(spec: BackendSpec) -> DriverApi:
    """The API that a backend's spec declares."""
    abi = driver_abi(spec)
    result = next((e for e in spec.enums if e.name == spec.result), None)
    constants = result.constants if result else []
    options = tuple(_options(spec))
    first = {c.value: c.name for c in reversed(constants)}
    return DriverApi(
        types=tuple(_types(spec, abi)),
        type_roles=tuple(_type_roles(spec)),
        macros=tuple((m.name, m.value) for m in spec.macros),
        constant_roles=tuple(_constant_roles(spec)),
        functions=tuple(_entry_point(f) for f in spec.functions),
        results=tuple(c.name for c in constants if first[c.value] == c.name),
        statuses=tuple(
            (c.name, c.status) for c in constants if c.status and first[c.value] == c.name
        ),
        assertions=tuple(_assertions(spec, abi)),
        kinds=tuple(
            (s.name, parse_declaration(s.fields[0]).name, s.kind) for s in spec.structs if s.kind
        ),
        extension_roles=tuple(dict.fromkeys(_role(e) for e in spec.extensions)),
        extensions=tuple(_extensions(spec)),
        options=options,
        values=tuple(o for o in options if o.kind != OPTION_TEXT),
        options_doc=tuple(_options_doc(spec)),
    )


def _role(extension: DriverExtension) -> str:
    return f"DRIVER_{extension.role.upper()}"


def _extensions(spec: BackendSpec) -> Iterator[tuple[Extension, ...]]:
    for platform in ("windows", "linux"):
        rows = [e for e in spec.extensions if platform in e.platforms]
        yield tuple(Extension(_role(e), e.name, e.call) for e in rows)


def _options(spec: BackendSpec) -> Iterator[Option]:
    prefix = f"{spec.backend}_"
    for option in spec.graphics.options if spec.graphics else ():
        field = option.key.lower().removeprefix(prefix)
        yield Option(
            key=option.key,
            macro=f"{prefix}OPTION_{field}".upper(),
            field=field,
            kind=f"EP_OPTION_{option.kind.upper()}",
            type=OPTION_TYPES[option.kind],
            doc=option.doc,
        )


def _options_doc(spec: BackendSpec) -> Iterator[str]:
    for paragraph in spec.graphics.doc.strip().split("\n\n") if spec.graphics else ():
        yield ""
        yield from wrap(" ".join(paragraph.split()), 97)


def _types(spec: BackendSpec, abi: Abi) -> Iterator[str]:
    for opaque in spec.opaque:
        base = f"struct {opaque.tag}" if opaque.tag else "void"
        yield f"typedef {base}* {opaque.name}"
    for enum in spec.enums:
        body = ", ".join(f"{c.name} = {c.value}" for c in enum.constants)
        yield f"typedef enum {enum.name} {{ {body} }} {enum.name}"
    for name, typedef in abi.typedefs.items():
        if all(name != opaque.name for opaque in spec.opaque):
            yield f"typedef {declare(typedef.type, name)}"
    for struct in abi.structs.values():
        body = " ".join(f"{declare(f.type, f.name)};" for f in struct.fields)
        yield f"typedef struct {struct.name} {{ {body} }} {struct.name}"


def _type_roles(spec: BackendSpec) -> Iterator[Role]:
    for section in (spec.opaque, spec.enums, spec.structs):
        for element in section:
            if element.role:
                yield Role(element.role, element.name)
    for typedef in spec.typedefs:
        if typedef.role:
            yield Role(typedef.role, parse_declaration(typedef.declares).name)


def _constant_roles(spec: BackendSpec) -> Iterator[Role]:
    for constants in ([c for e in spec.enums for c in e.constants], spec.macros):
        for constant in constants:
            if constant.role:
                yield Role(constant.role, constant.name)


def _entry_point(function: DriverFunction) -> EntryPoint:
    slot = function.role or function.name
    found = signature(function)
    return EntryPoint(
        name=function.name,
        symbol=function.symbol or function.name,
        slot=slot,
        optional=function.optional,
        pointer=_pointer(found, f"(DRIVER_CALL* {slot})"),
        pointer_type=_pointer(found, "(DRIVER_CALL*)"),
        when=function.when,
    )


def _pointer(function: Function, declarator: str) -> str:
    return declare(function.returns, f"{declarator}({parameters(function)})")


def parameters(function: Function) -> str:
    """What stands in the parentheses of a signature."""
    return ", ".join(declare(p.type, p.name) for p in function.params) or "void"


def _assertions(spec: BackendSpec, abi: Abi) -> Iterator[tuple[str | None, str]]:
    for enum in spec.enums:
        yield None, f"sizeof({enum.name}) == 4"
        for constant in enum.constants:
            yield constant.when, f"{constant.name} == {constant.value}"
    for macro in spec.macros:
        yield macro.when, f"{macro.name} == {macro.value}"
    declared = {s.name: s for s in spec.structs}
    for struct in abi.structs.values():
        when = declared[struct.name].when
        if declared[struct.name].room is None:
            size = f"DRIVER_BY_MODEL({struct.size}, {struct.size_win64})"
            yield when, f"sizeof({struct.name}) == {size}"
        for field in struct.fields:
            if field.name == ROOM:
                continue
            base = (field.offset or 0, field.offset_win64 or 0)
            for path, (unix, windows) in _places(abi, field.name, field.type, base):
                where = f"DRIVER_BY_MODEL({unix}, {windows})"
                yield when, f"offsetof({struct.name}, {path}) == {where}"


def _places(
    abi: Abi, path: str, ctype: CType, at: tuple[int, int]
) -> Iterable[tuple[str, tuple[int, int]]]:
    """A member and, if it is an anonymous struct or union, what is inside of it."""
    yield path, at
    if isinstance(ctype, Record):
        for name, inner, (unix, windows) in members_of(abi, ctype):
            yield from _places(abi, f"{path}.{name}", inner, (at[0] + unix, at[1] + windows))
