"""Calls that create objects and answer for missing features, as the spec describes them."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from .._abi import ERRORS
from .._errors import OrtError
from .._library import Library
from .._types import FunctionPointer, Signature, get
from ._node import Node
from ._semantics import ALSO_REFUSED, BORROWS, CREATES, NEEDS, RELEASED_BY, UNSUPPORTED


def function(library: Library, slot: str) -> Callable[..., Any]:
    """The callable of a slot such as ``OrtApi.CreateSession``."""
    table, _, name = slot.partition(".")
    tables = {"OrtApi": "api", "OrtInteropApi": "interop_api"}
    found: Callable[..., Any] = getattr(getattr(library, tables[table]), name)
    return found


def bound(call: Any, *arguments: Any) -> Any:
    """A callable of the bindings with its first arguments converted and checked once.

    The others are given to each call as ctypes variables of their exact types, unchecked: this is
    for calls that are repeated, whose arguments cost more than the call itself.
    """
    kind: Any = type(call)
    bare = kind.__dict__.get("_bare_")
    if bare is None:
        # Without argument types, ctypes takes what it is given and runs no conversion.
        attributes = {"_flags_": kind._flags_, "_restype_": call.restype, "__name__": kind.__name__}
        address = ctypes.cast(call, ctypes.c_void_p).value
        bare = kind._bare_ = type(kind.__name__, (FunctionPointer,), attributes)(address)
    given = zip(call.argtypes, arguments, strict=False)
    return partial(bare, *(expected.from_param(argument) for expected, argument in given))


def signature(slot: str) -> Signature:
    """The parameters of a slot."""
    table, _, name = slot.partition(".")
    found: Signature = getattr(get(table), name).signature
    return found


def create(library: Library, slot: str, *arguments: Any) -> Any:
    """What a creating function hands out, or None where the feature is missing.

    None is the answer for functions of which the spec says so, by either of the conventions that
    EPs follow; elsewhere a null result is an error.
    """
    told = signature(slot)
    at = told.names.index(CREATES[slot]) if slot in CREATES else len(told.names) - 1
    kind = told.params[at].lstrip("*")
    out = ctypes.POINTER(get(kind))()
    nothing = UNSUPPORTED.get(slot) == "null_result"
    try:
        function(library, slot)(*arguments[:at], out, *arguments[at:])
    except OrtError as error:
        if nothing and slot in ALSO_REFUSED and error.code.name == "ORT_NOT_IMPLEMENTED":
            return None
        raise
    if out:
        return out.contents
    if nothing:
        return None
    raise get(ERRORS["ORT_FAIL"])("it succeeded without a result", slot)


def supported(library: Library, slot: str, *arguments: Any) -> bool:
    """The answer of a probe, whose last parameter receives it."""
    out = ctypes.c_bool()
    try:
        function(library, slot)(*arguments, out)
    except OrtError as error:
        if UNSUPPORTED.get(slot) == "false" and error.code.name == "ORT_NOT_IMPLEMENTED":
            return False
        raise
    return out.value


def node_of(
    library: Library,
    handle: Any,
    label: str,
    related: Iterable[Node],
    slot: str = "",
    borrowed: dict[str, Node] | None = None,
) -> Node:
    """The node of a new native object.

    Of the ``related`` nodes it needs those of the kinds that the spec names for its own kind, and
    of the ``borrowed`` ones those whose parameter the creating ``slot`` goes on using.
    """
    kind = type(handle).__name__
    needed = NEEDS[kind].split()
    needs = [node for node in related if node.kind in needed]
    lent = BORROWS.get(slot, "").split()
    needs += [node for param, node in (borrowed or {}).items() if param in lent]
    release = partial(function(library, RELEASED_BY[kind]), handle)
    try:
        return Node(kind, label, needs, release)
    except BaseException:
        release()
        raise


def borrows(slot: str, param: str) -> bool:
    """Whether a function goes on using an argument after it has returned."""
    return param in BORROWS.get(slot, "").split()


def text(value: bytes | None) -> str:
    """A C string as text."""
    return (value or b"").decode("utf-8", "replace")


def pairs_of(library: Library, pairs: Any) -> dict[str, str]:
    """The entries of an ``OrtKeyValuePairs``, which may be a null pointer."""
    if not pairs:
        return {}
    keys = ctypes.POINTER(ctypes.c_char_p)()
    values = ctypes.POINTER(ctypes.c_char_p)()
    count = ctypes.c_size_t()
    library.api.GetKeyValuePairs(pairs.contents, keys, values, count)
    return {text(keys[at]): text(values[at]) for at in range(count.value)}


class KeyValues:
    """An ``OrtKeyValuePairs`` for the length of a call; no object at all for no entries."""

    def __init__(self, library: Library, entries: dict[str, str] | None) -> None:
        self._library = library
        self._entries = entries or {}
        self._pairs: Any = None

    def __enter__(self) -> Any:
        if not self._entries:
            return None
        out = ctypes.POINTER(get("OrtKeyValuePairs"))()
        self._library.api.CreateKeyValuePairs(out)
        self._pairs = out.contents
        for key, value in self._entries.items():
            self._library.api.AddKeyValuePair(self._pairs, key.encode(), value.encode())
        return self._pairs

    def __exit__(self, *_: object) -> None:
        if self._pairs is not None:
            self._library.api.ReleaseKeyValuePairs(self._pairs)
            self._pairs = None


def texts(values: Iterable[str]) -> Any:
    """A C array of strings."""
    encoded = [value.encode() for value in values]
    return (ctypes.c_char_p * max(len(encoded), 1))(*encoded)
