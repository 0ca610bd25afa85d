"""Enumerations: values, names and storage."""

from __future__ import annotations

from difflib import SequenceMatcher

from ...spec.abi import Constant, Enum
from ...spec.layout import enum_measures
from .context import Context

_SIMILAR = 0.5
"""How alike the names of an enumerator must be to count as renamed and not as replaced."""


def compare_enum(ctx: Context, old: Enum, new: Enum) -> None:
    """The enumerators of an enum, and the type that holds them."""
    wanted = {c.name: c for c in old.constants}
    got = {c.name: c for c in new.constants}
    changed = False
    for name, constant in wanted.items():
        other = got.get(name)
        if other is None:
            continue
        if other.value != constant.value:
            changed = True
            ctx.add(
                "enum-value",
                f"{old.name}.{name}",
                "compiled code passes and compares the wrong value",
                str(constant.value),
                str(other.value),
                constant.loc,
                other.loc,
            )
        ctx.since(f"{old.name}.{name}", constant, other)
    gone = [c for n, c in wanted.items() if n not in got and f"{old.name}.{n}" not in ctx.unread]
    come = [c for n, c in got.items() if n not in wanted]
    for constant in gone:
        match = None if changed else renamed_constant(constant, come)
        if match is not None:
            come.remove(match)
            ctx.add(
                "enumerator-renamed",
                f"{old.name}.{constant.name}",
                f"is called {match.name} now, with the same value {match.value}",
                constant.name,
                match.name,
                constant.loc,
                match.loc,
            )
        else:
            ctx.add(
                "enumerator-removed",
                f"{old.name}.{constant.name}",
                f"is gone; {constant.value} has no name any more",
                f"{constant.name} = {constant.value}",
                "",
                constant.loc,
                new.loc,
            )
    for constant in come:
        _new_constant(ctx, old, constant, got)
    if enum_measures(old) != enum_measures(new) or (
        not changed and not gone and _unsigned(old) != _unsigned(new)
    ):
        ctx.add(
            "enum-width",
            old.name,
            "its values are stored in another width or signedness",
            stored_as(old),
            stored_as(new),
            old.loc,
            new.loc,
        )


def _new_constant(ctx: Context, old: Enum, constant: Constant, got: dict[str, Constant]) -> None:
    same = [c for c in old.constants if c.value == constant.value]
    kept = [c for c in same if c.name in got and got[c.name].value == c.value]
    if kept:
        rule = "enumerator-alias"
        message = f"has the value of {kept[0].name}: one switch cannot have cases for both"
    elif same:
        rule = "enumerator-conflict"
        message = f"has the value that {ctx.base} has for {same[0].name}"
    else:
        rule = "enumerator-added"
        message = f"{ctx.base} does not know this enumerator"
    ctx.add(
        rule,
        f"{old.name}.{constant.name}",
        message,
        "".join(f"{c.name} = {c.value}" for c in (kept or same)[:1]),
        f"{constant.name} = {constant.value}",
        (kept or same)[0].loc if kept or same else old.loc,
        constant.loc,
    )


def renamed_constant(old: Constant, candidates: list[Constant]) -> Constant | None:
    """The new name of an enumerator: one of the same value and much the same name."""
    alike = [
        (SequenceMatcher(None, old.name, c.name).ratio(), c)
        for c in candidates
        if c.value == old.value
    ]
    best = max(alike, key=lambda pair: pair[0], default=(0.0, None))
    return best[1] if best[0] >= _SIMILAR else None


def _unsigned(enum: Enum) -> bool:
    """Whether GCC takes the enum for ``unsigned int``: where no value is negative."""
    return all(c.value >= 0 for c in enum.constants)


def stored_as(enum: Enum) -> str:
    """The integer type that holds an enum, in words."""
    size = enum_measures(enum)[0][0]
    return f"{size} bytes{', unsigned' if _unsigned(enum) else ''}"
