"""Where can I read this tensor: by mapping, by the EP's copies, or not at all."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from layer_ep import build_folder, variant
from layer_fixtures import host_ep_fixture, library_fixture, need_module  # noqa: F401
from layer_rig import HALF, Rig
from ort_interop.runtime import NoHostAccessError, Tensor

numpy = need_module("numpy")
NOT_MAPPED = ("c/host/host.c", "info->host_access = true;", "info->host_access = false;")
"""What makes the host EP one whose memory the host may not touch."""
NO_ALLOCATOR = (
    "c/common/ep_devices.c",
    "ep_api->EpDevice_AddAllocatorInfo(ep_device, device->memory_info)",
    "NULL",
)
"""What makes it one that offers no allocator, and with it promises no copies."""


@pytest.fixture(scope="module")
def copying_ep(tmp_path_factory: pytest.TempPathFactory) -> str:
    with build_folder(tmp_path_factory, "copying") as folder:
        return variant(folder, NOT_MAPPED)


@pytest.fixture(scope="module")
def silent_ep(tmp_path_factory: pytest.TempPathFactory) -> str:
    with build_folder(tmp_path_factory, "silent") as folder:
        return variant(folder, NOT_MAPPED, NO_ALLOCATOR)


@pytest.fixture
def copying(library: str, copying_ep: str) -> Iterator[Rig]:
    made = Rig(library, copying_ep)
    yield made
    made.close()


def test_a_device_with_an_allocator_copies(copying: Rig) -> None:
    for answer in (copying.x.host_access(), copying.device.transfer_path()):
        assert answer.path == "copy_tensors"
        assert "allocator of its own" in answer.reason
        assert answer.facts["default allocator"] == "OrtMemoryInfoDeviceType_NPU"
        assert answer.facts["EP metadata interop_host_access"] == "none"
    values = numpy.arange(64, dtype=numpy.float32).reshape(copying.shape)
    copying.x.from_host(values)
    assert bytes(copying.exported.view[:256]) == values.tobytes()
    copying.session.run({"input": copying.x}, {"output": copying.y})
    numpy.testing.assert_array_equal(copying.y.to_host(), values)
    assert bytes(copying.exported.view[HALF : HALF + 256]) == values.tobytes()


def test_what_copies_is_not_mapped(copying: Rig) -> None:
    with pytest.raises(NoHostAccessError, match="use to_host"):
        copying.x.numpy()
    with pytest.raises(BufferError, match="no device type"):
        copying.x.__dlpack_device__()


def test_a_tensor_of_the_devices_own_memory(copying: Rig) -> None:
    with Tensor.empty(copying.runtime, (3,), "int32", copying.device) as tensor:
        assert tensor.host_access().path == "copy_tensors" and not tensor.memory.is_cpu
        tensor.from_host(numpy.array([1, 2, 3], numpy.int32))
        assert tensor.to_host().tolist() == [1, 2, 3]


def test_packed_elements_are_copied_too(copying: Rig) -> None:
    ml_dtypes = need_module("ml_dtypes")
    with copying.memory.tensor((3,), "int4") as tensor:
        tensor.from_host(numpy.array([1, -2, 7], ml_dtypes.int4))
        assert tensor.to_host().astype(int).tolist() == [1, -2, 7]


def test_a_device_without_an_allocator_has_no_path(library: str, silent_ep: str) -> None:
    from layer_rig import Runtime, SharedMemory

    with Runtime.load(library) as runtime, runtime.register_library(silent_ep) as ep:
        (device,) = ep.devices
        assert device.memory is None
        assert device.transfer_path().path == "none"
        importer = device.importer()
        assert importer is not None
        with (
            SharedMemory(4096) as exported,
            importer,
            importer.import_memory(exported.fd, 4096) as memory,
            memory.tensor((4,), "float32") as tensor,
        ):
            answer = tensor.host_access()
            assert answer.path == "none" and "nor has the device" in answer.reason
            assert answer.facts["default allocator"] == "none"
            with pytest.raises(NoHostAccessError, match="cannot be read"):
                tensor.to_host()
            with pytest.raises(NoHostAccessError, match="cannot be written"):
                tensor.from_host(numpy.zeros(4, numpy.float32))
