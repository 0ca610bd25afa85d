"""The proof on a real GPU: that it builds, and what of it runs without one."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from ep_build import PROGRAMS, ROOT, WARNINGS, lavapipe, run
from gpu_build import SHARED, make, render_gpu_tree, spec_of

BENCH = ROOT / "bench" / "gpu"
FRAMES = ("frames", "vulkan_app", "loan")
CUDA_INCLUDE = Path("/usr/local/cuda/include")

Need = Callable[[str], str]
Ort = Callable[[str], Path]


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory, need_tool: Need) -> Path:
    """The generated sources."""
    need_tool("make")
    need_tool("gcc")
    return render_gpu_tree(tmp_path_factory.mktemp("bench-gpu-tree"))


def frames(tree: Path, build: Path, compiler: str = "gcc") -> Path:
    """Compile the frame loop."""
    includes = [tree / "include", tree / "c" / "host", tree / "c" / "vulkan", PROGRAMS, BENCH]
    sources = [*(BENCH / f"{name}.c" for name in FRAMES), PROGRAMS / "client.c"]
    command = [compiler, *WARNINGS, *(f"-I{folder}" for folder in includes)]
    command += [f'-DEP_NAME_UNDER_TEST="{spec_of("vulkan").ep.name}"']
    run([*command, *map(str, sources), "-o", str(build / "frames"), "-ldl"])
    return build / "frames"


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_the_frame_loop_builds(tree: Path, need_tool: Need, tmp_path: Path, compiler: str) -> None:
    """Without a warning, with the vulkan backend's declarations in place of an SDK's."""
    need_tool(compiler)
    frames(tree, tmp_path, compiler)


def lend(program: Path, ort: Path, ep: Path, **environ: str) -> tuple[int, str, str]:
    """Run frames with the EP on the application's device; exit status, rows, and what it said."""
    name = spec_of("vulkan").ep.name
    command = [str(program), str(ort), str(ep), name, "20", "65536", "0", "1", "1"]
    done = subprocess.run(
        command, env={**os.environ, **environ}, capture_output=True, text=True, timeout=300
    )
    return done.returncode, done.stdout, done.stderr


def row(out: str, what: str) -> float:
    """A value of the table."""
    (value,) = re.findall(rf"^\| {re.escape(what)} +\| +(\S+) \|$", out, re.MULTILINE)
    return float(value)


def test_lent_device_on_lavapipe(tree: Path, ort_library: Ort, tmp_path: Path) -> None:
    """A real driver: the part without semaphores, which lavapipe does not export."""
    ep = make(tree / "c" / "vulkan", tmp_path / "ep", "CC=gcc")
    status, out, said = lend(frames(tree, tmp_path), ort_library("1.32.0"), ep, **lavapipe())
    assert (status, row(out, "lent device: those with the right data")) == (3, 3), out + said
    assert "exports no timeline semaphores" in said
    assert row(out, "descriptors left over") == 0


def test_lent_device_and_queue(tree: Path, ort_library: Ort, tmp_path: Path) -> None:
    """All of it on the mock, with an application's calls added: the lent queue never waits.

    Where a wait is put into the queue at once, the streams that share it are stuck.
    """
    source = PROGRAMS / "vulkan_mock_app.c"
    wrapped = sorted(set(re.findall(r"__wrap_(\w+)", source.read_text())))
    link = " ".join([str(source), *(f"-Wl,--wrap={name}" for name in wrapped)])
    make(tree / "c" / "mock_vulkan", tmp_path / "mock", "CC=gcc", f"LDFLAGS={link}")
    program, ort = frames(tree, tmp_path), ort_library("1.32.0")
    environ = {"LD_LIBRARY_PATH": str(tmp_path / "mock")}
    ep = make(tree / "c" / "vulkan", tmp_path / "ep", "CC=gcc")
    status, out, said = lend(program, ort, ep, **environ)
    assert status == 0, out + said
    assert row(out, "frames with the right data at both ends") == 20
    assert row(out, "the EP's copies from or to the host") == 0

    queues = tree / "c" / "vulkan" / "vulkan_queue.c"
    text = queues.read_text()
    assert "!stream->queue->shared ||" in text
    queues.write_text(text.replace("!stream->queue->shared ||", "true ||"))
    try:
        ep = make(tree / "c" / "vulkan", tmp_path / "wrong", "CC=gcc")
    finally:
        queues.write_text(text)
    status, out, said = lend(program, ort, ep, **environ)
    assert status == 1, out
    assert "the lent queue is stuck" in said


def test_hip_forwarded_to_cuda(tree: Path, ort_library: Ort, tmp_path: Path) -> None:
    """The hip EP on the forwarder, which here ends in the mock of CUDA."""
    if not (CUDA_INCLUDE / "cuda.h").is_file():
        pytest.skip("cuda.h is not installed: it comes with NVIDIA's toolkit only")
    hip = spec_of("hip")
    assert hip.library is not None
    mocks = tmp_path / "mocks"
    mock = make(tree / "c" / "mock_cuda", mocks, "CC=gcc")
    includes = [f"-I{tree / 'c' / 'hip'}", f"-I{tree / 'include'}", "-isystem", str(CUDA_INCLUDE)]
    shared = ["gcc", *WARNINGS, "-shared", "-fPIC", *includes, str(BENCH / "hip_on_cuda.c")]
    run([*shared, "-o", str(mocks / hip.library.linux[0]), "-ldl"])
    library = make(tree / "c" / "hip", tmp_path / "ep", "CC=gcc")
    program = tmp_path / "host_run"
    macros = [f'-DEP_NAME_UNDER_TEST="{hip.ep.name}"', f'-DMOCK_FILE="{mock.name}"']
    macros += ["-DMOCK_CONTEXTS=1", "-DMOCK_CONTEXTS_LEFT=1"]
    folders = [f"-I{tree / 'include'}", f"-I{tree / 'c' / 'host'}"]
    sources = [str(PROGRAMS / f"{name}.c") for name in ("host_run", *SHARED)]
    run(
        [
            "gcc",
            *WARNINGS,
            "-g",
            *macros,
            *folders,
            *sources,
            "-o",
            str(program),
            "-ldl",
            "-pthread",
        ]
    )
    out = run([str(program), str(ort_library("1.32.0")), str(library)], LD_LIBRARY_PATH=str(mocks))
    assert out.splitlines()[-1] == "passed 9"
