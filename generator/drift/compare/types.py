"""Which types there are, what kind each is, and where it is declared."""

from __future__ import annotations

from ...spec.abi import NOWHERE, Enum, Location, Opaque, Struct, Typedef
from ...spec.ctype import type_text
from .context import Context, Type, types_of
from .enums import compare_enum
from .functions import compare_function
from .spelling import type_change
from .structs import compare_struct


def compare_types(ctx: Context) -> None:
    """Types that came and went, and what became of those that both sides have."""
    old, new = types_of(ctx.spec), types_of(ctx.header)
    for name, element in old.items():
        other = new.get(name)
        if other is None:
            if not ctx.header.partial and name not in ctx.unread_owners:
                ctx.add(
                    "type-removed",
                    name,
                    f"the {kind_of(element)} is not declared any more; code that names it breaks",
                    kind_of(element),
                    "",
                    element.loc,
                    Location(ctx.main_file()),
                )
            continue
        ctx.declared_in(name, element, other)
        _element(ctx, name, element, other)
    if not ctx.spec.partial:
        for name, element in new.items():
            if name not in old and name not in ctx.unread_owners:
                ctx.add(
                    "type-added",
                    name,
                    f"{ctx.base} does not know this {kind_of(element)}",
                    "",
                    kind_of(element),
                    NOWHERE,
                    element.loc,
                )


def _element(ctx: Context, name: str, old: Type, new: Type) -> None:
    if kind_of(old) != kind_of(new):
        if name in ctx.unread_owners:
            return
        if isinstance(old, Opaque) and isinstance(new, Struct):
            rule, what = "opaque-completed", "its layout is now a promise"
        elif isinstance(old, Struct) and isinstance(new, Opaque):
            rule, what = "struct-made-opaque", "code that reads its fields does not compile"
        else:
            rule, what = "kind-changed", "code that uses the name means something else"
        ctx.add(
            rule,
            name,
            f"was {_article(kind_of(old))}, is {_article(kind_of(new))}: {what}",
            kind_of(old),
            kind_of(new),
            old.loc,
            new.loc,
        )
        return
    if isinstance(old, Struct) and isinstance(new, Struct):
        ctx.since(name, old, new)
        compare_struct(ctx, old, new)
    elif isinstance(old, Enum) and isinstance(new, Enum):
        ctx.since(name, old, new)
        compare_enum(ctx, old, new)
    elif isinstance(old, Typedef) and isinstance(new, Typedef):
        ctx.since(name, old, new)
        _typedef(ctx, old, new)


def _typedef(ctx: Context, old: Typedef, new: Typedef) -> None:
    if old.function is not None and new.function is not None:
        compare_function(ctx, old.name, old.function, new.function, old.loc, new.loc, callback=True)
    elif not ctx.same_type(old.type, new.type):
        ctx.add(
            "typedef-changed",
            old.name,
            type_change(old.type, new.type),
            type_text(old.type),
            type_text(new.type),
            old.loc,
            new.loc,
        )


def kind_of(element: Type) -> str:
    """What messages call an element."""
    if isinstance(element, Struct):
        return element.kind
    return {Enum: "enum", Opaque: "opaque struct", Typedef: "typedef"}[type(element)]


def _article(kind: str) -> str:
    return f"{'an' if kind[0] in 'aeo' else 'a'} {kind}" if kind[0] != "u" else f"a {kind}"
