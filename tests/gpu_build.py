"""Build a GPU's EP, the mock of its driver and the programs of ``tests/c`` that use both."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

from ep_build import PROGRAMS, ROOT, WARNINGS, run
from ort_interop_gen.render.format import format_all
from ort_interop_gen.render.pipeline import render
from ort_interop_gen.render.targets.c_header import CHeader
from ort_interop_gen.render.targets.ep_c import EpC
from ort_interop_gen.render.targets.mock_driver import MockDriver
from ort_interop_gen.spec import load_spec
from ort_interop_gen.spec.backend import BackendSpec

BACKENDS = ("cuda", "hip")
SHARED = ("client", "direct", "gpu_mock", "exporter_gpu")
MACROS = {
    "cuda": [
        '-DGPU_PREFIX="cu"',
        '-DGPU_POOL_ALLOC="cuMemAllocFromPoolAsync"',
        '-DGPU_POOL_FREE="cuMemFreeAsync"',
        "-DMOCK_CONTEXTS=1",
    ],
    "hip": [
        '-DGPU_PREFIX="hip"',
        '-DGPU_POOL_ALLOC="hipMallocFromPoolAsync"',
        '-DGPU_POOL_FREE="hipFreeAsync"',
        "-DMOCK_CONTEXTS=0",
        "-DGPU_ASKS_DRIVER",
    ],
}


def spec_of(backend: str) -> BackendSpec:
    """The backend's spec."""
    return load_spec(ROOT / "spec").backends[backend].spec


def render_gpu_tree(out: Path) -> Path:
    """Render the header, the EPs and the mocks from the project's own spec and templates."""
    model = load_spec(ROOT / "spec")
    outputs = render(model, [CHeader(), EpC(), MockDriver()], ROOT / "templates")
    for path, text in format_all(outputs, ROOT / "templates" / ".clang-format").items():
        file = out / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    return out


def make(folder: Path, build: Path, *variables: str) -> Path:
    """Run a Makefile of the tree; the library that it built."""
    run(["make", "--silent", "-j2", f"BUILD={build}", *variables], cwd=folder)
    (library,) = [f for f in build.iterdir() if ".so" in f.name or f.suffix == ".dll"]
    return library


@dataclass(frozen=True)
class GpuEp:
    """An EP, its mock and test programs, built with the same flags."""

    tree: Path
    backend: str
    build: Path
    flags: str = ""

    @property
    def library(self) -> Path:
        """The EP's library."""
        return self.build / "ep" / f"libort_interop_{self.backend}.so"

    def make(self) -> GpuEp:
        """Build the EP and the mock."""
        extra = f"EXTRA_CFLAGS={self.flags}"
        make(self.tree / "c" / self.backend, self.build / "ep", "CC=gcc", extra)
        make(self.tree / "c" / f"mock_{self.backend}", self.build / "mock", "CC=gcc", extra)
        return self

    def program(self, name: str) -> Path:
        """Compile a program of ``tests/c``, once."""
        out = self.build / name
        if out.exists():
            return out
        spec = spec_of(self.backend)
        assert spec.library is not None
        command = ["gcc", *WARNINGS, "-g", "-O1", *self.flags.split(), *MACROS[self.backend]]
        command += [
            f'-DEP_NAME_UNDER_TEST="{spec.ep.name}"',
            f"-DGPU_VENDOR_ID={spec.ep.vendor_id}",
        ]
        command += [f'-DMOCK_FILE="{spec.library.linux[0]}"']
        command += [f"-I{self.tree / 'include'}", f"-I{self.tree / 'c' / 'host'}", "-o", str(out)]
        sources = [str(PROGRAMS / f"{file}.c") for file in (name, *SHARED)]
        run([*command, *sources, "-ldl", "-pthread"])
        return out

    def run(self, name: str, ort: Path, *arguments: str, **environ: str) -> str:
        """Run a program on the mock; what it printed."""
        path = {"LD_LIBRARY_PATH": str(self.build / "mock")}
        command = [str(self.program(name)), str(ort), str(self.library), *arguments]
        return run(command, **{**path, **environ})


def compiles(command: list[str]) -> bool:
    """Whether a compiler accepts a source."""
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ, timeout=120)
    return done.returncode == 0
