"""Edit texts at random and ask the tool about them, in process, as its command line would."""

from __future__ import annotations

import contextlib
import io
import os
import random
import re
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from mutation.source import SPEC, own_macros_removed, rendered_text
from ort_interop_gen.cli.main import main
from ort_interop_gen.spec.load import load_spec, load_texts, spec_files
from ort_interop_gen.spec.problems import SpecErrors

MAIN = "onnxruntime_c_api.h"
LIMIT_SECONDS = 2.0
"""What the 99th percentile of all answers must stay under, in CPU time with that of the preprocessor:
on a machine that is busy with other work the clock on the wall measures that work."""

_TOKEN = re.compile(r'"(?:\\.|[^"\\\n])*"|/\*.*?\*/|//[^\n]*|\w+|\s+|.', re.S)
_WORDS = [
    "", " ", "\n", "\t", "\\\n", "\\", "(", ")", "{", "}", "[", "]", ";", ",", "*", "#", "=", "'", '"', "/*", "*/",
    "//", "...", "::", "<", ">", "0", "-1", "08", "1 << 31", "0x100000000", "99999999999999999999", "1/0", "sizeof(x)",
    "const", "struct", "union", "enum", "typedef", "void", "int", "unsigned", "long", "return", "static", "inline",
    "extern", "_In_", "_Out_", "_In_reads_(", "_Inexpressible_(x)", "ORT_API_CALL", "ORT_MUST_USE_RESULT",
    "__attribute__((packed))", "__declspec(align(8))", "__stdcall", "_Static_assert(1, \"\");", "#if 1\n", "#if 0\n",
    "#endif\n", "#else\n", "#error no\n", "#define ORT_API_VERSION 30\n", "#undef ORT_API_CALL\n",
    "#include <stdint.h>\n", '#include "onnxruntime_c_api.h"\n', "#pragma pack(push, 1)\n", "\ufeff", "\u00e9", "\r",
]  # fmt: skip


@dataclass(slots=True)
class Tally:
    """What came of a run."""

    answers: Counter[str] = field(default_factory=Counter)
    seconds: list[float] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)

    def percentile(self, part: float) -> float:
        ordered = sorted(self.seconds)
        return ordered[min(len(ordered) - 1, int(part * len(ordered)))] if ordered else 0.0

    def __str__(self) -> str:
        counts = ", ".join(f"{n} x {what}" for what, n in sorted(self.answers.items()))
        times = ", ".join(
            f"{name} {self.percentile(part):.2f} s"
            for name, part in (("median", 0.5), ("99th percentile", 0.99), ("longest", 1.0))
        )
        return f"{len(self.seconds)} edits: {counts}; CPU time {times}; {len(self.faults)} faults"

    def add(self, other: Tally) -> None:
        self.answers += other.answers
        self.seconds += other.seconds
        self.faults += other.faults


def edit(text: str, chance: random.Random) -> str:
    """One to four edits, of tokens mostly and of raw text at times."""
    for _ in range(chance.choice((1, 1, 1, 2, 4))):
        text = _by_tokens(text, chance) if chance.random() < 0.8 else _by_characters(text, chance)
    return text


def _by_tokens(text: str, chance: random.Random) -> str:
    start = chance.randrange(len(text) or 1)
    # Tokens of one stretch only: splitting all of a long header each time would take the longest.
    end = min(len(text), start + 2000)
    tokens = _TOKEN.findall(text[start:end]) or [""]
    at, other = chance.randrange(len(tokens)), chance.randrange(len(tokens))
    match chance.randrange(6):
        case 0:
            tokens[at] = chance.choice(_WORDS)
        case 1:
            tokens.insert(at, chance.choice(_WORDS))
        case 2:
            del tokens[min(at, other) : max(at, other) + 1]
        case 3:
            tokens[at], tokens[other] = tokens[other], tokens[at]
        case 4:
            tokens[at:at] = tokens[min(at, other) : max(at, other)]
        case _:
            del tokens[at]
    return text[:start] + "".join(tokens) + text[end:]


def _by_characters(text: str, chance: random.Random) -> str:
    at = chance.randrange(len(text) or 1)
    match chance.randrange(4):
        case 0:
            return text[:at] + chr(chance.choice((0, 1, 9, 12, 26, 127, 160, 0x202E))) + text[at:]
        case 1:
            return text[:at] + text[at + chance.randrange(1, 400) :]
        case 2:
            return text[:at]
        case _:
            cut = text[at : at + chance.randrange(1, 400)]
            place = chance.randrange(len(text) or 1)
            return text[:place] + cut + text[place:]


def header_edits(count: int, seed: int) -> Tally:
    """``check`` on edited headers of the newest release."""
    model = load_spec(SPEC)
    text = own_macros_removed(rendered_text(model, model.newest))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / MAIN

        def ask(changed: str) -> str:
            path.write_text(changed, encoding="utf-8", errors="surrogatepass", newline="")
            return f"exit {_command(['check', '--docs', '--header', str(path)])}"

        return _run(text, ask, {"exit 0", "exit 1", "exit 2"}, count, seed)


def spec_edits(count: int, seed: int) -> Tally:
    """Loading edited spec files: a model, or errors that each have a place."""
    texts = {str(p): p.read_text(encoding="utf-8") for p in spec_files(SPEC)}
    names = list(texts)

    def ask(name: str, changed: str) -> str:
        try:
            model = load_texts(texts | {name: changed})
            model.at(model.newest)
        except SpecErrors as error:
            assert error.problems and all(p.loc.file and p.message for p in error.problems)
            return "rejected"
        return "accepted"

    found = Tally()
    for at, name in enumerate(names):
        share = len(range(at, count, len(names)))
        known = {"accepted", "rejected"}
        found.add(_run(texts[name], partial(ask, name), known, share, seed + at))
    return found


def _command(arguments: list[str]) -> int:
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        return main(arguments)


def _run(text: str, ask: Callable[[str], str], known: set[str], count: int, seed: int) -> Tally:
    tally = Tally()
    for number in range(count):
        changed = edit(text, random.Random(f"{seed}/{number}"))
        began = _spent()
        try:
            answer = ask(changed)
        except Exception as error:
            answer = f"{type(error).__name__}"
            tally.faults.append(f"edit {seed}/{number}: {type(error).__name__}: {error}")
        else:
            if answer not in known:
                tally.faults.append(f"edit {seed}/{number}: {answer}")
        tally.seconds.append(_spent() - began)
        tally.answers[answer] += 1
    return tally


def _spent() -> float:
    """CPU seconds of this process and of the programs that it has run."""
    return sum(os.times()[:4])


def chunks(count: int, size: int = 250) -> Iterator[tuple[int, int]]:
    """``(how many, seed)`` of parts that may run side by side."""
    for start in range(0, count, size):
        yield min(size, count - start), 1000 + start


def total(tallies: Iterable[Tally]) -> Tally:
    found = Tally()
    for tally in tallies:
        found.add(tally)
    return found
