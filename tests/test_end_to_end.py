"""The whole chain on real ONNX Runtime releases: one host EP binary, the generated bindings."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from support import GENERATED, ROOT, need_tool

EXAMPLE = ROOT / "examples" / "host_zero_copy.py"
RELEASES = ("1.24.1", "1.28.0", "1.32.0")
TOO_OLD = "1.23.2"
CHILD = """\
import json, sys
sys.path[:0] = [{examples!r}]
import host_zero_copy
print(json.dumps(vars(host_zero_copy.main({library!r}, {ep!r}))))
"""


@pytest.fixture(scope="module")
def host_ep(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The host EP, built once with CMake: the same binary serves every release below."""
    folder = tmp_path_factory.mktemp("host-ep")
    cmake = need_tool("cmake")
    configure = [cmake, "-S", str(GENERATED / "c" / "host"), "-B", str(folder)]
    for command in ([*configure, "-DCMAKE_BUILD_TYPE=Release"], [cmake, "--build", str(folder)]):
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
    (library,) = folder.glob("*.so")
    return library


def run_example(ep: Path, library: Path) -> subprocess.CompletedProcess[str]:
    """The example in a process of its own: a process can hold one ONNX Runtime only."""
    program = CHILD.format(examples=str(EXAMPLE.parent), library=str(library), ep=str(ep))
    command = [sys.executable, "-c", program]
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


@pytest.mark.parametrize("release", RELEASES)
def test_zero_copy_with_semaphores(
    release: str, host_ep: Path, ort_library: Callable[[str], Path]
) -> None:
    done = run_example(host_ep, ort_library(release))
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    report = json.loads(done.stdout)
    assert report["version"] == release
    assert report["api_version"] == min(int(release.split(".")[1]), 30)
    assert report["ways"] == ["Run", "IoBinding"]
    for way in report["ways"]:
        # The producer signals late: the run was queued behind the wait, and still used its data.
        assert report["run_returned_early"][way], way
        assert report["output_right"][way], way
        assert report["kernel_in_place"][way], way
    assert report["tensors_in_region"]
    assert report["transfers"] == 0


def test_the_ep_knows_its_own_path(
    host_ep: Path, ort_library: Callable[[str], Path], tmp_path: Path
) -> None:
    """Registered through a link, the EP still finds the folder that it really lies in."""
    link = tmp_path / "linked.so"
    link.symlink_to(host_ep)
    program = f"""
import sys
from contextlib import ExitStack
sys.path[:0] = [{str(EXAMPLE.parent)!r}]
import host_zero_copy
with ExitStack() as stack:
    program = host_zero_copy.Program({str(ort_library(RELEASES[-1]))!r}, {str(link)!r}, stack)
    metadata = program.api.EpDevice_EpMetadata(program.device).contents
    print(program.api.GetKeyValue(metadata, b"interop_library_path").decode())
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60
    )
    assert done.stdout.strip() == str(host_ep.resolve()), done.stderr


def test_a_release_before_the_interop_api_is_refused(
    host_ep: Path, ort_library: Callable[[str], Path]
) -> None:
    library = ort_library(TOO_OLD)
    command = [sys.executable, str(EXAMPLE), str(host_ep), "--library", str(library)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    for part in ("error: ", "1.24", TOO_OLD, str(library)):
        assert part in line
    assert done.stdout == ""


def test_the_ep_itself_refuses_an_older_host(
    host_ep: Path, ort_library: Callable[[str], Path]
) -> None:
    """A client of 1.23 that registers the EP gets a status with both versions, and no crash."""
    program = f"""
import ctypes, sys
sys.path[:0] = [{str(GENERATED / "python")!r}]
import ort_interop as ort
lib = ort.load({str(ort_library(TOO_OLD))!r}, floor=23, api_version=23)
env = ctypes.POINTER(ort.OrtEnv)()
lib.api.CreateEnv(ort.OrtLoggingLevel.ORT_LOGGING_LEVEL_WARNING, b"old", env)
try:
    lib.api.RegisterExecutionProviderLibrary(env.contents, b"host", {str(host_ep)!r}.encode())
except ort.OrtError as error:
    print(error)
lib.api.ReleaseEnv(env.contents)
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    assert "1.24" in done.stdout and TOO_OLD in done.stdout
    assert done.stderr == ""
