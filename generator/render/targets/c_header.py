"""The C ABI header, and the header of static assertions that checks it or ORT's own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ...spec.abi import Abi, Field, Function, Struct
from ...spec.ctype import by_value, declare, names_in
from .. import c_decl
from ..escape import c_doc
from ..output import Output

if TYPE_CHECKING:
    from ...spec import Model
    from ..env import TargetEnv

EP_HEADER = "onnxruntime_ep_c_api.h"
_UNSUPPORTED = {
    "null_result": "Where the feature is missing: success, and a null result.",
    "false": "Where the feature is missing: success, and false.",
    "not_implemented": "Where the feature is missing: ORT_NOT_IMPLEMENTED.",
    "null_table": "Where the feature is missing: a null table.",
}
_THREADS = {
    "any": "May be called from any thread at once.",
    "one_at_a_time": "Calls on one object must not overlap.",
    "setup": "Must not be called while work is in flight.",
}


@dataclass(frozen=True, slots=True)
class Line:
    """A declaration or an enumerator, with its documentation comment (or none)."""

    text: str
    doc: str


@dataclass(frozen=True, slots=True)
class Block:
    """A struct or enum: its name, documentation and lines."""

    name: str
    doc: str
    lines: tuple[Line, ...]
    kind: str = ""


@dataclass(frozen=True, slots=True)
class Compat:
    """What stands in for enumerators in the releases ``first`` to ``last`` of ORT's headers."""

    first: int
    last: int
    macros: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Assertion:
    """Statements that hold from release ``since`` on."""

    since: int
    statements: tuple[str, ...]


class CHeader:
    """Target ``c_header``: ``include/ort_interop_abi.h`` and ``include/ort_interop_abi_check.h``."""

    name = "c_header"

    def render(self, model: Model, env: TargetEnv) -> Iterable[Output]:
        """Both headers, of the newest release that the spec knows."""
        return self.render_release(model, env, model.newest)

    def render_release(self, model: Model, env: TargetEnv, release: int) -> Iterable[Output]:
        """Both headers as an earlier release would have had them."""
        abi = model.at(release)
        context = {
            "floor": model.floor,
            "newest": release,
            "ep_structs": min(release, model.ep_structs),
            "sal": sal_macros(abi),
            "enums": list(_enums(model, abi)),
            "names": [*abi.opaque, *(s.name for s in abi.structs.values())],
            "typedefs": list(_typedefs(model, abi)),
            "structs": list(_structs(model, abi)),
            "functions": list(_functions(model, abi)),
            "aliases": [m for m in abi.macros.values() if m.name != "ORT_API_VERSION"],
            "compat": list(_compat(model, abi)),
            "assertions": list(_assertions(model, abi)),
        }
        for stem in ("ort_interop_abi", "ort_interop_abi_check"):
            yield env.output(f"{stem}.h.j2", f"include/{stem}.h", **context)


def sal_macros(abi: Abi) -> list[str]:
    """The macro heads of every SAL annotation in use, in alphabetical order."""
    heads: set[str] = set()
    for _, function in abi.signatures():
        for group in (function.return_sal, *(p.sal for p in function.params)):
            for word in group:
                name, opened, _ = word.partition("(")
                heads.add(f"{name}(...)" if opened else name)
    return sorted(heads)


def since_text(since: int | None) -> str:
    """Doxygen's ``\\since`` in the words that ORT's own headers use."""
    return f"\\since Version 1.{since}." if since else ""


def _doc(*paragraphs: str, indent: str = "") -> str:
    return c_doc("\n\n".join(p for p in paragraphs if p), indent)


def function_doc(model: Model, name: str, function: Function, since: int | None) -> str:
    """Everything the spec says about a function, as Doxygen text; paragraphs apart by blank lines."""
    meaning = model.semantics.get(name)
    paragraphs = []
    if meaning is not None:
        told = [_UNSUPPORTED[meaning.unsupported]] if meaning.unsupported else []
        told += [_THREADS[meaning.threads]] if meaning.threads else []
        if meaning.creates:
            told.append(f"The caller releases what '{meaning.creates}' receives.")
        if meaning.releases:
            nullable = any(p.nullable for p in meaning.params if p.name == meaning.releases)
            also = "; null is allowed." if nullable else "."
            told.append(f"Ends the life of '{meaning.releases}'{also}")
        told += [f"'{param}' stays in use until {until}." for param, until in meaning.borrows]
        paragraphs = [meaning.doc, " ".join(told)]
        lines = [
            f"\\param[{p.direction or 'in'}] {p.name} {p.doc}" for p in meaning.params if p.doc
        ]
        lines += [f"\\retval {code} {when}" for code, when in meaning.errors]
        if lines:
            paragraphs.append("\n".join(lines))
    paragraphs.append(since_text(since))
    return "\n\n".join(p for p in paragraphs if p)


def _enums(model: Model, abi: Abi) -> Iterator[Block]:
    for enum in abi.enums.values():
        lines = []
        for constant in enum.constants:
            since = constant.since if constant.since != enum.since else None
            # INT_MIN has no literal of its own: -2147483648 is minus applied to a long.
            value = constant.value
            text = "(-2147483647 - 1)" if value == -(1 << 31) else str(value)
            doc = _doc(model.docs.get(constant.name, ""), since_text(since))
            lines.append(Line(f"{constant.name} = {text}", doc))
        doc = _doc(model.docs.get(enum.name, ""), since_text(enum.since))
        yield Block(enum.name, doc, tuple(lines))


def _typedefs(model: Model, abi: Abi) -> Iterator[Line]:
    written: set[str] = set()

    def write(name: str) -> Iterator[Line]:
        if name in written:
            return
        written.add(name)
        typedef = abi.typedefs[name]
        for other in sorted(names_in(typedef.type) & abi.typedefs.keys()):
            yield from write(other)
        if typedef.function is not None:
            text = c_decl.slot(name, typedef.function)
            doc = function_doc(model, name, typedef.function, typedef.since)
            yield Line(text, _doc(doc))
        else:
            doc = _doc(model.docs.get(name, ""), since_text(typedef.since))
            yield Line(declare(typedef.type, name), doc)

    for name in abi.typedefs:
        yield from write(name)


def _structs(model: Model, abi: Abi) -> Iterator[Block]:
    written: set[str] = set()

    def write(struct: Struct) -> Iterator[Block]:
        if struct.name in written:
            return
        written.add(struct.name)
        for field in struct.fields:
            for name in sorted(by_value(field.type) & abi.structs.keys()):
                yield from write(abi.structs[name])
        lines = tuple(Line(c_decl.member(f), _member_doc(model, struct, f)) for f in struct.fields)
        doc = _doc(model.docs.get(struct.name, ""), since_text(struct.since))
        yield Block(struct.name, doc, lines, struct.kind)

    for struct in abi.structs.values():
        yield from write(struct)


def _member_doc(model: Model, struct: Struct, field: Field) -> str:
    name = f"{struct.name}.{field.name}"
    if field.function is not None:
        return _doc(function_doc(model, name, field.function, field.since), indent="  ")
    since = field.since if field.since != struct.since else None
    return _doc(model.docs.get(name, ""), since_text(since), indent="  ")


def _functions(model: Model, abi: Abi) -> Iterator[Line]:
    for export in abi.functions.values():
        doc = function_doc(model, export.name, export.function, export.since)
        yield Line(c_decl.prototype(export.name, export.function), _doc(doc))


def _compat(model: Model, abi: Abi) -> Iterator[Compat]:
    """Newer enumerators for headers whose enum is there and lacks them, by the releases in need."""
    renames = {constant.name: constant.renamed for _, constant in model.renames()}
    needed: dict[tuple[int, int], list[tuple[str, str]]] = {}
    for enum in abi.enums.values():
        born = max(enum.since or 0, model.floor)
        for constant in enum.constants:
            since = constant.since or 0
            renamed = renames.get(constant.name)
            names = [constant.name] + ([renamed.name] if renamed else [])
            if since > born:
                value = f"(({enum.name}){constant.value})"
                needed.setdefault((born, since - 1), []).extend((n, value) for n in names)
            if renamed is not None:
                span = (max(since, born), renamed.release - 1)
                needed.setdefault(span, []).append((constant.name, renamed.name))
    for first, last in sorted(needed):
        yield Compat(first, last, tuple(needed[first, last]))


def _assertions(model: Model, abi: Abi) -> Iterator[Assertion]:
    """Statements in the order of the releases since which they hold."""
    held: dict[int, list[str]] = {}

    def hold(since: int | None, statement: str) -> None:
        held.setdefault(max(since or 0, model.floor), []).append(statement)

    aliases = {m.value: m.name for m in abi.macros.values()}
    for enum in abi.enums.values():
        hold(enum.since, f"ORT_INTEROP_ASSERT_ENUM(enum {enum.name});")
        for constant in enum.constants:
            value = "(-2147483647 - 1)" if constant.value == -(1 << 31) else str(constant.value)
            for name in filter(None, (constant.name, aliases.get(constant.name))):
                hold(constant.since, f"ORT_INTEROP_ASSERT_VALUE({name}, {value});")
    for struct in abi.structs.values():
        # With the tag, because ORT's headers give some types no typedef.
        tag = f"{struct.kind} {struct.name}"
        for field in struct.fields:
            offsets = f"{field.offset}, {field.offset_win64}"
            since = max(field.since or 0, struct.since or 0)
            hold(since, f"ORT_INTEROP_ASSERT_OFFSET({tag}, {field.name}, {offsets});")
        for statement, since in _sizes(model, abi.api_version, struct.name):
            hold(since, statement)
    for since in sorted(held):
        yield Assertion(since, tuple(held[since]))


def _sizes(model: Model, newest: int, name: str) -> Iterator[tuple[str, int]]:
    """The sizes a struct has had: each holds until the next, the last until the spec ends."""
    steps: list[tuple[int, Struct]] = []
    for release in range(model.floor, newest + 1):
        struct = model.at(release).structs.get(name)
        if struct is not None and (not steps or steps[-1][1].size != struct.size):
            steps.append((release, struct))
    last = min(newest, model.ep_structs) if steps[-1][1].header == EP_HEADER else newest
    for index, (release, struct) in enumerate(steps):
        until = steps[index + 1][0] - 1 if index + 1 < len(steps) else last
        sizes = f"{struct.size}, {struct.size_win64}"
        yield f"ORT_INTEROP_ASSERT_SIZE({struct.kind} {name}, {sizes}, {until});", release
