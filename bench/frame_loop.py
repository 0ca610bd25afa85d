"""What a frame costs through the Python layer, in C, and with onnxruntime's own bindings.

    python bench/frame_loop.py [--release 1.32.0] [--out report.json]

One frame: the stream waits for a semaphore, runs a model on tensors made before, and signals the
semaphore.  All programs do the same number of frames, in rounds that alternate, and the best round of
each counts.  The models:

- ``tiny`` and ``icon``: an Identity of 64 and of 3 x 64 x 64 floats, on the EP, with next to nothing to
  do but the calls themselves;
- ``image`` and ``photo``: an Identity of 3 x 224 x 224 and of 3 x 640 x 640 floats, which the EP's
  thread copies beside the host's;
- ``net``: two convolutions of 3 x 64 x 64 floats on the CPU between Identities on the EP, a small model
  with work of its own.  A run with nodes on the CPU finishes before it returns, in C as well.

``run_with_iobinding`` of the ``onnxruntime`` package runs the same model in two ways: with the CPU's own
kernels, where it has no streams, semaphores or second thread to serve, and on the same EP, where it
copies to and from the host, since the package has no way to import memory.

Two times of a frame: what passes until the last frame is done, and what the host's thread works.
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import json
import os
import resource
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "examples"), str(ROOT / "generated" / "python")]

from conv_model import conv_model  # noqa: E402
from ep_build import Tree, run  # noqa: E402
from host_exports import SharedMemory, SharedSemaphore  # noqa: E402
from identity_model import identity_model  # noqa: E402
from ort_interop.runtime import Runtime  # noqa: E402
from support import GENERATED, fetch_wheel, ort_library_path  # noqa: E402

FLOATS = {
    "tiny": (4, 16),
    "icon": (3, 64, 64),
    "image": (3, 224, 224),
    "photo": (3, 640, 640),
    "net": (1, 3, 64, 64),
}
FRAMES = {"tiny": 10_000, "icon": 10_000, "image": 10_000, "photo": 1_000, "net": 2_000}
ROUNDS = 9
EP_NAME = "HostInteropExecutionProvider"
EVERY = 100
"""The host waits for the stream after so many frames, so that its queue stays short."""
GOALS_C = {"image": 1.25, "photo": 1.25, "net": 1.25}
"""The most time that may pass through the layer, in C's; not where the calls are all there is."""
GOALS_SAME_EP = {"tiny": 1.0, "icon": 1.0, "image": 1.0, "photo": 1.0}
"""The same in that of run_with_iobinding on the same EP; not where it works on the CPU as well."""
WHOLE = "layer, one call a frame"
STEPS = "layer, three calls a frame"
BARE = "ctypes alone"
BINDING = "run_with_iobinding, CPU"
SAME_EP = "run_with_iobinding, same EP"


def model_of(name: str) -> bytes:
    """The model of that name."""
    return conv_model(FLOATS[name]) if name == "net" else identity_model(FLOATS[name])


class Layer:
    """The loop through the layer: with ``Session.frame``, and with a call for each step."""

    def __init__(self, library: str, ep: str, name: str) -> None:
        import ort_interop as ort

        shape = FLOATS[name]
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
            model_of(name),
            device,
            threads=1,
            optimization=ort.GraphOptimizationLevel.ORT_DISABLE_ALL,
        )
        tensors = {"input": x}, {"output": y}
        queued = name != "net"
        self.prepared = session.prepare(*tensors, stream=self.stream, synchronize=not queued)
        self.fence = self.semaphore.on(self.stream)
        self.loops = {STEPS: self.steps, BARE: self.bare}
        if queued:
            self.loops[WHOLE] = self.whole
            self.frame = session.frame(
                *tensors, stream=self.stream, wait=self.semaphore, signal=self.semaphore
            )
        api, run = self.runtime.library.api, self.prepared
        values = ctypes.POINTER(ort.OrtValue)
        names = [(ctypes.c_char_p * 1)(text) for text in (b"input", b"output")]
        arrays = [(values * 1)(ctypes.pointer(tensor._handle)) for tensor in (x, y)]
        self.invoke = partial(
            api.Run, session._handle, run._handle, names[0], arrays[0], 1, names[1], 1, arrays[1]
        )
        self.value = 0

    def steps(self, frames: int) -> None:
        """A call for each of wait, run and signal."""
        semaphore, prepared = self.semaphore, self.prepared
        wait, signal = self.fence.wait, self.fence.signal
        for value in range(self.value, self.value + frames):
            wait(value)
            prepared()
            signal(value + 1)
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
        """The three calls with the bindings below the layer: typed arguments, and no guards."""
        table = self.runtime.library.interop_api
        handles = [t._handle for t in (self.semaphore.importer, self.semaphore, self.stream)]
        wait, signal = table.WaitSemaphore, table.SignalSemaphore
        invoke = self.invoke
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


def official(release: str, name: str, ep: str = "") -> Callable[[int], None]:
    """The loop of run_with_iobinding in the onnxruntime package, on the CPU or on the EP."""
    folder = str(fetch_wheel("onnxruntime", release))
    if folder not in sys.path:
        sys.path.insert(0, folder)
    import numpy
    import onnxruntime

    options: Any = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    if ep:
        onnxruntime.register_execution_provider_library("host", ep)
        devices = [d for d in onnxruntime.get_ep_devices() if d.ep_name == EP_NAME]
        options.add_provider_for_devices(devices, {})
        session: Any = onnxruntime.InferenceSession(model_of(name), options)
    else:
        providers = ["CPUExecutionProvider"]
        session = onnxruntime.InferenceSession(model_of(name), options, providers=providers)
    binding = session.io_binding()
    x = onnxruntime.OrtValue.ortvalue_from_numpy(numpy.ones(FLOATS[name], numpy.float32))
    y = onnxruntime.OrtValue.ortvalue_from_numpy(numpy.zeros(FLOATS[name], numpy.float32))
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
    """One model: rounds of each loop, alternating; the best of each."""
    layer = Layer(library, ep, name)
    loops = {
        **layer.loops,
        BINDING: official(release, name),
        SAME_EP: official(release, name, ep),
    }
    frames = FRAMES[name] // ROUNDS
    best: dict[str, tuple[float, float]] = {}

    def note(loop: str, figures: tuple[float, float]) -> None:
        known = best.get(loop, figures)
        best[loop] = min(known[0], figures[0]), min(known[1], figures[1])

    mode = "finished" if name == "net" else "queued"
    with tempfile.NamedTemporaryFile(suffix=".onnx") as model:
        model.write(model_of(name))
        model.flush()
        command = [str(program), library, ep, model.name, mode, str(frames), "2", str(EVERY)]
        command += [str(size) for size in FLOATS[name]]
        for loop in loops.values():
            loop(frames // 10)
        for _ in range(ROUNDS):
            for label, loop in loops.items():
                note(label, measured(loop, frames))
            for line in run(command).splitlines():
                passed, used = map(float, line.split())
                note("C", (passed, used))
    report: dict[str, Any] = {
        "shape": FLOATS[name],
        "nanoseconds a frame": {
            label: {"passed": passed, "worked": worked} for label, (passed, worked) in best.items()
        },
    }
    for label in layer.loops:
        for other in ("C", BINDING, SAME_EP):
            passed, worked = (best[label][at] / best[other][at] for at in (0, 1))
            report[f"{label} / {other}"] = {"passed": passed, "worked": worked}
    if name == "tiny":
        report["growth"] = growth(layer, 1_000_000)
    return report


def table(report: dict[str, Any]) -> str:
    """The figures as a table: a model a row."""
    rows = [
        "| model | C, us | layer, us | layer / C | ctypes alone / C | layer / run_with_iobinding, CPU |"
    ]
    rows[0] += " same, host's work | layer / run_with_iobinding, same EP |"
    rows.append("| --- " * 8 + "|")
    for name in FLOATS:
        found = report[name]
        best = WHOLE if f"{WHOLE} / C" in found else STEPS
        times = found["nanoseconds a frame"]
        cells = [name, f"{times['C']['passed'] / 1000:.1f}", f"{times[best]['passed'] / 1000:.1f}"]
        cells += [f"{found[f'{label} / C']['passed']:.2f}" for label in (best, BARE)]
        to_binding = found[f"{best} / {BINDING}"]
        cells += [f"{to_binding['passed']:.2f}", f"{to_binding['worked']:.2f}"]
        cells.append(f"{found[f'{best} / {SAME_EP}']['passed']:.2f}")
        rows.append(f"| {' | '.join(cells)} |")
    return "\n".join(rows)


def main() -> int:
    """Measure all models, each in a process of its own; 1 if a goal is missed."""
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
        for name in FLOATS:
            command = [sys.executable, __file__, "--release", given.release]
            done = run([*command, "--one", name, ep, str(program)])
            report[name] = json.loads(done)
    print(table(report))
    print("a million frames leave:", report["tiny"]["growth"])
    if given.out is not None:
        given.out.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
    missed = []
    for other, goals in (("C", GOALS_C), (SAME_EP, GOALS_SAME_EP)):
        for name, goal in goals.items():
            found = report[name]
            best = WHOLE if f"{WHOLE} / C" in found else STEPS
            ratio = found[f"{best} / {other}"]["passed"]
            if ratio > goal:
                missed.append(f"{name}: {ratio:.2f} times the time of {other}, more than {goal}")
    print("\n".join(missed) or "goals met")
    return 1 if missed else 0


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
