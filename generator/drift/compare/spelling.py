"""How types and signatures read, and which spellings mean the same."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import lru_cache

from ...spec.abi import Abi, Field, Function
from ...spec.ctype import FIXED, Array, CType, FunctionType, Named, Pointer, Record, declare


@lru_cache(maxsize=8192)
def plain_chars(ctype: CType) -> CType:
    """ORTCHAR_T as a platform's record has it that does not tell it from ``char``."""
    match ctype:
        case Named("ORTCHAR_T", const):
            return Named("char", const)
        case Pointer(to, const):
            return Pointer(plain_chars(to), const)
        case Array(of, length):
            return Array(plain_chars(of), length)
        case FunctionType(returns, params, variadic):
            return FunctionType(
                plain_chars(returns), tuple(plain_chars(p) for p in params), variadic
            )
    return ctype


def renamed_in(ctype: CType, names: dict[str, str]) -> CType:
    """A type in which other types have the names that ``names`` gives them."""
    match ctype:
        case Named(name, const):
            return Named(names.get(name, name), const)
        case Pointer(to, const):
            return Pointer(renamed_in(to, names), const)
        case Array(of, length):
            return Array(renamed_in(of, names), length)
        case FunctionType(returns, params, variadic):
            return FunctionType(
                renamed_in(returns, names), tuple(renamed_in(p, names) for p in params), variadic
            )
        case Record(kind, members):
            return Record(kind, tuple((n, renamed_in(t, names)) for n, t in members))
    raise AssertionError(f"unknown type node {ctype!r}")


def spelled_out(ctype: CType, abi: Abi) -> CType:
    """A type with its typedefs followed: whether a header names one is no matter of the ABI."""
    match ctype:
        case Named(name, const) if name in abi.typedefs:
            to = spelled_out(abi.typedefs[name].type, abi)
            return replace(to, const=True) if const and isinstance(to, (Named, Pointer)) else to
        case Pointer(to, const):
            return Pointer(spelled_out(to, abi), const)
        case Array(of, length):
            return Array(spelled_out(of, abi), length)
        case FunctionType(returns, params, variadic):
            parts = tuple(spelled_out(p, abi) for p in params)
            return FunctionType(spelled_out(returns, abi), parts, variadic)
    return ctype


def signature(function: Function, name: str = "") -> str:
    """A function as C, with its annotations."""
    parts = ["".join(f"{w} " for w in p.sal) + declare(p.type, p.name) for p in function.params]
    parts += ["..."] if function.variadic else []
    return declare(function.returns, f"{name}({', '.join(parts) or 'void'})")


def field_text(item: Field) -> str:
    """A field as C."""
    return signature(item.function, item.name) if item.function else declare(item.type, item.name)


def _depth(ctype: CType) -> int:
    return 1 + _depth(ctype.to) if isinstance(ctype, Pointer) else 0


def _unqualified(ctype: CType) -> CType:
    match ctype:
        case Named(name):
            return Named(name)
        case Pointer(to):
            return Pointer(_unqualified(to))
        case Array(of, length):
            return Array(_unqualified(of), length)
    return ctype


def type_change(old: CType, new: CType) -> str:
    """What a change of type does, in a few words."""
    if _unqualified(old) == _unqualified(new):
        return "constness differs: who may write through it has changed"
    if _depth(old) != _depth(new):
        return "the pointer depth differs: callers pass an address of another level"
    if (
        isinstance(old, Named)
        and isinstance(new, Named)
        and old.name in FIXED
        and new.name in FIXED
    ):
        a, b = FIXED[old.name], FIXED[new.name]
        if (a.lp64, a.llp64) != (b.lp64, b.llp64):
            where = " on Windows" if a.lp64 == b.lp64 else " on Linux" if a.llp64 == b.llp64 else ""
            return f"the width differs{where}: callers pass and read the wrong number of bytes"
        if a.signed != b.signed:
            return "the signedness differs: large values change their meaning"
    return "callers pass or read another type"


def sal_words(words: Iterable[str], *, arguments: bool) -> tuple[str, ...]:
    """SAL annotations without blanks, and without their arguments where a side does not have them."""
    if arguments:
        return tuple("".join(word.split()) for word in words)
    return tuple(word.partition("(")[0] for word in words)
