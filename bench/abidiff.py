"""Which mutants abidiff finds, beside our check: ``python bench/abidiff.py`` (Debian's abigail-tools).

Each mutant of the rendered header, and the header itself, is compiled with debug information into
a library that uses every type; abidiff then compares the two libraries, without and with
``--harmless``.  Times are CPU times of one comparison: both sides compiled already for abidiff,
reading the header's text included for ours.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from mutation.engine import MAIN, Header, Mutant, run  # noqa: E402
from mutation.operators import OPERATORS  # noqa: E402
from mutation.scan import scan  # noqa: E402
from mutation.source import SpecCheck, from_spec  # noqa: E402

BEGIN, END = "<!-- abidiff table: bench/abidiff.py writes it -->", "<!-- end of abidiff table -->"
CHANGED, FAILED = 4, 3
"""Bits of abidiff's exit code: an ABI change; its own failure or wrong usage."""


@dataclass(slots=True)
class Row:
    mutants: int = 0
    compiled: int = 0
    ours: int = 0
    plain: int = 0
    harmless: int = 0
    ours_seconds: float = 0.0
    plain_seconds: float = 0.0
    harmless_seconds: float = 0.0


def uses(text: str) -> str:
    """A source file with a global variable for every type and function that a header declares."""
    lines = [f'#include "{MAIN}"']
    seen: set[str] = set()
    for decl in scan(text).decls:
        if decl.name in seen:
            continue
        seen.add(decl.name)
        match decl.kind:
            case "struct" | "enum":
                lines.append(f"{decl.kind} {decl.name}* ort_use_{decl.name};")
            case "opaque" | "typedef" | "callback":
                lines.append(f"{decl.name}* ort_use_{decl.name};")
            case "export":
                lines.append(f"__typeof__(&{decl.name}) ort_use_{decl.name};")
    return "\n".join(lines) + "\n"


def build(text: str, users: str, folder: Path, name: str) -> Path | None:
    """The library of a header's text and what uses it; None where the compiler refuses them."""
    work = folder / name
    work.mkdir()
    (work / MAIN).write_text(text, encoding="utf-8", newline="")
    (work / "use.c").write_text(users, encoding="utf-8")
    # The name inside must be the same on both sides, or abidiff reports that.
    command = ["gcc", "-std=gnu11", "-g", "-w", "-shared", "-fPIC", "-o", "libuse.so", "use.c"]
    done = subprocess.run(command, cwd=work, capture_output=True)
    return work / "libuse.so" if done.returncode == 0 else None


def abidiff(old: Path, new: Path, *options: str) -> tuple[bool, float]:
    before = os.times()
    done = subprocess.run(["abidiff", *options, str(old), str(new)], capture_output=True, text=True)
    after = os.times()
    if done.returncode & FAILED:
        raise SystemExit(f"abidiff failed: {done.stderr.strip()}")
    seconds = (
        after.children_user + after.children_system - before.children_user - before.children_system
    )
    return bool(done.returncode & CHANGED), seconds


def measure(header: Header, check: SpecCheck, mutants: list[Mutant]) -> dict[str, Row]:
    rows = {name: Row() for name in OPERATORS}
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        users = uses(header.files[MAIN])
        base = build(header.files[MAIN], users, folder, "base")
        if base is None:
            raise SystemExit("the header without mutation does not compile")
        for mutant in mutants:
            row = rows[mutant.operator.name]
            row.mutants += 1
            before = sum(os.times()[:4])
            (outcome,) = run(header, check, [mutant])
            row.ours_seconds += sum(os.times()[:4]) - before
            row.ours += bool(outcome.matching or outcome.others)
            text = mutant.edit.apply(header.files[MAIN])
            # A neutral mutant declares the same; a harmful one may lack a type or have one more.
            mine = users if mutant.operator.effect == "neutral" else uses(text)
            changed = build(text, mine, folder, "mutant")
            if changed is not None:
                row.compiled += 1
                found, seconds = abidiff(base, changed)
                row.plain, row.plain_seconds = row.plain + found, row.plain_seconds + seconds
                found, seconds = abidiff(base, changed, "--harmless")
                row.harmless += found
                row.harmless_seconds += seconds
            shutil.rmtree(folder / "mutant")
    return {name: row for name, row in rows.items() if row.mutants}


def markdown(rows: dict[str, Row]) -> str:
    lines = [
        "| operator | effect | mutants | compile | check reports | abidiff reports | abidiff --harmless reports |",
        "|" + " --- |" * 7,
    ]
    for name, row in rows.items():
        counts = (row.mutants, row.compiled, row.ours, row.plain, row.harmless)
        cells = " | ".join(str(c) for c in counts)
        lines.append(f"| {name} | {OPERATORS[name].effect} | {cells} |")
    for effect in dict.fromkeys(OPERATORS[n].effect for n in rows):
        some = [r for n, r in rows.items() if OPERATORS[n].effect == effect]
        sums = [
            sum(getattr(r, f) for r in some)
            for f in ("mutants", "compiled", "ours", "plain", "harmless")
        ]
        lines.append(f"| **all** | **{effect}** | {' | '.join(map(str, sums))} |")
    every = rows.values()
    mutants, compiled = sum(r.mutants for r in every), sum(r.compiled for r in every) or 1
    lines += [
        "",
        f"CPU time of one comparison: check {sum(r.ours_seconds for r in every) / mutants:.2f} s, "
        f"abidiff {sum(r.plain_seconds for r in every) / compiled:.2f} s, "
        f"with --harmless {sum(r.harmless_seconds for r in every) / compiled:.2f} s (without the compiler's).",
    ]
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--each", type=int, default=2, help="mutants an operator")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", type=Path, help="write the table into this document")
    options = parser.parse_args()
    for tool in ("abidiff", "gcc"):
        if shutil.which(tool) is None:
            print(f"{tool} is not installed", file=sys.stderr)
            return 2
    header, check = from_spec()
    rows = measure(header, check, header.select(options.seed, 0, options.each))
    text = markdown(rows)
    if options.keep:
        old = options.keep.read_text(encoding="utf-8")
        before, rest = old.split(BEGIN)
        text = f"{before}{BEGIN}\n{text}\n{END}{rest.split(END)[1]}"
        options.keep.write_text(text, encoding="utf-8")
    else:
        print(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
