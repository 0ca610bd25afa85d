"""The two sides of a ``diff``: a header, a folder of headers, a facts file or a recorded release."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from ..header.errors import HeaderError, Unreadable
from ..header.reader import read_views
from ..spec.abi import Abi, Location
from ..spec.facts import load_facts
from ..spec.problems import Problem, SpecErrors
from .check import merged
from .compare import compare
from .finding import Finding, Severity
from .rules import RULES

_RELEASE = re.compile(r"v?(\d+)\.(\d+)(?:\.(\d+))?\Z")


@dataclass(frozen=True, slots=True)
class View:
    """One side as one platform sees it."""

    abi: Abi
    unreadable: tuple[Unreadable, ...] = ()


@dataclass(frozen=True, slots=True)
class Side:
    """One side of a comparison, by view; a record is the same in every view."""

    label: str
    views: dict[str, View]
    facts: Path | None = None
    files: tuple[Path, ...] = ()

    def view(self, name: str) -> View:
        return self.views[name] if name in self.views else self.views[""]


def load_side(
    name: str,
    facts_dir: Path,
    views: Sequence[str],
    *,
    preprocessor: str = "auto",
    include_dirs: Sequence[Path] = (),
) -> Side:
    """Find out what ``name`` means and read it; raise :class:`SpecErrors` where it means nothing."""
    path = Path(name)
    if path.suffix == ".json" and path.is_file():
        return _recorded(path)
    if path.exists():
        try:
            results = read_views(path, views, preprocessor=preprocessor, include_dirs=include_dirs)
        except HeaderError as error:
            raise SpecErrors([Problem(error.loc, error.message, error.hint)]) from None
        found = {r.view: View(r.abi, r.unreadable) for r in results}
        main = results[0]
        return Side(f"{main.files[0]} (1.{main.abi.api_version})", found, None, main.files)
    release = _RELEASE.match(name)
    if release is None:
        raise SpecErrors(
            [
                Problem(
                    Location(name),
                    "neither a header, a folder with one, a facts file nor a release",
                    "give a path, or a recorded release such as 1.24.1",
                )
            ]
        )
    wanted = name.removeprefix("v")
    records = {p.stem.removeprefix("ort-"): p for p in sorted(facts_dir.glob("ort-*.json"))}
    known = wanted if wanted in records else None
    if known is None and release[3] is None:
        known = next((r for r in records if r.startswith(f"{wanted}.")), None)
    if known is None:
        raise SpecErrors(
            [
                Problem(
                    Location(str(facts_dir)),
                    f"release {wanted} is not recorded here",
                    f"recorded are {', '.join(records) or 'none'}; `record` adds one",
                )
            ]
        )
    return _recorded(records[known])


def _recorded(path: Path) -> Side:
    abi = load_facts(path)
    partial = ", partial record" if abi.partial else ""
    return Side(f"{abi.release} (recorded{partial})", {"": View(abi)}, path)


def compare_sides(old: Side, new: Side, views: Sequence[str]) -> tuple[Finding, ...]:
    """Every change from one side to the other, each once."""
    names = [v for v in views if v in old.views or v in new.views] or [""]
    found = merged((name, _compare(old.view(name), new.view(name))) for name in names)
    lines = [_FactsLines(side.facts) for side in (old, new)]
    return tuple(
        replace(
            f,
            spec_loc=lines[0].place(f.spec_loc, f.symbol),
            header_loc=lines[1].place(f.header_loc, f.symbol),
            hint="" if f.severity is Severity.ADDITIVE else f.hint,
        )
        for f in found
    )


def _compare(old: View, new: View) -> list[Finding]:
    unread = {name for u in old.unreadable for name in u.hidden}
    unread |= {symbol.partition(".")[0] for symbol in unread}
    findings = [
        f
        for f in compare(old.abi, new.abi, new.unreadable, base="the older side")
        if f.symbol not in unread
    ]
    rule = RULES["unreadable"]
    findings += [
        Finding(rule.id, rule.severity, u.symbol, u.message, u.text, "", u.loc, hint=rule.hint)
        for u in old.unreadable
    ]
    return findings


@dataclass(slots=True)
class _FactsLines:
    """Finds the line of a facts file that an element stands in; records carry no lines themselves."""

    path: Path | None
    _lines: list[str] | None = field(default=None)

    def place(self, loc: Location, symbol: str) -> Location:
        if self.path is None or loc.line or loc.file != self.path.name:
            return loc
        if self._lines is None:
            self._lines = self.path.read_text(encoding="utf-8").splitlines()
        owner, _, member = symbol.partition(".")
        return Location(str(self.path), self._find(owner, member))

    def _find(self, owner: str, member: str) -> int:
        lines = self._lines or []
        start = next((i for i, t in enumerate(lines) if t.startswith(f'  "{owner}":')), None)
        if start is None:
            return 0
        if not member:
            return start + 1
        name = re.escape(member)
        wanted = re.compile(rf'\(\*{name}\)\(|"{name}":|\b{name}(?:\[\d*\])?"')
        for index in range(start, len(lines)):
            if index > start and re.match(r"  ?\S", lines[index]):
                break
            if wanted.search(lines[index]):
                return index + 1
        return start + 1
