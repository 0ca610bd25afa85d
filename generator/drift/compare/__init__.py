"""Compare the spec's view of a release with a header's, element by element.

One module for each kind of element; each adds its findings to the one :class:`~.context.Context`.
"""

from __future__ import annotations

from collections.abc import Collection

from ...header.errors import Unreadable
from ...spec.abi import NOWHERE, Abi
from ..finding import Finding, severity_order
from .context import Context
from .functions import compare_functions
from .macros import compare_macros, compare_platform, compare_versions
from .relocations import find_relocations
from .renames import find_renames, with_names
from .types import compare_types


def compare(
    spec: Abi, header: Abi, unreadable: Collection[Unreadable] = (), *, base: str = "the spec"
) -> list[Finding]:
    """All differences, worst first.  Neither side is changed.

    What one side does not record (:attr:`Abi.lacks`, :attr:`Abi.partial`) is left out.  Elements of
    the header that could not be read give one ``unreadable`` finding each and no other.  Messages
    call the first side ``base``.
    """
    ctx = Context(spec, header, unreadable, base)
    for item in unreadable:
        ctx.add("unreadable", item.symbol, item.message, "", item.text, NOWHERE, item.loc)
    compare_versions(ctx)
    compare_platform(ctx)
    renames = find_renames(ctx)
    if renames:
        ctx.header = with_names(header, {new: old for old, new in renames.items()})
    compare_types(ctx)
    find_relocations(ctx)
    compare_functions(ctx)
    compare_macros(ctx)
    return sorted(ctx.found, key=severity_order)


def compare_view(spec: Abi, header: Abi) -> list[Finding]:
    """The differences of another view of a header whose declarations have been compared already."""
    ctx = Context(spec, header, (), "the spec")
    compare_platform(ctx)
    return sorted(ctx.found, key=severity_order)
