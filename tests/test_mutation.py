"""The mutation test of the checker, sampled with a seed; ``make mutation`` runs all of it.

Every operator is tried on declarations of the interop surface and on others.  A harmful mutant
must be named by the right rule at the right symbol; a neutral one must give no finding at all.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
from pathlib import Path

import pytest
from mutation.engine import Header, Mutant, Outcome, member_count, run
from mutation.operators import OPERATORS
from mutation.scan import scan
from mutation.source import SPEC, SpecCheck, from_folder, from_spec
from ort_interop_gen.drift.rules import RULES
from ort_interop_gen.spec.load import load_spec
from support import need_tool

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "bench"))
import growth

SEED = int(os.environ.get("MUTATION_SEED", "20261"))
SURFACE, REST = 2, 1
"""Mutants an operator of the interop surface and of the rest, in the tests."""
NOT_C = ("slot-duplicated", "field-duplicated", "typedef-removed")
"""Operators whose mutants no C compiler takes: a name twice, a type that is still used."""
IMPLICIT = frozenset({"enumerator-inserted"})
"""Operators that need enumerators without values, which only ONNX Runtime's own headers have."""


@pytest.fixture(scope="module")
def rendered() -> tuple[Header, SpecCheck]:
    return from_spec()


def said(outcome: Outcome) -> str:
    found = [f"{f.rule} {f.symbol}: {f.message}" for f in outcome.others] or ["nothing"]
    return f"{outcome.mutant.name} (wanted at {outcome.mutant.edit.symbol}): {found}"


def test_there_are_enough_operators() -> None:
    effects = [o.effect for o in OPERATORS.values()]
    assert len(effects) - effects.count("neutral") >= 25
    assert effects.count("neutral") >= 7
    assert {"breaking", "source", "contract", "additive", "unreadable", "neutral"} <= set(effects)


def test_operators_name_rules_that_exist() -> None:
    named = {rule for o in OPERATORS.values() for rule in o.rules}
    assert named <= RULES.keys()
    assert all(bool(o.rules) == (o.effect != "neutral") for o in OPERATORS.values())


def test_operators_and_rules_agree_on_the_severity() -> None:
    for item in OPERATORS.values():
        wanted = {RULES[rule].severity.value for rule in item.rules}
        assert wanted <= {item.effect}, item.name


def test_every_rule_has_an_operator() -> None:
    named = {rule for o in OPERATORS.values() for rule in o.rules}
    others = {
        "field-offset": "follows from a change elsewhere",
        "size-changed": "follows from a change elsewhere",
        "kind-changed": "an enum in place of a struct: tested with the comparison",
        "doc-since-wrong": "check reports it as since-changed",
        "platform-macro": "tested with the comparison",
        "header-moved": "a matter of several files: tested with the comparison",
        "macro-removed": "the spec has no macro that is not an alias",
    }
    missing = RULES.keys() - named - others.keys()
    assert not missing, f"no operator causes {sorted(missing)}"


def test_the_scanner_sees_the_whole_header(rendered: tuple[Header, SpecCheck]) -> None:
    header, check = rendered
    abi = check.original
    members = sum(len(s.fields) for s in abi.structs.values())
    unions = sum(f.function is None and "Record" in type(f.type).__name__
                 for s in abi.structs.values() for f in s.fields)  # fmt: skip
    constants = sum(len(e.constants) for e in abi.enums.values())
    assert member_count(header) == members + constants - unions
    params = sum(len(f.params) for name, f in abi.signatures() if name.startswith("OrtInteropApi."))
    table = next(d for u in header.units.values() for d in u.decls if d.name == "OrtInteropApi")
    assert sum(len(m.signature.params) for m in table.members if m.signature) == params > 20


def test_without_mutation_there_is_no_finding(
    rendered: tuple[Header, SpecCheck], tmp_path: Path
) -> None:
    header, check = rendered
    header.write(tmp_path)
    assert list(check(tmp_path)) == []
    assert list(check.against_header(tmp_path)) == []
    assert not check.known, "the rendered header's own documentation has faults"


@pytest.mark.parametrize("name", OPERATORS)
def test_operator(name: str, rendered: tuple[Header, SpecCheck]) -> None:
    header, check = rendered
    mutants = header.select(SEED, REST, SURFACE, [name])
    assert mutants or name in IMPLICIT, "the operator applies nowhere"
    wrong = [said(o) for o in run(header, check, mutants) if not o.right]
    assert not wrong, "\n".join(wrong)


ENUMS = """\
#define ORT_API_VERSION 24
typedef enum Implicit { FIRST, SECOND, THIRD = 7, FOURTH } Implicit;
"""


def test_implicit_enumerators_move_together() -> None:
    found = {
        edit.symbol: edit.apply(ENUMS)
        for decl in scan(ENUMS).decls
        if decl.kind == "enum"
        for mutant in Header({"x.h": ENUMS}, frozenset()).mutants(["enumerator-inserted"])
        for edit in [mutant.edit]
    }
    assert set(found) == {"Implicit.FIRST", "Implicit.SECOND", "Implicit.FOURTH"}
    assert "THIRD = 7, OrtAddedByMutation,\n  FOURTH" in found["Implicit.FOURTH"]


def mutants_that_compile(header: Header) -> list[Mutant]:
    """One of each operator whose mutants are C: not the unreadable ones, nor a name given twice."""
    chance = random.Random(SEED)
    found = []
    for item in OPERATORS.values():
        if item.effect != "unreadable" and item.name not in NOT_C:
            some = list(header.mutants([item.name]))
            found += chance.sample(some, min(1, len(some)))
    return found


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_mutants_are_c(compiler: str, rendered: tuple[Header, SpecCheck], tmp_path: Path) -> None:
    """A mutant that does not compile proves little: its change would not reach anyone unseen."""
    header, _ = rendered
    failures = []
    for mutant in mutants_that_compile(header):
        mutant.write(header.files, tmp_path)
        command = [need_tool(compiler), "-std=c11", "-fsyntax-only", "-w", "-x", "c"]
        done = subprocess.run(
            [*command, str(tmp_path / "onnxruntime_c_api.h")], capture_output=True, text=True
        )
        if done.returncode:
            failures.append(f"{mutant.name}: {done.stderr.splitlines()[0]}")
    # What a mutation takes away may be in use elsewhere, and then no compiler takes it.
    unusable = ("opaque-removed", "struct-made-opaque", "param-retyped", "enumerator-renamed")
    assert not [f for f in failures if not f.startswith(unusable)], failures


@pytest.mark.parametrize("release", ["1.29.0", "1.24.1"])
def test_mutants_of_the_real_headers(release: str, headers_dir: Path) -> None:
    header, check = from_folder(headers_dir / release)
    mutants = header.select(SEED, 1, 1)
    assert len({m.operator.name for m in mutants}) >= 90
    wrong = [said(o) for o in run(header, check, mutants) if not o.right]
    assert not wrong, "\n".join(wrong)


def test_the_interop_surface_is_the_curated_file(rendered: tuple[Header, SpecCheck]) -> None:
    header, _ = rendered
    curated = load_spec(SPEC).sources[0].file
    tables = {s.name: len(s.fields) for s in curated.structs}
    seen = {
        d.name: len(d.members) for u in header.units.values() for d in u.decls if d.name in tables
    }
    assert seen == tables


def test_the_time_of_a_check_grows_with_the_header_and_no_faster() -> None:
    short, short_lines = growth.seconds(2, rounds=2)
    long, long_lines = growth.seconds(10, rounds=2)
    assert long_lines > 4 * short_lines
    assert long / long_lines < 1.5 * short / short_lines
