"""Allocators made in Python: what ONNX Runtime gets, what fails, how long they live."""

from __future__ import annotations

import ctypes
import gc
import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from layer_fixtures import host_ep_fixture, library_fixture, need_module, rig_fixture  # noqa: F401
from layer_rig import SHAPE, Rig, child, conv_model, identity_model, minor, onnx, ort
from ort_interop.runtime import (
    AllocationError,
    Allocator,
    ClosedError,
    InUseError,
    MisuseError,
    Runtime,
    Session,
    Tensor,
    WrongDeviceError,
)
from test_layer_guards import CRASHES

numpy = need_module("numpy")
BYTES = 4 * 64


class Buffers:
    """Memory from ``bytearray``; what it hands out, it has until it gets it back."""

    def __init__(self) -> None:
        self.lent: dict[int, bytearray] = {}
        self.sizes: list[int] = []
        self.fail_at: int | None = None
        self.error: BaseException = ValueError("the pool is dry")

    def allocate(self, size: int, alignment: int) -> Any:
        at = len(self.sizes)
        self.sizes.append(size)
        if at == self.fail_at:
            raise self.error
        block = bytearray(size + alignment)
        self.lent[id(block)] = block
        return block

    def free(self, block: Any) -> None:
        del self.lent[id(block)]
        block.clear()


@pytest.fixture
def runtime(library: str) -> Iterator[Runtime]:
    with Runtime.load(library) as made:
        yield made
        gc.collect()


@pytest.fixture
def unraised(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What could be raised nowhere."""
    found: list[str] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda told: found.append(str(told.exc_value)))
    return found


def chain(runtime: Runtime, *, threads: int = 1, **options: Any) -> Session:
    """A session on the CPU with a value between its nodes, whose memory it allocates."""
    disabled = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    model = identity_model(SHAPE, operators=("Relu", "Neg", "Relu"))
    options.setdefault("env_allocators", True)
    return runtime.session(model, optimization=disabled, threads=threads, **options)


def run(session: Session) -> Tensor:
    feeds = {"input": numpy.full(SHAPE, -2, numpy.float32)}
    return session.run(feeds)["output"]


def test_a_tensor_lives_in_memory_of_the_source(runtime: Runtime) -> None:
    source = Buffers()
    with runtime.allocator(source) as allocator:
        with allocator.tensor(SHAPE, "float32") as tensor:
            ((address, size),) = allocator.blocks.items()
            assert (address, size) == (tensor.data_ptr, BYTES) and address % 64 == 0
            tensor.numpy()[...] = 7
            (block,) = source.lent.values()
            assert numpy.frombuffer(block, numpy.uint8).any()
            assert tensor.memory.is_cpu and tensor.device is None
            with pytest.raises(BufferError):
                block.clear()  # ONNX Runtime has it: its size cannot change.
            del block
        assert source.lent == {} and dict(allocator.blocks) == {}
        with allocator.tensor((0, 3), "float32"):
            assert source.sizes == [BYTES]
    with pytest.raises(ClosedError):
        allocator.tensor(SHAPE, "float32")


def test_addresses_are_taken_as_they_are(runtime: Runtime) -> None:
    libc = ctypes.CDLL(None)
    libc.aligned_alloc.restype = ctypes.c_void_p
    libc.aligned_alloc.argtypes = [ctypes.c_size_t] * 2
    libc.free.argtypes = [ctypes.c_void_p]
    lent: set[int] = set()

    class Addresses:
        def allocate(self, size: int, alignment: int) -> int:
            address: int = libc.aligned_alloc(alignment, -(-size // alignment) * alignment)
            lent.add(address)
            return address

        def free(self, block: int) -> None:
            lent.remove(block)
            libc.free(block)

    with runtime.allocator(Addresses(), alignment=4096) as allocator:
        tensor = allocator.tensor((3,), "int8")
        assert lent == {tensor.data_ptr} and tensor.data_ptr % 4096 == 0
        tensor.close()
        assert lent == set()


def crooked(size: int) -> memoryview:
    """A buffer that starts one byte after a multiple of 64."""
    block = bytearray(size + 128)
    start = 1 - ctypes.addressof(ctypes.c_char.from_buffer(block)) % 64
    return memoryview(block)[start % 64 :][:size]


@pytest.mark.parametrize(
    ("give", "error", "text"),
    [
        (lambda size: None, MemoryError, "Faulty has no memory for 256 bytes"),
        (lambda size: crooked(size), MisuseError, "buffer of 256 bytes, 193 of them .* 256 are"),
        (lambda size: bytearray(), MisuseError, "buffer of 0 bytes, 0 of them"),
        (lambda size: bytes(size + 64), MisuseError, "neither an address nor a writable buffer"),
        (lambda size: "text", MisuseError, "returned str, neither an address"),
        (lambda size: True, MisuseError, "returned bool, neither an address"),
        (lambda size: 0, MisuseError, "returned 0x0, no address"),
        (lambda size: -64, MisuseError, "returned -0x40, no address"),
        (lambda size: (1 << 64) - 64, MisuseError, "no address of 256 bytes"),
        (lambda size: 4096 + 8, MisuseError, "returned 0x1008, not a multiple of 64"),
        (lambda size: 1 // 0, ZeroDivisionError, "division"),
    ],
)
def test_what_cannot_be_memory_is_refused(
    runtime: Runtime, unraised: list[str], give: Callable[[int], Any], error: type, text: str
) -> None:
    class Faulty:
        def __init__(self) -> None:
            self.returned: list[Any] = []

        def allocate(self, size: int, alignment: int) -> Any:
            return give(size)

        def free(self, block: Any) -> None:
            self.returned.append(block)

    source = Faulty()
    with runtime.allocator(source) as allocator:
        with pytest.raises(AllocationError, match=text) as raised:
            allocator.tensor(SHAPE, "float32")
        assert type(raised.value.__cause__) is error
        assert raised.value.failures == (raised.value.__cause__,)
        assert dict(allocator.blocks) == {}
    # What was returned and is no memory went back to where it came from.
    assert len(source.returned) == (error is MisuseError)
    assert unraised == []


def test_memory_that_onnxruntime_still_has_is_not_given_again(
    runtime: Runtime, unraised: list[str]
) -> None:
    block = bytearray(4096)
    start = -(-ctypes.addressof(ctypes.c_char.from_buffer(block)) // 64) * 64
    answers = iter([start, start, start + 64, start - 64, start + 1024])
    returned: list[int] = []

    class Careless:
        def allocate(self, size: int, alignment: int) -> int:
            return next(answers)

        def free(self, block: int) -> None:
            returned.append(block)

    with runtime.allocator(Careless()) as allocator:
        first = allocator.tensor(SHAPE, "float32")
        for _ in range(3):
            with pytest.raises(AllocationError, match="of which ONNX Runtime still has 256"):
                allocator.tensor(SHAPE, "float32")
        second = allocator.tensor(SHAPE, "float32")
        assert sorted(allocator.blocks) == [start, start + 1024] and returned == []
        first.close()
        second.close()
        assert returned == [start, start + 1024]
    assert unraised == []


def test_sessions_take_memory_from_what_is_registered(runtime: Runtime) -> None:
    source = Buffers()
    allocator = runtime.allocator(source)
    with chain(runtime) as before:
        allocator.register()
        run(before).close()
    with chain(runtime, env_allocators=False) as apart:
        run(apart).close()
    assert source.sizes == []
    with chain(runtime) as session:
        output = run(session)
        assert source.sizes and not output.to_host().any()
        assert output.data_ptr in allocator.blocks
        for _ in range(2):
            with pytest.raises(InUseError, match=r"session of .*output 'output'"):
                allocator.close()
    with pytest.raises(InUseError, match="output 'output'"):
        allocator.close()
    output.close()
    assert source.lent == {}
    allocator.close()
    with chain(runtime) as after:
        count = len(source.sizes)
        run(after).close()
        assert len(source.sizes) == count


def test_one_allocator_is_registered_for_a_memory(runtime: Runtime) -> None:
    """ONNX Runtime would take the second from then on, without a word."""
    with runtime.allocator(Buffers()) as one, runtime.allocator(Buffers()) as other:
        one.register()
        for again in (one, other):
            with pytest.raises(
                MisuseError, match="allocator of Buffers is registered for the same"
            ):
                again.register()
        one.close()
        other.register()
    with runtime.allocator(Buffers()) as third:
        third.register()


@pytest.mark.parametrize("at", range(6))
def test_a_failure_in_a_run_is_raised_by_the_run(
    runtime: Runtime, unraised: list[str], at: int
) -> None:
    """Whichever allocation it is; ONNX Runtime itself would write to null."""
    source = Buffers()
    with runtime.allocator(source) as allocator:
        allocator.register()
        with chain(runtime) as session:
            source.fail_at = at
            failed = 0
            for _ in range(3):
                try:
                    run(session).close()
                except AllocationError as error:
                    assert error.__cause__ is source.error and "OrtApi.Run" in str(error)
                    failed += 1
            assert failed == 1
            # No output of the failed run is left, and none of the memory that stood in.
            assert set(allocator.blocks.values()) <= {256, 512}
        assert dict(allocator.blocks) == {} and source.lent == {}
    assert unraised == []


def test_a_failure_in_a_binding_is_raised_by_its_run(runtime: Runtime) -> None:
    source = Buffers()
    with runtime.allocator(source) as allocator:
        allocator.register()
        with chain(runtime) as session, session.io_binding() as binding:
            binding.bind_input("input", numpy.ones(SHAPE, numpy.float32))
            binding.bind_output("output")
            source.fail_at = 1
            with pytest.raises(AllocationError, match=r"OrtApi.RunWithBinding: .*the pool is dry"):
                binding.run()
            binding.run()
            output = binding.outputs()["output"]
            assert output.data_ptr in allocator.blocks
            with pytest.raises(InUseError, match="output 'output'"):
                allocator.close()
            output.close()


def test_an_interrupt_in_a_callback_is_raised_as_it_is(runtime: Runtime) -> None:
    source = Buffers()
    source.fail_at, source.error = 0, KeyboardInterrupt()
    with runtime.allocator(source) as allocator, pytest.raises(KeyboardInterrupt):
        allocator.tensor(SHAPE, "float32")


def test_a_failure_that_nobody_waits_for_is_reported(runtime: Runtime, unraised: list[str]) -> None:
    """A call below the layer: ONNX Runtime goes on with memory of its own."""
    source = Buffers()
    source.fail_at = 0
    api = runtime.library.api
    kind = ort.ONNXTensorElementDataType.ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT
    with runtime.allocator(source) as allocator:
        value, data = ctypes.POINTER(ort.OrtValue)(), ctypes.c_void_p()
        shape = (ctypes.c_int64 * 2)(*SHAPE)
        api.CreateTensorAsOrtValue(allocator.native, shape, 2, kind, value)
        assert unraised == ["the pool is dry"]
        api.GetTensorMutableData(value, data)
        assert data.value is not None and source.lent == {}
        ctypes.memset(data.value, 1, BYTES)
        with pytest.raises(InUseError, match=r"1 block\(s\) that ONNX Runtime has not freed"):
            allocator.close()
        api.ReleaseValue(value)
    assert unraised == ["the pool is dry"]


def test_a_failure_in_free_is_reported(runtime: Runtime, unraised: list[str]) -> None:
    source = Buffers()
    with runtime.allocator(source) as allocator:
        tensor = allocator.tensor(SHAPE, "float32")
        source.lent.clear()
        tensor.close()
        assert len(unraised) == 1 and dict(allocator.blocks) == {}


def test_what_was_not_given_is_not_taken_back(runtime: Runtime, unraised: list[str]) -> None:
    api = runtime.library.api
    kind = ort.ONNXTensorElementDataType.ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT
    with runtime.allocator(Buffers()) as allocator:
        value = ctypes.POINTER(ort.OrtValue)()
        block, shape = (ctypes.c_float * 64)(), (ctypes.c_int64 * 2)(*SHAPE)
        create = api.CreateTensorWithDataAndDeleterAsOrtValue
        create(allocator.native, ctypes.addressof(block), BYTES, shape, 2, kind, value)
        api.ReleaseValue(value)
        (told,) = unraised
        assert "was freed, which ONNX Runtime was not given" in told


def test_a_block_is_adopted(runtime: Runtime) -> None:
    source = Buffers()
    with runtime.allocator(source) as allocator:
        block = source.allocate(BYTES, 64)
        tensor = allocator.adopt(block, SHAPE, "float32")
        del block
        tensor.numpy()[...] = 3
        assert allocator.blocks == {tensor.data_ptr: BYTES}
        with pytest.raises(InUseError, match="tensor float32"):
            allocator.close()
        tensor.close()
        assert source.lent == {}
        kept = source.allocate(16, 64)
        for shape, text in (((64,), "where 256 are needed"), ((-1,), "shape")):
            with pytest.raises(MisuseError, match=text):
                allocator.adopt(kept, shape, "float32")
        assert source.lent and dict(allocator.blocks) == {}
        empty = allocator.adopt(kept, (0,), "float32")
        empty.close()
        assert source.lent == {}


def test_optional_methods_are_asked(runtime: Runtime) -> None:
    class Full(Buffers):
        def __init__(self) -> None:
            super().__init__()
            self.reserved: list[int] = []
            self.streams: list[Any] = []
            self.shrunk = 0

        def reserve(self, size: int, alignment: int) -> Any:
            self.reserved.append(size)
            return self.allocate(size, alignment)

        def allocate_on_stream(self, size: int, alignment: int, stream: Any) -> Any:
            self.streams.append(stream)
            return self.allocate(size, alignment)

        def stats(self) -> dict[str, Any]:
            if self.fail_at is not None:
                raise self.error
            return {"Limit": 4096, "name": "full"}

        def shrink(self) -> None:
            self.shrunk += 1

    source = Full()
    api = runtime.library.api
    with runtime.allocator(source) as allocator:
        native: Any = allocator.native
        pairs = ctypes.POINTER(ort.OrtKeyValuePairs)()
        api.AllocatorGetStats(native, pairs)
        assert api.GetKeyValue(pairs, b"Limit") == b"4096"
        api.ReleaseKeyValuePairs(pairs)
        source.fail_at = 99
        with pytest.raises(ort.OrtFailError, match="ValueError: the pool is dry"):
            api.AllocatorGetStats(native, pairs)
        address = native.AllocOnStream(native, 100, None)
        assert address in allocator.blocks and source.streams == [None]
        native.Free(native, address)
        if minor() >= 25:
            native.Shrink(native)
            assert source.shrunk == 1
        else:
            with pytest.raises(ort.NotSupportedByHost):
                native.Shrink  # noqa: B018
        native.Free(native, native.Reserve(native, 100))
        assert source.reserved == [100] and source.lent == {}


def product_model() -> bytes:
    """A model that multiplies by a constant, which a session packs when it is made."""
    graph = onnx.message(
        7,
        conv_model.node("MatMul", "product", ["input", "weights"], "output"),
        onnx.text(2, "product"),
        conv_model.weights("weights", (64, 64)),
        onnx.value(11, "input", onnx.FLOAT, (4, 64)),
        onnx.value(12, "output", onnx.FLOAT, (4, 64)),
    )
    opset = onnx.message(8, onnx.text(1, ""), onnx.number(2, 17))
    return onnx.number(1, 8) + graph + opset


def test_a_failure_while_a_session_is_made(runtime: Runtime) -> None:
    source = Buffers()
    with runtime.allocator(source) as allocator:
        allocator.register()
        with runtime.session(product_model(), env_allocators=True):
            assert source.sizes, "the packed weights"
        assert source.lent == {}
        source.fail_at = len(source.sizes)
        with pytest.raises(AllocationError, match=r"CreateSessionFromArray: .*the pool is dry"):
            runtime.session(product_model(), env_allocators=True)
        assert dict(allocator.blocks) == {} and source.lent == {}


def test_memory_of_a_device(rig: Rig) -> None:
    """Tensors of a pool inside imported memory are used in place by the EP."""
    start = rig.memory.tensor((), "int8", 1024)
    first, end = start.data_ptr, start.data_ptr + 2048
    start.close()

    class Arena:
        at = first

        def allocate(self, size: int, alignment: int) -> int | None:
            address = -(-self.at // alignment) * alignment
            if address + size > end:
                return None
            self.at = address + size
            return address

        def free(self, block: int) -> None:
            self.at = first

    with rig.runtime.allocator(Arena(), rig.device) as allocator:
        tensor = allocator.tensor(SHAPE, "float32")
        assert tensor.device == rig.device and first <= tensor.data_ptr < end
        tensor.from_host(numpy.full(SHAPE, 5, numpy.float32))
        rig.session.run({"input": tensor}, {"output": rig.y}, stream=rig.stream)
        assert (rig.y.to_host() == 5).all()
        with pytest.raises(AllocationError, match="has no memory for 4096 bytes"):
            Tensor.empty(rig.runtime, (1024,), "float32", rig.device, allocator=allocator)
        with pytest.raises(MisuseError, match="sessions take that from the EP"):
            allocator.register()
        cpu = rig.runtime.device("CPUExecutionProvider")
        with pytest.raises(WrongDeviceError):
            Tensor.empty(rig.runtime, (4,), "float32", cpu, allocator=allocator)
        with pytest.raises(InUseError, match="allocator of Arena"):
            rig.library.close()
        tensor.close()


def test_arguments_are_checked(runtime: Runtime) -> None:
    with pytest.raises(TypeError, match=r"object has no method allocate\(\)"):
        runtime.allocator(object())  # type: ignore[arg-type]
    for alignment in (0, -64, 48):
        with pytest.raises(ValueError, match="not a power of two"):
            runtime.allocator(Buffers(), alignment=alignment)


# Lives


def test_an_allocator_lives_as_long_as_what_it_gave(runtime: Runtime) -> None:
    source = Buffers()
    gone = weakref.ref(source)
    allocator = runtime.allocator(source)
    tensor = allocator.tensor(SHAPE, "float32")
    lent = source.lent
    del allocator, source
    gc.collect()
    assert gone() is not None
    tensor.close()
    gc.collect()
    assert lent == {} and gone() is None


def test_collected_in_any_order(runtime: Runtime) -> None:
    lent: list[dict[int, bytearray]] = []
    for _ in range(20):
        source = Buffers()
        lent.append(source.lent)
        things: dict[str, Any] = {"allocator": runtime.allocator(source)}
        things["allocator"].register()
        things["session"] = chain(runtime)
        things["output"] = run(things["session"])
        things["tensor"] = things["allocator"].tensor(SHAPE, "float32")
        things["self"] = things
        runtime._allocators.clear()
        del things, source
        gc.collect()
    assert not any(lent)


def test_the_native_part_outlives_what_is_not_known(runtime: Runtime, unraised: list[str]) -> None:
    """A session that something else made with a registered allocator may run to its end."""
    source = Buffers()
    allocator = runtime.allocator(source)
    allocator.register()
    session = chain(runtime, env_allocators=False, config={"session.use_env_allocators": "1"})
    from ort_interop.runtime._node import unlean

    unlean(session._node, allocator._node)
    session._pools = session._sharing = ()
    run(session).close()
    used = len(source.sizes)
    assert used
    allocator.close()
    del allocator
    gc.collect()
    assert not run(session).to_host().any()
    assert len(source.sizes) == used and "was closed, but something still allocates" in unraised[0]
    session.close()
    assert source.lent == {}


def test_closing_the_runtime_closes_what_is_registered(library: str) -> None:
    source = Buffers()
    runtime = Runtime.load(library)
    runtime.allocator(source).register()
    with chain(runtime) as session:
        run(session).close()
    runtime.close()
    assert source.sizes and source.lent == {}


def test_threads(runtime: Runtime, unraised: list[str]) -> None:
    """Of several threads, the one whose allocation failed hears of it."""

    class Picky(Buffers):
        def allocate(self, size: int, alignment: int) -> Any:
            if threading.current_thread().name == "unlucky":
                raise ValueError(f"not for you: {size}")
            return super().allocate(size, alignment)

    source = Picky()
    failures: list[tuple[str, str]] = []
    start = threading.Barrier(6)

    def work(allocator: Allocator, session: Session) -> None:
        start.wait()
        for _ in range(100):
            for make in (lambda: allocator.tensor(SHAPE, "float32"), lambda: run(session)):
                try:
                    make().close()
                except AllocationError as error:
                    failures.append((threading.current_thread().name, str(error.__cause__)))

    with runtime.allocator(source) as allocator:
        allocator.register()
        with chain(runtime) as session:
            names = ["unlucky", *(f"t{at}" for at in range(5))]
            threads = [
                threading.Thread(target=work, args=(allocator, session), name=n) for n in names
            ]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join(60)
        assert len(failures) == 200 and {name for name, _ in failures} == {"unlucky"}
        assert dict(allocator.blocks) == {} and source.lent == {}
    assert unraised == []


def test_a_failure_on_a_thread_of_onnxruntime_spares_no_call(runtime: Runtime) -> None:
    """Nobody can tell which of the calls under way it belonged to."""
    from ort_interop.runtime._allocator import watching

    source = Buffers()
    source.fail_at = 0
    with runtime.allocator(source) as allocator:
        native: Any = allocator.native
        with pytest.raises(AllocationError), watching([allocator._pool], "OrtApi.Run"):
            thread = threading.Thread(target=lambda: native.Free(native, native.Alloc(native, 8)))
            thread.start()
            thread.join(10)
        assert dict(allocator.blocks) == {}


WITHOUT = """
from layer_rig import *
import ctypes, gc, numpy
from ort_interop.runtime import Allocator
class Source:
    def allocate(self, size, alignment):
        if sys.argv[2] == "null":
            return None
        block = bytearray(size + alignment)
        return block
    def free(self, block):
        print("freed", flush=True)
runtime = Runtime.load(sys.argv[1])
allocator = runtime.allocator(Source())
api = runtime.library.api
if sys.argv[2] == "null":
    if sys.argv[3] == "unguarded":
        allocator._pool.stand_in = lambda size: None
    allocator.register()
    disabled = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    model = identity_model(SHAPE, operators=("Relu", "Neg"))
    session = runtime.session(model, optimization=disabled, threads=1, env_allocators=True)
    try:
        session.run({"input": numpy.ones(SHAPE, numpy.float32)})
    except MemoryError as error:
        print(type(error).__name__, flush=True)
else:
    tensor = allocator.tensor(SHAPE, "float32")
    if sys.argv[3] == "unguarded":
        runtime.library.forget(allocator.native)
        allocator._node.release = allocator._native.native = allocator._pool = None
        allocator._handle = None
    del allocator
    gc.collect()
    tensor.close()
print("survived")
"""


@pytest.mark.parametrize("case", ["null", "collected"])
@pytest.mark.parametrize("guard", ["unguarded", "guarded"])
def test_without_the_layer_onnxruntime_crashes(library: str, case: str, guard: str) -> None:
    """On memory that is null, and in an allocator that nothing has kept."""
    # Freed memory is overwritten, so that a crash does not depend on chance.
    environment = {"PYTHONMALLOC": "debug", "MALLOC_PERTURB_": "165"}
    done = child(WITHOUT, library, case, guard, environment=environment)
    if guard == "unguarded":
        assert done.returncode in CRASHES and "survived" not in done.stdout, done.stdout
    else:
        expected = "AllocationError" if case == "null" else "freed"
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout.split() == [expected, "survived"]


AT_EXIT = """
from layer_rig import *
import numpy, threading
class Source:
    def allocate(self, size, alignment):
        return bytearray(size + alignment)
    def free(self, block):
        pass
runtime = Runtime.load(sys.argv[1])
allocator = runtime.allocator(Source())
allocator.register()
session = runtime.session(identity_model(SHAPE, operators=("Relu", "Neg")), env_allocators=True)
output = session.run({"input": numpy.ones(SHAPE, numpy.float32)})["output"]
tensor = allocator.tensor(SHAPE, "float32")
if sys.argv[2] == "daemon":
    threading.Thread(target=threading.Event().wait, daemon=True).start()
"""


@pytest.mark.parametrize("mode", ["plain", "daemon"])
def test_the_interpreter_may_exit_with_an_allocator_in_use(library: str, mode: str) -> None:
    done = child(AT_EXIT, library, mode)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
