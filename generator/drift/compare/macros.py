"""Macros: values, the release's version, and what differs by platform."""

from __future__ import annotations

import re

from ...spec.abi import NOWHERE, Location
from .context import Context

PLATFORM: dict[str, dict[str, frozenset[str]]] = {
    "linux": {
        "ORT_API_CALL": frozenset({""}),
        "ORTCHAR_T": frozenset({"char"}),
        "ORT_MUST_USE_RESULT": frozenset({"__attribute__((warn_unused_result))"}),
    },
    "windows": {
        "ORT_API_CALL": frozenset({"__stdcall", "_stdcall"}),
        "ORTCHAR_T": frozenset({"wchar_t"}),
        "ORT_MUST_USE_RESULT": frozenset({""}),
    },
}
"""What the macros that differ by platform expand to in the releases."""


def compare_macros(ctx: Context) -> None:
    """Macros with a value, names that were kept for renamed enumerators among them."""
    constants = {c.name for e in ctx.spec.enums.values() for c in e.constants}
    for name, old in ctx.spec.macros.items():
        new = ctx.header.macros.get(name)
        if name == "ORT_API_VERSION":
            continue
        if new is None:
            if ctx.header.partial:
                continue
            alias = old.value in constants
            ctx.add(
                "alias-missing" if alias else "macro-removed",
                name,
                (
                    f"the macro is gone; code that uses the old name of {old.value} does not compile"
                    if alias
                    else "the macro is gone; code that uses it does not compile"
                ),
                old.value,
                "",
                old.loc,
                Location(ctx.main_file()),
            )
        elif _bare(old.value) != _bare(new.value):
            ctx.add(
                "macro-value",
                name,
                "compiled code has the old value in it",
                old.value,
                new.value,
                old.loc,
                new.loc,
            )
    if not ctx.spec.partial:
        for name, new in ctx.header.macros.items():
            if name not in ctx.spec.macros and name != "ORT_API_VERSION":
                ctx.add(
                    "macro-added",
                    name,
                    f"{ctx.base} does not know this macro",
                    "",
                    new.value,
                    NOWHERE,
                    new.loc,
                )


def compare_versions(ctx: Context) -> None:
    """Which release each side is of."""
    wanted, got = ctx.spec.api_version, ctx.header.api_version
    macro = ctx.header.macros.get("ORT_API_VERSION")
    loc = macro.loc if macro else NOWHERE
    old = ctx.spec.macros.get("ORT_API_VERSION")
    spec_loc = old.loc if old else NOWHERE
    if got < wanted:
        ctx.add(
            "version-went-back",
            "ORT_API_VERSION",
            f"a client that asks for it gets an older table than {ctx.base} describes",
            str(wanted),
            str(got),
            spec_loc,
            loc,
        )
    elif got > wanted:
        ctx.add(
            "release-new",
            "ORT_API_VERSION",
            f"the header is of release 1.{got}; it was compared with what {ctx.base} knows of 1.{wanted}",
            str(wanted),
            str(got),
            spec_loc,
            loc,
        )


def compare_platform(ctx: Context) -> None:
    """What the macros that differ by platform expand to in this view of the header."""
    view = ctx.header.platform.get("view", "")
    for name, allowed in PLATFORM.get(view, {}).items():
        got = ctx.header.platform.get(name)
        if got is None or _attribute(got) in {_attribute(a) for a in allowed}:
            continue
        rule = "must-use-changed" if name == "ORT_MUST_USE_RESULT" else "platform-macro"
        ctx.add(
            rule,
            name,
            f"in the {view} view it expands to something that the releases do not have",
            " or ".join(sorted(allowed)) or "nothing",
            got or "nothing",
            NOWHERE,
            ctx.header.platform_locs.get(name) or Location(ctx.main_file()),
        )


def _bare(value: str) -> str:
    text = "".join(value.split())
    while text.startswith("(") and text.endswith(")"):
        text = text[1:-1]
    return text


def _attribute(text: str) -> str:
    """A platform macro's text in the one of its spellings without underscores and blanks."""
    return re.sub(r"\b__(\w+?)__\b", r"\1", "".join(text.split()))
