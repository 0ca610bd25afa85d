"""A change in the spec changes what the layer does, through the generator and nothing else."""

from __future__ import annotations

import shutil
from pathlib import Path

from layer_fixtures import host_ep_fixture, library_fixture  # noqa: F401
from layer_rig import ROOT, child
from ort_interop_gen.render.pipeline import render
from ort_interop_gen.render.targets.python import Python
from ort_interop_gen.spec import load_spec

PROGRAM = """
import sys
sys.path.insert(0, sys.argv[3])
import ort_interop.runtime
from layer_rig import *
import ort_interop.runtime as layer
assert layer.__file__.startswith(sys.argv[4]), layer.__file__
runtime = Runtime.load(sys.argv[1])
ep = runtime.register_library(sys.argv[2], "host")
(device,) = ep.devices
importer, stream = device.importer(), device.stream()
with SharedMemory(SIZE) as exported, SharedSemaphore() as counter:
    memory = importer.import_memory(exported.fd, SIZE)
    semaphore = importer.import_semaphore(counter.fd)
semaphore.signal(stream, 1)
print(len(stream._used))
try:
    importer.close()
    print("closed")
except layer.InUseError as error:
    print(error)
try:
    cpu = runtime.device("CPUExecutionProvider").importer()
    print(cpu)
except ort.OrtError as error:
    print(type(error).__name__)
"""


def behaviour(tmp_path: Path, library: str, ep: str, *edits: tuple[str, str]) -> list[str]:
    """What the program prints with a package that is generated from an edited spec."""
    spec = tmp_path / "spec"
    shutil.copytree(ROOT / "spec", spec)
    file = spec / "interop_api.yaml"
    text = file.read_text("utf-8")
    for old, new in edits:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    file.write_text(text, "utf-8")
    for output in render(load_spec(spec), [Python()], ROOT / "templates"):
        path = tmp_path / "out" / output.path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(output.text, "utf-8")
    package = tmp_path / "out" / "python"
    # The rig puts the generated package first on the path; this one is imported by then.
    done = child(PROGRAM, library, ep, str(package), str(package))
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.splitlines()


def test_the_spec_as_it_is(tmp_path: Path, library: str, host_ep: str) -> None:
    assert behaviour(tmp_path, library, host_ep) == ["1", "closed", "None"]


def test_an_edited_spec(tmp_path: Path, library: str, host_ep: str) -> None:
    """Memory that must not outlive its importer; signals that borrow nothing; null that is no answer."""
    handle = "released_by: OrtInteropApi.ReleaseExternalMemoryHandle\n    must_not_outlive: ["
    loan = (
        "        borrows:\n          - {param: semaphore_handle, until: the signal has happened}\n"
    )
    answer = "        unsupported: null_result\n"
    printed = behaviour(
        tmp_path,
        library,
        host_ep,
        (handle, handle + "OrtExternalResourceImporter, "),
        (loan, ""),
        (answer, ""),
    )
    pending, importer, cpu = printed
    assert pending == "0"
    assert importer.startswith(
        "importer of HostInteropExecutionProvider cannot be closed: in use by"
    )
    assert cpu == "OrtFailError"
