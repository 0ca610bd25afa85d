"""New types, exported functions and macros."""

from __future__ import annotations

from collections.abc import Mapping

from ...header.errors import UNREADABLE
from ...spec.abi import Abi, Enum, Export, Opaque, Struct, Typedef
from ...spec.ctype import declare
from ...spec.model import Source
from ..compare.structs import VERSION_FIELDS
from .edits import at_column, flow, indented, scalar
from .members import member_rows, signature_rows
from .work import REVIEW, Work

_SECTIONS = ("enums", "opaque", "structs", "typedefs", "functions", "macros")


def write_new_elements(work: Work) -> None:
    """What the header has and no file of the spec, into the mechanical file."""
    known = {
        name for s in work.model.sources for section in _SECTIONS for name in _names(s, section)
    }
    known |= work.old.macros.keys()
    every: dict[str, Mapping[str, Enum | Struct | Opaque | Typedef | Export]] = {
        "enums": work.header.enums,
        "opaque": work.header.opaque,
        "structs": work.header.structs,
        "typedefs": work.header.typedefs,
        "functions": work.header.functions,
    }
    for section, found in every.items():
        previous = ""
        for name, element in found.items():
            if name not in known:
                rows = _element(work, section, element)
                if rows:
                    _add(work, section, previous, name, rows)
            previous = name
    renamed = {c.name for e in work.old.enums.values() for c in e.constants}
    for macro in work.header.macros.values():
        if macro.name not in known and macro.name not in renamed:

            def has(abi: Abi, name: str = macro.name) -> bool:
                return name in abi.macros

            since, _ = work.since(has)
            value = flow(macro.value)
            row = f"- {{name: {macro.name}, value: {value}, since: {since}}}"
            _add(work, "macros", "", macro.name, [f"{REVIEW}new in 1.{since}", row])


def _add(work: Work, section: str, previous: str, name: str, rows: list[str]) -> None:
    """Put a new element behind the one that the header has before it, or into its alphabetical place."""
    file = work.target
    names = _names(file.source, section)
    if not names:
        file.edits.sections.setdefault(section, []).extend(at_column(2, rows))
    else:
        if len(names) > 2 and names == sorted(names):
            place = sum(n < name for n in names) - 1
        else:
            place = names.index(previous) if previous in names else len(names) - 1
        anchor = (section, max(place, 0))
        dash = file.dash(anchor)
        if dash < 0:
            return
        block = at_column(dash, rows)
        if place >= 0:
            file.edits.put_after(file.last_line(anchor), block)
        else:
            file.edits.put_before(file.place(anchor)[0], block)
    work.note(file, name, f"new in section '{section}'")


def _element(
    work: Work, section: str, element: Enum | Struct | Opaque | Typedef | Export
) -> list[str]:
    def has(abi: Abi) -> bool:
        found: Mapping[str, object] = getattr(abi, section)
        return element.name in found

    since, _ = work.since(has, element.since)
    since = min(since, work.used_since.get(element.name, since))
    default = work.target.source.file.header
    place = [f"header: {element.header}"] if element.header not in ("", default) else []
    review = f"{REVIEW}new in 1.{since}"
    if isinstance(element, Opaque):
        parts = [f"name: {element.name}", f"since: {since}", *place]
        return [review, f"- {{{', '.join(parts)}}}"]
    head = [review, f"- name: {element.name}"]
    body = [f"since: {since}", *place]
    match element:
        case Enum(constants=constants):
            if any(c.name in work.enumerators for c in constants):
                return []
            body.append("constants:")
            for at, constant in enumerate(constants):
                parts = [f"name: {constant.name}", f"value: {constant.value}"]
                same = [c.name for c in constants[:at] if c.value == constant.value]
                parts += [f"alias_of: {same[0]}"] if same else []
                body.append(f"  - {{{', '.join(parts)}}}")
        case Struct(kind="struct") if all(f.type != UNREADABLE for f in element.fields):
            body = [f"kind: {_struct_kind(element)}", *body]
            if element.fields[0].name in VERSION_FIELDS:
                body.append(f"version_field: {element.fields[0].name}")
            body.append("fields:")
            for item in element.fields:
                body += indented(member_rows(work, element.name, item, since))
        case Struct():
            return []
        case Typedef(function=None):
            body.append(f"type: {scalar(declare(element.type))}")
        case Typedef(function=function) | Export(function=function):
            assert function is not None
            body += ["function:", *indented(signature_rows(work, function))]
    return [*head, *indented(body)]


def _struct_kind(struct: Struct) -> str:
    slots = [f for f in struct.fields if f.function is not None]
    versioned = struct.fields[0].name in VERSION_FIELDS
    if slots and versioned:
        return "implementation"
    if versioned:
        return "descriptor"
    return "table" if len(slots) == len(struct.fields) else "plain"


def _names(source: Source, section: str) -> list[str]:
    return [element.name for element in getattr(source.file, section)]
