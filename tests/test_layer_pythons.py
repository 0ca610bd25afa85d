"""The package on the other Pythons of the machine, without any package beside it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from layer_fixtures import host_ep_fixture, library_fixture  # noqa: F401
from layer_rig import ROOT

NEWEST = 16
PROGRAM = """
import sys
sys.path[:0] = [sys.argv[3]]
from layer_rig import *
import asyncio, ctypes, gc

class Source:
    def allocate(self, size, alignment):
        if size > 4096:
            raise ValueError("too much")
        return bytearray(size + alignment)
    def free(self, block):
        block.clear()

errors = []
sys.unraisablehook = lambda told: errors.append(told.exc_value)
made = Rig(sys.argv[1], sys.argv[2])
view, half = made.exported.view, SIZE // 2
view[:256] = bytes(range(256))
frame = made.session.frame(
    {"input": made.x}, {"output": made.y},
    stream=made.stream, wait=made.semaphore, signal=made.semaphore,
)
made.counter.signal(1)
frame(1, 2)
asyncio.run(asyncio.wait_for(made.semaphore.reached(2), 30))
assert bytes(view[half : half + 256]) == bytes(range(256))
with made.semaphore.on(made.stream) as fence:
    fence.wait(2)
    fence.signal(3)
made.semaphore.wait_on_host(3, 30)
frame.close()
with made.runtime.allocator(Source()) as allocator:
    allocator.register()
    with made.session_of("Relu", env_allocators=True) as session:
        output = session.run({"input": made.x})["output"]
        assert output.data_ptr in allocator.blocks
        output.close()
    try:
        allocator.tensor((4096,), "float32")
    except MemoryError as error:
        assert isinstance(error.__cause__, ValueError)
    else:
        raise AssertionError("an allocation that failed was not raised")
try:
    made.library.close()
except Exception as error:
    assert type(error).__name__ == "InUseError", error
try:
    made.runtime.library.api.ReleaseEnv(None, None)
except TypeError:
    pass
else:
    raise AssertionError("an argument too many was taken")
made.close()
gc.collect()
assert not errors, errors
print("well", *sys.version_info[:2])
"""


def pythons() -> dict[str, str]:
    """The interpreters of the machine by release, but for this one and what is too old."""
    found: dict[str, str] = {}
    names = [f"python3.{minor}" for minor in range(10, NEWEST)]
    places = [shutil.which(name) for name in names]
    root = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    places += sorted(str(path) for path in root.glob("versions/3.*/bin/python"))
    for place in filter(None, places):
        told = subprocess.run([place, "--version"], capture_output=True, text=True)
        release = re.match(r"Python (3\.(\d+))\.", told.stdout)
        if release and int(release[2]) >= 10 and int(release[2]) != sys.version_info[1]:
            found.setdefault(release[1], place)
    return found


def test_other_pythons(library: str, host_ep: str) -> None:
    """Which there are is the machine's affair, so none skips even with REQUIRE_ALL=1."""
    others = pythons()
    if not others:
        pytest.skip("the machine has no other Python from 3.10 on")
    for release, place in others.items():
        done = subprocess.run(
            [place, "-B", "-c", PROGRAM, library, host_ep, str(ROOT / "tests")],
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert (done.returncode, done.stderr) == (0, ""), (place, done.stderr)
        assert done.stdout.split() == ["well", *release.split(".")]


def test_this_python(library: str, host_ep: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, library, host_ep, str(ROOT / "tests")],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("well")
