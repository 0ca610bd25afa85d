"""Pair up the fields of a struct as it was with the fields as they are, by cause.

One edit gives one event: an inserted slot is one insertion, not a move of all that follow it.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from ..spec.abi import Field


@dataclass(slots=True)
class Alignment:
    """What happened between two lists of fields; indexes are into the old and the new list."""

    kept: list[tuple[int, int]] = field(default_factory=list)
    """Every field that both lists have under one name, moved ones included."""
    moved: list[tuple[int, int]] = field(default_factory=list)
    swapped: list[tuple[tuple[int, int], tuple[int, int]]] = field(default_factory=list)
    renamed: list[tuple[int, int]] = field(default_factory=list)
    replaced: list[tuple[int, int]] = field(default_factory=list)
    removed: list[int] = field(default_factory=list)
    inserted: list[int] = field(default_factory=list)
    appended: list[int] = field(default_factory=list)
    duplicate: list[int] = field(default_factory=list)


def _stable(positions: Sequence[int]) -> set[int]:
    """Indexes of a longest rising run of ``positions``: what did not move."""
    tails: list[int] = []
    at: list[int] = []
    before: list[int] = []
    for index, position in enumerate(positions):
        place = bisect_left(tails, position)
        before.append(at[place - 1] if place else -1)
        if place == len(tails):
            tails.append(position)
            at.append(index)
        else:
            tails[place] = position
            at[place] = index
    found: set[int] = set()
    index = at[-1] if at else -1
    while index >= 0:
        found.add(index)
        index = before[index]
    return found


def align(
    old: Sequence[Field], new: Sequence[Field], same: Callable[[Field, Field], bool]
) -> Alignment:
    """Compare two lists by name and place; ``same`` tells whether two fields are alike but for the name."""
    result = Alignment()
    if [f.name for f in old] == [f.name for f in new]:
        result.kept = [(i, i) for i in range(len(old))]
        return result
    places: dict[str, int] = {}
    for index, item in enumerate(new):
        if item.name in places:
            result.duplicate.append(index)
        else:
            places[item.name] = index
    was = {item.name: index for index, item in enumerate(old)}
    common = [item.name for item in old if item.name in places]
    result.kept = [(was[name], places[name]) for name in common]

    order = {name: rank for rank, name in enumerate(common)}
    now = sorted(common, key=places.__getitem__)
    ranks = {name: rank for rank, name in enumerate(now)}
    swapped: set[str] = set()
    for rank, name in enumerate(common):
        other = now[rank]
        if other != name and name not in swapped and now[order[other]] == name:
            swapped.update((name, other))
            first, second = sorted((name, other), key=was.__getitem__)
            result.swapped.append(((was[first], places[first]), (was[second], places[second])))
            ranks[name], ranks[other] = ranks[other], ranks[name]
    stable = _stable([ranks[name] for name in common])
    for rank, name in enumerate(common):
        if rank not in stable and name not in swapped:
            result.moved.append((was[name], places[name]))

    _gaps(old, new, common, now, places, was, same, result)
    return result


def _gaps(
    old: Sequence[Field],
    new: Sequence[Field],
    common: list[str],
    now: list[str],
    places: dict[str, int],
    was: dict[str, int],
    same: Callable[[Field, Field], bool],
    result: Alignment,
) -> None:
    """Pair what vanished with what appeared in the same gap between fields that both lists have."""
    duplicates = set(result.duplicate)
    gone: dict[int, list[int]] = {}
    come: dict[int, list[int]] = {}
    rank = 0
    for index, item in enumerate(old):
        if item.name in places:
            rank += 1
        else:
            gone.setdefault(rank, []).append(index)
    rank = 0
    for index, item in enumerate(new):
        if index in duplicates:
            continue
        if item.name in was:
            rank += 1
        else:
            come.setdefault(rank, []).append(index)
    last = len(common)
    for gap in sorted(gone.keys() | come.keys()):
        left, right = gone.get(gap, []), come.get(gap, [])
        paired = min(len(left), len(right))
        for before, after in zip(left, right, strict=False):
            kind = result.renamed if same(old[before], new[after]) else result.replaced
            kind.append((before, after))
        result.removed.extend(left[paired:])
        (result.appended if gap == last else result.inserted).extend(right[paired:])
