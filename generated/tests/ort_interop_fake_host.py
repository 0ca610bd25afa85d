"""A stand-in for ONNX Runtime of any release: real function tables in memory, without a library.

A host of release 1.N has the slots that came up to N.  Where a newer host has more, it has traps:
a binding that reads a slot which the host lacks is found out, and does not crash.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "python"))

import ort_interop as ort_interop

POINTER_SIZE = ctypes.sizeof(ctypes.c_void_p)


class SlotFact(NamedTuple):
    """Where a slot is and since when: what the tests know without asking the package."""

    table: str
    name: str
    place: int
    since: int

    @property
    def full_name(self) -> str:
        """The slot with its table: ``OrtApi.CreateEnv``."""
        return f"{self.table}.{self.name}"


def read_facts(text: str) -> tuple[SlotFact, ...]:
    """The slots of a text with a ``table slot place since`` in each line."""
    rows = (line.split() for line in text.split("\n") if line)
    return tuple(SlotFact(table, name, int(at), int(since)) for table, name, at, since in rows)


class FakeHost:
    """The tables of a host of one release.

    ``asked`` has every version that ``GetApi`` was called with, ``called`` every slot that was
    called, and ``trapped`` every slot that was called although the host lacks it.
    """

    def __init__(self, release: int, slots: Iterable[SlotFact]) -> None:
        self.release = release
        self.path = f"fake host 1.{release}"
        self.asked: list[int] = []
        self.called: list[str] = []
        self.trapped: list[str] = []
        self._kept: list[object] = [ctypes.create_string_buffer(f"1.{release}.0".encode())]
        self.tables: dict[str, Any] = {}
        facts = tuple(slots)
        for table in dict.fromkeys(fact.table for fact in facts):
            count = 1 + max(fact.place for fact in facts if fact.table == table)
            self.tables[table] = (ctypes.c_void_p * count)()
        for fact in facts:
            self._fill(fact, self._answer(fact) if fact.since <= release else self._trap(fact))

    @property
    def base(self) -> int:
        """The address of the host's ``OrtApiBase``."""
        return ctypes.addressof(self.tables["OrtApiBase"])

    def load(self, api_version: int | None = None) -> ort_interop.Library:
        """The host as the binding sees it."""
        return ort_interop.Library(self.base, self.path, api_version=api_version)

    def _fill(self, fact: SlotFact, function: Callable[..., Any]) -> None:
        slot: Any = getattr(getattr(ort_interop, fact.table), fact.name)
        pointer = slot.callback(function)
        self._kept.append(pointer)
        address = ctypes.cast(pointer, ctypes.c_void_p).value
        self.tables[fact.table][fact.place] = address

    def _trap(self, fact: SlotFact) -> Callable[..., Any]:
        def trap(*_: object) -> int | None:
            self.trapped.append(fact.full_name)
            return None if nothing_is_none(fact) else 0

        return trap

    def _answer(self, fact: SlotFact) -> Callable[..., Any]:
        name = fact.full_name
        if name == "OrtApiBase.GetVersionString":
            return lambda: ctypes.addressof(self._kept[0])  # type: ignore[arg-type]
        if name == "OrtApiBase.GetApi":
            return self._get_api
        table = fact.name.removeprefix("Get") if fact.table == "OrtApi" else ""
        table = f"Ort{table}" if f"Ort{table}" in self.tables and table else ""

        def answer(*_: object) -> int | None:
            self.called.append(name)
            if table:
                return ctypes.addressof(self.tables[table])
            return None if nothing_is_none(fact) else 0

        return answer

    def _get_api(self, version: int) -> int | None:
        self.asked.append(version)
        return ctypes.addressof(self.tables["OrtApi"]) if 1 <= version <= self.release else None


def signature_of(fact: SlotFact) -> Any:
    """The slot's signature as the package has it."""
    return getattr(getattr(ort_interop, fact.table), fact.name).signature


def nothing_is_none(fact: SlotFact) -> bool:
    """Whether the slot's empty result is None to ctypes, and not zero."""
    word = signature_of(fact).result
    kind = getattr(getattr(ort_interop, fact.table), fact.name).callback._restype_
    return word == "void" or kind is ctypes.c_void_p


def argument(word: str) -> Any:
    """An argument that a parameter takes and that means nothing: null, zero or false."""
    if word[0] == "*" or word in {"address", "text", "path"}:
        return None
    if word in {"float", "double"}:
        return 0.0
    if word == "bool":
        return False
    if word[:1].isupper():
        kind: Any = getattr(ort_interop, word)
        return kind(0) if issubclass(kind, int) else kind()
    return 0
