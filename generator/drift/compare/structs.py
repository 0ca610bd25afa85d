"""Structs and function tables: what became of their fields and slots, and of where those stand."""

from __future__ import annotations

from dataclasses import replace

from ...header.errors import UNREADABLE
from ...spec.abi import Field, Struct
from ...spec.ctype import type_text
from ..align import Alignment, align
from .context import Context
from .functions import compare_function
from .spelling import field_text, type_change

VERSION_FIELDS = frozenset({"version", "ort_version_supported"})


def may_grow(struct: Struct) -> bool:
    """Whether fields may come at the end: function tables, and structs that carry a version."""
    if struct.fields and struct.fields[0].name in VERSION_FIELDS:
        return True
    return bool(struct.fields) and all(f.function is not None for f in struct.fields)


def compare_struct(ctx: Context, old: Struct, new: Struct) -> None:
    """The fields of a struct or the slots of a table; one cause is told once."""
    before = len(ctx.found)
    if ctx.spec.partial and not ctx.header.partial:
        _known_fields(ctx, old, new)
        return
    if ctx.header.partial and not ctx.spec.partial:
        _new_fields(ctx, old, new)
        return
    alignment = align(old.fields, new.fields, ctx.same_field)
    _places(ctx, old, new, alignment)
    elsewhere = {*alignment.moved, *(pair for both in alignment.swapped for pair in both)}
    for i, j in alignment.kept:
        # A declaration that was moved without its comment stands under another one's.
        _field(ctx, old, old.fields[i], new.fields[j], since=(i, j) not in elsewhere)
    for i, j in alignment.renamed:
        _field(ctx, old, old.fields[i], replace(new.fields[j], name=old.fields[i].name))
    told = any(_moves_fields(finding.rule) for finding in ctx.found[before:])
    if not told and old.name not in ctx.unread_owners:
        _layout(ctx, old, new)


def _known_fields(ctx: Context, old: Struct, new: Struct) -> None:
    """A delta record tells of single fields, and where they are."""
    for item in old.fields:
        other = new.field(item.name)
        symbol = f"{old.name}.{item.name}"
        if other is None:
            if symbol not in ctx.unread:
                rule = "slot-removed" if item.function else "field-removed"
                ctx.add(rule, symbol, "it is not declared", field_text(item), "", item.loc, new.loc)
            continue
        _field(ctx, old, item, other)
        _field_offset(ctx, old, item, other)


def _new_fields(ctx: Context, old: Struct, new: Struct) -> None:
    """What a delta record adds; of what was there before it tells no more than the place."""
    for item in new.fields:
        known = old.field(item.name)
        if known is not None:
            _field_offset(ctx, old, known, item)
            continue
        what = "slot" if item.function is not None else "field"
        if item.offset is None or old.size is None or item.offset >= old.size:
            add_field(ctx, old, item, f"{what}-appended", "older hosts do not have it")
        else:
            add_field(ctx, old, item, f"{what}-inserted", "all that follow it are shifted")


def _places(ctx: Context, old: Struct, new: Struct, a: Alignment) -> None:
    fields, others = old.fields, new.fields

    def rule(item: Field, what: str) -> str:
        return f"{'slot' if item.function is not None else 'field'}-{what}"

    for j in a.duplicate:
        item = others[j]
        if item.type == UNREADABLE:
            continue
        ctx.add(
            rule(item, "duplicate"),
            f"{old.name}.{item.name}",
            f"declared a second time at place {j}: all that follow it are shifted",
            "",
            field_text(item),
            old.loc,
            item.loc,
        )
    for (i, j), (k, m) in a.swapped:
        first, second = fields[i], fields[k]
        ctx.add(
            rule(first, "swapped"),
            f"{old.name}.{first.name}",
            f"has changed places with {second.name}: {_misses(first)} one reaches the other",
            f"{first.name} at {i}, {second.name} at {k}",
            f"{second.name} at {m}, {first.name} at {j}",
            first.loc,
            others[j].loc,
        )
    for i, j in a.moved:
        item = fields[i]
        ctx.add(
            rule(item, "moved"),
            f"{old.name}.{item.name}",
            f"was at place {i}, is at place {j}: {_misses(item)} it reaches another one",
            f"place {i}",
            f"place {j}",
            item.loc,
            others[j].loc,
        )
    for i in a.removed:
        item = fields[i]
        if f"{old.name}.{item.name}" in ctx.unread:
            continue
        after = len(fields) - i - 1
        shifted = f"; the {after} after it are shifted" if after else ""
        ctx.add(
            rule(item, "removed"),
            f"{old.name}.{item.name}",
            f"is gone{shifted}",
            field_text(item),
            "",
            item.loc,
            new.loc,
        )
    for i, j in a.renamed:
        item, other = fields[i], others[j]
        ctx.add(
            rule(item, "renamed"),
            f"{old.name}.{item.name}",
            f"is called {other.name} now, at the same place and with the same type",
            item.name,
            other.name,
            item.loc,
            other.loc,
        )
    for i, j in a.replaced:
        item, other = fields[i], others[j]
        if other.type == UNREADABLE:
            continue
        ctx.add(
            rule(item, "replaced"),
            f"{old.name}.{item.name}",
            f"{other.name or field_text(other)} stands in its place and is something else",
            field_text(item),
            field_text(other),
            item.loc,
            other.loc,
        )
    for j in a.inserted:
        add_field(
            ctx, old, others[j], rule(others[j], "inserted"), "all that follow it are shifted"
        )
    for j in a.appended:
        item = others[j]
        if may_grow(old):
            add_field(ctx, old, item, rule(item, "appended"), "older hosts do not have it")
        else:
            add_field(
                ctx,
                old,
                item,
                "field-appended-unversioned",
                "the struct grows and carries no version that would tell",
            )


def _misses(item: Field) -> str:
    return "a call of" if item.function is not None else "compiled code that uses"


def add_field(ctx: Context, owner: Struct, item: Field, rule: str, why: str) -> None:
    if item.type == UNREADABLE:
        return
    ctx.add(
        rule,
        f"{owner.name}.{item.name}",
        f"is new: {why}",
        "",
        field_text(item),
        owner.loc,
        item.loc,
    )


def _field(ctx: Context, owner: Struct, old: Field, new: Field, *, since: bool = True) -> None:
    if new.type == UNREADABLE:
        return
    symbol = f"{owner.name}.{old.name}"
    if old.function is not None and new.function is not None:
        compare_function(ctx, symbol, old.function, new.function, old.loc, new.loc)
    elif not ctx.same_type(old.type, new.type):
        ctx.add(
            "field-type",
            symbol,
            type_change(old.type, new.type),
            type_text(old.type),
            type_text(new.type),
            old.loc,
            new.loc,
        )
    if since:
        ctx.since(symbol, old, new)


def _field_offset(ctx: Context, owner: Struct, old: Field, new: Field) -> bool:
    wanted, got = (old.offset, old.offset_win64), (new.offset, new.offset_win64)
    if None in wanted or None in got or wanted == got:
        return False
    ctx.add(
        "field-offset",
        f"{owner.name}.{old.name}",
        "compiled code reads and writes the wrong bytes",
        f"{wanted[0]} (Windows {wanted[1]})",
        f"{got[0]} (Windows {got[1]})",
        old.loc,
        new.loc,
    )
    return True


def _layout(ctx: Context, old: Struct, new: Struct) -> None:
    """Places and sizes of a struct whose declaration is as expected."""
    for item, other in zip(old.fields, new.fields, strict=False):
        if _field_offset(ctx, old, item, other):
            return
    if len(old.fields) != len(new.fields):
        return
    wanted, got = (old.size, old.size_win64), (new.size, new.size_win64)
    if None not in wanted and None not in got and wanted != got:
        ctx.add(
            "size-changed",
            old.name,
            "arrays of it and structs that hold it are laid out differently",
            f"{wanted[0]} bytes (Windows {wanted[1]})",
            f"{got[0]} bytes (Windows {got[1]})",
            old.loc,
            new.loc,
        )


def _moves_fields(rule: str) -> bool:
    """Whether a finding explains that the fields of its struct have other offsets."""
    kind, _, what = rule.partition("-")
    return kind in ("slot", "field") and what not in ("renamed", "appended")
