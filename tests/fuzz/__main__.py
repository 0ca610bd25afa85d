"""Many random edits: ``python -m fuzz`` (``make fuzz``)."""

from __future__ import annotations

import argparse
import multiprocessing
import sys

from .engine import LIMIT_SECONDS, Tally, chunks, header_edits, spec_edits, total

_KINDS = {"header": header_edits, "spec": spec_edits}


def _part(work: tuple[str, int, int]) -> Tally:
    kind, count, seed = work
    return _KINDS[kind](count, seed)


def main() -> int:
    parser = argparse.ArgumentParser(prog="fuzz", description=__doc__)
    parser.add_argument("--edits", type=int, default=10_000, help="how many, of each kind")
    parser.add_argument("--kind", action="append", choices=sorted(_KINDS), help="default: all")
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    failed = False
    for kind in options.kind or _KINDS:
        work = [(kind, count, seed) for count, seed in chunks(options.edits)]
        with multiprocessing.get_context("fork").Pool(options.jobs) as pool:
            tally = total(pool.imap_unordered(_part, work))
        print(f"{kind}: {tally}")
        for fault in tally.faults[:20]:
            print(f"  {fault}")
        failed = failed or bool(tally.faults) or tally.percentile(0.99) >= LIMIT_SECONDS
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
