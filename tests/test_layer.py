"""The Python layer on a real ONNX Runtime and the host EP: what each part does."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from typing import Any
from uuid import UUID

import pytest
from layer_fixtures import host_ep_fixture, library_fixture, need_module, rig_fixture  # noqa: F401
from layer_rig import HALF, PACKAGE, RELEASE, SHAPE, SIZE, Rig, SharedMemory, child, minor, ort
from ort_interop.runtime import (
    ClosedError,
    DescriptorError,
    MisuseError,
    NoHostAccessError,
    Runtime,
    TransferPath,
    WrongDeviceError,
)
from support import ort_library_path

numpy = need_module("numpy")
MEMORY = ort.OrtExternalMemoryHandleType
SEMAPHORE = ort.OrtExternalSemaphoreType
FD = MEMORY.ORT_EXTERNAL_MEMORY_HANDLE_TYPE_MEMORY_OPAQUE_FD
TIMELINE = SEMAPHORE.ORT_EXTERNAL_SEMAPHORE_VK_TIMELINE_SEMAPHORE_OPAQUE_FD


def values(first: float = 0.0) -> Any:
    return numpy.arange(first, first + 64, dtype=numpy.float32).reshape(SHAPE)


def test_devices_tell_who_they_are(rig: Rig) -> None:
    device = rig.device
    assert rig.runtime.version == RELEASE and rig.runtime.api_version == min(minor(), 30)
    assert device.ep_name == "HostInteropExecutionProvider"
    assert isinstance(device.uuid, UUID) and device.luid is None
    assert device.hardware_type.name == "OrtHardwareDeviceType_CPU"
    assert device.memory is not None and not device.memory.is_cpu
    assert rig.runtime.device(device.ep_name, uuid=device.uuid) == device
    with pytest.raises(LookupError, match="0 devices have"):
        rig.runtime.device(luid=12345)
    (cpu,) = rig.runtime.devices("CPUExecutionProvider")
    assert cpu != device and cpu.library is None and len({cpu, device}) == 2


def test_a_device_that_imports_nothing_has_no_importer(rig: Rig) -> None:
    assert rig.runtime.device("CPUExecutionProvider").importer() is None


def test_probes(rig: Rig) -> None:
    assert rig.importer.can_import_memory(FD) is True
    d3d12 = MEMORY.ORT_EXTERNAL_MEMORY_HANDLE_TYPE_D3D12_RESOURCE
    assert rig.importer.can_import_memory(d3d12) is False
    assert rig.importer.can_import_memory(MEMORY(99)) is False
    assert rig.importer.can_import_semaphore(TIMELINE) is True
    with pytest.raises(TypeError, match="expected a member of OrtExternalMemoryHandleType"):
        rig.importer.can_import_memory(TIMELINE)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="expected a member of OrtExternalSemaphoreType"):
        rig.importer.import_semaphore(rig.counter.fd, FD)  # type: ignore[arg-type]


def test_what_an_ep_does_not_import_is_not_implemented_or_invalid(rig: Rig) -> None:
    heap = MEMORY.ORT_EXTERNAL_MEMORY_HANDLE_TYPE_D3D12_HEAP
    with pytest.raises((ort.OrtNotImplementedError, ort.OrtInvalidArgumentError), match="type"):
        rig.importer.import_memory(4096, 4096, heap)


@pytest.mark.parametrize(
    ("field", "change"),
    [
        ("native_handle", {"handle": -1}),
        ("native_handle", {"handle": 1 << 31}),
        ("native_handle", {"handle": "3"}),
        ("native_handle", {"handle": True}),
        ("native_handle", {"handle": 99999}),
        ("size_bytes", {"size": 0}),
        ("size_bytes", {"size": -4096}),
        ("size_bytes", {"size": 1 << 64}),
        ("size_bytes", {"size": 2.5}),
        ("offset_bytes", {"offset": SIZE + 1}),
        ("offset_bytes", {"offset": -1}),
    ],
)
def test_memory_descriptors_check_themselves(rig: Rig, field: str, change: dict[str, Any]) -> None:
    arguments = {"handle": rig.exported.fd, "size": SIZE, **change}
    with pytest.raises(DescriptorError, match=f"OrtExternalMemoryDescriptor.{field} is ") as found:
        rig.importer.import_memory(**arguments)
    assert found.value.field == field


@pytest.mark.parametrize(
    ("field", "shape", "dtype", "offset"),
    [
        ("shape[1]", (4, -1), "float32", 0),
        ("shape[0]", (1.5,), "float32", 0),
        ("shape[1]", (1 << 62, 4), "float32", 0),
        ("element_type", (4,), "str", 0),
        (
            "element_type",
            (4,),
            ort.ONNXTensorElementDataType.ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING,
            0,
        ),
        ("offset_bytes", (4,), "float32", 2),
        ("offset_bytes", (4,), "float32", SIZE - 8),
        ("offset_bytes", (SIZE,), "float32", 0),
        ("offset_bytes", (0,), "float32", SIZE + 4),
    ],
)
def test_tensor_descriptors_check_themselves(
    rig: Rig, field: str, shape: Any, dtype: Any, offset: int
) -> None:
    with pytest.raises(DescriptorError) as found:
        rig.memory.tensor(shape, dtype, offset)
    assert found.value.field == field and found.value.field in str(found.value)


def test_a_tensor_starts_at_its_offset_after_the_regions(rig: Rig) -> None:
    region = rig.importer.import_memory(rig.exported.fd, SIZE, offset=HALF)
    assert region.size == HALF
    with region.tensor((2,), "uint8", 3) as tensor:
        view = tensor.numpy()
        view[:] = 7
        assert bytes(rig.exported.view[HALF + 2 : HALF + 6]) == b"\0\7\7\0"
        del view
    region.close()


def test_host_allocations_are_used_where_they_are(rig: Rig) -> None:
    import ctypes
    import mmap

    kind = MEMORY.ORT_EXTERNAL_MEMORY_HANDLE_TYPE_HOST_ALLOCATION
    pages = mmap.mmap(-1, SIZE)
    start = ctypes.addressof(ctypes.c_char.from_buffer(pages))
    for wrong in (0, start + 64):
        with pytest.raises(DescriptorError, match="native_handle is "):
            rig.importer.import_memory(wrong, SIZE, kind)
    assert rig.importer.can_import_memory(kind) is (minor() >= 30)
    if minor() < 30:
        with pytest.raises(ort.OrtError, match="cannot import on ONNX Runtime"):
            rig.importer.import_memory(start, SIZE, kind)
        return
    with (
        rig.importer.import_memory(start, SIZE, kind) as memory,
        memory.tensor(SHAPE, "float32", HALF) as tensor,
    ):
        assert tensor.data_ptr == start + HALF
        rig.session.run({"input": values(4)}, {"output": tensor})
    assert pages[HALF : HALF + 256] == values(4).tobytes()


def test_objects_with_fileno_are_taken(rig: Rig) -> None:
    with os.fdopen(os.dup(rig.exported.fd), "rb") as file, rig.importer.import_memory(file, SIZE):
        pass


def test_run_with_tensors_in_place(rig: Rig) -> None:
    rig.exported.view[:256] = values().tobytes()
    outputs = rig.session.run({"input": rig.x}, {"output": rig.y})
    assert outputs == {"output": rig.y}
    assert bytes(rig.exported.view[HALF : HALF + 256]) == values().tobytes()


def test_run_with_arrays(rig: Rig) -> None:
    outputs = rig.session.run({"input": values(5)})
    assert outputs["output"].memory.is_cpu and outputs["output"].shape == SHAPE
    numpy.testing.assert_array_equal(outputs["output"].numpy(), values(5))
    named = rig.session.run({"input": values(6)}, ["output"])
    numpy.testing.assert_array_equal(named["output"].to_host(), values(6))


def test_run_checks_names_types_and_shapes(rig: Rig) -> None:
    with pytest.raises(MisuseError, match="no input 'other'; it has input"):
        rig.session.run({"other": rig.x})
    with pytest.raises(MisuseError, match="no output 'other'"):
        rig.session.run({"input": rig.x}, ["other"])
    with pytest.raises(MisuseError, match="is float32, the tensor int32"):
        rig.session.run({"input": numpy.zeros(SHAPE, numpy.int32)})
    with pytest.raises(MisuseError, match=r"has the shape \[4, 16\], the tensor \[16, 4\]"):
        rig.session.run({"input": numpy.zeros((16, 4), numpy.float32)})


def test_no_outputs_are_no_run(rig: Rig) -> None:
    with pytest.raises(MisuseError, match="no outputs are wanted"):
        rig.session.run({"input": rig.x}, [])


def test_things_of_another_onnxruntime_are_refused(rig: Rig, host_ep: str) -> None:
    """Two releases in one process: their objects must never meet."""
    other = "1.24.1" if RELEASE != "1.24.1" else "1.32.0"
    with Runtime.load(ort_library_path(other)) as second, second.register_library(host_ep) as ep:
        (device,) = ep.devices
        assert device != rig.device and device.ep_name == rig.device.ep_name
        tensor = second.tensor(values())
        with pytest.raises(WrongDeviceError, match=f"is of <ONNX Runtime {other}>"):
            rig.session.run({"input": tensor})
        with pytest.raises(WrongDeviceError, match="of another environment"):
            rig.session_of("Identity", device=device)
        with device.stream() as stream:
            with pytest.raises(WrongDeviceError, match=f"the stream of <ONNX Runtime {other}>"):
                rig.session.run({"input": rig.x}, {"output": rig.y}, stream=stream)
            with pytest.raises(WrongDeviceError, match="UUID"):
                rig.semaphore.wait(stream, 0)
        tensor.close()


def test_sessions_tell_their_values_devices_and_nodes(rig: Rig) -> None:
    assert rig.session.inputs == (("input", "float32", SHAPE),)
    assert rig.session.outputs == (("output", "float32", SHAPE),)
    assert rig.session.input_devices() == {"input": rig.device}
    assert rig.session.output_devices() == {"output": rig.device}
    assert [n.operator for n in rig.session.nodes] == ["Identity"]
    assert {n.ep_name for n in rig.session.nodes} == {rig.device.ep_name}


def test_the_device_named_is_one_of_the_sessions_own(rig: Rig, host_ep: str) -> None:
    """With two registrations of one EP, ONNX Runtime may name the device of the first."""
    with rig.runtime.register_library(host_ep, "second") as second:
        (device,) = second.devices
        assert device != rig.device
        with rig.session_of("Identity", device=device) as session:
            assert session.input_devices() == {"input": device}
            assert session.output_devices() == {"output": device}


def test_a_session_from_a_path(rig: Rig, tmp_path: Any) -> None:
    from layer_rig import identity_model

    path = tmp_path / "modèle.onnx"
    path.write_bytes(identity_model(SHAPE))
    with rig.runtime.session(path, rig.device) as session:
        assert "modèle.onnx" in repr(session)
        numpy.testing.assert_array_equal(
            session.run({"input": values()})["output"].numpy(), values()
        )
    with pytest.raises(ort.OrtNoSuchfileError):
        rig.runtime.session(tmp_path / "none.onnx", rig.device)


def test_semaphores_order_a_run_that_returns_early(rig: Rig) -> None:
    rig.semaphore.wait(rig.stream, 1)
    start = time.monotonic()
    rig.session.run({"input": rig.x}, {"output": rig.y}, stream=rig.stream, synchronize=False)
    rig.semaphore.signal(rig.stream, 2)
    assert time.monotonic() - start < 5 and rig.semaphore.value == 0
    rig.exported.view[:256] = values(9).tobytes()
    rig.counter.signal(1)
    rig.semaphore.wait_on_host(2, 10)
    assert bytes(rig.exported.view[HALF : HALF + 256]) == values(9).tobytes()
    with pytest.raises(TimeoutError, match="stands at 2 and did not reach 3"):
        rig.semaphore.wait_on_host(3, 0.05)


def test_a_synchronous_run_on_a_stream_waits_for_it(rig: Rig) -> None:
    rig.semaphore.wait(rig.stream, 1)
    timer = threading.Timer(0.2, rig.counter.signal, [1])
    start = time.monotonic()
    timer.start()
    rig.session.run({"input": rig.x}, {"output": rig.y}, stream=rig.stream)
    assert time.monotonic() - start > 0.15
    assert rig.stream.pending == ()
    timer.join()


def test_a_prepared_run_and_a_frame(rig: Rig) -> None:
    tensors = {"input": rig.x}, {"output": rig.y}
    with rig.session.prepare(*tensors, stream=rig.stream, synchronize=False) as run:
        for value in (1, 3):
            rig.x.numpy()[...] = values(value)
            assert run() == {"output": rig.y}
            rig.semaphore.signal(rig.stream, value)
            rig.semaphore.wait_on_host(value, 10)
            numpy.testing.assert_array_equal(rig.y.numpy(), values(value))
    semaphore = rig.semaphore
    with rig.session.frame(*tensors, stream=rig.stream, wait=semaphore, signal=semaphore) as frame:
        for value in range(3, 203):
            frame(value, value + 1)
        semaphore.wait_on_host(203, 10)
    assert rig.stream.pending == ()


def test_a_semaphore_with_a_stream(rig: Rig, host_ep: str) -> None:
    rig.x.from_host(values(5))
    rig.y.from_host(values())
    with rig.semaphore.on(rig.stream) as fence:
        fence.wait(1)
        rig.session.run({"input": rig.x}, {"output": rig.y}, stream=rig.stream, synchronize=False)
        fence.signal(2)
        assert rig.semaphore.value == 0 and (rig.y.to_host() == values()).all()
        rig.counter.signal(1)
        rig.semaphore.wait_on_host(2, 10)
        assert (rig.y.to_host() == values(5)).all()
    with pytest.raises(ClosedError, match="imported semaphore on stream"):
        fence.wait(3)
    with rig.runtime.register_library(host_ep, "other") as library:
        (device,) = library.devices
        with device.stream() as stream, pytest.raises(WrongDeviceError):
            rig.semaphore.on(stream)


@pytest.mark.parametrize("value", [-1, 1 << 64, 1 << 70])
def test_values_that_are_none_queue_nothing(rig: Rig, value: int) -> None:
    tensors = {"input": rig.x}, {"output": rig.y}
    semaphore = rig.semaphore
    with (
        rig.session.frame(*tensors, stream=rig.stream, wait=semaphore, signal=semaphore) as frame,
        semaphore.on(rig.stream) as fence,
    ):
        for call in (
            lambda: frame(value, 1),
            lambda: frame(0, value),
            lambda: fence.wait(value),
            lambda: fence.signal(value),
            lambda: semaphore.wait(rig.stream, value),
            lambda: semaphore.signal(rig.stream, value),
        ):
            with pytest.raises(ValueError, match="value must be within 0 and 18446744073709551615"):
                call()
        with pytest.raises(TypeError):
            frame(0, 1.5)  # type: ignore[arg-type]
        assert rig.stream.pending == () and semaphore.value == 0


def test_a_call_inside_a_call_has_values_of_its_own(rig: Rig) -> None:
    """As a callback of ONNX Runtime's, or another thread, may make one."""
    tensors = {"input": rig.x}, {"output": rig.y}
    semaphore = rig.semaphore
    seen: list[int] = []
    with rig.session.frame(*tensors, stream=rig.stream, wait=semaphore, signal=semaphore) as frame:
        invoke, signal = frame._invoke, frame._signal

        def again() -> None:
            frame._invoke = invoke
            frame(0, 1)
            invoke()

        def record(native: Any) -> None:
            seen.append(native.value)
            signal(native)

        frame._invoke, frame._signal = again, record
        frame(0, 2)
        semaphore.wait_on_host(2, 10)
    assert seen == [1, 2]


def test_bindings(rig: Rig) -> None:
    with rig.session.io_binding() as binding:
        binding.bind_input("input", rig.x)
        binding.bind_output("output", rig.y)
        rig.x.numpy()[...] = values(1)
        binding.run(stream=rig.stream, synchronize=False)
        rig.semaphore.signal(rig.stream, 1)
        rig.semaphore.wait_on_host(1, 10)
        numpy.testing.assert_array_equal(rig.y.numpy(), values(1))
        binding.bind_output("output", rig.device)
        binding.bind_input("input", values(2))
        binding.run(stream=rig.stream)
        made = binding.outputs()["output"]
        assert made.device == rig.device and not made.memory.is_cpu
        numpy.testing.assert_array_equal(made.to_host(), values(2))
        binding.bind_output("output")
        binding.run()
        host = binding.outputs()["output"]
        assert host.memory.is_cpu
        numpy.testing.assert_array_equal(host.numpy(), values(2))
        binding.clear()
        made.close()
        host.close()


def test_a_stream_of_another_device_is_refused(rig: Rig, host_ep: str) -> None:
    with (
        rig.runtime.register_library(host_ep, "second") as second,
        second.devices[0].stream() as other,
    ):
        for call in (rig.semaphore.wait, rig.semaphore.signal):
            with pytest.raises(WrongDeviceError, match="UUID"):
                call(other, 1)


def test_streams_have_their_native_handle(rig: Rig) -> None:
    assert rig.stream.native_handle


def test_host_access_of_mapped_memory(rig: Rig) -> None:
    for answer in (rig.x.host_access(), rig.device.transfer_path()):
        assert answer.path is TransferPath.MAP and answer.path == "map"
        assert answer.facts["EP metadata interop_host_access"] == "map"
        assert "may map" in answer.reason
    rig.x.from_host(values(3))
    numpy.testing.assert_array_equal(rig.x.to_host(), values(3))
    assert bytes(rig.exported.view[:256]) == values(3).tobytes()
    with pytest.raises(ValueError, match="the tensor float32"):
        rig.x.from_host(numpy.zeros(SHAPE, numpy.int32))
    cpu = rig.runtime.tensor(values())
    assert cpu.host_access().reason == "the memory info says CPU"
    assert rig.runtime.device("CPUExecutionProvider").transfer_path().path == "map"


@pytest.mark.parametrize(
    "dtype",
    ["bool", "int8", "uint16", "int64", "float16", "float64"],
)
def test_numpy_types(rig: Rig, dtype: str) -> None:
    with rig.memory.tensor((2, 3), numpy.dtype(dtype)) as tensor:
        view = tensor.numpy()
        assert view.dtype == dtype and view.shape == (2, 3) and tensor.dtype == dtype
        view[...] = 1
        assert tensor.to_host().tolist() == [[1, 1, 1], [1, 1, 1]]
        del view


@pytest.mark.parametrize(
    "dtype",
    ["bfloat16", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz"],
)
def test_ml_dtypes(rig: Rig, dtype: str) -> None:
    ml_dtypes = need_module("ml_dtypes")
    kind = getattr(ml_dtypes, dtype)
    with rig.memory.tensor((3,), kind) as tensor:
        tensor.from_host(numpy.array([1, 2, -0.5], kind))
        view = tensor.numpy()
        assert view.astype(float).tolist() == [1, 2, -0.5] and view.dtype == kind
        del view


@pytest.mark.parametrize(
    ("dtype", "numbers", "packed"),
    [("int4", [1, -2, 7], b"\xe1\x07"), ("uint4", [1, 15, 9], b"\xf1\x09")],
)
def test_sub_byte_types_are_packed(rig: Rig, dtype: str, numbers: list[int], packed: bytes) -> None:
    ml_dtypes = need_module("ml_dtypes")
    rig.exported.view[:2] = bytes(2)
    with rig.memory.tensor((3,), dtype) as tensor:
        assert tensor.nbytes == 2
        tensor.from_host(numpy.array(numbers, getattr(ml_dtypes, dtype)))
        assert bytes(rig.exported.view[:2]) == packed
        assert tensor.to_host().astype(int).tolist() == numbers
        with pytest.raises(NoHostAccessError, match="packed"):
            tensor.numpy()
        with pytest.raises(BufferError, match="packed"):
            tensor.__dlpack__()


def test_scalars_and_empty_tensors(rig: Rig) -> None:
    with rig.memory.tensor((), "float32") as scalar, rig.memory.tensor((0, 4), "int8") as empty:
        scalar.from_host(numpy.float32(2.5))
        assert scalar.to_host().item() == 2.5 and scalar.count == 1
        assert empty.to_host().shape == (0, 4) and empty.numpy().shape == (0, 4)


def test_arrays_must_be_contiguous_and_writable(rig: Rig) -> None:
    with pytest.raises(ValueError, match="C-contiguous"):
        rig.runtime.tensor(values().T)
    frozen = values()
    frozen.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        rig.runtime.tensor(frozen)


def test_graphics_interop_is_gated_or_not_implemented(rig: Rig) -> None:
    api = ort.OrtGraphicsApi.ORT_GRAPHICS_API_VULKAN
    expected = ort.OrtNotImplementedError if minor() >= 25 else ort.NotSupportedByHost
    with pytest.raises(expected):
        rig.device.graphics_interop(api)
    with pytest.raises(TypeError, match="expected an OrtGraphicsApi"):
        rig.device.graphics_interop(1)  # type: ignore[arg-type]


def test_a_version_can_be_pinned(library: str) -> None:
    with Runtime.load(library, api_version=24) as runtime:
        assert runtime.api_version == 24
        device = runtime.device("CPUExecutionProvider")
        with pytest.raises(ort.NotSupportedByHost, match=r"needs ONNX Runtime 1\.25") as refused:
            device.graphics_interop(ort.OrtGraphicsApi.ORT_GRAPHICS_API_NONE)
        for part in (RELEASE, library, "InitGraphicsInteropForEpDevice"):
            assert part in str(refused.value)


def test_asyncio_waits_without_polling(rig: Rig) -> None:
    async def main() -> list[int]:
        order: list[int] = []

        async def wait(value: int) -> None:
            await rig.semaphore.reached(value)
            order.append(value)

        tasks = [asyncio.ensure_future(wait(value)) for value in (3, 1, 2)]
        forever = asyncio.ensure_future(rig.semaphore.reached(99))
        await asyncio.sleep(0.05)
        used = time.process_time()
        await asyncio.sleep(0.3)
        assert time.process_time() - used < 0.15
        for value in (1, 2, 3):
            await asyncio.get_running_loop().run_in_executor(None, rig.counter.signal, value)
            await asyncio.sleep(0.02)
        await asyncio.wait_for(asyncio.gather(*tasks), 10)
        await rig.semaphore.reached(2)
        forever.cancel()
        return order

    assert asyncio.run(main()) == [1, 2, 3]


def test_asyncio_hears_of_the_close(rig: Rig) -> None:
    async def main() -> None:
        waiting = asyncio.ensure_future(other.reached(5))
        await asyncio.sleep(0.05)
        other.close()
        with pytest.raises(MisuseError, match="was closed"):
            await asyncio.wait_for(waiting, 10)

    other = rig.importer.import_semaphore(rig.counter.fd)
    asyncio.run(main())


def test_an_observer_may_be_the_users_own(rig: Rig) -> None:
    class Mine:
        value = 4

        def wait(self, value: int, timeout: float | None = None) -> bool:
            time.sleep(min(timeout or 0.01, 0.01))
            return self.value >= value

    mine = Mine()
    with rig.importer.import_semaphore(rig.counter.fd, observer=mine) as semaphore:
        assert semaphore.value == 4
        timer = threading.Timer(0.1, setattr, [mine, "value", 7])
        timer.start()
        asyncio.run(asyncio.wait_for(semaphore.reached(6), 10))
        timer.join()


def test_a_semaphore_that_cannot_be_observed(rig: Rig) -> None:
    rig.semaphore.observer = None
    assert rig.semaphore.value is None
    with pytest.raises(NotImplementedError, match="observer"):
        rig.semaphore.wait_on_host(1)
    with pytest.raises(NotImplementedError, match="observer"):
        asyncio.run(rig.semaphore.reached(1))


LOGGER = """
from layer_rig import *
import gc
lines = []
verbose = ort.OrtLoggingLevel.ORT_LOGGING_LEVEL_VERBOSE
def logger(level, category, log_id, location, message):
    lines.append((level, message))
    if "fail" in sys.argv[3]:
        raise ValueError("from the logger")
runtime = Runtime.load(sys.argv[1], logger=logger, log_level=verbose)
sys.unraisablehook = lambda caught: lines.append((None, str(caught.exc_value)))
del logger
gc.collect()
with runtime, runtime.register_library(sys.argv[2]) as ep:
    runtime.session(identity_model(SHAPE), ep.devices[0]).close()
print(len(lines) > 10, isinstance(lines[0][0], ort.OrtLoggingLevel),
      any(text == "from the logger" for _, text in lines))
"""


@pytest.mark.parametrize("mode", ["works", "fails"])
def test_loggers_are_kept_alive_and_may_raise(library: str, host_ep: str, mode: str) -> None:
    done = child(LOGGER, library, host_ep, mode)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["True", "True", str(mode == "fails")]


def test_the_environment_is_shared_between_runtimes(rig: Rig, library: str) -> None:
    with Runtime.load(library, api_version=24) as second:
        (device,) = second.devices("HostInteropExecutionProvider")
        assert device == rig.device and device.library is rig.library
        with SharedMemory(SIZE) as exported:
            importer = device.importer()
            assert importer is not None
            with importer, importer.import_memory(exported.fd, SIZE) as memory:
                with pytest.raises(MisuseError, match="imported memory"):
                    rig.library.close()
                assert not memory.closed


NOT_POSIX = """
import asyncio, ctypes, mmap, os, sys, threading, uuid, weakref
for name in ("uname", "register_at_fork", "memfd_create", "fork"):
    delattr(os, name)
sys.platform, os.name = "win32", "nt"
sys.path.insert(0, sys.argv[1])
import ort_interop.runtime
from ort_interop.runtime._observer import HostSemaphore
from ort_interop.runtime import _dlpack
print(HostSemaphore.of(0))
"""


def test_importing_needs_nothing_of_posix() -> None:
    done = child(NOT_POSIX, str(PACKAGE))
    assert (done.returncode, done.stdout, done.stderr) == (0, "None\n", "")


def test_importing_needs_no_package() -> None:
    """NumPy and ml_dtypes are imported when arrays are asked for."""
    program = "import sys; sys.path.insert(0, sys.argv[1]); import ort_interop.runtime, json\n"
    program += "print(json.dumps(sorted({'numpy', 'ml_dtypes', 'onnxruntime'} & set(sys.modules))))"
    assert child(program, str(PACKAGE)).stdout == "[]\n"
