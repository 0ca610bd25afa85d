"""The examples of the Python layer, each run as a user would."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

from layer_fixtures import host_ep_fixture, library_fixture, need_module  # noqa: F401
from layer_rig import PACKAGE, RELEASE, ROOT, SHAPE, child, identity_model

need_module("numpy")


def example(name: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(Path(ROOT) / "examples" / name), *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


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
