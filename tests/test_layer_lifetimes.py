"""Lives in the Python layer: every order of release, misuse, threads, collection and exit."""

from __future__ import annotations

import gc
import itertools
import random
import threading
import time
import tracemalloc
import weakref
from typing import Any

import pytest
from layer_fixtures import host_ep_fixture, library_fixture, need_module, rig_fixture  # noqa: F401
from layer_rig import SIZE, Rig, child, ort
from ort_interop.runtime import ClosedError, InUseError, Runtime
from ort_interop.runtime import _semantics as semantics

numpy = need_module("numpy")
PARTS = ("runtime", "library", "importer", "memory", "semaphore", "x", "y", "stream", "session")
NEEDED_BY = {
    "x": {"memory", "library", "runtime"},
    "y": {"memory", "library", "runtime"},
    "memory": {"library", "runtime"},
    "semaphore": {"library", "runtime"},
    "stream": {"library", "runtime"},
    "session": {"library", "runtime"},
    "importer": {"library", "runtime"},
    "library": set(),
    "runtime": set(),
}


@pytest.mark.parametrize("seed", range(40))
def test_any_order_of_closing_is_refused_or_right(library: str, host_ep: str, seed: int) -> None:
    """What something open needs refuses to close, and says so; the rest closes."""
    made = Rig(library, host_ep)
    order = list(PARTS)
    random.Random(seed).shuffle(order)
    parts = made.parts
    left = set(PARTS)
    while left:
        for name in [n for n in order if n in left]:
            needing = {n for n in left if name in NEEDED_BY[n]}
            if name == "runtime" and left == {"runtime", "library"}:
                needing = set()
            if needing:
                with pytest.raises(InUseError, match="cannot be closed: in use by") as refused:
                    parts[name].close()
                assert refused.value.users
                assert not parts[name].closed
            else:
                parts[name].close()
                assert parts[name].closed
                left.discard(name)
                if name == "runtime":
                    left.discard("library")
        order.reverse()
    made.exported.close()
    made.counter.close()


def test_refusals_name_who_needs_the_object(rig: Rig) -> None:
    with pytest.raises(InUseError) as refused:
        rig.library.unregister()
    text = str(refused.value)
    for part in ("EP library 'host'", "tensor float32[4, 16]", "session of a model", "stream of"):
        assert part in text
    with pytest.raises(InUseError, match="tensor float32") as refused:
        rig.memory.close()
    assert len(refused.value.users) == 2
    rig.memory.tensor((1,), "int8").close()


USES: dict[str, Any] = {
    "importer": lambda r: r.importer.import_memory(r.exported.fd, SIZE),
    "memory": lambda r: r.memory.tensor((1,), "int8"),
    "semaphore": lambda r: r.semaphore.wait(r.stream, 0),
    "x": lambda r: r.session.run({"input": r.x}),
    "y": lambda r: r.y.to_host(),
    "stream": lambda r: r.semaphore.signal(r.stream, 1),
    "session": lambda r: r.session.run({"input": r.x}),
}


@pytest.mark.parametrize("name", USES)
def test_use_after_close_raises(rig: Rig, name: str) -> None:
    if name == "memory":
        rig.x.close()
        rig.y.close()
    part = rig.parts[name]
    part.close()
    part.close()
    assert part.closed and repr(part).endswith(", closed>")
    with pytest.raises(ClosedError, match="is closed"):
        USES[name](rig)
    with pytest.raises(ClosedError), part:
        pass


def test_devices_end_with_their_library(rig: Rig, host_ep: str) -> None:
    with rig.runtime.register_library(host_ep, "second") as second:
        (device,) = second.devices
    for use in (device.importer, device.stream, lambda: device.metadata):
        with pytest.raises(ClosedError, match="'second' is unregistered"):
            use()
    assert "device" in repr(device)


def test_imported_things_outlive_their_importer(rig: Rig) -> None:
    rig.importer.close()
    assert rig.x.to_host().shape == (4, 16)
    rig.session.run({"input": rig.x}, {"output": rig.y}, stream=rig.stream)
    for call in (
        lambda: rig.memory.tensor((1,), "int8"),
        lambda: rig.semaphore.wait(rig.stream, 0),
    ):
        with pytest.raises(ClosedError, match="importer of HostInterop"):
            call()


def test_an_array_keeps_its_tensor(rig: Rig) -> None:
    tensor = rig.memory.tensor((4,), "float32")
    view = tensor.numpy()[1:3]
    with pytest.raises(InUseError, match=r"1 array\(s\) that view it"):
        tensor.close()
    del tensor
    gc.collect()
    view[:] = 5
    assert bytes(rig.exported.view[4:12]) == numpy.float32([5, 5]).tobytes()
    with pytest.raises(InUseError, match="tensor float32"):
        rig.library.close()
    del view
    gc.collect()


def test_a_prepared_run_keeps_what_it_uses(rig: Rig) -> None:
    run = rig.session.prepare({"input": rig.x}, {"output": rig.y}, stream=rig.stream)
    for part in (rig.x, rig.y, rig.session, rig.stream):
        with pytest.raises(InUseError, match="run of session"):
            part.close()
    run()
    run.close()
    with pytest.raises(ClosedError):
        run()


def test_a_binding_keeps_what_is_bound(rig: Rig) -> None:
    with rig.session.io_binding() as binding:
        binding.bind_input("input", rig.x)
        binding.bind_output("output", rig.y)
        binding.run(stream=rig.stream)
        for part in (rig.x, rig.y, rig.session):
            with pytest.raises(InUseError, match="binding of session"):
                part.close()
        other = rig.memory.tensor(rig.shape, "float32", 1024)
        binding.bind_input("input", other)
        rig.x.close()
        binding.clear()
        other.close()


def test_queued_work_keeps_what_it_uses(rig: Rig) -> None:
    """Closing what a stream still works on closes it for the program, and later for real."""
    inputs = rig.memory.tensor(rig.shape, "float32", 1024)
    semaphore = rig.importer.import_semaphore(rig.counter.fd)
    semaphore.wait(rig.stream, 1)
    rig.session.run({"input": inputs}, {"output": rig.y}, stream=rig.stream, synchronize=False)
    semaphore.signal(rig.stream, 2)
    assert "imported semaphore" in rig.stream.pending
    semaphore.close()
    with pytest.raises(InUseError, match="its work may still use"):
        rig.stream.close()
    del inputs
    gc.collect()
    with pytest.raises(InUseError, match="EP library"):
        rig.library.close()
    rig.counter.signal(1)
    rig.semaphore.wait_on_host(2, 10)
    # The closed semaphore cannot tell any more; a synchronous run can.
    rig.session.run({"input": rig.x}, {"output": rig.y}, stream=rig.stream)
    assert rig.stream.pending == ()


@pytest.mark.parametrize("end", ["close", "drop"])
@pytest.mark.parametrize("kind", ["run", "frame", "fence", "binding"])
def test_what_repeats_keeps_what_it_queued(rig: Rig, kind: str, end: str) -> None:
    """Until the work is seen to be done, whether the object is closed or merely dropped."""
    tensors = {"input": rig.x}, {"output": rig.y}
    blocked = rig.importer.import_semaphore(rig.counter.fd)
    binding = rig.session.io_binding()
    binding.bind_input("input", rig.x)
    binding.bind_output("output", rig.y)
    made: Any
    if kind == "frame":
        made = rig.session.frame(*tensors, stream=rig.stream, wait=blocked, signal=blocked)
        made(1, 2)
    else:
        blocked.wait(rig.stream, 1)
        if kind == "fence":
            made = blocked.on(rig.stream)
            made.wait(1)
        elif kind == "run":
            made = rig.session.prepare(*tensors, stream=rig.stream, synchronize=False)
            made()
        else:
            made = binding.prepare(stream=rig.stream, synchronize=False)
            made()
        blocked.signal(rig.stream, 2)
    node = made._node
    users = len(rig.stream._node.users)
    if end == "close":
        made.close()
    del made
    gc.collect()
    assert node.label in rig.stream.pending and len(rig.stream._node.users) == users
    with pytest.raises(InUseError, match=r"its work may still use|run of session"):
        rig.stream.close()
    rig.counter.signal(1)
    rig.semaphore.wait_on_host(2, 10)
    assert rig.stream.pending == () and node.references == 0
    binding.close()
    blocked.close()


def test_the_program_may_say_that_work_is_done(rig: Rig) -> None:
    rig.session.run({"input": rig.x}, {"output": rig.y}, stream=rig.stream, synchronize=False)
    assert rig.stream.pending
    with pytest.raises(InUseError, match="assume_idle"):
        rig.stream.close()
    rig.session.run({"input": rig.x}, {"output": rig.y})
    rig.stream.assume_idle()
    assert rig.stream.pending == ()


def test_an_error_in_a_block_is_not_hidden(rig: Rig) -> None:
    with pytest.raises(KeyError, match="mine"):  # noqa: SIM117
        with rig.importer.import_memory(rig.exported.fd, SIZE) as memory:
            tensor = memory.tensor((4,), "int8")
            raise KeyError("mine")
    assert memory.closed and not tensor.closed
    tensor.to_host()
    tensor.close()


def test_cycles_are_collected_in_a_safe_order(rig: Rig) -> None:
    """The collector finalizes the objects of a cycle in no order that could be relied on."""
    for order in itertools.permutations(("memory", "tensor", "semaphore", "stream")):
        things: dict[str, Any] = {}
        things["self"] = things
        memory = rig.importer.import_memory(rig.exported.fd, SIZE)
        made = {
            "memory": memory,
            "tensor": memory.tensor((4,), "int8"),
            "semaphore": rig.importer.import_semaphore(rig.counter.fd),
            "stream": rig.device.stream(),
        }
        things.update({name: made[name] for name in order})
        gone = weakref.ref(made["tensor"])
        del memory, made, things
        gc.collect()
        assert gone() is None
    assert len(rig.library._node.users) == len(PARTS) - 2


def test_a_dropped_runtime_leaves_nothing(library: str, host_ep: str) -> None:
    from ort_interop.runtime import _node

    before = set(_node._living)
    for _ in range(3):
        made = Rig(library, host_ep)
        made.session.run({"input": made.x}, {"output": made.y})
        made.exported.close()
        made.counter.close()
        del made
        gc.collect()
    assert set(_node._living) <= before


def test_a_frame_loop_does_not_grow(rig: Rig) -> None:
    tensors = {"input": rig.x}, {"output": rig.y}
    semaphore = rig.semaphore
    with rig.session.frame(*tensors, stream=rig.stream, wait=semaphore, signal=semaphore) as frame:

        def loop(first: int, last: int) -> int:
            for value in range(first, last):
                frame(value, value + 1)
                if value % 100 == 0:
                    semaphore.wait_on_host(value + 1)
            semaphore.wait_on_host(last)
            gc.collect()
            return tracemalloc.get_traced_memory()[0]

        tracemalloc.start()
        try:
            loop(0, 1000)
            before = loop(1000, 2000)
            assert loop(2000, 12000) - before < 1000
        finally:
            tracemalloc.stop()


def test_nothing_is_released_inside_a_callback(rig: Rig) -> None:
    """ONNX Runtime may hold locks while it logs."""
    from ort_interop.runtime import _node

    tensor = rig.memory.tensor((4,), "int8")
    serial = tensor._node.serial
    with _node.called_back():
        del tensor
        gc.collect()
        assert serial in _node._living
    rig.memory.tensor((4,), "int8").close()
    assert serial not in _node._living


def test_threads_make_use_and_close_at_once(rig: Rig) -> None:
    errors: list[BaseException] = []
    start = threading.Barrier(4)

    def work(seed: int) -> None:
        dice = random.Random(seed)
        try:
            start.wait()
            for _ in range(60):
                memory = rig.importer.import_memory(rig.exported.fd, SIZE)
                x = memory.tensor(rig.shape, "float32")
                y = memory.tensor(rig.shape, "float32", 4096)
                stream = rig.device.stream()
                rig.session.run({"input": x}, {"output": y}, stream=stream)
                things = [x, y, stream]
                dice.shuffle(things)
                if dice.random() < 0.5:
                    for thing in things:
                        thing.close()
                    memory.close()
                if dice.random() < 0.1:
                    gc.collect()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []


def test_threads_share_a_frame(rig: Rig) -> None:
    """Each call's values reach ONNX Runtime, and all that was queued is waited for."""
    tensors = {"input": rig.x}, {"output": rig.y}
    semaphore, here = rig.semaphore, threading.get_ident
    native: list[tuple[int, int]] = []
    asked: list[tuple[int, int]] = []
    frame = rig.session.frame(*tensors, stream=rig.stream, wait=semaphore, signal=semaphore)
    fence = semaphore.on(rig.stream)

    def recording(call: Any) -> Any:
        def record(value: Any) -> None:
            # Another thread may run between the writing of the value and this, and after it.
            time.sleep(0)
            native.append((here(), value.value))
            call(value)

        return record

    for thing in (frame, fence):
        thing._wait, thing._signal = recording(thing._wait), recording(thing._signal)

    def work(number: int) -> None:
        for at in range(50):
            value = 1 + number + 10 * at
            frame(0, value)
            fence.wait(0)
            fence.signal(value)
            asked.extend((here(), each) for each in (0, value, 0, value))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(native) == 800
    for thread in {t for t, _ in asked}:
        assert [v for t, v in native if t == thread] == [v for t, v in asked if t == thread]
    last = rig.stream._next()
    works = list(rig.stream._progress.works)
    assert {work.node.label for work in works} == {frame._node.label, fence._node.label}
    assert all(0 < max(work.number, work.others) < last for work in works)
    semaphore.signal(rig.stream, 1000)
    semaphore.wait_on_host(1000, 10)
    frame.close()
    fence.close()
    assert rig.stream.pending == ()


def test_closing_races_with_use(rig: Rig) -> None:
    """One thread uses what another closes: an error, a refusal, or in time; never a crash."""
    for _ in range(50):
        semaphore = rig.importer.import_semaphore(rig.counter.fd)
        session = rig.session_of("Identity")
        seen: list[str] = []

        def use(semaphore: Any = semaphore, session: Any = session, seen: Any = seen) -> None:
            try:
                for _ in range(20):
                    semaphore.wait(rig.stream, 0)
                    session.run({"input": rig.x}, {"output": rig.y}, stream=rig.stream)
                seen.append("done")
            except ClosedError:
                seen.append("closed")

        thread = threading.Thread(target=use)
        thread.start()
        semaphore.close()
        try:
            session.close()
        except InUseError:
            seen.append("refused")
        thread.join()
        assert {"done", "closed"} & set(seen)
        session.close()


EXIT = """
from layer_rig import *
import gc, threading, time
made = Rig(sys.argv[1], sys.argv[2])
view = made.x.numpy()
capsule = made.y.__dlpack__()
made.semaphore.wait(made.stream, 1)
made.session.run({"input": made.x}, {"output": made.y}, stream=made.stream, synchronize=False)
made.semaphore.signal(made.stream, 2)
binding = made.session.io_binding()
prepared = made.session.prepare({"input": made.x}, {"output": made.y}, stream=made.stream)
cycle = [made, binding]
cycle.append(cycle)
mode = sys.argv[3]
if mode == "signalled":
    made.counter.signal(1)
if mode == "daemon":
    def forever():
        while True:
            made.session.run({"input": made.x})
    threading.Thread(target=forever, daemon=True).start()
    time.sleep(0.1)
if mode == "awaited":
    import asyncio
    async def main():
        waiting = asyncio.ensure_future(made.semaphore.reached(9))
        await asyncio.sleep(0.05)
    asyncio.run(main())
print("end")
"""


@pytest.mark.parametrize("mode", ["pending", "signalled", "daemon", "awaited"])
def test_the_interpreter_may_exit_with_everything_open(
    library: str, host_ep: str, mode: str
) -> None:
    done = child(EXIT, library, host_ep, mode)
    assert (done.returncode, done.stdout, done.stderr) == (0, "end\n", "")


FORK = """
from layer_rig import *
import gc, os, warnings
warnings.simplefilter("ignore")
made = Rig(sys.argv[1], sys.argv[2])
pid = os.fork()
if pid == 0:
    del made
    gc.collect()
    os._exit(0)  # as multiprocessing does: ONNX Runtime's own end waits for threads it has lost
_, status = os.waitpid(pid, 0)
made.session.run({"input": made.x}, {"output": made.y})
made.close()
print(status)
"""


def test_a_forked_child_releases_nothing(library: str, host_ep: str) -> None:
    done = child(FORK, library, host_ep, timeout=30)
    assert (done.returncode, done.stdout, done.stderr) == (0, "0\n", "")


def test_the_spec_decides_what_needs_what(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a handle that must not outlive its importer, the importer could not be closed."""
    needs = f"{semantics.NEEDS['OrtExternalMemoryHandle']} OrtExternalResourceImporter"
    monkeypatch.setitem(semantics.NEEDS, "OrtExternalMemoryHandle", needs)
    importer = rig.device.importer()
    assert importer is not None
    memory = importer.import_memory(rig.exported.fd, SIZE)
    with pytest.raises(InUseError, match="in use by imported memory"):
        importer.close()
    memory.close()
    importer.close()


def test_the_spec_decides_what_a_null_result_means(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    slot = "OrtInteropApi.CreateExternalResourceImporterForDevice"
    cpu = rig.runtime.device("CPUExecutionProvider")
    assert cpu.importer() is None
    monkeypatch.delitem(semantics.UNSUPPORTED, slot)
    with pytest.raises(ort.OrtFailError, match="without a result"):
        cpu.importer()


def test_failed_creations_leave_nothing(rig: Rig) -> None:
    users = dict(rig.library._node.users)
    for _ in range(3):
        with pytest.raises(ort.OrtError):
            rig.runtime.session(b"no model", rig.device)
        with pytest.raises(ort.OrtError):
            rig.memory.tensor((1,), "complex64")
        with pytest.raises(ort.OrtError):
            rig.session.run({})
    gc.collect()
    assert rig.library._node.users == users


def test_an_unknown_library_is_refused(rig: Rig, tmp_path: Any) -> None:
    with pytest.raises(ort.OrtError):
        rig.runtime.register_library(tmp_path / "none.so", "none")
    assert "none" not in rig.runtime.libraries


def test_closing_a_runtime_unregisters_idle_libraries(library: str, host_ep: str) -> None:
    runtime = Runtime.load(library)
    registered = runtime.register_library(host_ep)
    assert registered.name == "libort_interop_host"
    runtime.close()
    assert registered.closed and runtime.closed
