"""Tests of the version gates: what a host of each release must offer and refuse."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ...spec.abi import Struct
from ...spec.ctype import Named
from ..output import Output

if TYPE_CHECKING:
    from ...spec import Model
    from ..env import TargetEnv


@dataclass(frozen=True, slots=True)
class Gate:
    """A slot with its place (an index or a byte offset) and the release that it came with."""

    table: str
    name: str
    index: int
    since: int


class GatingTests:
    """Target ``gating_tests``: pytest modules below ``tests/``."""

    name = "gating_tests"

    def render(self, model: Model, env: TargetEnv) -> Iterable[Output]:
        """The fake host and the tests that ask it."""
        yield env.copy("fake_host.py", "tests/ort_interop_fake_host.py")
        tables = [s for s in model.abi.structs.values() if model.struct_kinds[s.name] == "table"]
        path = "tests/test_version_gates.py"
        text = env.render(
            "test_version_gates.py.j2",
            floor=model.floor,
            newest=model.newest,
            ep_structs=model.ep_structs,
            slots=[gate for table in tables for gate in _gates(table)],
            ep_slots=list(_ep_gates(model)),
            counts=[(t.name, _counts(model, t)) for t in tables if t.name != "OrtApiBase"],
        )
        yield Output(path, text, "python", verbatim=True)


def _gates(table: Struct) -> Iterator[Gate]:
    for index, slot in enumerate(table.fields):
        yield Gate(table.name, slot.name, index, slot.since or table.since or 1)


def _ep_gates(model: Model) -> Iterator[Gate]:
    for struct in model.abi.structs.values():
        if model.struct_kinds[struct.name] == "implementation":
            for slot in struct.fields:
                if slot.function is not None and not isinstance(slot.type, Named):
                    since = slot.since or struct.since or 1
                    yield Gate(struct.name, slot.name, slot.offset or 0, since)


def _counts(model: Model, table: Struct) -> list[int]:
    """How many slots a table has in each release; none before it exists."""
    found = []
    for release in range(model.floor, model.newest + 1):
        known = model.at(release).structs.get(table.name)
        found.append(len(known.fields) if known is not None else 0)
    return found
