"""Run the whole mutation test and keep its table: ``python -m mutation`` (``make mutation``)."""

from __future__ import annotations

import argparse
import multiprocessing
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

from ort_interop_gen.drift.finding import Finding

from .engine import Header, Mutant, Outcome, Row, run, table
from .operators import OPERATORS
from .source import SpecCheck, from_folder, from_spec

BEGIN, END = "<!-- mutation table: `make mutation` writes it -->", "<!-- end of mutation table -->"
_work: tuple[Header, SpecCheck, list[Mutant]] | None = None


Found = tuple[tuple[Finding, ...], tuple[Finding, ...], float]


def _one(index: int) -> tuple[int, Found]:
    """One mutant's findings; functions and texts stay behind, because the parent has them."""
    assert _work is not None
    header, check, mutants = _work
    (outcome,) = run(header, check, [mutants[index]])
    return index, (outcome.matching, outcome.others, outcome.seconds)


def outcomes(
    header: Header, check: SpecCheck, mutants: list[Mutant], jobs: int
) -> Iterator[Outcome]:
    """Check mutants in several processes, in any order."""
    global _work
    _work = (header, check, mutants)
    if jobs == 1:
        yield from run(header, check, mutants)
        return
    with multiprocessing.get_context("fork").Pool(jobs) as pool:
        for index, found in pool.imap_unordered(_one, range(len(mutants)), 8):
            yield Outcome(mutants[index], *found)


def markdown(columns: dict[str, dict[str, Row]]) -> str:
    """One line an operator, one pair of columns a header."""
    head = "| operator | effect | named by |" + "".join(f" {n}: mutants | right |" for n in columns)
    lines = [head, "|" + " --- |" * (3 + 2 * len(columns))]
    for name, item in OPERATORS.items():
        rows = [rows.get(name) for rows in columns.values()]
        if not any(rows):
            continue
        cells = "".join(f" {r.mutants} | {r.right} |" if r else " - | - |" for r in rows)
        rules = ", ".join(f"`{r}`" for r in sorted(item.rules)) or "no finding"
        lines.append(f"| {name} | {item.effect} | {rules} |{cells}")
    sums = "".join(
        f" {sum(r.mutants for r in rows.values())} | {sum(r.right for r in rows.values())} |"
        for rows in columns.values()
    )
    lines.append(f"| **all** | | |{sums}")
    return "\n".join(lines)


def keep(path: Path, text: str) -> None:
    """Put the table between its marks in a document."""
    old = path.read_text(encoding="utf-8")
    before, rest = old.split(BEGIN)
    _, after = rest.split(END)
    path.write_text(f"{before}{BEGIN}\n{text}\n{END}{after}", encoding="utf-8")


def _survivors(rows: Iterable[Row]) -> int:
    count = 0
    for row in rows:
        for outcome in row.wrong:
            count += 1
            said = [f"{f.rule} {f.symbol}" for f in outcome.others[:4]] or ["nothing"]
            print(f"WRONG {outcome.mutant.name}: found {', '.join(said)}")
    return count


def main() -> int:
    parser = argparse.ArgumentParser(prog="mutation", description=__doc__)
    parser.add_argument("--headers", type=Path, action="append", default=[], metavar="DIR",
                        help="also mutate the ONNX Runtime headers in this folder")  # fmt: skip
    parser.add_argument(
        "--rest", type=int, default=20, help="mutants an operator beside the interop surface"
    )
    parser.add_argument(
        "--surface", type=int, help="at most so many of the interop surface (default: all)"
    )
    parser.add_argument("--operator", action="append", default=[], choices=sorted(OPERATORS))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--keep", type=Path, help="write the table into this document")
    parser.add_argument(
        "--noise", action="store_true", help="list findings beside the expected ones"
    )
    options = parser.parse_args()
    columns: dict[str, dict[str, Row]] = {}
    wrong = 0
    for folder in [None, *options.headers]:
        header, check = from_folder(folder) if folder else from_spec()
        name = f"ORT {folder.resolve().name}" if folder else "rendered"
        mutants = header.select(options.seed, options.rest, options.surface, options.operator)
        start = time.perf_counter()
        found = list(outcomes(header, check, mutants, options.jobs))
        seconds = time.perf_counter() - start
        rows = columns[name] = table(found)
        wrong += _survivors(rows.values())
        if options.noise:
            for outcome in found:
                for finding in outcome.others if outcome.right else ():
                    print(f"BESIDE {outcome.mutant.name}: {finding.rule} {finding.symbol}")
        each = 1000 * sum(o.seconds for o in found) / max(1, len(found))
        print(
            f"{name}: {len(found)} mutants, {len(rows)} operators, {seconds:.0f} s, {each:.0f} ms a check"
        )
    surface = "all" if options.surface is None else f"at most {options.surface}"
    caption = (
        f"Mutants an operator: {surface} of the interop surface and at most {options.rest} of the rest, "
        f"seed {options.seed}."
    )
    text = f"{caption}\n\n{markdown(columns)}"
    if options.keep:
        keep(options.keep, text)
    else:
        print(text)
    print(
        f"{wrong} mutants were not judged rightly" if wrong else "every mutant was judged rightly"
    )
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
