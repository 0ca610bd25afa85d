"""The proof on a real GPU: that it builds, and what of it runs without one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from ep_build import PROGRAMS, ROOT, WARNINGS, run
from gpu_build import SHARED, make, render_gpu_tree, spec_of

BENCH = ROOT / "bench" / "gpu"
CUDA_INCLUDE = Path("/usr/local/cuda/include")

Need = Callable[[str], str]
Ort = Callable[[str], Path]


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory, need_tool: Need) -> Path:
    """The generated sources."""
    need_tool("make")
    need_tool("gcc")
    return render_gpu_tree(tmp_path_factory.mktemp("bench-gpu-tree"))


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_the_frame_loop_builds(tree: Path, need_tool: Need, tmp_path: Path, compiler: str) -> None:
    """Without a warning, with the vulkan backend's declarations in place of an SDK's."""
    need_tool(compiler)
    includes = [tree / "include", tree / "c" / "host", tree / "c" / "vulkan", PROGRAMS, BENCH]
    sources = [BENCH / "frames.c", BENCH / "vulkan_app.c", PROGRAMS / "client.c"]
    command = [compiler, *WARNINGS, *(f"-I{folder}" for folder in includes)]
    run([*command, *map(str, sources), "-o", str(tmp_path / "frames"), "-ldl"])


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
