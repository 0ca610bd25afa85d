"""Sessions, runs that are prepared once, and bindings, kept clear of ONNX Runtime's traps."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Iterable, Mapping
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from .._loading import ortchar
from .._types import get
from ._allocator import registered, registering, watching
from ._device import CPU_EP
from ._elements import Element, element
from ._errors import MisuseError, StreamError, WouldBlockError, WrongDeviceError
from ._interop import Value, Working, streams_with
from ._native import bound, create, node_of, text, texts
from ._node import Resource, drop, entered, inside, lean, unlean
from ._tensor import Tensor, copy

if TYPE_CHECKING:
    from .. import GraphOptimizationLevel
    from ._allocator import Allocator
    from ._device import Device, MemoryInfo
    from ._interop import Semaphore, Stream
    from ._runtime import Runtime

_T = TypeVar("_T")
_RETURN_EARLY = b"disable_synchronize_execution_providers"
_RECORD_NODES = b"session.record_ep_graph_assignment_info"
_ENV_ALLOCATORS = "session.use_env_allocators"
_ASYNC_BIND = 31
"""From this release on, binding a CPU tensor copies it on the session's own stream."""


class ValueInfo(NamedTuple):
    """An input or output: ``shape`` has None for sizes that are not fixed, ``dtype`` is None for
    what is no tensor of fixed-size elements."""

    name: str
    dtype: str | None
    shape: tuple[int | None, ...]


class NodeInfo(NamedTuple):
    """A node of the model and the EP that runs it."""

    name: str
    operator: str
    ep_name: str


class Session(Resource):
    """A loaded model; from :meth:`Runtime.session`."""

    __slots__ = (
        "_nodes",
        "_pools",
        "_run",
        "_sharing",
        "_streams",
        "devices",
        "inputs",
        "outputs",
        "parallel",
        "runtime",
    )

    def __init__(
        self,
        runtime: Runtime,
        model: str | os.PathLike[str] | bytes | bytearray | memoryview,
        devices: list[Device],
        *,
        config: dict[str, str],
        provider_options: dict[str, str],
        parallel: bool,
        optimization: GraphOptimizationLevel | None,
        threads: int | None,
        env_allocators: bool,
    ) -> None:
        self.runtime = runtime
        self.devices = tuple(devices)
        self.parallel = parallel
        library = runtime.library
        api = library.api
        options = create(library, "OrtApi.CreateSessionOptions")
        try:
            if devices:
                self._append(options, devices, provider_options)
            config = {_RECORD_NODES.decode(): "1", **config}
            if env_allocators:
                config[_ENV_ALLOCATORS] = "1"
            for key, value in config.items():
                api.AddSessionConfigEntry(options, key.encode(), value.encode())
            if parallel:
                api.SetSessionExecutionMode(options, get("ExecutionMode").ORT_PARALLEL)
            if optimization is not None:
                api.SetSessionGraphOptimizationLevel(options, optimization)
            if threads is not None:
                api.SetIntraOpNumThreads(options, threads)
            shares = config.get(_ENV_ALLOCATORS) == "1"
            with registering if shares else nullcontext():
                shared = registered(runtime._environment) if shares else []
                with inside(*shared):
                    self._create(model, options, shared)
        finally:
            api.ReleaseSessionOptions(options)
        self._run = api.Run
        self._streams: dict[int, str] = {}
        self._nodes: tuple[NodeInfo, ...] | None = None
        self.inputs = self._values("Input")
        self.outputs = self._values("Output")

    def _create(
        self,
        model: str | os.PathLike[str] | bytes | bytearray | memoryview,
        options: Any,
        shared: list[Allocator],
    ) -> None:
        """Load the model; the session keeps the allocators that it takes memory from."""
        runtime = self.runtime
        library = runtime.library
        environment = runtime._handle
        arguments: list[Any]
        if isinstance(model, (str, os.PathLike)):
            name = f"session of {os.path.basename(os.fspath(model))}"
            slot, arguments = "OrtApi.CreateSession", [ortchar(model)]
        else:
            data = bytes(model)
            name = f"session of a model of {len(data)} bytes"
            slot, arguments = "OrtApi.CreateSessionFromArray", [data, len(data)]
        self._sharing = tuple(allocator._node for allocator in shared)
        self._pools = tuple(allocator._pool for allocator in shared)
        handle = None
        try:
            with watching(self._pools, slot):
                handle = create(library, slot, environment, *arguments, options)
        except BaseException:
            if handle is not None:
                library.api.ReleaseSession(handle)
            raise
        related = [runtime._node, *(n for d in self.devices for n in d._related)]
        node = node_of(library, handle, name, related)
        lean(node, self._sharing)
        self._own(node, handle)

    def _append(self, options: Any, devices: list[Device], entries: dict[str, str]) -> None:
        for device in devices:
            if device.runtime._environment != self.runtime._environment:
                raise WrongDeviceError(
                    f"{device!r} is of another environment than {self.runtime!r}"
                )
        handles = (ctypes.POINTER(get("OrtEpDevice")) * len(devices))(
            *(ctypes.pointer(d._handle) for d in devices)
        )
        environment = self.runtime._handle
        self.runtime.library.api.SessionOptionsAppendExecutionProvider_V2(
            options,
            environment,
            handles,
            len(devices),
            texts(entries),
            texts(entries.values()),
            len(entries),
        )

    @entered
    def _values(self, side: str) -> tuple[ValueInfo, ...]:
        """The inputs or the outputs."""
        library = self.runtime.library
        api: Any = library.api
        count = ctypes.c_size_t()
        getattr(api, f"SessionGet{side}Count")(self._handle, count)
        return tuple(self._value(side, at) for at in range(count.value))

    @entered
    def _value(self, side: str, at: int) -> ValueInfo:
        library = self.runtime.library
        api: Any = library.api
        allocator = ctypes.POINTER(get("OrtAllocator"))()
        api.GetAllocatorWithDefaultOptions(allocator)
        name = ctypes.POINTER(ctypes.c_char)()
        getattr(api, f"SessionGet{side}Name")(self._handle, at, allocator, name)
        found = text(ctypes.string_at(name))
        api.AllocatorFree(allocator, name)
        kind = create(library, f"OrtApi.SessionGet{side}TypeInfo", self._handle, at)
        try:
            info = ctypes.POINTER(get("OrtTensorTypeAndShapeInfo"))()
            api.CastTypeInfoToTensorInfo(kind, info)
            if not info:
                return ValueInfo(found, None, ())
            cell = get("c_ONNXTensorElementDataType")()
            api.GetTensorElementType(info, cell)
            rank = ctypes.c_size_t()
            api.GetDimensionsCount(info, rank)
            sizes = (ctypes.c_int64 * max(rank.value, 1))()
            api.GetDimensions(info, sizes, rank.value)
            shape = tuple(size if size >= 0 else None for size in sizes[: rank.value])
            fixed = _fixed(cell.member)
            return ValueInfo(found, fixed.dtype if fixed else None, shape)
        finally:
            api.ReleaseTypeInfo(kind)

    @property
    @entered
    def nodes(self) -> tuple[NodeInfo, ...]:
        """Every node of the optimised model that is left, with the EP that runs it."""
        if self._nodes is None:
            self._nodes = tuple(self._assigned())
        return self._nodes

    def _assigned(self) -> Iterable[NodeInfo]:
        api = self.runtime.library.api
        handle = self._handle
        graphs = ctypes.POINTER(ctypes.POINTER(get("OrtEpAssignedSubgraph")))()
        count = ctypes.c_size_t()
        api.Session_GetEpGraphAssignmentInfo(handle, graphs, count)
        for graph in graphs[: count.value]:
            ep_name, nodes = (
                ctypes.c_char_p(),
                ctypes.POINTER(ctypes.POINTER(get("OrtEpAssignedNode")))(),
            )
            api.EpAssignedSubgraph_GetEpName(graph, ep_name)
            number = ctypes.c_size_t()
            api.EpAssignedSubgraph_GetNodes(graph, nodes, number)
            for node in nodes[: number.value]:
                name, operator = ctypes.c_char_p(), ctypes.c_char_p()
                api.EpAssignedNode_GetName(node, name)
                api.EpAssignedNode_GetOperatorType(node, operator)
                yield NodeInfo(text(name.value), text(operator.value), text(ep_name.value))

    @entered
    def _places(self, side: str) -> dict[str, Device | None]:
        values = self.inputs if side == "Inputs" else self.outputs
        handle = self._handle
        found = (ctypes.POINTER(get("OrtEpDevice")) * max(len(values), 1))()
        api: Any = self.runtime.library.api
        getattr(api, f"SessionGetEpDeviceFor{side}")(handle, found, len(values))
        known = {d._address: d for d in self.runtime.devices()}
        places: dict[str, Device | None] = {}
        for at, value in enumerate(values):
            device = known.get(ctypes.addressof(found[at].contents)) if found[at] else None
            if device is not None and device not in self.devices:
                # ONNX Runtime matches by the EP's name, so with two registrations of one EP it may
                # name the other.
                same = [d for d in self.devices if d.ep_name == device.ep_name]
                device = same[0] if same else device
            places[value.name] = device
        return places

    def input_devices(self) -> dict[str, Device | None]:
        """The EP device that reads each input; None for inputs that no node reads."""
        return self._places("Inputs")

    def output_devices(self) -> dict[str, Device | None]:
        """The EP device that writes each output; None where none is known."""
        return self._places("Outputs")

    def run(
        self,
        feeds: Mapping[str, Any],
        outputs: Mapping[str, Tensor] | Iterable[str] | None = None,
        *,
        stream: Stream | None = None,
        synchronize: bool = True,
    ) -> dict[str, Tensor]:
        """Run the model once.

        ``feeds`` are tensors or arrays by input; ``outputs`` are tensors to write to by output, or
        the names of those wanted (all, if left out), for which tensors of the host are made.
        With ``stream`` the work is queued on it, and with ``synchronize=False`` the call returns
        once that has happened.  Raises :class:`StreamError`, :class:`WouldBlockError` or
        :class:`WrongDeviceError` where ONNX Runtime would crash, ignore the stream, or block.
        """
        with self.prepare(feeds, outputs, stream=stream, synchronize=synchronize) as prepared:
            return prepared()

    @entered
    def prepare(
        self,
        feeds: Mapping[str, Any],
        outputs: Mapping[str, Tensor] | Iterable[str] | None = None,
        *,
        stream: Stream | None = None,
        synchronize: bool = True,
    ) -> PreparedRun:
        """A run that is checked once and can then be called many times, with the same tensors."""
        return PreparedRun(self, feeds, outputs, stream, synchronize)

    @entered
    def frame(
        self,
        feeds: Mapping[str, Any],
        outputs: Mapping[str, Tensor],
        *,
        stream: Stream,
        wait: Semaphore,
        signal: Semaphore,
    ) -> Frame:
        """What a frame loop repeats, prepared once: wait for a semaphore, run, signal another.

        The two may be one semaphore.  The call with the two values queues the frame and returns.
        """
        return Frame(self, feeds, outputs, stream, wait, signal)

    def io_binding(self) -> IoBinding:
        """A new binding of inputs and outputs."""
        return IoBinding(self)

    def _check_stream(self, stream: Stream) -> None:
        """Refuse a stream that ONNX Runtime would crash on or ignore."""
        key = stream._node.serial
        if key not in self._streams:
            self._streams[key] = self._stream_problem(stream)
        problem = self._streams[key]
        if problem:
            kind = WrongDeviceError if problem.startswith("is of ") else StreamError
            raise kind(f"{self._node.label} cannot run on {stream._node.label}: it {problem}")

    def _stream_problem(self, stream: Stream) -> str:
        if self.parallel:
            return (
                "executes in parallel mode, in which ONNX Runtime ignores the stream, so that "
                "nothing orders the run; make the session without parallel=True"
            )
        if not self.devices:
            return "was made without an EP device and has no device streams: ONNX Runtime crashes"
        if stream.device.runtime._environment != self.runtime._environment:
            return f"is of {self.runtime!r}, the stream of {stream.device.runtime!r}"
        wanted = stream.device.memory
        fitting = [d for d in self.devices if d == stream.device or d.memory == wanted]
        if not fitting:
            have = ", ".join(f"{d.ep_name} ({_where(d.memory)})" for d in self.devices)
            return f"is of {have}, the stream of {stream.device.ep_name} ({_where(wanted)})"
        if all(d.memory is None or d.memory.is_cpu for d in fitting):
            return (
                "uses an EP whose memory is the CPU's, and has no device streams: ONNX Runtime "
                "crashes"
            )
        names = {d.ep_name for d in fitting}
        if not any(node.ep_name in names for node in self.nodes):
            return (
                f"has no node on {', '.join(sorted(names))} (all run on "
                f"{', '.join(sorted({n.ep_name for n in self.nodes})) or 'no EP'}), so it has no "
                "device streams: ONNX Runtime crashes"
            )
        return ""

    def _check_early(self) -> None:
        """Refuse a run that could not return before its work is done."""
        blocking = [n for n in self.nodes if n.ep_name == CPU_EP]
        if blocking:
            listed = ", ".join(f"{n.name or n.operator} ({n.operator})" for n in blocking[:5])
            raise WouldBlockError(
                f"{self._node.label} cannot run with synchronize=False: {len(blocking)} of its nodes "
                f"run on the CPU ({listed}), and ONNX Runtime waits for the device before them; a "
                "caller that must itself signal what the device waits for would wait forever"
            )


def _fixed(member: Any) -> Element | None:
    try:
        return element(member)
    except ValueError:
        return None


def _where(memory: MemoryInfo | None) -> str:
    if memory is None:
        return "no device memory"
    kind = memory.device_type.name.rpartition("_")[2]
    return f"{kind}, vendor {memory.vendor_id:#x}, device {memory.device_id}"


def _named(session: Session, side: str, values: tuple[ValueInfo, ...], name: str) -> ValueInfo:
    for value in values:
        if value.name == name:
            return value
    known = ", ".join(v.name for v in values)
    raise MisuseError(f"{session._node.label} has no {side} {name!r}; it has {known}")


def _check_tensor(session: Session, side: str, info: ValueInfo, tensor: Tensor) -> None:
    """Refuse a tensor whose type or shape cannot be the value's, or of another ONNX Runtime."""
    if tensor.runtime._environment != session.runtime._environment:
        raise WrongDeviceError(
            f"{side} {info.name!r}: {tensor._node.label} is of {tensor.runtime!r}, the session of "
            f"{session.runtime!r}"
        )
    if info.dtype is not None and tensor.dtype != info.dtype:
        raise MisuseError(f"{side} {info.name!r} is {info.dtype}, the tensor {tensor.dtype}")
    fits = len(info.shape) == len(tensor.shape) and all(
        want is None or want == have for want, have in zip(info.shape, tensor.shape, strict=True)
    )
    if info.dtype is not None and info.shape and not fits:
        raise MisuseError(
            f"{side} {info.name!r} has the shape {list(info.shape)}, the tensor {list(tensor.shape)}"
        )


def _adopt(session: Session, handle: Any, name: str) -> Tensor:
    """A tensor that ONNX Runtime made."""
    runtime = session.runtime
    api = runtime.library.api
    related = [runtime._node, *(n for d in session.devices for n in d._related)]
    node = node_of(runtime.library, handle, f"output {name!r} of {session._node.label}", related)
    try:
        lean(node, session._sharing)
        if not _is_tensor(session, handle):
            raise MisuseError(f"output {name!r} of {session._node.label} is no tensor")
        info = create(runtime.library, "OrtApi.GetTensorTypeAndShape", handle)
        try:
            cell = get("c_ONNXTensorElementDataType")()
            api.GetTensorElementType(info, cell)
            rank = ctypes.c_size_t()
            api.GetDimensionsCount(info, rank)
            sizes = (ctypes.c_int64 * max(rank.value, 1))()
            api.GetDimensions(info, sizes, rank.value)
        finally:
            api.ReleaseTensorTypeAndShapeInfo(info)
        made = Tensor(runtime, node, handle, element(cell.member), tuple(sizes[: rank.value]), None)
    except BaseException:
        drop(node)
        raise
    memory = made.memory
    if not memory.is_cpu:
        made.device = next((d for d in session.devices if _same(d.memory, memory)), None)
    return made


def _is_tensor(session: Session, handle: Any) -> bool:
    answer = ctypes.c_int()
    session.runtime.library.api.IsTensor(handle, answer)
    return answer.value != 0


def _adopt_all(session: Session, handles: dict[str, Any]) -> dict[str, Tensor]:
    """Tensors that ONNX Runtime made; if one of them is none, all are released."""
    found = {}
    try:
        for name in list(handles):
            found[name] = _adopt(session, handles.pop(name), name)
    finally:
        for handle in handles.values():
            session.runtime.library.api.ReleaseValue(handle)
    return found


def _same(one: MemoryInfo | None, other: MemoryInfo) -> bool:
    """Whether two descriptions are of the same memory; names do not matter."""
    return one is not None and one[1:] == other[1:]


class PreparedRun(Working):
    """A run with its tensors and its stream, checked once; from :meth:`Session.prepare`.

    Calling it runs the model.  It keeps its tensors in use until it is closed.
    """

    __slots__ = ("_invoke", "_made", "_outputs", "_stream", "session")

    _invoke: Callable[..., None]

    def __init__(
        self,
        session: Session,
        feeds: Mapping[str, Any],
        outputs: Mapping[str, Tensor] | Iterable[str] | None,
        stream: Stream | None,
        synchronize: bool,
    ) -> None:
        self.session = session
        inputs = _inputs(session, feeds)
        targets = _targets(session, outputs)
        if not synchronize:
            _check_targets(targets)
        given = {name: tensor for name, tensor in targets.items() if tensor is not None}
        values = [*inputs.values(), *given.values()]
        own = _options(self, session, stream, synchronize)
        self._outputs = given
        self._made = [] if len(given) == len(targets) else list(targets)
        self._stream = stream
        try:
            lean(self._node, [session._node, *(tensor._node for tensor in values)])
            arguments = [session._handle, own, texts(inputs), _array(inputs.values()), len(inputs)]
            arguments += [texts(targets), len(targets)]
            if not self._made:
                arguments.append(_array(given.values()))
            self._invoke = _watched(session, "OrtApi.Run", bound(session._run, *arguments))
            if stream is not None and not synchronize:
                self._works_on(stream)
        except BaseException:
            self._close(strict=False)
            raise

    def __call__(self) -> dict[str, Tensor]:
        """Run the model once; returns the outputs by name."""
        calls = self._calls
        calls.append(None)
        try:
            self._handle  # noqa: B018 - raises when closed
            if self._work is not None:
                try:
                    self._invoke()
                finally:
                    # Also after a failure: part of the work may have been queued.
                    self._work.note(self._next(), len(calls) == 1)
                return self._outputs
            stream = self._stream
            number = stream._next() if stream is not None else 0
            outputs = self._make() if self._made else self._plain()
            if stream is not None:
                # A run that synchronizes leaves nothing before it undone.
                stream._done(number)
            return outputs
        finally:
            calls.pop()

    def _plain(self) -> dict[str, Tensor]:
        self._invoke()
        return self._outputs

    def _make(self) -> dict[str, Tensor]:
        """Run with outputs that ONNX Runtime allocates."""
        results = _array(self._outputs.get(name) for name in self._made)
        new = [at for at, name in enumerate(self._made) if name not in self._outputs]
        try:
            self._invoke(results)
        except BaseException:
            # Where an allocation has failed ONNX Runtime may not know of it.
            for at in new:
                if results[at]:
                    self.session.runtime.library.api.ReleaseValue(results[at])
            raise
        made = {self._made[at]: results[at].contents for at in new}
        adopted = _adopt_all(self.session, made)
        return {name: self._outputs.get(name) or adopted[name] for name in self._made}


def _watched(session: Session, slot: str, invoke: Callable[..., None]) -> Callable[..., None]:
    """The call, raising what fails in the allocators that the session takes memory from."""
    if not session._pools:
        return invoke

    def run(*arguments: Any) -> None:
        with watching(session._pools, slot):
            invoke(*arguments)

    return run


def _options(run: Resource, session: Session, stream: Stream | None, synchronize: bool) -> Any:
    """Give a run its native options, after checking that ONNX Runtime will do what they say."""
    library = session.runtime.library
    if stream is not None:
        session._check_stream(stream)
    if not synchronize:
        if stream is None:
            raise MisuseError(
                "synchronize=False needs a stream: nothing else tells when it is done"
            )
        session._check_early()
    handle = create(library, "OrtApi.CreateRunOptions")
    lent = {"sync_stream": stream._node} if stream is not None else {}
    slot = "OrtApi.RunOptionsSetSyncStream"
    run._own(node_of(library, handle, f"run of {session._node.label}", [], slot, lent), handle)
    if stream is not None:
        library.api.RunOptionsSetSyncStream(handle, stream._handle)
    if not synchronize:
        library.api.AddRunConfigEntry(handle, _RETURN_EARLY, b"1")
    return handle


def _inputs(session: Session, feeds: Mapping[str, Any]) -> dict[str, Tensor]:
    found = {}
    for name, value in feeds.items():
        info = _named(session, "input", session.inputs, name)
        tensor = value if isinstance(value, Tensor) else Tensor.of(session.runtime, value)
        _check_tensor(session, "input", info, tensor)
        found[name] = tensor
    return found


def _targets(
    session: Session, outputs: Mapping[str, Tensor] | Iterable[str] | None
) -> dict[str, Tensor | None]:
    """The wanted outputs with the tensors that they are written to."""
    found: dict[str, Tensor | None] = {}
    if isinstance(outputs, Mapping):
        found.update(outputs)
    else:
        wanted = [value.name for value in session.outputs] if outputs is None else outputs
        found.update(dict.fromkeys(wanted))
    if not found:
        raise MisuseError(f"{session._node.label}: no outputs are wanted")
    for name, target in found.items():
        info = _named(session, "output", session.outputs, name)
        if target is not None:
            _check_tensor(session, "output", info, target)
    return found


def _check_targets(targets: Mapping[str, Tensor | None]) -> None:
    """Refuse outputs on the host for a run that returns early."""
    host = [name for name, target in targets.items() if target is None or target.memory.is_cpu]
    if host:
        raise WouldBlockError(
            f"synchronize=False: {', '.join(host)} would be on the host, where nothing is written "
            "before the work is done; give tensors of the device"
        )


def _array(tensors: Iterable[Tensor | None]) -> Any:
    """A C array of values, with null for what ONNX Runtime is to make."""
    listed = list(tensors)
    made = (ctypes.POINTER(get("OrtValue")) * max(len(listed), 1))()
    for at, tensor in enumerate(listed):
        if tensor is not None:
            made[at] = ctypes.pointer(tensor._handle)
    return made


class Frame(PreparedRun):
    """Wait, run and signal in one call; from :meth:`Session.frame`."""

    __slots__ = ("_key", "_observed", "_signal", "_signals", "_values", "_wait")

    def __init__(
        self,
        session: Session,
        feeds: Mapping[str, Any],
        outputs: Mapping[str, Tensor],
        stream: Stream,
        wait: Semaphore,
        signal: Semaphore,
    ) -> None:
        for semaphore in (wait, signal):
            stream._fit(semaphore)
        super().__init__(session, feeds, outputs, stream, False)
        before, after = wait.importer, signal.importer
        used = [stream, wait, signal, before, after]
        lean(self._node, [resource._node for resource in used])
        self._wait = bound(before._wait, before._handle, wait._handle, stream._handle)
        self._signal = bound(after._signal, after._handle, signal._handle, stream._handle)
        self._values = Value(), Value()
        self._signals = stream._signals
        self._key, self._observed = signal._observed()

    def __call__(self, wait: int, signal: int) -> dict[str, Tensor]:  # type: ignore[override]
        """Queue: wait for a value, run, signal a value.  Returns the outputs, not yet written."""
        # What a frame costs on the host is this: no calls and no checks that could be made before.
        calls = self._calls
        calls.append(None)
        try:
            self._handle  # noqa: B018 - raises when closed
            alone = len(calls) == 1
            before, after = self._values if alone else (Value(), Value())
            # Both before anything is queued: a value may be none.
            try:
                before.view[0] = wait
                after.view[0] = signal
            except ValueError:
                raise Value.problem(wait, signal) from None
            try:
                self._wait(before.native)
                self._invoke()
            finally:
                number = self._next()
                if alone:
                    self._work.number = number
                else:
                    self._work.beside(number)
            self._signal(after.native)
            if self._key:
                self._signals[self._key] = self._observed, signal, number
            return self._outputs
        finally:
            calls.pop()


class IoBinding(Resource):
    """Tensors bound to a session's inputs and outputs; what is bound cannot be closed."""

    __slots__ = ("_bound", "_host", "_runs", "session")

    def __init__(self, session: Session) -> None:
        self.session = session
        self._bound: dict[tuple[str, str], Tensor] = {}
        self._host: set[str] = set()
        self._runs: dict[tuple[int, bool], BoundRun] = {}
        library = session.runtime.library
        with inside(session):
            handle = create(library, "OrtApi.CreateIoBinding", session._handle)
            label = f"binding of {session._node.label}"
            self._own(node_of(library, handle, label, [session._node]), handle)

    @entered
    def bind_input(self, name: str, value: Any) -> None:
        """Bind a tensor or an array to an input.

        What is in host memory is copied to the device now, as ONNX Runtime did before 1.31; later
        releases copy on a stream of their own, which a run on another stream does not wait for.
        """
        session = self.session
        info = _named(session, "input", session.inputs, name)
        tensor = value if isinstance(value, Tensor) else Tensor.of(session.runtime, value)
        _check_tensor(session, "input", info, tensor)
        api = session.runtime.library.api
        if tensor.memory.is_cpu and _release(session) >= _ASYNC_BIND:
            tensor = self._staged(name, tensor)
        with inside(tensor), watching(session._pools, "OrtApi.BindInput"):
            api.BindInput(self._handle, name.encode(), tensor._handle)
            self._keep("input", name, tensor)

    def _staged(self, name: str, tensor: Tensor) -> Tensor:
        device = self.session.input_devices().get(name)
        memory = device.memory if device is not None else None
        if device is None or memory is None or memory.is_cpu:
            return tensor
        twin = Tensor.empty(self.session.runtime, tensor.shape, tensor.element.onnx, device)
        copy(tensor, twin)
        return twin

    @entered
    def bind_output(self, name: str, target: Tensor | Device | None = None) -> None:
        """Bind an output to a tensor, or let it be made on a device, or on the host."""
        session = self.session
        info = _named(session, "output", session.outputs, name)
        api = session.runtime.library.api
        if isinstance(target, Tensor):
            _check_tensor(session, "output", info, target)
            with inside(target):
                api.BindOutput(self._handle, name.encode(), target._handle)
                self._keep("output", name, target)
            (self._host.add if target.memory.is_cpu else self._host.discard)(name)
            return
        with inside(target):
            own = target._memory_handle() if target is not None else None
            if target is not None and own is None:
                raise MisuseError(f"{target!r} has no allocator to make the output with")
            memory = own if own is not None else session.runtime._cpu_memory()
            api.BindOutputToDevice(self._handle, name.encode(), memory)
        self._keep("output", name, None)
        (self._host.add if target is None else self._host.discard)(name)

    @entered
    def clear(self) -> None:
        """Unbind everything."""
        api = self.session.runtime.library.api
        api.ClearBoundInputs(self._handle)
        api.ClearBoundOutputs(self._handle)
        self._host.clear()
        for side, name in list(self._bound):
            self._keep(side, name, None)

    def _keep(self, side: str, name: str, tensor: Tensor | None) -> None:
        """Need what is bound, and no longer what was bound before, once no work uses it."""
        old = self._bound.pop((side, name), None)
        if tensor is not None:
            lean(self._node, [tensor._node])
            self._bound[side, name] = tensor
        if old is not None and old not in self._bound.values():
            for stream in streams_with(self._node):
                stream._queued(old._node)
            unlean(self._node, old._node)

    @entered
    def prepare(self, *, stream: Stream | None = None, synchronize: bool = True) -> BoundRun:
        """A run of what is bound, checked once, to be called many times."""
        return BoundRun(self, stream, synchronize)

    @entered
    def run(self, *, stream: Stream | None = None, synchronize: bool = True) -> None:
        """Run the model on what is bound; see :meth:`Session.run` for the arguments."""
        key = (stream._node.serial if stream is not None else 0, synchronize)
        found = self._runs.get(key)
        if found is None or found.closed:
            found = self._runs[key] = BoundRun(self, stream, synchronize)
        found()

    @entered
    def outputs(self) -> dict[str, Tensor]:
        """The outputs of the last run, those made by ONNX Runtime included."""
        api = self.session.runtime.library.api
        allocator = ctypes.POINTER(get("OrtAllocator"))()
        api.GetAllocatorWithDefaultOptions(allocator)
        values = ctypes.POINTER(ctypes.POINTER(get("OrtValue")))()
        count = ctypes.c_size_t()
        api.GetBoundOutputValues(self._handle, allocator, values, count)
        handles = [values[at].contents if values[at] else None for at in range(count.value)]
        if values:
            api.AllocatorFree(allocator, values)
        named = zip(self._output_names(), handles, strict=True)
        return _adopt_all(self.session, {name: h for name, h in named if h is not None})

    @entered
    def _output_names(self) -> list[str]:
        api = self.session.runtime.library.api
        allocator = ctypes.POINTER(get("OrtAllocator"))()
        api.GetAllocatorWithDefaultOptions(allocator)
        buffer = ctypes.POINTER(ctypes.c_char)()
        lengths = ctypes.POINTER(ctypes.c_size_t)()
        count = ctypes.c_size_t()
        api.GetBoundOutputNames(self._handle, allocator, buffer, lengths, count)
        names, at = [], 0
        for size in lengths[: count.value] if count.value else ():
            names.append(text(ctypes.string_at(ctypes.addressof(buffer.contents) + at, size)))
            at += size
        for block in (buffer, lengths):
            if block:
                api.AllocatorFree(allocator, block)
        return names

    def _close(self, strict: bool) -> None:
        for run in self._runs.values():
            run._close(strict)
        self._runs.clear()
        super()._close(strict)


class BoundRun(Working):
    """A run of a binding; from :meth:`IoBinding.prepare`."""

    __slots__ = ("_host", "_invoke", "_stream")

    def __init__(self, binding: IoBinding, stream: Stream | None, synchronize: bool) -> None:
        session = binding.session
        own = _options(self, session, stream, synchronize)
        lean(self._node, [binding._node])
        api = session.runtime.library.api
        invoke = bound(api.RunWithBinding, session._handle, own, binding._handle)
        self._invoke = _watched(session, "OrtApi.RunWithBinding", invoke)
        self._stream = stream
        self._host = binding._host
        if stream is not None and not synchronize:
            self._works_on(stream)

    def __call__(self) -> None:
        """Run the model once."""
        calls = self._calls
        calls.append(None)
        try:
            self._handle  # noqa: B018 - raises when closed
            if self._work is not None:
                if self._host:
                    _check_targets(dict.fromkeys(self._host))
                try:
                    self._invoke()
                finally:
                    self._work.note(self._next(), len(calls) == 1)
                return
            stream = self._stream
            number = stream._next() if stream is not None else 0
            self._invoke()
            if stream is not None:
                stream._done(number)
        finally:
            calls.pop()


def _release(session: Session) -> int:
    """The minor number of the host's release, which is not the API version in use."""
    return int(session.runtime.version.split(".")[1])
