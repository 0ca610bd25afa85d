"""Check what only the whole spec can show: names, references, release order and layout."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from .abi import Location
from .ctype import (
    FIXED,
    CType,
    Named,
    by_value,
    names_in,
    parse_declaration,
    parse_type,
    type_text,
)
from .driver import check_driver, layout_faults
from .model import Backend, Source, direction_of, field_type, nullable_of
from .problems import Problem
from .schema import (
    AnnotateSpec,
    ConstantSpec,
    Element,
    FieldSpec,
    FunctionSpec,
    HandleSpec,
    ParamSpec,
    Semantics,
    SlotSpec,
    StructSpec,
    Versions,
)
from .yamlfile import Path_

BUILT_IN = frozenset(FIXED) | {"void"}
_BY_NAME = ("enums", "opaque", "structs", "typedefs")


@dataclass(frozen=True, slots=True)
class _Known:
    kind: str
    since: int
    loc: Location


class Resolver:
    """Collects every problem of a set of files that each is valid alone."""

    def __init__(
        self,
        sources: tuple[Source, ...],
        backends: Iterable[Backend],
        versions: Versions,
        lost: AbstractSet[str] = frozenset(),
    ) -> None:
        """``lost`` names what faulty elements declare that are not among the sources."""
        self.sources = sources
        self.backends = tuple(backends)
        self.versions = versions
        self.lost = lost
        self.problems: list[Problem] = []
        self.types: dict[str, _Known] = {}
        self.slots: dict[str, FunctionSpec] = {}
        self.constants: dict[str, _Known] = {}

    def run(self) -> list[Problem]:
        for source in self.sources:
            self._collect(source)
        self._one_namespace()
        for source in self.sources:
            for at, struct in enumerate(source.file.structs):
                self._struct(source, struct, ("structs", at))
            for at, typedef in enumerate(source.file.typedefs):
                if typedef.function is not None:
                    self._function(
                        source, typedef.function, typedef.since, ("typedefs", at, "function")
                    )
                elif typedef.type is not None:
                    path = ("typedefs", at, "type")
                    self._uses(source, parse_type(typedef.type), typedef.since, path)
            for at, export in enumerate(source.file.functions):
                self._function(source, export.function, export.since, ("functions", at, "function"))
            for at, handle in enumerate(source.file.handles):
                self._handle(source, handle, ("handles", at))
            for at, note in enumerate(source.file.annotate):
                self._annotate(source, note, ("annotate", at))
        self._cycles()
        for backend in self.backends:
            self._backend(backend)
        return self.problems

    def report(self, source: Source | Backend, path: Path_, message: str, hint: str = "") -> None:
        self.problems.append(Problem(source.document.where(path), message, hint))

    def unknown(
        self, source: Source | Backend, path: Path_, name: str, message: str, known: Iterable[str]
    ) -> None:
        """Report a reference to nothing, unless to what another error has taken away."""
        if not self.lost.isdisjoint((name, name.partition(".")[0])):
            return
        hint = _close(name, known) or "correct the name, or declare it"
        self.report(source, path, message, hint)

    def _one_namespace(self) -> None:
        """C has one space of names for types, enumerators, functions and what macros replace."""
        seen = {name: known.loc for name, known in self.types.items()}
        found = [(name, known.loc) for name, known in self.constants.items()]
        for source in self.sources:
            for section in ("functions", "macros"):
                for at, element in enumerate(getattr(source.file, section)):
                    found.append((element.name, source.document.where((section, at, "name"))))
        for name, loc in found:
            if name in seen:
                self.problems.append(
                    Problem(loc, f"duplicate name '{name}'", f"it is also at {seen[name]}")
                )
            seen.setdefault(name, loc)

    def _collect(self, source: Source) -> None:
        for section in _BY_NAME:
            element: Element
            for at, element in enumerate(getattr(source.file, section)):
                path: Path_ = (section, at)
                self._since(source, element.since, (*path, "since"))
                if element.moved is not None and element.moved.release <= element.since:
                    self.report(
                        source,
                        (*path, "moved"),
                        f"'{element.name}' moved in 1.{element.moved.release}, but exists only since 1.{element.since}",
                        "a move comes after the release that brought the element",
                    )
                self._name(
                    source,
                    element.name,
                    _Known(section, element.since, source.document.where(path)),
                    path,
                )
        for at, enum in enumerate(source.file.enums):
            seen: dict[str, int] = {}
            for index, constant in enumerate(enum.constants):
                path = ("enums", at, "constants", index)
                since = constant.since if constant.since is not None else enum.since
                self._member_since(source, constant.name, since, enum, path)
                known = self.constants.get(constant.name)
                if known is not None:
                    self.report(
                        source,
                        path,
                        f"duplicate name '{constant.name}'",
                        f"it is also at {known.loc}",
                    )
                self.constants[constant.name] = _Known(
                    "constant", since, source.document.where(path)
                )
                if constant.renamed is not None:
                    if constant.renamed.release <= since:
                        self.report(
                            source,
                            (*path, "renamed"),
                            f"'{constant.name}' was renamed in 1.{constant.renamed.release}, "
                            f"but exists only since 1.{since}",
                            "a new name comes after the release that brought the element",
                        )
                    if constant.renamed.name in self.constants:
                        self.report(
                            source,
                            (*path, "renamed", "name"),
                            f"duplicate name '{constant.renamed.name}'",
                            f"it is also at {self.constants[constant.renamed.name].loc}",
                        )
                    self.constants[constant.renamed.name] = self.constants[constant.name]
                self._alias(source, constant, seen, path)
                seen[constant.name] = constant.value
        for struct in source.file.structs:
            for member in struct.fields:
                if isinstance(member, SlotSpec):
                    self.slots.setdefault(f"{struct.name}.{member.slot}", member)
        for at, export in enumerate(source.file.functions):
            self._since(source, export.since, ("functions", at, "since"))

    def _alias(
        self, source: Source, constant: ConstantSpec, seen: dict[str, int], path: Path_
    ) -> None:
        """Two constants of one value must say so: a slip of the pen otherwise looks the same."""
        twin = next((name for name, value in seen.items() if value == constant.value), None)
        if constant.alias_of is not None and constant.alias_of not in seen:
            self.report(source, (*path, "alias_of"), f"there is no constant '{constant.alias_of}' before this one",
                        _close(constant.alias_of, seen))  # fmt: skip
        elif constant.alias_of is not None and seen[constant.alias_of] != constant.value:
            self.report(source, (*path, "value"), f"'{constant.name}' is {constant.value}, but '{constant.alias_of}', "
                        f"whose alias it is, is {seen[constant.alias_of]}",
                        "correct one of the two values, or remove 'alias_of'")  # fmt: skip
        elif constant.alias_of is None and twin is not None:
            self.report(source, (*path, "value"), f"'{constant.name}' has the value {constant.value} of '{twin}'",
                        f"correct the value, or write 'alias_of: {twin}' if both are meant")  # fmt: skip

    def _name(self, source: Source, name: str, known: _Known, path: Path_) -> None:
        if name in BUILT_IN:
            self.report(source, (*path, "name"), f"'{name}' is a built-in type", "use another name")
        elif name in self.types:
            other = self.types[name]
            self.report(
                source, (*path, "name"), f"duplicate name '{name}'", f"it is also at {other.loc}"
            )
        else:
            self.types[name] = known

    def _since(self, source: Source, since: int | None, path: Path_) -> None:
        if since is not None and since > self.versions.newest:
            self.report(
                source, path, f"since 1.{since} is after the newest release of the spec, 1.{self.versions.newest}",
                "correct it, or raise 'versions: newest' when the spec follows a newer release",
            )  # fmt: skip

    def _member_since(
        self, source: Source, name: str, since: int, owner: Element, path: Path_
    ) -> None:
        self._since(source, since, (*path, "since"))
        if since < owner.since:
            self.report(
                source,
                (*path, "since"),
                f"'{name}' has since 1.{since}, before its '{owner.name}' (1.{owner.since})",
                f"use {owner.since} or later",
            )

    def _struct(self, source: Source, struct: StructSpec, path: Path_) -> None:
        names: dict[str, int] = {}
        newest = struct.since
        for at, member in enumerate(struct.fields):
            here: Path_ = (*path, "fields", at)
            name = member.slot if isinstance(member, SlotSpec) else field_type(member)[0]
            since = member.since if member.since is not None else struct.since
            if name in names:
                self.report(
                    source,
                    here,
                    f"duplicate field '{name}' in '{struct.name}'",
                    "slots have one place each",
                )
            names[name] = at
            self._member_since(source, name, since, struct, here)
            if since < newest:
                self.report(
                    source,
                    (*here, "since") if member.since is not None else here,
                    f"'{name}' has since 1.{since} but stands after a field of 1.{newest} in '{struct.name}'",
                    "structs only grow at their end: move the field, or correct one of the two releases",
                )
            newest = max(newest, since)
            if isinstance(member, SlotSpec):
                self._function(source, member, since, here)
            else:
                key = "union" if member.union else "field"
                self._uses(source, field_type(member)[1], since, (*here, key))
        version = struct.version_field
        carrier = struct.fields[names[version]] if version in names else None
        if isinstance(carrier, FieldSpec) and field_type(carrier)[1] != Named("uint32_t"):
            declared = type_text(field_type(carrier)[1])
            self.report(source, (*path, "version_field"), f"'{version}' cannot carry the version: its type is "
                        f"'{declared}'", "versions are of type uint32_t")  # fmt: skip
        if struct.version_field is not None and struct.version_field not in names:
            self.report(
                source, (*path, "version_field"), f"'{struct.name}' has no field '{struct.version_field}'",
                _close(struct.version_field, names),
            )  # fmt: skip

    def _function(self, source: Source, function: FunctionSpec, since: int, path: Path_) -> None:
        if function.returns != "status":
            self._uses(source, parse_type(function.returns), since, (*path, "returns"))
        elif function.return_sal or function.must_use:
            self.report(source, path, "'returns: status' already says how the result is annotated",
                        "remove 'return_sal' and 'must_use'")  # fmt: skip
        names: dict[str, str] = {}
        for at, item in enumerate(function.params):
            here: Path_ = (*path, "params", at)
            texts = [item] if isinstance(item, str) else [item.decl, *(b.decl for b in item.before)]
            for text in texts:
                self._uses(source, parse_declaration(text).type, since, here)
            name = parse_declaration(texts[0]).name
            if name and name in names:
                self.report(source, here, f"duplicate parameter '{name}'", "use another name")
            names[name] = texts[0]
            if isinstance(item, ParamSpec):
                self._param(source, item, since, here)
        self._semantics(source, function, names, path)

    def _param(self, source: Source, item: ParamSpec, since: int, path: Path_) -> None:
        text = item.decl
        said = direction_of(text)
        has_sal = bool(parse_declaration(text).sal)
        if has_sal and item.direction is not None and item.direction != said:
            self.report(source, (*path, "direction"), f"direction '{item.direction}' contradicts SAL, which says '{said}'",
                        "correct one of the two")  # fmt: skip
        if (
            has_sal
            and item.nullable is not None
            and said == "in"
            and item.nullable != nullable_of(text)
        ):
            self.report(
                source,
                (*path, "nullable"),
                "nullable contradicts the SAL annotation",
                "correct one of the two",
            )
        for at, before in enumerate(item.before):
            if before.release <= since:
                self.report(
                    source,
                    (*path, "before", at, "release"),
                    f"before 1.{before.release} there was no such parameter: its function is there since 1.{since}",
                    "correct the release, or remove the entry",
                )

    def _semantics(
        self, source: Source, node: Semantics, params: dict[str, str], path: Path_
    ) -> None:
        for key in ("creates", "releases"):
            name = getattr(node, key)
            if name is not None and name not in params:
                self.unknown(source, (*path, key), name, f"there is no parameter '{name}'", params)
        if node.creates in params and direction_of(params[node.creates]) != "out":
            self.report(source, (*path, "creates"), f"'{node.creates}' is not an out-parameter",
                        "name the parameter that receives the new object")  # fmt: skip
        for at, borrow in enumerate(node.borrows):
            if borrow.param not in params:
                here: Path_ = (*path, "borrows", at, "param")
                message = f"there is no parameter '{borrow.param}'"
                self.unknown(source, here, borrow.param, message, params)
        for at, case in enumerate(node.errors):
            if case.code not in self.constants:
                message = f"unknown status code '{case.code}'"
                here = (*path, "errors", at, "code")
                self.unknown(source, here, case.code, message, self.constants)

    def _uses(self, source: Source, ctype: CType, since: int, path: Path_) -> None:
        for name in sorted(names_in(ctype) - BUILT_IN):
            known = self.types.get(name)
            if known is None:
                every = {**self.types, **dict.fromkeys(FIXED)}
                self.unknown(source, path, name, f"unknown type '{name}'", every)
            elif known.since > since:
                self.report(
                    source, path, f"a declaration of 1.{since} uses '{name}', which exists since 1.{known.since}",
                    f"its definition is at {known.loc}",
                )  # fmt: skip
        for name in sorted(by_value(ctype) - BUILT_IN):
            if name in self.types and self.types[name].kind == "opaque":
                self.report(
                    source,
                    path,
                    f"opaque '{name}' is used by value",
                    "only pointers to it are possible",
                )

    def _handle(self, source: Source, handle: HandleSpec, path: Path_) -> None:
        if handle.type not in self.types:
            message = f"unknown type '{handle.type}'"
            self.unknown(source, (*path, "type"), handle.type, message, self.types)
        if handle.released_by not in self.slots:
            message = f"unknown slot '{handle.released_by}'"
            self.unknown(source, (*path, "released_by"), handle.released_by, message, self.slots)
        for at, name in enumerate(handle.must_not_outlive):
            if name not in self.types:
                here = (*path, "must_not_outlive", at)
                self.unknown(source, here, name, f"unknown type '{name}'", self.types)

    def _annotate(self, source: Source, note: AnnotateSpec, path: Path_) -> None:
        function = self.slots.get(note.slot)
        if function is None:
            message = f"unknown slot '{note.slot}'"
            self.unknown(source, (*path, "slot"), note.slot, message, self.slots)
            return
        texts = [item if isinstance(item, str) else item.decl for item in function.params]
        params = {parse_declaration(text).name: text for text in texts}
        for name in note.params:
            if name not in params:
                message = f"there is no parameter '{name}'"
                self.unknown(source, (*path, "params", name), name, message, params)
        self._semantics(source, note, params, path)

    def _cycles(self) -> None:
        inside: dict[str, dict[str, tuple[Source, Path_]]] = {}
        for source in self.sources:
            for at, struct in enumerate(source.file.structs):
                edges = inside.setdefault(struct.name, {})
                for index, member in enumerate(struct.fields):
                    if isinstance(member, FieldSpec):
                        for name in by_value(field_type(member)[1]):
                            edges[name] = (source, ("structs", at, "fields", index))
            for at, typedef in enumerate(source.file.typedefs):
                if typedef.type is not None:
                    edges = inside.setdefault(typedef.name, {})
                    for name in by_value(parse_type(typedef.type)):
                        edges[name] = (source, ("typedefs", at))
        for start in inside:
            chain = _cycle(start, inside)
            if chain and min(chain) == start:
                source, path = inside[start][chain[1]]
                self.report(source, path, f"'{start}' contains itself by value: {' -> '.join(chain)}",
                            "make one of the fields a pointer")  # fmt: skip

    def _backend(self, backend: Backend) -> None:
        spec = backend.spec
        if spec.backend != backend.name:
            self.report(
                backend,
                ("backend",),
                f"the file is named '{backend.name}' but says '{spec.backend}'",
                "make the two the same",
            )
        for section, enum in (
            ("memory", "OrtExternalMemoryHandleType"),
            ("semaphores", "OrtExternalSemaphoreType"),
        ):
            # By the enum's release, not the constant's: ORT hands every value to the EP unchecked,
            # so an EP may offer a type on hosts whose headers do not name it yet.
            valid = {
                c.name: e.since
                for s in self.sources for e in s.file.enums if e.name == enum for c in e.constants
            }  # fmt: skip
            seen: set[tuple[str, str]] = set()
            for at, handle in enumerate(getattr(spec, section)):
                path: Path_ = (section, at)
                if handle.type not in valid:
                    message = f"'{handle.type}' is not a constant of {enum}"
                    if enum not in self.lost:
                        self.unknown(backend, (*path, "type"), handle.type, message, valid)
                elif handle.since < valid[handle.type]:
                    self.report(backend, (*path, "since"),
                                f"'{handle.type}' exists since 1.{valid[handle.type]}",
                                f"use {valid[handle.type]} or later")  # fmt: skip
                for platform in handle.platforms:
                    if (handle.type, platform) in seen:
                        self.report(
                            backend,
                            path,
                            f"'{handle.type}' is listed twice for {platform}",
                            "keep one of the two",
                        )
                    seen.add((handle.type, platform))
        statuses = [
            c.name
            for source in self.sources
            for enum in source.file.enums
            if enum.name == "OrtErrorCode"
            for c in enum.constants
        ]
        faults = list(check_driver(spec, statuses)) or list(layout_faults(spec))
        for where, message, hint in faults:
            self.report(backend, where, message, hint)


def _cycle(start: str, edges: dict[str, dict[str, tuple[Source, Path_]]]) -> list[str]:
    """A path from a type through by-value members back to itself, or nothing."""
    stack: list[tuple[str, Iterator[str]]] = [(start, iter(edges.get(start, ())))]
    trail = [start]
    visited = {start}
    while stack:
        name = next(stack[-1][1], None)
        if name is None:
            stack.pop()
            trail.pop()
        elif name == start:
            return [*trail, start]
        elif name in edges and name not in visited:
            visited.add(name)
            trail.append(name)
            stack.append((name, iter(edges[name])))
    return []


def _close(name: str, known: Iterable[str]) -> str:
    found = difflib.get_close_matches(name, list(known), 1, 0.6)
    return f"did you mean '{found[0]}'?" if found else ""
