"""What the tests of the Python layer share, in the tests' process and in children of it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "generated" / "python"
PLACES = (PACKAGE, ROOT / "examples", ROOT / "bench")
sys.path[:0] = [p for p in map(str, PLACES) if p not in sys.path]

import conv_model  # noqa: E402, F401
import identity_model as onnx  # noqa: E402, F401
import ort_interop as ort  # noqa: E402
from host_exports import SharedMemory, SharedSemaphore  # noqa: E402
from identity_model import identity_model  # noqa: E402
from ort_interop.runtime import Importer, Runtime, Semaphore, Session  # noqa: E402

NEWEST = "1.32.0"
RELEASE = os.environ.get("LAYER_RELEASE", NEWEST)
"""The release of ONNX Runtime that the tests run on; the matrix sets it."""
SHAPE = (4, 16)
SIZE = 8192
HALF = 4096


def minor(release: str = RELEASE) -> int:
    return int(release.split(".")[1])


class Rig:
    """A runtime with the host EP, and memory, semaphore, stream and session on its device."""

    def __init__(self, library: str, ep: str, *, size: int = SIZE, shape: Any = SHAPE) -> None:
        self.shape = shape
        self.runtime = Runtime.load(library)
        self.library = self.runtime.register_library(ep, "host")
        (self.device,) = self.library.devices
        importer = self.device.importer()
        assert importer is not None
        self.importer: Importer = importer
        self.exported = SharedMemory(size)
        self.counter = SharedSemaphore()
        self.memory = importer.import_memory(self.exported.fd, size)
        self.semaphore: Semaphore = importer.import_semaphore(self.counter.fd)
        self.x = self.memory.tensor(shape, "float32")
        self.y = self.memory.tensor(shape, "float32", size // 2)
        self.stream = self.device.stream()
        self.session = self.session_of("Identity")

    def session_of(self, *operators: str, device: Any = "own", **options: Any) -> Session:
        """A session of a chain of operators."""
        disabled = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
        where = self.device if device == "own" else device
        model = identity_model(self.shape, operators=operators)
        return self.runtime.session(model, where, optimization=disabled, threads=1, **options)

    @property
    def parts(self) -> dict[str, Any]:
        """Everything that can be closed, by name."""
        kinds = ("runtime", "library", "importer", "memory", "semaphore", "x", "y")
        return {name: getattr(self, name) for name in (*kinds, "stream", "session")}

    def close(self) -> None:
        """Close everything; raises if anything else is left of the library."""
        for name in ("session", "x", "y", "memory", "semaphore", "stream", "importer"):
            getattr(self, name).close()
        self.library.close()
        self.runtime.close()
        self.exported.close()
        self.counter.close()


@contextmanager
def rig(library: str, ep: str, **options: Any) -> Iterator[Rig]:
    """A rig for a block; what the block leaves open of the library is an error."""
    made = Rig(library, ep, **options)
    yield made
    made.close()


def child(
    program: str,
    *arguments: str,
    timeout: float = 120,
    environment: dict[str, str] | None = None,
) -> subprocess.CompletedProcess[str]:
    """Run a program that may crash in a process of its own; it can import this module."""
    start = f"import sys; sys.path[:0] = [{str(ROOT / 'tests')!r}]\n"
    return subprocess.run(
        [sys.executable, "-X", "faulthandler", "-c", start + program, *arguments],
        capture_output=True,
        text=True,
        timeout=timeout,
        env={**os.environ, **(environment or {})},
    )
