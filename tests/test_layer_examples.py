"""The examples of the Python layer, each run as a user would."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

from ep_build import run
from layer_fixtures import host_ep_fixture, library_fixture, need_module  # noqa: F401
from layer_rig import PACKAGE, RELEASE, ROOT, SHAPE, child, identity_model
from support import GENERATED, missing, need_tool

need_module("numpy")

LAVAPIPE = Path("/usr/share/vulkan/icd.d/lvp_icd.x86_64.json")


def example(name: str, *arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(Path(ROOT) / "examples" / name), *arguments]
    return subprocess.run(
        command, capture_output=True, text=True, timeout=120, env={**os.environ, **environ}
    )


def test_frame_loop(library: str, host_ep: str) -> None:
    done = example("frame_loop.py", host_ep, "--library", library, "--frames", "300")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"Report(version='{RELEASE}', frames=300, wrong=0, seconds=")


def test_dlpack_arrays(library: str, host_ep: str) -> None:
    done = example("dlpack_arrays.py", host_ep, "--library", library)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout in {
        "{'numpy': 32.0, 'torch': None}\n",
        "{'numpy': 32.0, 'torch': 32.0}\n",
    }


def test_adapter_matching(library: str, host_ep: str) -> None:
    done = example("adapter_matching.py", host_ep, "--library", library)
    assert (done.returncode, done.stderr) == (0, "")
    cpu, host = sorted(done.stdout.splitlines())
    assert cpu.startswith("CPUExecutionProvider (LUID None") and cpu.endswith("imports nothing")
    assert "by 'map'; imports MEMORY_OPAQUE_FD" in host
    assert host.endswith("VK_TIMELINE_SEMAPHORE_OPAQUE_FD")
    uuid = host.partition("UUID ")[2].partition(")")[0]
    found = example("adapter_matching.py", host_ep, "--library", library, "--uuid", uuid)
    assert found.stdout.splitlines() == [host]
    none = example("adapter_matching.py", host_ep, "--library", library, "--luid", "7")
    assert none.returncode == 1 and none.stderr.startswith("error: 0 devices have")


def test_vulkan_to_ep(library: str, tmp_path: Path) -> None:
    """Vulkan's own memory, with Mesa's CPU driver as the only device; and with no device."""
    need_tool("make")
    if not LAVAPIPE.is_file():
        missing("lavapipe (mesa-vulkan-drivers) is not installed")
    build = tmp_path / "ep"
    run(["make", "--silent", "-j2", f"BUILD={build}"], cwd=GENERATED / "c" / "vulkan")
    (ep,) = build.glob("*.so")

    def on(driver: Path) -> subprocess.CompletedProcess[str]:
        drivers = {"VK_ICD_FILENAMES": str(driver), "VK_DRIVER_FILES": str(driver)}
        return example("vulkan_to_ep.py", str(ep), "--library", library, **drivers)

    done = on(LAVAPIPE)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"Report(version='{RELEASE}', device='llvmpipe ")
    assert done.stdout.endswith(", timeline_by_fd=False, frames=4, wrong=0)\n")
    none = on(tmp_path / "none.json")
    assert (none.returncode, none.stdout) == (1, "")
    assert none.stderr == "error: the EP found no Vulkan device\n"


def test_the_documentations_program_runs(library: str, host_ep: str, tmp_path: Path) -> None:
    text = (Path(ROOT) / "docs" / "python.md").read_text("utf-8")
    program = text.partition("```python\n")[2].partition("```")[0]
    assert (
        textwrap.indent(program, "    ")
        in (PACKAGE / "ort_interop/runtime/__init__.py").read_text()
    )
    model = tmp_path / "model.onnx"
    model.write_bytes(identity_model(SHAPE))
    for placeholder, real in (("/path/to/ep.so", host_ep), ("model.onnx", str(model))):
        assert program.count(placeholder) == 1
        program = program.replace(placeholder, real)
    begin = """
from layer_rig import *
memory, fence = SharedMemory(8192), SharedSemaphore(1)
memory_fd, fence_fd = memory.fd, fence.fd
exported = memory.view
exported[:256] = bytes(range(256))
"""
    end = "\nprint(exported[4096:4352] == bytes(range(256)))"
    done = child(begin + program + end, environment={"ORT_INTEROP_LIBRARY": library})
    assert (done.returncode, done.stdout, done.stderr) == (0, "True\n", "")


def test_the_documentations_allocator_works(library: str, tmp_path: Path) -> None:
    text = (Path(ROOT) / "docs" / "python.md").read_text("utf-8")
    program = text.split("```python\n")[2].partition("```")[0]
    model = tmp_path / "model.onnx"
    model.write_bytes(identity_model(SHAPE, operators=("Relu",)))
    assert program.count("model.onnx") == 1
    begin = "from layer_rig import *\nruntime = Runtime.load(sys.argv[1])\n"
    end = """
    print(y.data_ptr in allocator.blocks, x.data_ptr in allocator.blocks)
    session.close(), x.close(), y.close()
print(allocator.closed)
"""
    done = child(begin + program.replace("model.onnx", str(model)) + end, library)
    assert (done.returncode, done.stdout, done.stderr) == (0, "True True\nTrue\n", "")
