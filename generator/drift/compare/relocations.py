"""Slots that went from one table to another."""

from __future__ import annotations

from dataclasses import replace

from ...spec.abi import Abi
from ..finding import Finding
from ..rules import RULES
from .context import Context
from .functions import compare_function
from .spelling import field_text
from .structs import add_field


def find_relocations(ctx: Context) -> None:
    """A slot that went from one table to another is one change, whatever it lost of its name."""
    come = [
        (struct, slot)
        for struct in ctx.header.structs.values()
        for slot in struct.fields
        if slot.function is not None and not _has(ctx.spec, struct.name, slot.name)
    ]
    if not come:
        return
    relocated: dict[Finding, Finding] = {}
    for finding in [f for f in ctx.found if f.rule in ("slot-removed", "slot-replaced")]:
        owner, _, name = finding.symbol.partition(".")
        old = ctx.spec.structs[owner].field(name)
        found = [(s, f) for s, f in come if s.name != owner and _same_slot(name, f.name)]
        if old is None or old.function is None or len(found) != 1:
            continue
        struct, slot = found[0]
        assert slot.function is not None
        symbol = f"{struct.name}.{slot.name}"
        relocated[finding] = replace(
            finding,
            rule="slot-relocated",
            severity=RULES["slot-relocated"].severity,
            message=f"is {symbol} now",
            expected=finding.symbol,
            actual=symbol,
            header_loc=slot.loc,
            hint=RULES["slot-relocated"].hint,
        )
        if finding.rule == "slot-replaced":
            instead = ctx.header.structs[owner].fields
            occupant = next(f for f in instead if field_text(f) == finding.actual)
            why = "it stands where other slots were"
            add_field(ctx, ctx.spec.structs[owner], occupant, "slot-inserted", why)
        compare_function(ctx, symbol, old.function, slot.function, old.loc, slot.loc)
    places = {f.actual for f in relocated.values()}
    ctx.found = [
        relocated.get(f, f)
        for f in ctx.found
        if f.rule != "slot-appended" or f.symbol not in places
    ]


def _has(abi: Abi, struct: str, field: str) -> bool:
    return struct in abi.structs and abi.structs[struct].field(field) is not None


def _same_slot(old: str, new: str) -> bool:
    """Whether a slot has the same name in another table, where it needs no prefix."""
    return old == new or old.endswith(f"_{new}")
