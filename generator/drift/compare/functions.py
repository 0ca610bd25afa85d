"""Signatures: those of slots and callbacks, and those of exported functions."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from ...spec.abi import NOWHERE, Function, Location, Param
from ...spec.ctype import decay, declare, type_text
from .context import Context
from .spelling import sal_words, signature, type_change

_SUCCESS = ("_Success_", "_Return_type_success_")


class _Add(Protocol):
    """How comparisons of signatures report."""

    def __call__(
        self, rule: str, message: str, expected: str, actual: str, param: Param | None = None
    ) -> None: ...


def compare_functions(ctx: Context) -> None:
    """The functions that the library exports."""
    for name, old in ctx.spec.functions.items():
        new = ctx.header.functions.get(name)
        if new is None:
            if not ctx.header.partial and name not in ctx.unread:
                ctx.add(
                    "function-removed",
                    name,
                    "it is not declared any more; code that links to it breaks",
                    signature(old.function, name),
                    "",
                    old.loc,
                    Location(ctx.main_file()),
                )
            continue
        ctx.declared_in(name, old, new)
        ctx.since(name, old, new)
        compare_function(ctx, name, old.function, new.function, old.loc, new.loc, callback=True)
    if not ctx.spec.partial:
        for name, new in ctx.header.functions.items():
            if name not in ctx.spec.functions:
                ctx.add(
                    "function-added",
                    name,
                    f"{ctx.base} does not know this exported function",
                    "",
                    signature(new.function, name),
                    NOWHERE,
                    new.loc,
                )


def compare_function(
    ctx: Context,
    symbol: str,
    old: Function,
    new: Function,
    spec_loc: Location,
    header_loc: Location,
    *,
    callback: bool = False,
) -> None:
    """Compare two signatures; ``callback`` for those whose result annotations facts leave out."""
    if old == new:
        return

    def add(
        rule: str, message: str, expected: str, actual: str, param: Param | None = None
    ) -> None:
        at = param.loc if param is not None and param.loc != NOWHERE else spec_loc
        ctx.add(rule, symbol, message, expected, actual, at, header_loc)

    if not ctx.same_type(old.returns, new.returns):
        add(
            "result-type",
            f"the result: {type_change(old.returns, new.returns)}",
            type_text(old.returns),
            type_text(new.returns),
        )
    if old.variadic != new.variadic:
        add(
            "variadic-changed",
            "variable arguments are passed another way than fixed ones",
            signature(old),
            signature(new),
        )
    if _same_count(old, new, add):
        for one, other in zip(old.params, new.params, strict=True):
            _param(ctx, one, other, add)
    if not callback or "callback_return_sal" not in ctx.lacks:
        wanted, got = _sal(ctx, old.return_sal), _sal(ctx, new.return_sal)
        if wanted != got:
            add(
                "return-sal-changed",
                "what callers may expect of the result has changed",
                " ".join(wanted) or "no annotation",
                " ".join(got) or "no annotation",
            )
    if "must_use" not in ctx.lacks and old.must_use != new.must_use:
        lost = old.must_use
        add(
            "must-use-changed",
            (
                "compilers no longer warn where the result is dropped"
                if lost
                else "compilers now warn where the result is dropped"
            ),
            "result must be used" if lost else "result may be dropped",
            "result may be dropped" if lost else "result must be used",
        )
    if "calling_convention" not in ctx.lacks and old.api_call != new.api_call:
        names = {True: "ORT_API_CALL", False: "plain C"}
        add(
            "calling-convention",
            "on 32-bit Windows the stack is cleaned up by the wrong side",
            names[old.api_call],
            names[new.api_call],
        )


def _same_count(old: Function, new: Function, add: _Add) -> bool:
    """Whether parameters can be compared one by one; if not, says why."""
    if len(old.params) != len(new.params):
        add(
            "param-count",
            f"takes {len(new.params)} parameters, not {len(old.params)}: "
            "compiled calls pass the wrong ones",
            signature(old),
            signature(new),
        )
        return False
    if [(p.name, p.type) for p in old.params] == [(p.name, p.type) for p in new.params]:
        return True
    wanted = [(p.name, type_text(decay(p.type))) for p in old.params]
    got = [(p.name, type_text(decay(p.type))) for p in new.params]
    if wanted != got and sorted(wanted) == sorted(got) and all(n for n, _ in got):
        add(
            "param-order",
            "compiled calls pass the parameters in the wrong places",
            signature(old),
            signature(new),
        )
        return False
    return True


def _param(ctx: Context, old: Param, new: Param, add: _Add) -> None:
    if old == new:
        return
    shown = old.name or "a parameter"
    wanted, got = decay(old.type), decay(new.type)
    if not ctx.same_type(wanted, got):
        add(
            "param-type",
            f"parameter '{shown}': {type_change(wanted, got)}",
            declare(old.type, old.name),
            declare(new.type, new.name),
            old,
        )
    if old.name != new.name and new.name:
        add(
            "param-renamed",
            f"parameter '{shown}' is called '{new.name}' now",
            old.name,
            new.name,
            old,
        )
    before, after = _sal(ctx, old.sal), _sal(ctx, new.sal)
    if before != after:
        add(
            "sal-changed",
            f"parameter '{shown}': what callers must pass or may expect has changed",
            " ".join([*before, declare(old.type, old.name)]),
            " ".join([*after, declare(new.type, new.name)]),
            old,
        )


def _sal(ctx: Context, words: Iterable[str]) -> tuple[str, ...]:
    # _Success_ tells when the other annotations hold; for a status that is always "no error".
    kept = (w for w in words if not w.startswith(_SUCCESS))
    return sal_words(kept, arguments="sal_arguments" not in ctx.lacks)
