"""What a frame costs through the Python layer, in C, and with onnxruntime's own bindings.

    python bench/frame_loop.py [--release 1.32.0] [--out report.json]

One frame: the stream waits for a semaphore, runs an Identity model on tensors made before, and
signals the semaphore.  All programs do the same number of frames, in rounds that alternate, and the
best round of each counts.  Three sizes: an image of 3 x 224 x 224 floats and one of 3 x 640 x 640, whose
copies the EP's thread makes beside the host's, and 64 floats, where there is nothing but overhead.

``run_with_iobinding`` of the ``onnxruntime`` package runs an equal model with the CPU's own kernel; it
has no streams, so its frame is the synchronous run alone, and its host works all the while.

Two times of a frame: what passes until the last frame is done, and what the host's thread works.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import resource
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "examples"), str(ROOT / "generated" / "python")]

from ep_build import Tree, run  # noqa: E402
from host_exports import SharedMemory, SharedSemaphore  # noqa: E402
from identity_model import identity_model  # noqa: E402
from ort_interop.runtime import Runtime  # noqa: E402
from support import GENERATED, fetch_wheel, ort_library_path  # noqa: E402

SHAPES = {"image": (3, 224, 224), "photo": (3, 640, 640), "tiny": (4, 16)}
FRAMES = {"image": 10_000, "photo": 1_000, "tiny": 10_000}
ROUNDS = 5
EVERY = 100
"""The host waits for the stream after so many frames, so that its queue stays short."""
GOAL_C = 1.25
"""The time that passes, of the layer to C."""
GOAL_BINDING = 1.0
"""The host's work, of the layer to run_with_iobinding."""


class Layer:
    """The loop through the layer: with ``Session.frame``, and with a call for each step."""

    def __init__(self, library: str, ep: str, shape: tuple[int, ...]) -> None:
        import ort_interop as ort

        half = -(-4 * count(shape) // 4096) * 4096
        self.runtime = Runtime.load(library)
        self.ep = self.runtime.register_library(ep, "host")
        (device,) = self.ep.devices
        importer = device.importer()
        assert importer is not None
        self.exported, self.counter = SharedMemory(2 * half), SharedSemaphore()
        memory = importer.import_memory(self.exported.fd, 2 * half)
        self.semaphore = importer.import_semaphore(self.counter.fd)
        x, y = memory.tensor(shape, "float32"), memory.tensor(shape, "float32", half)
        self.stream = device.stream()
        session = self.runtime.session(
            identity_model(shape),
            device,
            threads=1,
            optimization=ort.GraphOptimizationLevel.ORT_DISABLE_ALL,
        )
        tensors = {"input": x}, {"output": y}
        self.prepared = session.prepare(*tensors, stream=self.stream, synchronize=False)
        self.frame = session.frame(
            *tensors, stream=self.stream, wait=self.semaphore, signal=self.semaphore
        )
        self.value = 0

    def steps(self, frames: int) -> None:
        """A call for each of wait, run and signal."""
        semaphore, stream, prepared = self.semaphore, self.stream, self.prepared
        wait, signal = semaphore.wait, semaphore.signal
        for value in range(self.value, self.value + frames):
            wait(stream, value)
            prepared()
            signal(stream, value + 1)
            if value % EVERY == 0:
                semaphore.wait_on_host(value + 1)
        self.end(frames)

    def whole(self, frames: int) -> None:
        """One call for a frame."""
        frame, semaphore = self.frame, self.semaphore
        for value in range(self.value, self.value + frames):
            frame(value, value + 1)
            if value % EVERY == 0:
                semaphore.wait_on_host(value + 1)
        self.end(frames)

    def bare(self, frames: int) -> None:
        """The three calls of the bindings below the layer, which is the least that ctypes allows."""
        table = self.runtime.library.interop_api
        handles = [t._handle for t in (self.semaphore.importer, self.semaphore, self.stream)]
        wait, signal = table.WaitSemaphore, table.SignalSemaphore
        invoke = self.prepared._invoke
        for value in range(self.value, self.value + frames):
            wait(*handles, value)
            invoke()
            signal(*handles, value + 1)
            if value % EVERY == 0:
                self.semaphore.wait_on_host(value + 1)
        self.end(frames)

    def end(self, frames: int) -> None:
        """Wait for the stream."""
        self.value += frames
        self.semaphore.wait_on_host(self.value)


def count(shape: tuple[int, ...]) -> int:
    """The elements of a shape."""
    total = 1
    for size in shape:
        total *= size
    return total


def official(release: str, shape: tuple[int, ...]) -> Callable[[int], None]:
    """The loop of run_with_iobinding in the onnxruntime package."""
    sys.path.insert(0, str(fetch_wheel("onnxruntime", release)))
    import numpy
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session: Any = onnxruntime.InferenceSession(
        identity_model(shape), options, providers=["CPUExecutionProvider"]
    )
    binding = session.io_binding()
    x = onnxruntime.OrtValue.ortvalue_from_numpy(numpy.ones(shape, numpy.float32))
    y = onnxruntime.OrtValue.ortvalue_from_numpy(numpy.zeros(shape, numpy.float32))
    binding.bind_ortvalue_input("input", x)
    binding.bind_ortvalue_output("output", y)

    def loop(frames: int) -> None:
        call = session.run_with_iobinding
        for _ in range(frames):
            call(binding)

    return loop


def measured(loop: Callable[[int], None], frames: int) -> tuple[float, float]:
    """Nanoseconds a frame: those that passed, and those that this thread worked."""
    passed, used = time.perf_counter_ns(), time.thread_time_ns()
    loop(frames)
    return (
        (time.perf_counter_ns() - passed) / frames,
        (time.thread_time_ns() - used) / frames,
    )


def growth(layer: Layer, calls: int) -> dict[str, int]:
    """What a million calls leave behind: bytes of Python's, and pages of the process."""
    layer.whole(1000)
    gc.collect()
    tracemalloc.start()
    layer.whole(1000)
    gc.collect()
    before = tracemalloc.get_traced_memory()[0]
    layer.whole(calls // 100)
    gc.collect()
    python = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    resident = pages()
    layer.whole(calls)
    gc.collect()
    return {"calls": calls, "python_bytes": python, "resident_bytes": pages() - resident}


def pages() -> int:
    """The resident bytes of this process."""
    fields = Path("/proc/self/statm").read_text().split()
    return int(fields[1]) * resource.getpagesize()


def compare(name: str, library: str, ep: str, program: Path, release: str) -> dict[str, Any]:
    """One size: rounds of each loop, alternating; the best of each."""
    shape = SHAPES[name]
    layer = Layer(library, ep, shape)
    binding = official(release, shape)
    frames = FRAMES[name] // ROUNDS
    best: dict[str, tuple[float, float]] = {}

    def note(loop: str, figures: tuple[float, float]) -> None:
        known = best.get(loop, figures)
        best[loop] = min(known[0], figures[0]), min(known[1], figures[1])

    layer.whole(frames // 10)
    binding(frames // 10)
    for _ in range(ROUNDS):
        note("layer, one call a frame", measured(layer.whole, frames))
        note("layer, three calls a frame", measured(layer.steps, frames))
        note("ctypes alone", measured(layer.bare, frames))
        note("run_with_iobinding", measured(binding, frames))
        sizes = [str(size) for size in shape]
        out = run([str(program), library, ep, str(frames), "2", str(EVERY), *sizes])
        for line in out.splitlines():
            passed, used = map(float, line.split())
            note("C", (passed, used))
    report: dict[str, Any] = {
        "shape": shape,
        "nanoseconds a frame": {n: {"passed": p, "worked": w} for n, (p, w) in best.items()},
    }
    for loop in ("layer, one call a frame", "layer, three calls a frame", "ctypes alone"):
        for other in ("C", "run_with_iobinding"):
            passed, worked = (best[loop][at] / best[other][at] for at in (0, 1))
            report[f"{loop} / {other}"] = {"passed": passed, "worked": worked}
    if name == "tiny":
        report["growth"] = growth(layer, 1_000_000)
    return report


def main() -> int:
    """Measure both sizes, each in a process of its own; 1 if a goal is missed."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--release", default="1.32.0", help="which release of onnxruntime")
    parser.add_argument("--out", type=Path, help="write the figures to this JSON file")
    parser.add_argument("--one", nargs=3, help=argparse.SUPPRESS)
    given = parser.parse_args()
    library = str(ort_library_path(given.release))
    if given.one:
        name, ep, program = given.one
        print(json.dumps(compare(name, library, ep, Path(program), given.release)))
        return 0
    report: dict[str, Any] = {"release": given.release, "cpus": os.cpu_count()}
    with tempfile.TemporaryDirectory() as folder:
        tree = Tree(GENERATED)
        ep = str(tree.make(Path(folder) / "ep"))
        program = build(tree, Path(folder))
        for name in SHAPES:
            command = [sys.executable, __file__, "--release", given.release]
            done = run([*command, "--one", name, ep, str(program)])
            report[name] = json.loads(done)
    print(json.dumps(report, indent=2))
    if given.out is not None:
        given.out.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
    image = report["image"]
    to_c = image["layer, one call a frame / C"]["passed"]
    to_binding = image["layer, one call a frame / run_with_iobinding"]["worked"]
    met = to_c <= GOAL_C and to_binding < GOAL_BINDING
    return 0 if met else 1


def build(tree: Tree, folder: Path) -> Path:
    """The loop in C."""
    out = folder / "frame_loop"
    tests = ROOT / "tests" / "c"
    sources = [ROOT / "bench" / "frame_loop.c", tree.host / "host_interop.c"]
    sources += [tests / f"{name}.c" for name in ("client", "exporter_host")]
    includes = [f"-I{folder}" for folder in (tree.root / "include", tree.host, tests)]
    flags = ["-std=c11", "-O2", "-Wall", "-Wextra", "-Werror"]
    run(["gcc", *flags, *includes, *map(str, sources), "-o", str(out), "-ldl", "-pthread"])
    return out


if __name__ == "__main__":
    sys.exit(main())
