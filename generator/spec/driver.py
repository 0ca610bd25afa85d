"""The API of a backend's driver as plain facts: its types laid out, and what is wrong with them."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator

from .abi import Abi, Constant, Enum, Export, Field, Function, Param, Struct, Typedef
from .backend import BackendSpec, DriverFunction, Graphics
from .ctype import FIXED, Array, CType, Named, Pointer, names_in, parse_declaration, parse_type
from .layout import compute
from .yamlfile import Path_

Fault = tuple[Path_, str, str]
"""Where in the backend's file, what is wrong, and a hint (or none)."""

ROOM = "room_for_the_rest"
"""The field that takes the place of those that a spec leaves out of a struct's end."""

_SECTIONS = ("opaque", "typedefs", "enums", "macros", "structs", "functions")


def driver_abi(spec: BackendSpec) -> Abi:
    """The types and functions that a backend declares, each struct with its layout."""
    abi = Abi(api_version=0, release=spec.backend)
    for opaque in spec.opaque:
        abi.typedefs[opaque.name] = Typedef(opaque.name, Pointer(Named(opaque.tag or "void")))
    for enum in spec.enums:
        constants = tuple(Constant(c.name, c.value) for c in enum.constants)
        abi.enums[enum.name] = Enum(enum.name, constants)
    for typedef in spec.typedefs:
        declared = parse_declaration(typedef.declares)
        abi.typedefs[declared.name] = Typedef(declared.name, declared.type)
    for struct in spec.structs:
        declarations = [parse_declaration(text) for text in struct.fields]
        fields = [Field(d.name, d.type) for d in declarations]
        if struct.room is not None:
            fields.append(Field(ROOM, Array(Named("char"), struct.room)))
        abi.structs[struct.name] = Struct(struct.name, tuple(fields))
    for function in spec.functions:
        abi.functions[function.name] = Export(function.name, signature(function))
    compute(abi)
    return abi


def signature(function: DriverFunction) -> Function:
    """The types and parameter names of an entry point."""
    declared = [parse_declaration(text) for text in function.params]
    params = tuple(Param(d.name, d.type) for d in declared)
    return Function(parse_type(function.returns), params)


def check_driver(spec: BackendSpec, statuses: Iterable[str]) -> Iterator[Fault]:
    """Everything that is wrong between the parts of a driver's API; ``statuses`` are ORT's codes."""
    yield from _names(spec)
    yield from _types(spec)
    yield from _kinds(spec)
    yield from _roles(spec)
    yield from _result(spec, frozenset(statuses))
    yield from _handle_types(spec)
    functions = {f.name for f in spec.functions}
    if functions:
        for at, sequence in enumerate(spec.methods):
            for index, call in enumerate(sequence.calls):
                if call not in functions:
                    path = ("methods", at, "calls", index)
                    yield path, f"unknown driver function '{call}'", _close(call, functions)
    yield from _extensions(spec)
    if spec.graphics is not None:
        yield from _options(spec.graphics)
    if spec.functions and spec.library is None:
        yield ("functions",), "driver functions need a library to look them up in", "add 'library:'"


def _declared(spec: BackendSpec) -> Iterator[tuple[str, Path_]]:
    for section in _SECTIONS:
        for at, element in enumerate(getattr(spec, section)):
            if section == "typedefs":
                yield parse_declaration(element.declares).name, (section, at)
            else:
                yield element.name, (section, at)
            if section == "enums":
                for index, constant in enumerate(element.constants):
                    yield constant.name, (section, at, "constants", index)


def _names(spec: BackendSpec) -> Iterator[Fault]:
    seen: set[str] = set()
    for name, path in _declared(spec):
        if name in FIXED:
            yield path, f"'{name}' is a built-in type", ""
        elif name in seen:
            yield path, f"'{name}' is declared twice", ""
        seen.add(name)
    for section in ("structs", "functions"):
        for at, element in enumerate(getattr(spec, section)):
            texts = element.fields if section == "structs" else element.params
            kind = "field" if section == "structs" else "parameter"
            members: set[str] = set()
            for index, text in enumerate(texts):
                member = parse_declaration(text).name
                if member in members:
                    key = "fields" if section == "structs" else "params"
                    yield (section, at, key, index), f"duplicate {kind} '{member}'", ""
                members.add(member)
            if section == "functions" and element.releases not in {None, *members}:
                hint = _close(element.releases, members)
                path = (section, at, "releases")
                yield path, f"there is no parameter '{element.releases}'", hint
    symbols: dict[str, str] = {}
    for at, function in enumerate(spec.functions):
        symbol = function.symbol or function.name
        if symbol in symbols:
            yield ("functions", at), f"symbol '{symbol}' is also that of '{symbols[symbol]}'", ""
        symbols[symbol] = function.name


def _types(spec: BackendSpec) -> Iterator[Fault]:
    """Types must be declared before their use, for C reads the output from top to bottom."""
    known = {"void", *FIXED}

    def check(ctype: CType, path: Path_) -> Iterator[Fault]:
        for name in sorted(names_in(ctype) - known):
            hint = _close(name, known) or "declare it before its use"
            yield path, f"unknown type '{name}'", hint

    known |= {o.name for o in spec.opaque} | {e.name for e in spec.enums}
    for at, typedef in enumerate(spec.typedefs):
        declared = parse_declaration(typedef.declares)
        yield from check(declared.type, ("typedefs", at, "declares"))
        known.add(declared.name)
    for at, struct in enumerate(spec.structs):
        for index, text in enumerate(struct.fields):
            yield from check(parse_declaration(text).type, ("structs", at, "fields", index))
        known.add(struct.name)
    for at, function in enumerate(spec.functions):
        yield from check(parse_type(function.returns), ("functions", at, "returns"))
        for index, text in enumerate(function.params):
            yield from check(parse_declaration(text).type, ("functions", at, "params", index))


def _kinds(spec: BackendSpec) -> Iterator[Fault]:
    """A struct's kind is a constant of its first field's type, and that of no other struct."""
    enums = {e.name: [c.name for c in e.constants] for e in spec.enums}
    seen: dict[str, str] = {}
    for at, struct in enumerate(spec.structs):
        if struct.kind is None:
            continue
        path = ("structs", at, "kind")
        first = parse_declaration(struct.fields[0])
        constants = enums.get(first.type.name, []) if isinstance(first.type, Named) else []
        if struct.kind not in constants:
            hint = _close(struct.kind, constants)
            yield path, f"'{struct.kind}' is no constant of the type of '{first.name}'", hint
        elif struct.kind in seen:
            yield path, f"'{struct.kind}' is already the kind of '{seen[struct.kind]}'", ""
        seen.setdefault(struct.kind, struct.name)


def _extensions(spec: BackendSpec) -> Iterator[Fault]:
    """An extension of each role for each platform; which roles there are is the same on all."""
    roles: dict[str, set[str]] = {"linux": set(), "windows": set()}
    for at, extension in enumerate(spec.extensions):
        for platform in extension.platforms:
            if extension.role in roles[platform]:
                message = f"two extensions have the role '{extension.role}' on {platform}"
                yield ("extensions", at, "role"), message, ""
            roles[platform].add(extension.role)
    for at, extension in enumerate(spec.extensions):
        for other in sorted(p for p in roles if extension.role not in roles[p]):
            message = f"there is no extension of role '{extension.role}' on {other}"
            yield ("extensions", at, "role"), message, "add one for that platform"


def _options(graphics: Graphics) -> Iterator[Fault]:
    """Keys differ in more than their case, for each is a macro and a field as well."""
    seen: dict[str, str] = {}
    for at, option in enumerate(graphics.options):
        name = option.key.lower()
        if name in seen:
            yield ("graphics", "options", at, "key"), f"'{option.key}' is also '{seen[name]}'", ""
        seen[name] = option.key


def _roles(spec: BackendSpec) -> Iterator[Fault]:
    kinds: dict[str, list[tuple[str | None, Path_]]] = {"type": [], "constant": [], "function": []}
    for section in ("opaque", "typedefs", "enums", "structs"):
        for at, element in enumerate(getattr(spec, section)):
            kinds["type"].append((element.role, (section, at, "role")))
    for at, macro in enumerate(spec.macros):
        kinds["constant"].append((macro.role, ("macros", at, "role")))
    for at, enum in enumerate(spec.enums):
        for index, constant in enumerate(enum.constants):
            kinds["constant"].append((constant.role, ("enums", at, "constants", index, "role")))
    for at, function in enumerate(spec.functions):
        slot = function.role or function.name
        kinds["function"].append((slot, ("functions", at, "role" if function.role else "name")))
    for kind, roles in kinds.items():
        seen: set[str] = set()
        for role, path in roles:
            if role is not None and role in seen:
                yield path, f"two {kind}s have the role '{role}'", ""
            if role is not None:
                seen.add(role)


def _result(spec: BackendSpec, statuses: frozenset[str]) -> Iterator[Fault]:
    enums = {e.name: e for e in spec.enums}
    if spec.result is not None and spec.result not in enums:
        yield ("result",), f"there is no enum '{spec.result}'", _close(spec.result, enums)
    elif spec.result is not None and all(c.value != 0 for c in enums[spec.result].constants):
        yield ("result",), f"'{spec.result}' has no constant of value 0, which is success", ""
    for at, enum in enumerate(spec.enums):
        for index, constant in enumerate(enum.constants):
            if constant.status is None:
                continue
            path = ("enums", at, "constants", index, "status")
            if enum.name != spec.result:
                yield path, f"only constants of the result have a status, not of '{enum.name}'", ""
            elif constant.status not in statuses:
                hint = _close(constant.status, statuses)
                yield path, f"unknown status code '{constant.status}'", hint


def _handle_types(spec: BackendSpec) -> Iterator[Fault]:
    """Where the driver's enums are declared, a handle type's constant must be one of theirs."""
    values = {c.name: c.value for e in spec.enums for c in e.constants}
    if not values:
        return
    for section in ("memory", "semaphores"):
        for at, handle in enumerate(getattr(spec, section)):
            if handle.driver is None:
                continue
            name, value = handle.driver.name, handle.driver.value
            if name not in values:
                path = (section, at, "driver", "name")
                yield path, f"unknown constant '{name}'", _close(name, values)
            elif values[name] != value:
                path = (section, at, "driver", "value")
                yield path, f"'{name}' is {values[name]} where it is declared", ""


def layout_faults(spec: BackendSpec) -> Iterator[Fault]:
    """Structs whose layout cannot be known; checked once every type is."""
    abi = driver_abi(spec)
    at = {s.name: i for i, s in enumerate(spec.structs)}
    for problem in compute(abi):
        yield ("structs", at[problem.struct]), f"{problem.field}: {problem.message}", ""


def _close(name: str, known: Iterable[str]) -> str:
    found = difflib.get_close_matches(name, list(known), 1, 0.6)
    return f"did you mean '{found[0]}'?" if found else ""
