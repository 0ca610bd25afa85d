"""ONNX Runtime's traps: what happens without the layer's guards, in a child, and the error with."""

from __future__ import annotations

import shutil
import signal
from pathlib import Path

import pytest
from layer_ep import build_folder, variant
from layer_fixtures import host_ep_fixture, library_fixture, need_module, rig_fixture  # noqa: F401
from layer_rig import Rig, child, minor
from ort_interop.runtime import InUseError, StreamError, WouldBlockError

numpy = need_module("numpy")
CRASHES = {-signal.SIGSEGV, -signal.SIGABRT, -signal.SIGBUS, -signal.SIGILL}
BEGIN = """
from layer_rig import *
from ort_interop.runtime import Session, _session
import numpy, threading, time
made = Rig(sys.argv[1], sys.argv[2])
x, y, stream, semaphore = made.x, made.y, made.stream, made.semaphore
def unguarded(*names):
    for name in names:
        setattr(Session, name, lambda self, *rest: None)
"""
STREAM_ON_CPU = """
unguarded("_check_stream")
session = made.session_of("Identity", device=None)
session.run({"input": numpy.ones(SHAPE, numpy.float32)}, stream=stream)
print("survived")
"""
STREAM_WITHOUT_NODES = """
unguarded("_check_stream")
session = made.session_of("Relu")
session.run({"input": numpy.ones(SHAPE, numpy.float32)}, stream=stream)
print("survived")
"""


@pytest.mark.parametrize("program", [STREAM_ON_CPU, STREAM_WITHOUT_NODES], ids=["cpu", "no-nodes"])
def test_a_stream_crashes_a_session_without_device_streams(
    library: str, host_ep: str, program: str
) -> None:
    done = child(BEGIN + program, library, host_ep)
    assert done.returncode in CRASHES, (done.returncode, done.stdout, done.stderr)


def test_a_stream_is_refused_by_a_session_without_device_streams(rig: Rig) -> None:
    feeds = {"input": numpy.ones(rig.shape, numpy.float32)}
    with rig.session_of("Identity", device=None) as session:
        with pytest.raises(StreamError, match=r"without an EP device .* crashes"):
            session.run(feeds, stream=rig.stream)
        session.run(feeds)
    with rig.session_of("Relu") as session:
        message = "no node on HostInteropExecutionProvider .all run on CPUExecutionProvider"
        with pytest.raises(StreamError, match=message):
            session.run(feeds, stream=rig.stream)
        with pytest.raises(StreamError, match=message), session.io_binding() as binding:
            binding.run(stream=rig.stream)


PARALLEL = """
unguarded("_check_stream")
session = made.session_of("Identity", parallel=True)
x.from_host(numpy.full(SHAPE, 3, numpy.float32))
semaphore.wait(stream, 1)
session.run({"input": x}, {"output": y}, stream=stream)
print("ran before the wait was met:", (y.to_host() == 3).all(), made.counter.value)
made.counter.signal(1)
"""


def test_parallel_mode_ignores_the_stream(library: str, host_ep: str) -> None:
    done = child(BEGIN + PARALLEL, library, host_ep)
    assert "ran before the wait was met: True 0" in done.stdout, done.stderr


def test_parallel_mode_refuses_a_stream(rig: Rig) -> None:
    with rig.session_of("Identity", parallel=True) as session:
        for _ in range(2):
            with pytest.raises(StreamError, match="parallel mode"):
                session.run({"input": rig.x}, {"output": rig.y}, stream=rig.stream)
        session.run({"input": rig.x}, {"output": rig.y})


CPU_BETWEEN = """
unguarded("_check_early")
session = made.session_of("Identity", "Relu", "Identity")
assert {n.ep_name for n in session.nodes} == {made.device.ep_name, "CPUExecutionProvider"}
semaphore.wait(stream, 1)
run = session.prepare({"input": x}, {"output": y}, stream=stream, synchronize=False)
thread = threading.Thread(target=run)
thread.start()
thread.join(1)
print("blocked:", thread.is_alive())
made.counter.signal(1)
thread.join(20)
print("blocked:", thread.is_alive())
"""


def test_cpu_nodes_block_a_run_that_should_return(library: str, host_ep: str) -> None:
    done = child(BEGIN + CPU_BETWEEN, library, host_ep)
    assert done.stdout.splitlines() == ["blocked: True", "blocked: False"], done.stderr


def test_cpu_nodes_refuse_a_run_that_should_return(rig: Rig) -> None:
    with rig.session_of("Identity", "Relu", "Identity") as session:
        with pytest.raises(WouldBlockError, match=r"1 of its nodes run on the CPU \(n1 \(Relu\)\)"):
            session.run({"input": rig.x}, {"output": rig.y}, stream=rig.stream, synchronize=False)
        rig.x.from_host(numpy.full(rig.shape, -2, numpy.float32))
        session.run({"input": rig.x}, {"output": rig.y}, stream=rig.stream)
        assert not rig.y.to_host().any()


HOST_OUTPUT = """
_session._check_targets = lambda targets: None
x.from_host(numpy.full(SHAPE, 3, numpy.float32))
target = numpy.zeros(SHAPE, numpy.float32)
semaphore.wait(stream, 1)
run = made.session.prepare({"input": x}, {"output": made.runtime.tensor(target)},
                           stream=stream, synchronize=False)
thread = threading.Thread(target=run)
thread.start()
thread.join(1)
print("returned:", not thread.is_alive(), "filled:", bool((target == 3).all()))
made.counter.signal(1)
thread.join(20)
"""


def test_outputs_on_the_host_are_not_filled_by_a_run_that_returns(
    library: str, host_ep: str
) -> None:
    done = child(BEGIN + HOST_OUTPUT, library, host_ep)
    assert done.stdout in {
        "returned: True filled: False\n",
        "returned: False filled: False\n",
    }, done.stderr


def test_outputs_on_the_host_are_refused_where_a_run_returns(rig: Rig) -> None:
    host = rig.runtime.tensor(numpy.zeros(rig.shape, numpy.float32))
    for outputs in ({"output": host}, None):
        with pytest.raises(WouldBlockError, match="output would be on the host"):
            rig.session.run({"input": rig.x}, outputs, stream=rig.stream, synchronize=False)
    with rig.session.io_binding() as binding:
        binding.bind_input("input", rig.x)
        binding.bind_output("output")
        with pytest.raises(WouldBlockError, match="output would be on the host"):
            binding.run(stream=rig.stream, synchronize=False)
        binding.bind_output("output", rig.y)
        binding.run(stream=rig.stream, synchronize=False)
    rig.session.run({"input": rig.x}, {"output": rig.y}, stream=rig.stream)


BIND = """
if sys.argv[3] == "unguarded":
    _session._ASYNC_BIND = 1 << 30
COUNT = 1 << 23
made.shape = (COUNT,)
session = made.session_of("Identity")
binding = session.io_binding()
target = made.device and __import__("ort_interop.runtime", fromlist=["Tensor"]).Tensor.empty(
    made.runtime, (COUNT,), "float32", made.device)
binding.bind_output("output", target)
old = 0
for value in range(1, 21):
    binding.bind_input("input", numpy.full(COUNT, value, numpy.float32))
    binding.run(stream=stream)
    old += bool((target.to_host() != value).any())
print(old)
"""


@pytest.fixture(scope="module")
def queueing_ep(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The host EP as most are: copies from the host are queued, also where nothing is before them."""
    change = ("c/host/host.c", "staged && ep_queue_do_if_idle", "0 && ep_queue_do_if_idle")
    with build_folder(tmp_path_factory, "queueing") as folder:
        return variant(folder, change)


@pytest.mark.parametrize("guard", ["unguarded", "guarded"])
def test_binding_a_cpu_tensor_races_with_a_stream_from_1_31(
    library: str, queueing_ep: str, guard: str
) -> None:
    done = child(BEGIN + BIND, library, queueing_ep, guard)
    assert done.returncode == 0, done.stderr
    stale = int(done.stdout)
    if guard == "guarded" or minor() < 31:
        assert stale == 0
    else:
        assert stale > 0


UNREGISTER = """
api = made.runtime.library.api
made.semaphore.close()
try:
    made.library.unregister()
except Exception as error:
    print(type(error).__name__)
sys.stdout.flush()
if sys.argv[3] == "unguarded":
    api.UnregisterExecutionProviderLibrary(made.runtime._handle, b"host")
print(sum(made.session.run({"input": x}, {"output": y})["output"].to_host().ravel()))
print("survived", flush=True)
if sys.argv[3] == "guarded":
    # Unloading for real is not this EP's strength: its threads may still be in its code.
    import os
    os._exit(0)
"""


@pytest.fixture(scope="module")
def unloadable_ep(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The host EP without ``-z nodelete``, as most EPs are linked."""
    change = ("c/host/Makefile", "-Wl,-z,nodelete", "")
    with build_folder(tmp_path_factory, "unloadable") as folder:
        return variant(folder, change)


@pytest.mark.parametrize("guard", ["unguarded", "guarded"])
def test_unregistering_unmaps_code_in_use(library: str, unloadable_ep: str, guard: str) -> None:
    done = child(BEGIN + UNREGISTER, library, unloadable_ep, guard)
    assert done.stdout.startswith("InUseError"), done.stderr
    if guard == "guarded":
        assert (done.returncode, done.stderr) == (0, "") and done.stdout.endswith("survived\n")
    elif minor() >= 27:
        assert done.returncode in CRASHES and "survived" not in done.stdout
    # Before 1.27 the code stays mapped, and the misuse only looks harmless.


def test_unregistering_is_refused(rig: Rig) -> None:
    with pytest.raises(InUseError, match="session of a model"):
        rig.library.unregister()


def test_a_relative_path_is_the_programs_and_not_onnxruntimes(
    library: str, host_ep: str, tmp_path: Path
) -> None:
    """ONNX Runtime resolves relative paths against its own folder."""
    shutil.copy(host_ep, tmp_path / "ep.so")
    program = """
import os
from layer_rig import *
os.chdir(sys.argv[2])
with Runtime.load(sys.argv[1]) as runtime, runtime.register_library("ep.so") as ep:
    print(ep.path == os.path.join(sys.argv[2], "ep.so"), len(ep.devices))
"""
    done = child(program, library, str(tmp_path))
    assert done.stdout == "True 1\n", done.stderr


def test_loading_an_older_library_prints_nothing_and_raises(tmp_path: Path) -> None:
    from support import ort_library_path

    old = ort_library_path("1.23.2")
    program = """
from layer_rig import *
try:
    Runtime.load(sys.argv[1])
except ort.UnsupportedVersion as error:
    print(error)
"""
    done = child(program, str(old))
    assert done.stderr == "" and "1.23.2" in done.stdout and "1.24" in done.stdout
