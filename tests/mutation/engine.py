"""Make mutants of a header, check each, and say which the checker caught."""

from __future__ import annotations

import random
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Protocol

from ort_interop_gen.drift.finding import Finding
from ort_interop_gen.spec.model import Model

from .operators import OPERATORS, Edit, Operator, Site
from .scan import Decl, Span, Unit, scan

MAIN = "onnxruntime_c_api.h"
VERSIONED = ("version", "ort_version_supported")


class Check(Protocol):
    """What is under test: the findings for a folder of headers."""

    def __call__(self, folder: Path) -> Sequence[Finding]:
        """As ``check`` has them, against the spec."""

    def against_header(self, folder: Path) -> Sequence[Finding]:
        """As ``diff`` has them, against the header before its mutation."""

    def of_documentation(self, folder: Path) -> Sequence[Finding]:
        """What ``lint-docs`` finds and did not find before the mutation."""


@dataclass(frozen=True, slots=True)
class Mutant:
    """One edit of one file, and what must be found."""

    operator: Operator
    file: str
    site: Site
    edit: Edit

    @property
    def name(self) -> str:
        return f"{self.operator.name} at {self.site.symbol}"

    def write(self, files: dict[str, str], folder: Path) -> None:
        for name, text in files.items():
            changed = self.edit.apply(text) if name == self.file else text
            (folder / name).write_text(changed, encoding="utf-8", newline="")


@dataclass(frozen=True, slots=True)
class Outcome:
    """What the checker said of a mutant."""

    mutant: Mutant
    matching: tuple[Finding, ...]
    others: tuple[Finding, ...]
    seconds: float

    @property
    def right(self) -> bool:
        """A harmful mutant is named by the right rule; a neutral one gets no finding at all."""
        if self.mutant.operator.effect == "neutral":
            return not self.others
        return bool(self.matching)


@dataclass(slots=True)
class Row:
    """One operator's line of the table."""

    operator: Operator
    mutants: int = 0
    right: int = 0
    others: int = 0
    seconds: float = 0.0
    wrong: list[Outcome] = field(default_factory=list)


class Header:
    """A header's files, scanned, with the sites that operators apply to."""

    def __init__(self, files: dict[str, str], surface: frozenset[str]) -> None:
        """``surface`` names the declarations of the interop API; dotted names are single slots."""
        self.files = files
        self.surface = surface
        self.units = {name: scan(text) for name, text in files.items()}
        complete = {
            d.name for u in self.units.values() for d in u.decls if d.kind in ("struct", "enum")
        }
        words = " ".join(u.masked for u in self.units.values())
        self.sites: list[tuple[str, Site, frozenset[str]]] = []
        for name, unit in self.units.items():
            unit.decls = [
                d
                for d in unit.decls
                if not (d.kind == "opaque" and d.name in complete) and _known_macro(d, unit)
            ]
            self.sites.append(
                (
                    name,
                    Site(unit, Decl("file", name, Span(0, len(unit.text)))),
                    frozenset(("file",)),
                )
            )
            for decl in unit.decls:
                uses = words.count(decl.name)
                kinds = set(_kinds(decl, unit, uses))
                if len(self.units) == 1:
                    kinds |= {f"lone-{kind}" for kind in kinds}
                self.sites.append((name, Site(unit, decl), frozenset(kinds)))
                for member in decl.members:
                    kinds = {member.kind}
                    if member.kind == "constant" and member.value is None:
                        kinds.add("implicit")
                    self.sites.append((name, Site(unit, decl, member), frozenset(kinds)))

    def write(self, folder: Path) -> None:
        """The header's files as they are, into a folder."""
        for name, text in self.files.items():
            (folder / name).write_text(text, encoding="utf-8", newline="")

    def of_interop(self, site: Site) -> bool:
        """Whether a site belongs to the interop API or to what an operator on it needs."""
        return site.decl.kind in ("file", "macro") or not self.surface.isdisjoint(
            (site.decl.name, site.symbol)
        )

    def mutants(self, names: Iterable[str] = ()) -> Iterator[Mutant]:
        """Every mutant that the operators make of this header."""
        chosen = [OPERATORS[n] for n in names] or list(OPERATORS.values())
        for item in chosen:
            for file, site, kinds in self.sites:
                if not item.kinds.isdisjoint(kinds):
                    for edit in item.make(site):
                        yield Mutant(item, file, site, edit)

    def select(
        self, seed: int, rest: int, surface: int | None = None, names: Iterable[str] = ()
    ) -> list[Mutant]:
        """All mutants of the interop surface (or ``surface`` an operator) and ``rest`` an operator of the rest."""
        chance = random.Random(seed)
        groups: dict[str, tuple[list[Mutant], list[Mutant]]] = {}
        for mutant in self.mutants(names):
            ours, others = groups.setdefault(mutant.operator.name, ([], []))
            (ours if self.of_interop(mutant.site) else others).append(mutant)
        found: list[Mutant] = []
        for ours, others in groups.values():
            found += ours if surface is None else chance.sample(ours, min(surface, len(ours)))
            found += chance.sample(others, min(rest, len(others)))
        return found


def _known_macro(decl: Decl, unit: Unit) -> bool:
    """Of the macros only the version and the aliases of enumerators, where they are defined last."""
    if decl.kind != "macro":
        return True
    assert decl.value is not None
    value = decl.value.of(unit.text).strip()
    last = max(d.span.start for d in unit.decls if d.kind == "macro" and d.name == decl.name)
    constants = {m.name for d in unit.decls if d.kind == "enum" for m in d.members}
    return decl.span.start == last and (decl.name == "ORT_API_VERSION" or value in constants)


def _kinds(decl: Decl, unit: Unit, uses: int) -> Iterator[str]:
    if decl.kind == "macro":
        yield "version" if decl.name == "ORT_API_VERSION" else "macro"
        return
    yield decl.kind
    if decl.kind in ("opaque", "callback", "typedef") and uses <= 2:
        yield f"{decl.kind}-unused"
    if decl.kind == "enum":
        values = [m.value.of(unit.text) for m in decl.members if m.value is not None]
        if not any(v.lstrip("( ").startswith("-") for v in values):
            yield "unsigned-enum"
    if decl.kind == "struct" and decl.members:
        fields = [m for m in decl.members if m.kind == "field"]
        if decl.members[0].name in VERSIONED:
            yield "versioned"
        elif not fields:
            yield "table"
        elif len(fields) == len(decl.members):
            yield "plain"
        if decl.members[0].name in VERSIONED and len(fields) < len(decl.members):
            yield "table"


def run(header: Header, check: Check, mutants: Iterable[Mutant]) -> Iterator[Outcome]:
    """Check each mutant in a folder of its own."""
    for mutant in mutants:
        with tempfile.TemporaryDirectory(prefix="ort-mutant-") as folder:
            mutant.write(header.files, Path(folder))
            start = time.perf_counter()
            findings = _ask(check, mutant.operator, Path(folder))
            seconds = time.perf_counter() - start
        matching = tuple(f for f in findings if _names(mutant, f))
        others = tuple(f for f in findings if not _names(mutant, f))
        yield Outcome(mutant, matching, others, seconds)


def _ask(check: Check, item: Operator, folder: Path) -> Sequence[Finding]:
    if item.side == "header":
        return check.against_header(folder)
    if item.side == "docs":
        return check.of_documentation(folder)
    # What is neutral must be so for the documentation as well.
    return [*check(folder), *(check.of_documentation(folder) if item.effect == "neutral" else ())]


def _names(mutant: Mutant, finding: Finding) -> bool:
    return finding.rule in mutant.operator.rules and fnmatchcase(finding.symbol, mutant.edit.symbol)


def table(outcomes: Iterable[Outcome]) -> dict[str, Row]:
    """The outcomes by operator, in the operators' order."""
    rows: dict[str, Row] = {}
    for outcome in outcomes:
        item = outcome.mutant.operator
        row = rows.setdefault(item.name, Row(item))
        row.mutants += 1
        row.right += outcome.right
        row.others += len(outcome.others)
        row.seconds += outcome.seconds
        if not outcome.right:
            row.wrong.append(outcome)
    return {name: rows[name] for name in OPERATORS if name in rows}


def interop_surface(model: Model) -> frozenset[str]:
    """What the curated spec file declares, and the slots elsewhere that it annotates."""
    curated = model.sources[0].file
    types = [
        *curated.enums,
        *curated.opaque,
        *curated.structs,
        *curated.typedefs,
        *curated.functions,
    ]
    return frozenset(e.name for e in types) | frozenset(note.slot for note in curated.annotate)


def real_header(folder: Path, surface: frozenset[str]) -> Header:
    """ONNX Runtime's own headers of one release."""
    texts = {
        path.name: path.read_text(encoding="utf-8")
        for path in sorted(folder.glob("onnxruntime_*.h"))
        if path.name in (MAIN, "onnxruntime_ep_c_api.h", "onnxruntime_error_code.h")
    }
    return Header(texts, surface)


def member_count(header: Header) -> int:
    """How many members the scanner found, for a test that it saw the whole header."""
    return sum(len(d.members) for u in header.units.values() for d in u.decls)


__all__ = [
    "MAIN",
    "Check",
    "Header",
    "Mutant",
    "Outcome",
    "Row",
    "interop_surface",
    "member_count",
    "real_header",
    "run",
    "table",
]
