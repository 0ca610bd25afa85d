"""The mutation operators: each makes one small edit of a header's text.

An operator yields the edits that it can make at one site.  ``effect`` is what the edit does to
users; ``rules`` are the rule ids of which one must name it, at the site's symbol.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from .scan import Decl, Member, Param, Signature, Span, Unit

Effect = Literal[
    "breaking", "source", "contract", "additive", "unreadable", "documentation", "neutral"
]
Side = Literal["spec", "header", "docs"]
ADDED = "OrtAddedByMutation"
_INTEGERS = {
    "int": "long long",
    "uint32_t": "uint64_t",
    "uint64_t": "uint32_t",
    "int64_t": "int32_t",
    "size_t": "uint32_t",
    "float": "double",
}
_SINCE = re.compile(r"([\\@]since\s+Version\s+1\.)(\d+)")


@dataclass(frozen=True, slots=True)
class Site:
    """A declaration, or one member of it, in one file of a header."""

    unit: Unit
    decl: Decl
    member: Member | None = None

    @property
    def symbol(self) -> str:
        return f"{self.decl.name}.{self.member.name}" if self.member else self.decl.name

    @property
    def signature(self) -> Signature | None:
        return self.member.signature if self.member else self.decl.signature

    @property
    def span(self) -> Span:
        return self.member.span if self.member else self.decl.span

    @property
    def text(self) -> str:
        return self.span.of(self.unit.text)


@dataclass(frozen=True, slots=True)
class Edit:
    """Replacements of stretches of a file, and the symbol that a finding must name."""

    changes: tuple[tuple[int, int, str], ...]
    symbol: str

    def apply(self, text: str) -> str:
        for start, end, new in sorted(self.changes, reverse=True):
            text = text[:start] + new + text[end:]
        return text


Make = Callable[[Site], Iterator[Edit]]


@dataclass(frozen=True, slots=True)
class Operator:
    """One kind of edit."""

    name: str
    effect: Effect
    rules: frozenset[str]
    kinds: frozenset[str]
    make: Make
    side: Side = "spec"
    """What finds it: ``check`` against the spec; ``diff`` against the header as it was, because a
    check takes the spec of whatever release the header names; or ``lint-docs``."""


OPERATORS: dict[str, Operator] = {}


def operator(
    name: str, effect: Effect, kinds: str, rules: str = "", *, side: Side = "spec"
) -> Callable[[Make], Make]:
    """Register a function as an operator for sites of the kinds, in words."""

    def register(make: Make) -> Make:
        assert name not in OPERATORS
        OPERATORS[name] = Operator(
            name, effect, frozenset(rules.split()), frozenset(kinds.split()), make, side
        )
        return make

    return register


def _replace(site: Site, span: Span, new: str, symbol: str = "") -> Edit:
    return Edit(((span.start, span.end, new),), symbol or site.symbol)


def _insert(site: Site, at: int, new: str, symbol: str = "") -> Edit:
    return Edit(((at, at, new),), symbol or site.symbol)


def _siblings(site: Site) -> tuple[tuple[Member, ...], int]:
    assert site.member is not None
    return site.decl.members, site.decl.members.index(site.member)


def _body_end(site: Site) -> int:
    assert site.decl.body is not None
    return site.decl.body.end


def _renamed(site: Site, new: str) -> str:
    """The member's text with another name."""
    member = site.member
    assert member is not None
    at = member.at - member.span.start
    text = site.text
    return text[:at] + new + text[at + len(member.name) :]


# Slots and fields ------------------------------------------------------------------------------


@operator("slot-moved", "breaking", "slot", "slot-moved")
def slot_moved(site: Site) -> Iterator[Edit]:
    """Two places further on, past slots of other types."""
    members, at = _siblings(site)
    if at + 2 < len(members):
        later = members[at + 2]
        changes = (
            (site.span.start, site.span.end, ""),
            (later.span.end, later.span.end, f"\n  {site.text}"),
        )
        yield Edit(changes, site.symbol)


@operator("slot-removed", "breaking", "slot", "slot-removed")
def slot_removed(site: Site) -> Iterator[Edit]:
    yield _replace(site, site.span, "")


@operator("slot-inserted", "breaking", "slot", "slot-inserted")
def slot_inserted(site: Site) -> Iterator[Edit]:
    """A new slot before this one, so never at the end."""
    new = f"void(ORT_API_CALL* {ADDED})(int first);\n  "
    yield _insert(site, site.span.start, new, f"{site.decl.name}.{ADDED}")


@operator("slot-duplicated", "breaking", "slot", "slot-duplicate")
def slot_duplicated(site: Site) -> Iterator[Edit]:
    yield _insert(site, site.span.end, f"\n  {site.text}")


@operator("slots-swapped", "breaking", "slot", "slot-swapped")
def slots_swapped(site: Site) -> Iterator[Edit]:
    """With the nearest later slot of equal type: no type and no offset is different afterwards."""
    members, at = _siblings(site)
    mine = _shape(site, members[at])
    for other in members[at + 1 :]:
        if other.kind == "slot" and _shape(site, other) == mine:
            text = other.span.of(site.unit.text)
            changes = (
                (site.span.start, site.span.end, text),
                (other.span.start, other.span.end, site.text),
            )
            yield Edit(changes, site.symbol)
            return


def _shape(site: Site, member: Member) -> tuple[str, ...] | None:
    """A slot's types as text; None where a macro hides them."""
    found = member.signature
    if found is None:
        return None if member.kind != "slot" else ("release", member.name)
    masked = site.unit.masked
    head = masked[member.span.start : found.name.start].split()
    return (" ".join(head), *(" ".join(p.type.of(masked).split()) for p in found.params))


@operator("slots-swapped-and-appended", "breaking", "slot", "slot-swapped")
def slots_swapped_and_appended(site: Site) -> Iterator[Edit]:
    """A new slot at the end of the same table must not hide the swap."""
    for swap in slots_swapped(site):
        for grown in slot_appended(site):
            yield Edit((*swap.changes, *grown.changes), site.symbol)


@operator("slot-replaced", "breaking", "slot", "slot-replaced")
def slot_replaced(site: Site) -> Iterator[Edit]:
    """Another slot, with other types, stands in its place."""
    yield _replace(site, site.span, f"double(ORT_API_CALL* {ADDED})(double first, double second);")


@operator("slot-relocated", "breaking", "slot", "slot-relocated")
def slot_relocated(site: Site) -> Iterator[Edit]:
    """To the end of another table."""
    for other in site.unit.decls:
        if other.kind != "struct" or other is site.decl or other.body is None or not other.members:
            continue
        names = {m.name.lower() for m in other.members}
        slots = all(m.kind == "slot" for m in other.members)
        assert site.member is not None
        if (
            slots
            and len(names) > 3
            and not any(
                site.member.name.lower() in n or n in site.member.name.lower() for n in names
            )
        ):
            changes = (
                (site.span.start, site.span.end, ""),
                (other.body.end, other.body.end, f"  {site.text}\n"),
            )
            yield Edit(changes, site.symbol)
            return


@operator("slot-made-data", "breaking", "slot", "field-type")
def slot_made_data(site: Site) -> Iterator[Edit]:
    assert site.member is not None
    yield _replace(site, site.span, f"void* {site.member.name};")


@operator("slot-renamed", "source", "slot", "slot-renamed")
def slot_renamed(site: Site) -> Iterator[Edit]:
    assert site.member is not None
    # A release macro makes the slot's name and its parameter's type out of one word.
    if not site.text.startswith("ORT_CLASS_RELEASE"):
        yield _replace(site, site.span, _renamed(site, f"{site.member.name}Renamed"))


@operator("slot-appended", "additive", "table", "slot-appended")
def slot_appended(site: Site) -> Iterator[Edit]:
    new = f"\n  void(ORT_API_CALL* {ADDED})(int first);\n"
    yield _insert(site, _body_end(site), new, f"{site.decl.name}.{ADDED}")


@operator("field-moved", "breaking", "field", "field-moved field-swapped")
def field_moved(site: Site) -> Iterator[Edit]:
    members, at = _siblings(site)
    if at + 1 < len(members):
        other = members[at + 1]
        changes = (
            (site.span.start, site.span.end, ""),
            (other.span.end, other.span.end, f"\n  {site.text}"),
        )
        yield Edit(changes, f"{site.decl.name}.*")


@operator("field-removed", "breaking", "field", "field-removed")
def field_removed(site: Site) -> Iterator[Edit]:
    if len(site.decl.members) > 1:
        yield _replace(site, site.span, "")


@operator("field-retyped", "breaking", "field", "field-type")
def field_retyped(site: Site) -> Iterator[Edit]:
    """To a type of the same size, so that no offset tells."""
    same = {"uint32_t": "float", "int": "float", "size_t": "double", "int64_t": "double"}
    head = _field_type(site)
    new = same.get(head, "char**" if head.endswith("*") else "")
    if new:
        yield _replace(site, _field_type_span(site), f"{new} ")


@operator("field-width", "breaking", "field", "field-type")
def field_width(site: Site) -> Iterator[Edit]:
    if _field_type(site) in _INTEGERS:
        yield _replace(site, _field_type_span(site), f"{_INTEGERS[_field_type(site)]} ")


@operator("field-duplicated", "breaking", "field", "field-duplicate")
def field_duplicated(site: Site) -> Iterator[Edit]:
    yield _insert(site, site.span.end, f"\n  {site.text}")


@operator("field-replaced", "breaking", "field", "field-replaced")
def field_replaced(site: Site) -> Iterator[Edit]:
    yield _replace(site, site.span, f"double {ADDED};")


@operator("field-const", "breaking", "field", "field-type")
def field_const(site: Site) -> Iterator[Edit]:
    head = _field_type(site)
    if head.endswith("*"):
        new = head.removeprefix("const ") if head.startswith("const ") else f"const {head}"
        yield _replace(site, _field_type_span(site), f"{new} ")


@operator("field-pointer", "breaking", "field", "field-type")
def field_pointer(site: Site) -> Iterator[Edit]:
    """One level of pointer more: on 64 bits the layout stays."""
    head = _field_type(site)
    if head.endswith("*"):
        yield _replace(site, _field_type_span(site), f"{head}* ")


def _field_type_span(site: Site) -> Span:
    assert site.member is not None
    return Span(site.span.start, site.member.at)


def _field_type(site: Site) -> str:
    return " ".join(_field_type_span(site).of(site.unit.masked).split())


@operator("field-inserted", "breaking", "field", "field-inserted")
def field_inserted(site: Site) -> Iterator[Edit]:
    yield _insert(site, site.span.start, f"void* {ADDED};\n  ", f"{site.decl.name}.{ADDED}")


@operator("field-renamed", "source", "field", "field-renamed")
def field_renamed(site: Site) -> Iterator[Edit]:
    assert site.member is not None
    yield _replace(site, site.span, _renamed(site, f"{site.member.name}_renamed"))


@operator("field-appended", "additive", "versioned", "field-appended")
def field_appended(site: Site) -> Iterator[Edit]:
    yield _insert(site, _body_end(site), f"\n  void* {ADDED};\n", f"{site.decl.name}.{ADDED}")


@operator("size-changed", "breaking", "plain", "field-appended-unversioned")
def size_changed(site: Site) -> Iterator[Edit]:
    """A field at the end of a struct that carries no version: its users read or copy the old size."""
    yield _insert(site, _body_end(site), f"\n  void* {ADDED};\n", f"{site.decl.name}*")


@operator("alignment-changed", "breaking", "field", "field-type")
def alignment_changed(site: Site) -> Iterator[Edit]:
    """An array of bytes in place of a pointer: the same size, a smaller alignment."""
    if _field_type(site).endswith("*") and site.member is not None:
        name = site.member.name
        yield _replace(
            site, site.span, f"char {name}[sizeof(void*)];".replace("sizeof(void*)", "8")
        )


# Signatures ------------------------------------------------------------------------------------


@operator("result-changed", "breaking", "slot callback export", "result-type")
def result_changed(site: Site) -> Iterator[Edit]:
    found = site.signature
    if found is None:
        return
    if found.result is None:
        # The status macros hide the result: spell the declaration out with another one.
        params = found.list.of(site.unit.text) if found.params else "void"
        name = found.name.of(site.unit.text)
        yield _replace(
            site, Span(site.span.start, site.span.end), f"int(ORT_API_CALL* {name})({params});"
        )
        return
    words = [w for w in found.result.of(site.unit.masked).split() if not re.fullmatch(r"_\w+_", w)]
    old = words[-1] if words else ""
    new = "int" if old == "void" else "void" if "*" not in old else "int"
    keep = "typedef " if site.decl.kind == "callback" else ""
    yield _replace(
        site, Span(found.result.start, found.result.end), f"{new} " if not keep else f" {new} "
    )


@operator("result-pointer", "breaking", "slot callback export", "result-type")
def result_pointer(site: Site) -> Iterator[Edit]:
    """One level of pointer more in the result."""
    found = site.signature
    if (
        found is not None
        and found.result is not None
        and "void" not in found.result.of(site.unit.masked)
    ):
        yield _insert(site, found.result.end, "*")


@operator("variadic", "breaking", "slot callback export", "variadic-changed")
def variadic(site: Site) -> Iterator[Edit]:
    if _params(site):
        yield _insert(site, _params(site)[-1].span.end, ", ...")


def _params(site: Site) -> tuple[Param, ...]:
    return site.signature.params if site.signature else ()


@operator("param-added", "breaking", "slot callback export", "param-count")
def param_added(site: Site) -> Iterator[Edit]:
    if _params(site):
        yield _insert(site, _params(site)[-1].span.end, ", int added_by_mutation")


@operator("param-removed", "breaking", "slot callback export", "param-count")
def param_removed(site: Site) -> Iterator[Edit]:
    params = _params(site)
    if len(params) > 1:
        yield _replace(site, Span(params[-2].span.end, params[-1].span.end), "")


@operator("params-swapped", "breaking", "slot callback export", "param-order")
def params_swapped(site: Site) -> Iterator[Edit]:
    """Two neighbours of different types."""
    params, text = _params(site), site.unit.text
    for left, right in pairwise(params):
        if left.type.of(text).split() != right.type.of(text).split():
            changes = (
                (*left.span, right.span.of(text)),
                (*right.span, left.span.of(text)),
            )
            yield Edit(changes, site.symbol)
            return


def _each_type(site: Site, change: Callable[[str], str]) -> Iterator[Edit]:
    """Change the first parameter's type to which a change applies."""
    for param in _params(site):
        old = " ".join(param.type.of(site.unit.masked).split())
        new = change(old)
        if new and new != old:
            gap = " " if param.name.start > param.type.end or param.name[0] == param.name[1] else ""
            yield _replace(site, param.type, new if gap else f"{new} ")
            return


_PARAM_RULES = "param-type"


@operator("param-retyped", "breaking", "slot callback export", _PARAM_RULES)
def param_retyped(site: Site) -> Iterator[Edit]:
    """To a pointer to something else: the width is the same."""
    yield from _each_type(
        site,
        lambda t: re.sub(r"\b(?:struct )?Ort\w+(?= ?\*)", "OrtEnv", t) if "OrtEnv" not in t else "",
    )


@operator("param-pointer-added", "breaking", "slot callback export", _PARAM_RULES)
def param_pointer_added(site: Site) -> Iterator[Edit]:
    yield from _each_type(site, lambda t: f"{t}*" if t.endswith("*") else "")


@operator("param-pointer-removed", "breaking", "slot callback export", _PARAM_RULES)
def param_pointer_removed(site: Site) -> Iterator[Edit]:
    yield from _each_type(site, lambda t: t[:-1] if t.endswith("**") else "")


@operator("param-const-removed", "breaking", "slot callback export", _PARAM_RULES)
def param_const_removed(site: Site) -> Iterator[Edit]:
    yield from _each_type(site, lambda t: re.sub(r"\bconst ?", "", t, count=1) if "*" in t else "")


@operator("param-const-added", "breaking", "slot callback export", _PARAM_RULES)
def param_const_added(site: Site) -> Iterator[Edit]:
    yield from _each_type(site, lambda t: f"const {t}" if "*" in t and "const" not in t else "")


@operator("param-width", "breaking", "slot callback export", _PARAM_RULES)
def param_width(site: Site) -> Iterator[Edit]:
    yield from _each_type(site, lambda t: _INTEGERS.get(t, ""))


@operator("param-width-windows", "breaking", "slot callback export", _PARAM_RULES)
def param_width_windows(site: Site) -> Iterator[Edit]:
    """``long`` for a 64-bit type: as wide on Linux, half as wide on Windows."""
    yield from _each_type(site, lambda t: {"int64_t": "long", "size_t": "unsigned long"}.get(t, ""))


@operator("param-signedness", "breaking", "slot callback export", _PARAM_RULES)
def param_signedness(site: Site) -> Iterator[Edit]:
    other = {
        "int": "unsigned int",
        "int64_t": "uint64_t",
        "size_t": "intptr_t",
        "uint32_t": "int32_t",
    }
    yield from _each_type(site, lambda t: other.get(t, ""))


@operator("call-removed", "breaking", "slot callback export", "calling-convention")
def call_removed(site: Site) -> Iterator[Edit]:
    found = site.signature
    if found is not None and found.call is not None:
        yield _replace(site, found.call, "")


@operator("call-added", "breaking", "slot callback export", "calling-convention")
def call_added(site: Site) -> Iterator[Edit]:
    found = site.signature
    if found is None or found.call is not None or found.result is None:
        return
    head = site.unit.masked[site.span.start : found.name.start]
    if head.rstrip().endswith("*"):
        star = site.span.start + head.rindex("*")
        if "(" in head and "ORT_API_T" not in head:
            yield _insert(site, star, "ORT_API_CALL ")


@operator("must-use-removed", "contract", "slot callback export", "must-use-changed")
def must_use_removed(site: Site) -> Iterator[Edit]:
    found = site.signature
    if found is not None and found.must_use is not None:
        yield _replace(site, found.must_use, "")


@operator("result-annotation", "contract", "slot callback export", "return-sal-changed")
def result_annotation(site: Site) -> Iterator[Edit]:
    found = site.signature
    if found is not None and found.result is not None:
        word = re.search(r"_Ret_maybenull_", found.result.of(site.unit.masked))
        if word:
            start = found.result.start + word.start()
            yield _replace(site, Span(start, start + len(word[0])), "")


@operator("param-renamed", "source", "slot callback export", "param-renamed")
def param_renamed(site: Site) -> Iterator[Edit]:
    for param in _params(site):
        if param.name.end > param.name.start:
            yield _replace(site, param.name, "renamed_by_mutation")
            return


def _sal_edit(site: Site, pattern: str, new: str) -> Iterator[Edit]:
    for param in _params(site):
        for span in param.sal:
            word = span.of(site.unit.text)
            changed = re.sub(pattern, new, word, count=1)
            # Only annotations that the header defines: another would be an unknown word of C.
            if changed != word and changed.partition("(")[0] in site.unit.text:
                yield _replace(site, span, changed)
                return


@operator("sal-nullability", "contract", "slot callback export", "sal-changed")
def sal_nullability(site: Site) -> Iterator[Edit]:
    yield from _sal_edit(site, r"\A_(In|Out|Inout|Outptr)_\Z", r"_\1_opt_")


@operator("sal-nullability-lost", "contract", "slot callback export", "sal-changed")
def sal_nullability_lost(site: Site) -> Iterator[Edit]:
    yield from _sal_edit(site, r"\A_(In|Out|Inout|Outptr)_opt_", r"_\1_")


@operator("sal-direction", "contract", "slot callback export", "sal-changed")
def sal_direction(site: Site) -> Iterator[Edit]:
    yield from _sal_edit(site, r"\A_In_\Z", "_Inout_")


@operator("sal-buffer", "contract", "slot callback export", "sal-changed")
def sal_buffer(site: Site) -> Iterator[Edit]:
    yield from _sal_edit(
        site, r"\((?!.*_Inexpressible_)[^()]*(?:\([^()]*\)[^()]*)?\)\Z", "(another_count)"
    )


@operator("sal-removed", "contract", "slot callback export", "sal-changed")
def sal_removed(site: Site) -> Iterator[Edit]:
    for param in _params(site):
        if len(param.sal) == 1:
            yield _replace(site, param.sal[0], "")
            return


# Enums -----------------------------------------------------------------------------------------

_VALUE_RULES = "enum-value"


@operator("enum-value", "breaking", "constant", _VALUE_RULES)
def enum_value(site: Site) -> Iterator[Edit]:
    """A value that no other enumerator has."""
    assert site.member is not None
    if site.member.value is not None:
        yield _replace(site, site.member.value, "7001")
    else:
        yield _insert(site, site.span.end, " = 7001")


@operator("enumerator-removed", "breaking", "constant", "enumerator-removed")
def enumerator_removed(site: Site) -> Iterator[Edit]:
    members, at = _siblings(site)
    if len(members) < 2:
        return
    if at + 1 < len(members):
        following = members[at + 1]
        value = "" if following.value is not None else _next_value(site, following)
        changes = [(site.span.start, following.span.start, "")]
        if value:
            changes.append((following.span.end, following.span.end, value))
        yield Edit(tuple(changes), site.symbol)
    else:
        yield _replace(site, Span(members[at - 1].span.end, site.span.end), "")


def _next_value(site: Site, following: Member) -> str:
    """An initialiser that keeps the value of the enumerator after one that goes."""
    members, _ = _siblings(site)
    count = members.index(following)
    if any(m.value is not None for m in members[: count + 1] if m is not members[0]):
        return ""
    first = members[0].value
    base = first.of(site.unit.text) if first else "0"
    return f" = {base} + {count}"


@operator("enum-width", "breaking", "enum", "enum-width")
def enum_width(site: Site) -> Iterator[Edit]:
    """An enumerator beyond 32 bits makes GCC store the whole enum in 64."""
    yield _enumerator(site, "0x100000000", site.symbol)


@operator("enum-signedness", "breaking", "unsigned-enum", "enum-width")
def enum_signedness(site: Site) -> Iterator[Edit]:
    yield _enumerator(site, "-7001", site.symbol)


@operator("enumerator-added", "additive", "enum", "enumerator-added")
def enumerator_added(site: Site) -> Iterator[Edit]:
    yield _enumerator(site, "7001", f"{site.symbol}.{ADDED}")


def _enumerator(site: Site, value: str, symbol: str) -> Edit:
    return _insert(site, site.decl.members[-1].span.end, f",\n  {ADDED} = {value}", symbol)


@operator("enumerator-inserted", "breaking", "implicit", _VALUE_RULES)
def enumerator_inserted(site: Site) -> Iterator[Edit]:
    """In front of an enumerator without a value, which moves up with all after it."""
    yield _insert(site, site.span.start, f"{ADDED},\n  ")


@operator("enumerator-renamed", "source", "constant", "enumerator-renamed")
def enumerator_renamed(site: Site) -> Iterator[Edit]:
    assert site.member is not None
    span = Span(site.member.at, site.member.at + len(site.member.name))
    if len(re.findall(rf"\b{site.member.name}\b", site.unit.masked)) == 1:
        yield _replace(site, span, f"{site.member.name}_RENAMED")


@operator("enumerator-aliased", "source", "enum", "enumerator-alias")
def enumerator_aliased(site: Site) -> Iterator[Edit]:
    """A second name for the first value."""
    yield _enumerator(site, site.decl.members[0].name, f"{site.symbol}.{ADDED}")


@operator("enumerator-replaced", "breaking", "constant", "enumerator-conflict")
def enumerator_replaced(site: Site) -> Iterator[Edit]:
    """Another enumerator, with a name that is nothing like the old one's, takes its value."""
    assert site.member is not None
    span = Span(site.member.at, site.member.at + len(site.member.name))
    if len(re.findall(rf"\b{site.member.name}\b", site.unit.masked)) == 1:
        twins = [m for m in site.decl.members if m.value and site.member.value
                 and m.value.of(site.unit.text) == site.member.value.of(site.unit.text)]  # fmt: skip
        if len(twins) < 2:
            yield _replace(site, span, "Qq", f"{site.decl.name}.Qq")


# Other declarations ----------------------------------------------------------------------------


@operator("typedef-target", "breaking", "typedef", "typedef-changed")
def typedef_target(site: Site) -> Iterator[Edit]:
    yield _replace(site, site.span, f"typedef void* {site.decl.name};")


@operator("typedef-removed", "breaking", "callback-unused typedef-unused", "type-removed")
def typedef_removed(site: Site) -> Iterator[Edit]:
    yield _replace(site, site.span, "")


@operator("callback-made-data", "breaking", "callback", "typedef-changed")
def callback_made_data(site: Site) -> Iterator[Edit]:
    yield _replace(site, site.span, f"typedef void* {site.decl.name};")


@operator("opaque-completed", "breaking", "opaque", "opaque-completed")
def opaque_completed(site: Site) -> Iterator[Edit]:
    yield _insert(site, site.span.end, f"\nstruct {site.decl.name} {{ int first; }};")


@operator("opaque-removed", "breaking", "opaque-unused", "type-removed")
def opaque_removed(site: Site) -> Iterator[Edit]:
    yield _replace(site, site.span, "")


@operator("struct-made-opaque", "breaking", "struct", "struct-made-opaque")
def struct_made_opaque(site: Site) -> Iterator[Edit]:
    body = site.decl.body
    assert body is not None
    head = site.unit.masked[site.span.start : body.start - 1].rstrip()
    if head.startswith("typedef"):
        yield _replace(site, site.span, f"{head} {site.decl.name};")
    else:
        yield _replace(site, site.span, f"{head};")


@operator("type-renamed", "source", "lone-enum lone-opaque lone-struct", "type-renamed")
def type_renamed(site: Site) -> Iterator[Edit]:
    """Everywhere in the header, of which the file is the only one."""
    old = site.decl.name
    new = re.sub(rf"\b{old}\b", f"{old}Renamed", site.unit.text)
    yield Edit(((0, len(site.unit.text), new),), old)


@operator("export-removed", "breaking", "export", "function-removed")
def export_removed(site: Site) -> Iterator[Edit]:
    yield _replace(site, site.span, "")


@operator("macro-value", "breaking", "macro", "macro-value")
def macro_value(site: Site) -> Iterator[Edit]:
    assert site.decl.value is not None
    yield _replace(site, site.decl.value, "7001")


@operator("alias-removed", "source", "macro", "alias-missing")
def alias_removed(site: Site) -> Iterator[Edit]:
    yield _replace(site, site.span, "")


@operator("version-back", "breaking", "version", "version-went-back", side="header")
def version_back(site: Site) -> Iterator[Edit]:
    assert site.decl.value is not None
    value = int(site.decl.value.of(site.unit.text))
    yield _replace(site, site.decl.value, str(value - 1))


@operator("version-ahead", "additive", "version", "release-new")
def version_ahead(site: Site) -> Iterator[Edit]:
    assert site.decl.value is not None
    yield _replace(site, site.decl.value, "99")


@operator("since-moved", "breaking", "slot", "since-changed")
def since_moved(site: Site) -> Iterator[Edit]:
    comment = site.unit.comment_before(site.span.start)
    found = _SINCE.search(site.unit.text, *comment) if comment else None
    if found:
        yield Edit(((found.start(2), found.end(2), str(int(found[2]) + 1)),), site.symbol)


# Additive and unreadable -----------------------------------------------------------------------


def _after(site: Site, text: str, symbol: str) -> Iterator[Edit]:
    yield _insert(site, site.span.end, f"\n{text}\n", symbol)


@operator("struct-added", "additive", "enum", "type-added")
def struct_added(site: Site) -> Iterator[Edit]:
    yield from _after(site, f"typedef struct {ADDED} {{ int first; }} {ADDED};", ADDED)


@operator("enum-added", "additive", "enum", "type-added")
def enum_added(site: Site) -> Iterator[Edit]:
    yield from _after(site, f"typedef enum {ADDED} {{ {ADDED}_A }} {ADDED};", ADDED)


@operator("opaque-added", "additive", "enum", "type-added")
def opaque_added(site: Site) -> Iterator[Edit]:
    yield from _after(site, f"typedef struct {ADDED} {ADDED};", ADDED)


@operator("typedef-added", "additive", "enum", "type-added")
def typedef_added(site: Site) -> Iterator[Edit]:
    yield from _after(site, f"typedef void(ORT_API_CALL* {ADDED})(int first);", ADDED)


@operator("export-added", "additive", "enum", "function-added")
def export_added(site: Site) -> Iterator[Edit]:
    yield from _after(site, f"int ORT_API_CALL {ADDED}(int first);", ADDED)


@operator("macro-added", "additive", "enum", "macro-added")
def macro_added(site: Site) -> Iterator[Edit]:
    yield from _after(site, "#define ORT_ADDED_BY_MUTATION 3", "ORT_ADDED_BY_MUTATION")


@operator("unreadable-declaration", "unreadable", "enum opaque struct callback", "unreadable")
def unreadable_declaration(site: Site) -> Iterator[Edit]:
    yield from _after(site, f"int [[ {ADDED} !! broken;", "*")


@operator("unreadable-member", "unreadable", "slot field", "unreadable")
def unreadable_member(site: Site) -> Iterator[Edit]:
    yield _insert(site, site.span.start, "int @;\n  ", "*")


@operator("unreadable-bitfield", "unreadable", "field", "unreadable")
def unreadable_bitfield(site: Site) -> Iterator[Edit]:
    """A bit-field is C, but its place in the ABI is the compiler's choice."""
    if _field_type(site) in ("int", "uint32_t") and site.member is not None:
        yield _replace(site, site.span, f"{_field_type(site)} {site.member.name} : 3;", "*")


# Documentation ---------------------------------------------------------------------------------

_PARAM_DOC = re.compile(r"^ *\* *[\\@]param\[([a-z,]+)\] (\w+).*(?:\n *\*   *[^\\@\s*].*)*\n", re.M)


def _documented(site: Site) -> tuple[Span, list[re.Match[str]]]:
    """The comment before a site and its ``\\param`` paragraphs."""
    comment = site.unit.comment_before(site.span.start)
    if comment is None or not site.unit.text.startswith("/**", comment.start):
        comment = Span(0, 0)
    return comment, list(_PARAM_DOC.finditer(site.unit.text, *comment))


@operator("doc-param-renamed", "documentation", "slot", "doc-param-unknown", side="docs")
def doc_param_renamed(site: Site) -> Iterator[Edit]:
    _, params = _documented(site)
    if params:
        new = "renamed_by_mutation"
        yield _replace(site, Span(*params[0].span(2)), new, f"{site.symbol}.{new}")


@operator("doc-param-removed", "documentation", "slot", "doc-param-missing", side="docs")
def doc_param_removed(site: Site) -> Iterator[Edit]:
    _, params = _documented(site)
    if len(params) > 1:
        yield _replace(site, Span(*params[-1].span()), "", f"{site.symbol}.{params[-1][2]}")


@operator("doc-param-doubled", "documentation", "slot", "doc-param-duplicate", side="docs")
def doc_param_doubled(site: Site) -> Iterator[Edit]:
    _, params = _documented(site)
    if params:
        yield _insert(site, params[0].end(), params[0][0], f"{site.symbol}.{params[0][2]}")


@operator("doc-param-direction", "documentation", "slot", "doc-param-direction", side="docs")
def doc_param_direction(site: Site) -> Iterator[Edit]:
    _, params = _documented(site)
    sal = {p.name.of(site.unit.text): p.sal[0].of(site.unit.text) for p in _params(site) if p.sal}
    for param in params:
        if sal.get(param[2]) == "_In_" and param[1] == "in":
            yield _replace(site, Span(*param.span(1)), "out", f"{site.symbol}.{param[2]}")
            return


@operator("doc-since-removed", "documentation", "slot", "doc-since-missing", side="docs")
def doc_since_removed(site: Site) -> Iterator[Edit]:
    comment, params = _documented(site)
    found = _SINCE.search(site.unit.text, *comment) if params else None
    if found:
        yield _replace(site, Span(*found.span()), "Was there")


@operator("doc-reference-broken", "documentation", "slot enum struct", "doc-reference", side="docs")
def doc_reference_broken(site: Site) -> Iterator[Edit]:
    comment, _ = _documented(site)
    if comment.end:
        yield _insert(site, comment.start + 3, " See ::NoSuchFunction(). ", "*")


@operator("doc-tag", "documentation", "slot enum struct", "doc-html", side="docs")
def doc_tag(site: Site) -> Iterator[Edit]:
    comment, _ = _documented(site)
    if comment.end:
        yield _insert(site, comment.start + 3, " A <word> in angles. ", "*")


@operator("doc-group-nested", "documentation", "enum", "doc-group-nested", side="docs")
def doc_group_nested(site: Site) -> Iterator[Edit]:
    opened = "/** \\addtogroup Again\n * @{\n */\n"
    yield from _after(site, opened + opened + "/** @} */\n/** @} */", "*")


@operator("doc-group-open", "documentation", "enum", "doc-group-unbalanced", side="docs")
def doc_group_open(site: Site) -> Iterator[Edit]:
    yield from _after(site, "/** \\addtogroup Again\n * @{\n */", "*")


# Neutral ---------------------------------------------------------------------------------------


@operator("whitespace", "neutral", "slot field constant callback export struct opaque")
def whitespace(site: Site) -> Iterator[Edit]:
    """Every run of blanks in the declaration becomes a line break and a tab."""
    yield from _respell(site, r"[ \n]+", "\n\t ")


@operator("comments", "neutral", "slot field callback export opaque")
def comments(site: Site) -> Iterator[Edit]:
    yield from _respell(site, r"[ \n]+", " /* void(*gone)(int); */ ")


@operator("line-comments", "neutral", "slot field callback export")
def line_comments(site: Site) -> Iterator[Edit]:
    yield from _respell(site, r"[ \n]+", " // it's \"quoted; {\n")


@operator("line-continuation", "neutral", "slot field constant callback export")
def line_continuation(site: Site) -> Iterator[Edit]:
    yield from _respell(site, r"[ \n]+", " \\\n ")


def _respell(site: Site, pattern: str, new: str) -> Iterator[Edit]:
    old = site.span.of(site.unit.masked)
    if old == site.text and "\n#" not in old and re.search(pattern, old):
        yield _replace(site, site.span, re.sub(pattern, lambda _: new, old))


@operator("comment-prose", "neutral", "slot enum struct constant")
def comment_prose(site: Site) -> Iterator[Edit]:
    comment = site.unit.comment_before(site.span.start)
    if comment:
        yield _insert(site, comment.start + 3, " Said in other words; see { and }. ")


@operator("macro-wrapped", "neutral", "slot field callback export opaque")
def macro_wrapped(site: Site) -> Iterator[Edit]:
    """The declaration comes out of a macro that was not there before."""
    text = site.span.of(site.unit.masked)
    if text == site.text:
        define = "\n#define ORT_AS_IS(...) __VA_ARGS__\n"
        yield _replace(site, site.span, f"{define}ORT_AS_IS({text[:-1]});\n#undef ORT_AS_IS\n")


@operator("macro-spelled-out", "neutral", "slot callback export")
def macro_spelled_out(site: Site) -> Iterator[Edit]:
    found = site.signature
    if found is not None and found.must_use is not None:
        yield _replace(site, found.must_use, "__attribute__((__warn_unused_result__))")


@operator("value-respelled", "neutral", "constant")
def value_respelled(site: Site) -> Iterator[Edit]:
    assert site.member is not None
    span = site.member.value
    if span is not None and span.of(site.unit.text).isdigit():
        value = int(span.of(site.unit.text))
        yield _replace(site, span, f"(0x{value:X} | (1 << 3) * 0)")


@operator("macro-value-respelled", "neutral", "macro")
def macro_value_respelled(site: Site) -> Iterator[Edit]:
    assert site.decl.value is not None
    yield _replace(site, site.decl.value, f"({site.decl.value.of(site.unit.text)}) /* same */")


@operator("tag-spelled-out", "neutral", "slot callback export field")
def tag_spelled_out(site: Site) -> Iterator[Edit]:
    structs = {d.name for d in site.unit.decls if d.kind in ("struct", "opaque")}
    for param in _params(site):
        found = re.search(r"(?<!struct )\bOrt\w+", param.type.of(site.unit.masked))
        if found and found[0] in structs:
            yield _insert(site, param.type.start + found.start(), "struct ")
            return


@operator("const-moved", "neutral", "slot callback export")
def const_moved(site: Site) -> Iterator[Edit]:
    yield from _each_type(site, lambda t: re.sub(r"\Aconst (\w+)", r"\1 const", t))


@operator("param-const-by-value", "neutral", "slot callback export")
def param_const_by_value(site: Site) -> Iterator[Edit]:
    """``const`` on what is passed by value is no part of a function's type."""
    yield from _each_type(site, lambda t: f"const {t}" if t in _INTEGERS else "")


@operator("param-array-spelled", "neutral", "slot callback export")
def param_array_spelled(site: Site) -> Iterator[Edit]:
    for param in _params(site):
        old = " ".join(param.type.of(site.unit.masked).split())
        known = re.fullmatch(r"const (?:char|int|u?int(?:32|64)_t|size_t|float)\*", old)
        if known and param.name.start < param.name.end == param.span.end:
            new = f"{old[:-1]} {param.name.of(site.unit.text)}[]"
            yield _replace(site, Span(param.type.start, param.span.end), new)
            return


@operator("type-respelled", "neutral", "slot callback export")
def type_respelled(site: Site) -> Iterator[Edit]:
    yield from _each_type(site, lambda t: "signed int" if t == "int" else "")


@operator("no-parameters-respelled", "neutral", "slot callback export")
def no_parameters_respelled(site: Site) -> Iterator[Edit]:
    found = site.signature
    if found is not None and not found.params and found.list.of(site.unit.masked).strip() == "void":
        yield _replace(site, found.list, "")


@operator("reordered", "neutral", "enum opaque export")
def reordered(site: Site) -> Iterator[Edit]:
    """Behind the next declaration of its kind, where nothing in between needs it."""
    later = [
        d for d in site.unit.decls if d.kind == site.decl.kind and d.span.start > site.span.end
    ]
    if later:
        first, text = site.unit.comment_before(site.span.start), site.unit.text
        start = first.start if first else site.span.start
        gap = text[site.span.end : later[0].span.start]
        if "#" not in gap and not re.search(rf"\b{site.decl.name}\b", gap):
            moved = text[start : site.span.end]
            changes = (
                (start, site.span.end, ""),
                (later[0].span.end, later[0].span.end, f"\n\n{moved}\n"),
            )
            yield Edit(changes, site.symbol)


@operator("declared-twice", "neutral", "opaque")
def declared_twice(site: Site) -> Iterator[Edit]:
    yield _insert(site, site.span.end, f"\nstruct {site.decl.name};\n{site.text}\n")


@operator("extern-written", "neutral", "export")
def extern_written(site: Site) -> Iterator[Edit]:
    if "extern" not in site.text and "ORT_EXPORT" not in site.text:
        yield _insert(site, site.span.start, "extern ")


@operator("enum-comma", "neutral", "enum")
def enum_comma(site: Site) -> Iterator[Edit]:
    last = site.decl.members[-1].span.end
    body = site.decl.body
    assert body is not None
    rest = site.unit.masked[last : body.end]
    if "," in rest:
        yield _replace(site, Span(last, last + rest.index(",") + 1), "")
    else:
        yield _insert(site, last, ",")


@operator("disabled-code", "neutral", "enum struct opaque")
def disabled_code(site: Site) -> Iterator[Edit]:
    yield from _after(site, "#if 0\nit's { not C\n#endif", "")


@operator("cplusplus-code", "neutral", "enum struct opaque")
def cplusplus_code(site: Site) -> Iterator[Edit]:
    yield from _after(site, "#ifdef __cplusplus\ntemplate <class T> struct X;\n#endif", "")


@operator("private-macro", "neutral", "enum struct opaque")
def private_macro(site: Site) -> Iterator[Edit]:
    """Macros that are no values: nothing of the ABI."""
    yield from _after(site, "#define ORT_PRIVATE(x) (x)\n#define ORT_EMPTY_MARK", "")


def _whole(name: str) -> Callable[[Callable[[str], str]], Callable[[str], str]]:
    """A neutral operator on a whole file."""

    def register(change: Callable[[str], str]) -> Callable[[str], str]:
        def make(site: Site) -> Iterator[Edit]:
            text = site.unit.text
            yield Edit(((0, len(text), change(text)),), "")

        operator(name, "neutral", "file")(make)
        return change

    return register


@_whole("crlf")
def crlf(text: str) -> str:
    return text.replace("\n", "\r\n")


@_whole("byte-order-mark")
def byte_order_mark(text: str) -> str:
    return "\ufeff" + text


@_whole("tabs")
def tabs(text: str) -> str:
    return re.sub(r"^(?: {2})+", lambda m: "\t" * (len(m[0]) // 2), text, flags=re.M)


@_whole("trailing-blanks")
def trailing_blanks(text: str) -> str:
    return re.sub(r"(?<!\\)$", "  ", text, flags=re.M)


@_whole("no-final-newline")
def no_final_newline(text: str) -> str:
    return text.rstrip("\n")


@_whole("blank-lines")
def blank_lines(text: str) -> str:
    """More of them everywhere but inside a continued line."""
    return re.sub(r"(?<!\\)\n(?=\S)", "\n\n\n", text)


@_whole("guard-renamed")
def guard_renamed(text: str) -> str:
    found = re.search(r"^#ifndef (\w+)\n#define \1\b", text, re.M)
    if found is None:
        return "#ifndef ORT_OUTER_GUARD\n#define ORT_OUTER_GUARD\n" + text + "\n#endif\n"
    return text.replace(found[1], "ANOTHER_GUARD_NAME")


@_whole("pragma-once")
def pragma_once(text: str) -> str:
    return "#pragma once\n" + text


@_whole("non-ascii-comment")
def non_ascii_comment(text: str) -> str:
    return "/* Überblick: 概要 */\n" + text


@_whole("unused-macros-used")
def unused_macros_used(text: str) -> str:
    """Another spelling of the two platform macros' definitions."""
    text = re.sub(
        r"^#define ORT_API_CALL __stdcall$", "#define ORT_API_CALL _stdcall", text, flags=re.M
    )
    return re.sub(
        r"^#define ORT_MUST_USE_RESULT __attribute__\(\(warn_unused_result\)\)",
        "#define ORT_MUST_USE_RESULT __attribute__((__warn_unused_result__))",
        text,
        flags=re.M,
    )
