"""Speed of the tool and of what it generates, as ratios measured in one run.

Times are medians over whole processes, whose modules are compiled before, as pip leaves them.
``--headers`` names a folder with ONNX Runtime's three headers (or folders of them by release, of
which the newest is taken); without it the generated header stands for them.  The call overhead needs
an onnxruntime library, which is downloaded on first use; ``--no-calls`` leaves it out.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import timeit
from collections.abc import Callable, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "generated" / "python"
BIN = Path(sys.executable).parent
ORT_VERSION = "1.29.0"
sys.path.insert(0, str(ROOT / "tests"))


def medians(runs: dict[str, Callable[[], None]], rounds: int) -> dict[str, float]:
    """The median time of each function in seconds, after one call each that does not count.

    The functions take turns, so that what else the machine does falls on all alike.
    """
    times: dict[str, list[float]] = {name: [] for name in runs}
    for turn in range(rounds + 1):
        for name, run in runs.items():
            seconds = timeit.timeit(run, number=1)
            if turn:
                times[name].append(seconds)
    return {name: statistics.median(values) for name, values in times.items()}


def process(
    command: Sequence[str | Path], ok: Sequence[int] = (0,), **variables: str
) -> Callable[[], None]:
    """A function that runs a command to its end; the variables are added to its environment."""
    environ = environment() | variables

    def run() -> None:
        done = subprocess.run([str(c) for c in command], capture_output=True, env=environ)
        if done.returncode not in ok:
            sys.exit(f"{command} ended with {done.returncode}:\n{done.stderr.decode()}")

    return run


def environment() -> dict[str, str]:
    """The environment without what makes the tool look for other headers, or Python compile anew."""
    drop = {"ORT_INCLUDE_DIR", "CMAKE_PREFIX_PATH", "CONDA_PREFIX", "PYTHONDONTWRITEBYTECODE"}
    return {k: v for k, v in os.environ.items() if k not in drop} | {"PYTHONPATH": str(PACKAGE)}


def headers(given: Path | None) -> list[Path]:
    """The headers to measure on, the main one first."""
    if given is None:
        return [ROOT / "generated" / "include" / "ort_interop_abi.h"]
    folders = [given, *sorted(given.iterdir(), key=lambda p: _version(p.name), reverse=True)]
    for folder in folders:
        main = folder / "onnxruntime_c_api.h"
        if main.is_file():
            names = ("onnxruntime_error_code.h", "onnxruntime_ep_c_api.h")
            return [main, *(folder / n for n in names if (folder / n).is_file())]
    sys.exit(f"no onnxruntime_c_api.h in {given}")


def _version(name: str) -> list[int]:
    parts = name.split(".")
    return [int(p) for p in parts] if all(p.isdigit() for p in parts) else []


def measure_tool(files: list[Path], rounds: int) -> None:
    """The tool's commands against ctypesgen and against a compiler that only parses."""
    tool = BIN / "ort-interop-gen"
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        out = folder / "cold"

        def cold() -> None:
            shutil.rmtree(out, ignore_errors=True)
            process([tool, "generate", "--out", out])()

        warm = process([tool, "generate", "--out", folder / "warm"])
        gcc = process(["gcc", "-fsyntax-only", "-x", "c", files[0]])
        peer = process(
            [BIN / "ctypesgen", f"-I{files[0].parent}", *files, "-o", folder / "peer.py"]
        )
        command = [tool, "check", "--header", files[0]]
        check = process(command, ok=(0, 1))
        first_check = process(command, ok=(0, 1), ORT_INTEROP_GEN_NO_CACHE="1")
        runs = {
            "gcc -fsyntax-only": gcc,
            "ctypesgen 1.1.1": peer,
            "check": check,
            "check, without its cache": first_check,
            "generate, cold": cold,
            "generate, nothing changed": warm,
        }
        times = medians(runs, rounds)
    print(f"{'whole process':<28}{'seconds':>9}{'x ctypesgen':>13}{'x gcc':>8}   goal")
    goals = {
        "check": "<= 0.6 x ctypesgen",
        "generate, cold": "<= 1.5 x ctypesgen",
        "generate, nothing changed": "<= 0.3 x ctypesgen",
    }
    for name, seconds in times.items():
        peer_ratio = seconds / times["ctypesgen 1.1.1"]
        floor_ratio = seconds / times["gcc -fsyntax-only"]
        goal = goals.get(name, "")
        print(f"{name:<28}{seconds:>9.3f}{peer_ratio:>13.2f}{floor_ratio:>8.1f}   {goal}")


def measure_import(rounds: int) -> None:
    """Import of the generated package over that of ctypes alone."""
    cases = {
        "import ctypes": "import ctypes",
        "import ort_interop": "import ctypes, ort_interop",
        "... and OrtApi with a slot": "import ctypes, ort_interop; ort_interop.OrtApi.CreateStatus",
    }
    runs = {name: process([sys.executable, "-c", code]) for name, code in cases.items()}
    times = medians(runs, rounds)
    base = times.pop("import ctypes")
    print(f"\nover 'import ctypes' ({1000 * base:.1f} ms)")
    for name, seconds in times.items():
        goal = "   goal <= +10 ms" if name == "import ort_interop" else ""
        print(f"{name:<28}{1000 * (seconds - base):>+8.1f} ms{goal}")


def measure_calls(rounds: int) -> None:
    """A call through the generated table against a bare function pointer of ctypes."""
    from support import ort_library_path

    sys.path.insert(0, str(PACKAGE))
    import ort_interop as ort

    library = ort.load(str(ort_library_path(ORT_VERSION)))
    holder = ctypes.POINTER(ort.OrtSessionOptions)()
    library.api.CreateSessionOptions(holder)
    options = holder.contents
    slot = ort.OrtApi.EnableCpuMemArena
    address = ctypes.c_void_p.from_address(ctypes.addressof(library.api) + slot.offset).value
    assert address
    bare = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)(address)
    pointer = ctypes.c_void_p(ctypes.addressof(options))
    table = library.api.EnableCpuMemArena

    number = 200_000
    timings = {
        "bare": lambda: bare(pointer),
        "bound": lambda: table(options),
        "table": lambda: library.api.EnableCpuMemArena(options),
    }
    results: dict[str, list[float]] = {name: [] for name in timings}
    for _ in range(rounds):
        for name, call in timings.items():
            results[name].append(timeit.timeit(call, number=number) / number * 1e9)
    library.api.ReleaseSessionOptions(options)
    base = statistics.median(results["bare"])
    print(f"\none call of EnableCpuMemArena, status checked, onnxruntime {ORT_VERSION}")
    for name, label in (
        ("bare", "bare function pointer"),
        ("bound", "slot, looked up once"),
        ("table", "library.api.slot"),
    ):
        value = statistics.median(results[name])
        goal = "   goal <= 1.5" if name != "bare" else ""
        print(f"{label:<28}{value:>8.0f} ns{value / base:>8.2f} x{goal}")


def main() -> None:
    """Measure everything and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--headers", type=Path)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--no-calls", action="store_true")
    given = parser.parse_args()
    files = headers(given.headers)
    print(f"headers: {files[0].parent.name}/ {', '.join(f.name for f in files)}\n")
    measure_tool(files, given.rounds)
    measure_import(3 * given.rounds)
    if not given.no_calls:
        measure_calls(given.rounds)


if __name__ == "__main__":
    main()
