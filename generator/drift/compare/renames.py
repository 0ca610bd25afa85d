"""Types that only have another name."""

from __future__ import annotations

from dataclasses import replace
from difflib import SequenceMatcher

from ...spec.abi import Abi, Enum, Function, Struct, Typedef
from ...spec.ctype import names_in
from .context import Context, Type, types_of
from .spelling import renamed_in
from .types import kind_of

_SIMILAR = 0.75
"""How alike the names of two types that nothing mentions must be to count as renamed."""


def find_renames(ctx: Context) -> dict[str, str]:
    """Types that only have another name: old name to new."""
    if ctx.spec.partial or ctx.header.partial:
        return {}
    old, new = types_of(ctx.spec), types_of(ctx.header)
    gone = [n for n in old if n not in new and n not in ctx.unread_owners]
    come = [n for n in new if n not in old]
    found: dict[str, str] = {}
    for name in gone if come else ():
        for other in come:
            if other not in found.values() and _same_content(ctx, old[name], new[other]):
                found[name] = other
                ctx.add(
                    "type-renamed",
                    name,
                    f"is called {other} now and is otherwise the same",
                    name,
                    other,
                    old[name].loc,
                    new[other].loc,
                )
                break
    return found


def _same_content(ctx: Context, old: Type, new: Type) -> bool:
    if kind_of(old) != kind_of(new):
        return False
    names = {new.name: old.name}
    if isinstance(old, Struct) and isinstance(new, Struct):
        return len(old.fields) == len(new.fields) and all(
            a.name == b.name and ctx.same_type(a.type, renamed_in(b.type, names))
            for a, b in zip(old.fields, new.fields, strict=True)
        )
    if isinstance(old, Enum) and isinstance(new, Enum):
        return [(c.name, c.value) for c in old.constants] == [
            (c.name, c.value) for c in new.constants
        ]
    if isinstance(old, Typedef) and isinstance(new, Typedef):
        same = ctx.same_type(old.type, renamed_in(new.type, names))
        return same and _same_users(ctx, old.name, new.name)
    # What nobody mentions has but its name to be known by.
    return _same_users(ctx, old.name, new.name) and (
        _is_used(ctx, old.name) or SequenceMatcher(None, old.name, new.name).ratio() >= _SIMILAR
    )


def _same_users(ctx: Context, old: str, new: str) -> bool:
    """Whether the same signatures and fields mention two types."""
    before, after = _users_of_both(ctx)
    return before.get(old) == after.get(new)


def _is_used(ctx: Context, old: str) -> bool:
    return old in _users_of_both(ctx)[0]


def _users_of_both(ctx: Context) -> tuple[dict[str, frozenset[str]], dict[str, frozenset[str]]]:
    if ctx.users is None:
        ctx.users = _users(ctx.spec), _users(ctx.header)
    return ctx.users


def _users(abi: Abi) -> dict[str, frozenset[str]]:
    """For each type name, the signatures and fields that mention it."""
    found: dict[str, set[str]] = {}
    for symbol, function in abi.signatures():
        for name in names_in(function.type):
            found.setdefault(name, set()).add(symbol)
    for struct in abi.structs.values():
        for item in struct.fields:
            for name in names_in(item.type):
                found.setdefault(name, set()).add(f"{struct.name}.{item.name}")
    return {name: frozenset(symbols) for name, symbols in found.items()}


def with_names(abi: Abi, names: dict[str, str]) -> Abi:
    """A copy in which types have other names."""

    def function(item: Function | None) -> Function | None:
        if item is None:
            return None
        return replace(
            item,
            returns=renamed_in(item.returns, names),
            params=tuple(replace(p, type=renamed_in(p.type, names)) for p in item.params),
        )

    def struct(item: Struct) -> Struct:
        return replace(
            item,
            name=names.get(item.name, item.name),
            fields=tuple(
                replace(f, type=renamed_in(f.type, names), function=function(f.function))
                for f in item.fields
            ),
        )

    return replace(
        abi,
        enums={names.get(n, n): replace(e, name=names.get(n, n)) for n, e in abi.enums.items()},
        structs={names.get(n, n): struct(s) for n, s in abi.structs.items()},
        opaque={names.get(n, n): replace(o, name=names.get(n, n)) for n, o in abi.opaque.items()},
        typedefs={
            names.get(n, n): replace(
                t,
                name=names.get(n, n),
                type=renamed_in(t.type, names),
                function=function(t.function),
            )
            for n, t in abi.typedefs.items()
        },
        functions={
            n: replace(x, function=function(x.function) or x.function)
            for n, x in abi.functions.items()
        },
    )
