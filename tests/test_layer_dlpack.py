"""Arrays of other libraries over the same memory: NumPy and PyTorch, in both directions."""

from __future__ import annotations

import gc
import sys
import weakref
from typing import Any

import pytest
from layer_fixtures import host_ep_fixture, library_fixture, need_module, rig_fixture  # noqa: F401
from layer_rig import Rig, child
from ort_interop.runtime import InUseError

numpy = need_module("numpy")


@pytest.fixture(scope="module")
def torch() -> Any:
    return need_module("torch")


def test_numpy_reads_and_writes_a_tensor(rig: Rig) -> None:
    array = numpy.from_dlpack(rig.x)
    assert array.shape == rig.shape and array.dtype == numpy.float32
    assert array.ctypes.data == rig.x.data_ptr
    rig.exported.view[:4] = numpy.float32(7).tobytes()
    assert array[0, 0] == 7
    assert rig.x.__dlpack_device__() == (1, 0)


def test_a_consumer_keeps_the_tensor(rig: Rig) -> None:
    tensor = rig.memory.tensor((4,), "int16")
    array = numpy.from_dlpack(tensor)[1:]
    with pytest.raises(InUseError, match="view"):
        tensor.close()
    del tensor
    gc.collect()
    assert array.sum() == rig.memory.tensor((3,), "int16", 2).to_host().sum()
    with pytest.raises(InUseError, match="tensor int16"):
        rig.memory.close()
    del array
    gc.collect()


@pytest.mark.parametrize("version", [None, (0, 8), (1, 0), (1, 1)])
def test_a_capsule_that_nobody_takes_frees_its_tensor(rig: Rig, version: Any) -> None:
    tensor = rig.memory.tensor((4,), "int16")
    capsule = tensor.__dlpack__(max_version=version)
    expected = "dltensor_versioned" if version and version[0] >= 1 else "dltensor"
    assert f'"{expected}"' in repr(capsule)
    with pytest.raises(InUseError):
        tensor.close()
    del capsule
    tensor.close()


def test_exports_that_cannot_be_are_buffer_errors(rig: Rig) -> None:
    for arguments, message in (
        ({"dl_device": (2, 0)}, r"on DLPack device \(1, 0\), not on \(2, 0\)"),
        ({"copy": True}, "without a copy only"),
        ({"stream": 5}, "no stream"),
    ):
        with pytest.raises(BufferError, match=message):
            rig.x.__dlpack__(**arguments)  # type: ignore[arg-type]
    assert rig.x.__dlpack__(copy=False, dl_device=(1, 0), stream=None)


def test_queued_work_refuses_the_export(rig: Rig) -> None:
    rig.semaphore.wait(rig.stream, 1)
    rig.session.run({"input": rig.x}, {"output": rig.y}, stream=rig.stream, synchronize=False)
    rig.semaphore.signal(rig.stream, 2)
    with pytest.raises(BufferError, match="still queued on stream of HostInterop"):
        rig.y.__dlpack__()
    assert rig.y.__dlpack__(stream=-1)
    rig.counter.signal(1)
    rig.semaphore.wait_on_host(2, 10)
    assert rig.y.__dlpack__()


def test_from_dlpack_lends_the_producers_memory(rig: Rig) -> None:
    array = numpy.arange(64, dtype=numpy.float32).reshape(rig.shape)
    gone = weakref.ref(array)
    before = sys.getrefcount(array)
    tensor = rig.runtime.from_dlpack(array)
    assert tensor.data_ptr == array.ctypes.data and sys.getrefcount(array) > before
    expected = array.copy()
    del array
    gc.collect()
    assert gone() is not None
    numpy.testing.assert_array_equal(
        rig.session.run({"input": tensor})["output"].to_host(), expected
    )
    tensor.close()
    del tensor
    gc.collect()
    assert gone() is None


def test_from_dlpack_refuses_what_it_cannot_take(rig: Rig) -> None:
    array = numpy.zeros((4, 4), numpy.float32)
    with pytest.raises(BufferError, match="not C-contiguous"):
        rig.runtime.from_dlpack(array.T)
    array.flags.writeable = False
    with pytest.raises(BufferError, match=r"read-?only"):
        rig.runtime.from_dlpack(array)

    class Elsewhere:
        def __dlpack_device__(self) -> tuple[int, int]:
            return 2, 0

    with pytest.raises(BufferError, match="say which EP device"):
        rig.runtime.from_dlpack(Elsewhere())
    with pytest.raises(BufferError, match="not HostInteropExecutionProvider's"):
        rig.runtime.from_dlpack(Elsewhere(), rig.device)

    class NoCapsule:
        def __dlpack_device__(self) -> tuple[int, int]:
            return 1, 0

        def __dlpack__(self, **_: Any) -> object:
            return object()

    with pytest.raises(BufferError, match="no DLPack capsule"):
        rig.runtime.from_dlpack(NoCapsule())


def test_pytorch_shares_memory_both_ways(rig: Rig, torch: Any) -> None:
    x = torch.from_dlpack(rig.x)
    x.copy_(torch.arange(64, dtype=torch.float32).reshape(4, 16))
    assert bytes(rig.exported.view[4:8]) == numpy.float32(1).tobytes()
    source = torch.full((4, 16), 2.5)
    target = torch.empty(4, 16)
    rig.session.run(
        {"input": rig.runtime.from_dlpack(source)}, {"output": rig.runtime.from_dlpack(target)}
    )
    assert torch.equal(source, target)
    del x
    gc.collect()


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "bool", "int64", "uint8"])
def test_types_agree_with_pytorch(rig: Rig, torch: Any, dtype: str) -> None:
    with rig.memory.tensor((3,), dtype) as tensor:
        array = torch.from_dlpack(tensor)
        assert array.dtype == getattr(torch, dtype)
        array[...] = 1
        again = rig.runtime.from_dlpack(array)
        assert again.dtype == dtype and again.data_ptr == tensor.data_ptr
        again.close()
        del array, again
        gc.collect()


EXIT = """
from layer_rig import *
import torch
made = Rig(sys.argv[1], sys.argv[2])
kept = torch.from_dlpack(made.x)
lent = made.runtime.from_dlpack(torch.ones(4, 16))
capsule = made.y.__dlpack__()
torch.kept = kept
print("end")
"""


def test_consumers_may_outlive_the_interpreter(library: str, host_ep: str, torch: Any) -> None:
    done = child(EXIT, library, host_ep)
    assert (done.returncode, done.stdout, done.stderr) == (0, "end\n", "")


def test_no_growth_over_many_exports(rig: Rig) -> None:
    from ort_interop.runtime import _dlpack

    for _ in range(1000):
        numpy.from_dlpack(rig.x)
        rig.x.__dlpack__()
    gc.collect()
    assert len(_dlpack._exports) == 0 and rig.x._node.views == []
