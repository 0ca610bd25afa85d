"""The layer on the GPU EPs, whose drivers are mocked: no host mapping, no observer, two vendors."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from ep_build import Tree
from gpu_build import BACKENDS, GpuEp
from layer_ep import build_folder
from layer_fixtures import library_fixture, need_module  # noqa: F401
from layer_rig import child
from support import GENERATED, need_tool

need_module("numpy")
PROGRAM = """
from layer_rig import *
from ort_interop.runtime import InUseError, NoHostAccessError, Tensor
import ctypes, json, numpy, threading, time

driver = ctypes.CDLL(sys.argv[3])
driver.mock_map.restype = ctypes.c_void_p
driver.mock_map.argtypes = (ctypes.c_int, ctypes.c_size_t)
for name in ("mock_export_memory", "mock_export_semaphore"):
    getattr(driver, name).restype = ctypes.c_int64
driver.mock_export_memory.argtypes = (ctypes.c_size_t,)
driver.mock_offence_count.restype = ctypes.c_size_t

class Fence:
    '''What the API that owns the semaphore would tell.'''
    def __init__(self, fd):
        self.counter = ctypes.c_uint64.from_address(driver.mock_map(fd, 8))
    @property
    def value(self):
        return self.counter.value
    def wait(self, value, timeout=None):
        end = time.monotonic() + (timeout or 60)
        while self.value < value and time.monotonic() < end:
            time.sleep(0.001)
        return self.value >= value

runtime = Runtime.load(sys.argv[1])
ep = runtime.register_library(sys.argv[2], "gpu.virtual")
device = ep.devices[0]
importer = device.importer()
memory_fd, fence_fd = driver.mock_export_memory(8192), driver.mock_export_semaphore()
memory = importer.import_memory(memory_fd, 8192)
x, y = memory.tensor(SHAPE, "float32"), memory.tensor(SHAPE, "float32", HALF)
report = {
    "device": [device.uuid is not None, device.hardware_type.name, device.memory.vendor_id],
    "dlpack": x.__dlpack_device__(),
    "access": [x.host_access().path.value, device.transfer_path().path.value],
}
try:
    x.numpy()
except NoHostAccessError:
    report["numpy"] = "refused"
values = numpy.arange(64, dtype=numpy.float32).reshape(SHAPE)
x.from_host(values)
report["round trip"] = bool((x.to_host() == values).all())

unseen = importer.import_semaphore(fence_fd)
report["value"] = unseen.value
fence = Fence(fence_fd)
semaphore = importer.import_semaphore(fence_fd, observer=fence)
stream = device.stream()
session = runtime.session(identity_model(SHAPE), device)
semaphore.wait(stream, 1)
session.run({"input": x}, {"output": y}, stream=stream, synchronize=False)
semaphore.signal(stream, 2)
report["pending"] = len(stream.pending)
try:
    stream.close()
except InUseError:
    report["stream"] = "refused"
try:
    y.__dlpack__(stream=7)
except BufferError:
    report["export"] = "refused"
fence.counter.value = 1
semaphore.wait_on_host(2, 30)
report["pending after"] = len(stream.pending)
report["right"] = bool((y.to_host() == values).all())
report["capsule"] = "dltensor" in repr(y.__dlpack__(stream=7))
unseen.wait(stream, 2)
report["unseen"] = len(stream.pending)
session.run({"input": x}, {"output": y}, stream=stream)
report["after a synchronous run"] = len(stream.pending)
with Tensor.empty(runtime, (4,), "float32", device) as own:
    own.from_host(numpy.ones(4, numpy.float32))
    report["own"] = own.to_host().tolist()
for thing in (session, stream, x, y, memory, semaphore, unseen, importer, ep, runtime):
    thing.close()
report["offences"] = driver.mock_offence_count()
print(json.dumps(report))
"""
VENDORS = {"cuda": (0x10DE, 2), "hip": (0x1002, 10)}
"""The vendor id of the memory, and DLPack's device type."""


@pytest.fixture(scope="module", params=BACKENDS)
def gpu(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> GpuEp:
    need_tool("make")
    with build_folder(tmp_path_factory, f"gpu-{request.param}") as build:
        return GpuEp(Tree(GENERATED).root, request.param, build).make()


def test_a_gpu_through_the_layer(library: str, gpu: GpuEp) -> None:
    (driver,) = (f for f in Path(gpu.build / "mock").iterdir() if ".so" in f.name)
    environment = {"LD_LIBRARY_PATH": str(driver.parent)}
    done = child(PROGRAM, library, str(gpu.library), str(driver), environment=environment)
    assert (done.returncode, done.stderr) == (0, "")
    vendor, kind = VENDORS[gpu.backend]
    assert json.loads(done.stdout) == {
        "device": [True, "OrtHardwareDeviceType_GPU", vendor],
        "dlpack": [kind, 0],
        "access": ["copy_tensors", "copy_tensors"],
        "numpy": "refused",
        "round trip": True,
        "value": None,
        "pending": 2,
        "stream": "refused",
        "export": "refused",
        "pending after": 0,
        "right": True,
        "capsule": True,
        "unseen": 1,
        "after a synchronous run": 0,
        "own": [1.0, 1.0, 1.0, 1.0],
        "offences": 0,
    }
