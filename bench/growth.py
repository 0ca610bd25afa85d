"""How the time of a check grows with the length of the header: ``python bench/growth.py``.

A header that is n times as long has the rendered header's declarations n times, under other names.
It is read as both platforms see it and compared with a spec of the same length.  Times are CPU
times, the preprocessor's included; the best of some rounds counts.
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from mutation.engine import MAIN  # noqa: E402
from mutation.scan import scan  # noqa: E402
from mutation.source import SPEC, own_macros_removed, rendered_text  # noqa: E402
from ort_interop_gen.drift.compare import compare  # noqa: E402
from ort_interop_gen.header.reader import read_header, read_views  # noqa: E402
from ort_interop_gen.spec.load import load_spec  # noqa: E402

_NAME = re.compile(r"\b[A-Za-z_]\w*\b")


def lengthened(times: int) -> str:
    """The rendered header with its declarations ``times`` times over."""
    model = load_spec(SPEC)
    text = own_macros_removed(rendered_text(model, model.newest))
    decls = [d for d in scan(text).decls if d.kind != "macro"]
    names = {d.name for d in decls} | {m.name for d in decls if d.kind == "enum" for m in d.members}
    first = min(d.span.start for d in decls)
    last = max(d.span.end for d in decls)
    body = text[first:last]

    def copy(number: int) -> str:
        return _NAME.sub(lambda m: f"{m[0]}_{number}" if m[0] in names else m[0], body)

    copies = "\n\n".join(copy(number) for number in range(1, times))
    return f"{text[:last]}\n\n{copies}\n{text[last:]}"


def seconds(times: int, rounds: int = 3) -> tuple[float, int]:
    """CPU seconds of a check of the lengthened header, and its length in lines."""
    text = lengthened(times)
    best = float("inf")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / MAIN
        path.write_text(text, encoding="utf-8")
        expected = read_header(path).abi
        for _ in range(rounds):
            before = sum(os.times()[:4])
            for view in read_views(path):
                findings = compare(expected, view.abi, view.unreadable)
                if findings:
                    raise SystemExit(f"the header differs from itself: {findings[0]}")
            best = min(best, sum(os.times()[:4]) - before)
    return best, text.count("\n")


def main() -> None:
    print("times as long   lines   CPU s   ms per 1000 lines")
    for times in (1, 2, 5, 10):
        found, lines = seconds(times)
        print(f"{times:>13}{lines:>8}{found:>8.2f}{1e6 * found / lines:>20.0f}")


if __name__ == "__main__":
    main()
