"""Importers, imported memory, timeline semaphores and the streams that wait for and signal them."""

from __future__ import annotations

import ctypes
import mmap
import os
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Sequence
from itertools import count
from typing import TYPE_CHECKING, Any

from .._types import get
from ._elements import element
from ._errors import ClosedError, DescriptorError, InUseError, WrongDeviceError
from ._native import borrows, bound, create, node_of, supported
from ._node import Node, Resource, before_close, drop, entered, hold, inside
from ._observer import HostSemaphore, Observer, Waiters
from ._tensor import Tensor

if TYPE_CHECKING:
    from .. import OrtExternalMemoryHandleType, OrtExternalSemaphoreType
    from ._device import Device

_SIZE_MAX = (1 << 64) - 1
_INT64_MAX = (1 << 63) - 1
_WAIT = "OrtInteropApi.WaitSemaphore"
_SIGNAL = "OrtInteropApi.SignalSemaphore"
_WAIT_BORROWS = borrows(_WAIT, "semaphore_handle")
_SIGNAL_BORROWS = borrows(_SIGNAL, "semaphore_handle")
_streams: weakref.WeakSet[Stream] = weakref.WeakSet()


def _nobody() -> None:
    """Stands for a reference to an observer where there is none."""


def _whole(struct: str, field: str, value: object, least: int = 0, most: int = _SIZE_MAX) -> int:
    """The value as an integer within its limits; bool is not one."""
    index = getattr(value, "__index__", None)
    if index is None or isinstance(value, bool):
        raise DescriptorError(struct, field, f"is {value!r}, not a whole number")
    number = int(index())
    if not least <= number <= most:
        raise DescriptorError(struct, field, f"is {number}, not within {least} and {most}")
    return number


def _native_handle(struct: str, kind: str, handle: object) -> int:
    """A native handle that can be one of its kind."""
    field = "native_handle"
    if kind.endswith("_OPAQUE_FD"):
        fileno = getattr(handle, "fileno", None)
        number = _whole(struct, field, fileno() if fileno is not None else handle, 0, (1 << 31) - 1)
        try:
            os.fstat(number)
        except OSError as error:
            reason = f"is {number}, no open file descriptor: {error.strerror}"
            raise DescriptorError(struct, field, reason) from None
        return number
    number = _whole(struct, field, handle, 1)
    if kind.endswith("_HOST_ALLOCATION") and number % mmap.PAGESIZE:
        reason = f"is {number:#x}, which is not aligned to the page size of {mmap.PAGESIZE} bytes"
        raise DescriptorError(struct, field, reason)
    return number


def check_shape(struct: str, shape: Iterable[int]) -> tuple[tuple[int, ...], int]:
    """The dimensions and how many elements they hold; the product may not overflow."""
    dimensions = tuple(
        _whole(struct, f"shape[{at}]", size, 0, _INT64_MAX) for at, size in enumerate(shape)
    )
    product = 1
    for at, size in enumerate(dimensions):
        product *= size or 1
        if product > _INT64_MAX:
            raise DescriptorError(struct, f"shape[{at}]", f"is {size}: the elements overflow")
    return dimensions, 0 if 0 in dimensions else product


class _Enqueuing(Resource):
    """What calls on streams use: they enter themselves with the stream alone."""

    __slots__ = ()

    def _settle(self) -> None:
        # The handle is out of reach by now; calls that have it only queue work, and are soon over.
        for stream in list(_streams):
            while stream._calls:
                time.sleep(0)


class Importer(_Enqueuing):
    """Imports another API's memory and semaphores for one device; from :meth:`Device.importer`."""

    __slots__ = ("_signal", "_wait", "device")

    def __init__(self, device: Device, node: Node, handle: Any) -> None:
        self.device = device
        table = device.runtime.library.interop_api
        self._wait = table.WaitSemaphore
        self._signal = table.SignalSemaphore
        self._own(node, handle)

    @entered
    def can_import_memory(self, kind: OrtExternalMemoryHandleType) -> bool:
        """Whether memory with that kind of handle can be imported."""
        _expect("kind", kind, "OrtExternalMemoryHandleType")
        slot = "OrtInteropApi.CanImportMemory"
        return supported(self.device.runtime.library, slot, self._handle, kind)

    @entered
    def can_import_semaphore(self, kind: OrtExternalSemaphoreType) -> bool:
        """Whether semaphores of that kind can be imported."""
        _expect("kind", kind, "OrtExternalSemaphoreType")
        slot = "OrtInteropApi.CanImportSemaphore"
        return supported(self.device.runtime.library, slot, self._handle, kind)

    @entered
    def import_memory(
        self,
        handle: Any,
        size: int,
        kind: OrtExternalMemoryHandleType | None = None,
        *,
        offset: int = 0,
    ) -> Memory:
        """Import the region from ``offset`` to the end of an external allocation.

        ``handle`` is a file descriptor (or an object with ``fileno()``), a Win32 handle or an
        address, as ``kind`` says (a file descriptor if left out), and stays the caller's; ``size``
        is the whole allocation's, in bytes.  Raises :class:`DescriptorError` before the EP sees
        what cannot be right, and :class:`OrtNotImplementedError` for kinds it does not import.
        """
        kinds = get("OrtExternalMemoryHandleType")
        default = kinds.ORT_EXTERNAL_MEMORY_HANDLE_TYPE_MEMORY_OPAQUE_FD
        chosen = _expect("kind", default if kind is None else kind, "OrtExternalMemoryHandleType")
        struct = "OrtExternalMemoryDescriptor"
        number = _native_handle(struct, chosen.name, handle)
        whole = _whole(struct, "size_bytes", size, 1)
        start = _whole(struct, "offset_bytes", offset)
        if start > whole:
            reason = f"is {start}, past the end at size_bytes {whole}"
            raise DescriptorError(struct, "offset_bytes", reason)
        library = self.device.runtime.library
        descriptor = library.make(
            get(struct),
            handle_type=chosen,
            native_handle=number,
            size_bytes=whole,
            offset_bytes=start,
        )
        slot = "OrtInteropApi.ImportMemory"
        made = create(library, slot, self._handle, descriptor)
        label = f"imported memory of {whole - start} bytes"
        related = [*self.device._related, self._node]
        return Memory(self, node_of(library, made, label, related, slot), made, whole - start)

    @entered
    def import_semaphore(
        self,
        handle: Any,
        kind: OrtExternalSemaphoreType | None = None,
        *,
        observer: Observer | None = None,
    ) -> Semaphore:
        """Import a timeline semaphore; the handle stays the caller's.

        ``observer`` tells its value on the host, where the caller's API can; for the host EP's
        own semaphores one is made.
        """
        kinds = get("OrtExternalSemaphoreType")
        default = kinds.ORT_EXTERNAL_SEMAPHORE_VK_TIMELINE_SEMAPHORE_OPAQUE_FD
        chosen = _expect("kind", default if kind is None else kind, "OrtExternalSemaphoreType")
        struct = "OrtExternalSemaphoreDescriptor"
        number = _native_handle(struct, chosen.name, handle)
        library = self.device.runtime.library
        descriptor = library.make(get(struct), type=chosen, native_handle=number)
        slot = "OrtInteropApi.ImportSemaphore"
        made = create(library, slot, self._handle, descriptor)
        if observer is None and chosen.name.endswith("_OPAQUE_FD"):
            observer = HostSemaphore.of(number)
        related = [*self.device._related, self._node]
        node = node_of(library, made, "imported semaphore", related, slot)
        return Semaphore(self, node, made, observer)


class Memory(Resource):
    """Imported memory; ``size`` is the region's, in bytes."""

    __slots__ = ("importer", "size")

    def __init__(self, importer: Importer, node: Node, handle: Any, size: int) -> None:
        self.importer = importer
        self.size = size
        self._own(node, handle)

    def tensor(self, shape: Sequence[int], dtype: Any, offset: int = 0) -> Tensor:
        """A tensor that views the region from ``offset`` bytes on, without a copy.

        Views may overlap.  ``dtype`` is an enumerator, a NumPy or ml_dtypes type, or its name.
        """
        struct = "OrtExternalTensorDescriptor"
        kind = element(dtype)
        dimensions, count = check_shape(struct, shape)
        start = _whole(struct, "offset_bytes", offset)
        needed = kind.bytes_of(count)
        if start > self.size or needed > self.size - start:
            reason = f"is {start}: the tensor needs {needed} bytes, the region has {self.size}"
            raise DescriptorError(struct, "offset_bytes", reason)
        if start % kind.alignment:
            reason = f"is {start}; {kind.dtype} needs a multiple of {kind.alignment}"
            raise DescriptorError(struct, "offset_bytes", reason)
        device = self.importer.device
        library = device.runtime.library
        sizes = (ctypes.c_int64 * max(len(dimensions), 1))(*dimensions)
        descriptor = library.make(
            get(struct),
            element_type=kind.onnx,
            shape=sizes,
            rank=len(dimensions),
            offset_bytes=start,
        )
        slot = "OrtInteropApi.CreateTensorFromMemory"
        with inside(self, self.importer):
            made = create(library, slot, self.importer._handle, self._handle, descriptor)
            label = f"tensor {kind.dtype}{list(dimensions)} of {self._node.label}"
            related = [*device._related, self._node]
            node = node_of(library, made, label, related, slot, {"mem_handle": self._node})
        return Tensor(device.runtime, node, made, kind, dimensions, device, self)


class Semaphore(_Enqueuing):
    """An imported timeline semaphore."""

    __slots__ = ("_waiters", "_watched", "importer", "observer")

    def __init__(
        self, importer: Importer, node: Node, handle: Any, observer: Observer | None
    ) -> None:
        self.importer = importer
        self.observer = observer
        self._waiters = Waiters(observer) if observer is not None else None
        self._watched = weakref.ref(observer) if observer is not None else _nobody
        self._own(node, handle)

    @entered
    def on(self, stream: Stream) -> StreamSemaphore:
        """The semaphore with one stream, for loops: checked and converted once."""
        return StreamSemaphore(self, stream)

    def wait(self, stream: Stream, value: int) -> None:
        """Make later work of the stream wait until the semaphore has reached a value."""
        importer = self.importer
        if stream._fits is not importer:
            stream._fit(self)
        if not 0 <= value <= _SIZE_MAX:
            raise Value.problem(value)
        calls = stream._calls
        calls.append(None)
        try:
            importer._wait(importer._handle, self._handle, stream._handle, value)
            if _WAIT_BORROWS:
                stream._queued(self._node)
        finally:
            calls.pop()

    def signal(self, stream: Stream, value: int) -> None:
        """Set the semaphore to a value once the stream's earlier work is done."""
        importer = self.importer
        if stream._fits is not importer:
            stream._fit(self)
        if not 0 <= value <= _SIZE_MAX:
            raise Value.problem(value)
        calls = stream._calls
        calls.append(None)
        try:
            # Numbered first: what another thread queues meanwhile may come after the signal.
            number = stream._next()
            importer._signal(importer._handle, self._handle, stream._handle, value)
            if _SIGNAL_BORROWS:
                stream._queued(self._node, number)
            if self.observer is not None:
                stream._signals[id(self.observer)] = self._watched, value, number
        finally:
            calls.pop()

    @property
    def value(self) -> int | None:
        """The value now; None where the backend cannot tell."""
        return self.observer.value if self.observer is not None else None

    def wait_on_host(self, value: int, timeout: float | None = None) -> None:
        """Block until a value is reached; TimeoutError after ``timeout`` seconds."""
        observer = self._observer()
        if not observer.wait(value, timeout):
            raise TimeoutError(
                f"{self._node.label} stands at {observer.value} and did not reach {value} "
                f"within {timeout} s"
            )

    async def reached(self, value: int) -> None:
        """Return once a value is reached; the event loop runs meanwhile, and nothing polls."""
        self._observer()
        assert self._waiters is not None
        await self._waiters.reached(value)

    def _observed(self) -> tuple[int, Callable[[], Observer | None]]:
        """The observer's identity, 0 without one, and how to reach it as long as it exists."""
        return id(self.observer) if self.observer is not None else 0, self._watched

    def _observer(self) -> Observer:
        self._handle  # noqa: B018 - raises when closed
        if self.observer is None:
            raise NotImplementedError(
                f"{self._node.label}: its backend does not tell the host its value; import it with "
                "an observer, or wait with the API that made it"
            )
        return self.observer

    def _closing(self) -> None:
        if self._waiters is not None:
            self._waiters.close(ClosedError(f"{self._node.label} was closed"))


class Value:
    """A native variable for the value of a semaphore, which a repeated call is given again.

    Writing to ``view[0]`` checks the value, which ctypes would not.
    """

    __slots__ = ("native", "view")

    def __init__(self) -> None:
        self.native = ctypes.c_uint64()
        self.view = memoryview(self.native).cast("B").cast("Q")

    @staticmethod
    def problem(*values: int) -> ValueError:
        """What to raise where a value was refused."""
        given = " and ".join(map(str, values))
        return ValueError(f"the semaphore's value must be within 0 and {_SIZE_MAX}, not {given}")


class Progress:
    """How far a stream is: numbers for what is queued, and up to which of them all is done."""

    __slots__ = ("done", "mutex", "next", "works")

    next: Callable[[], int]

    def __init__(self) -> None:
        self.mutex = threading.Lock()
        self.next = count(1).__next__
        self.done = 0
        self.works: dict[Work, None] = {}


class Work:
    """What a prepared object has queued on a stream, without a lock for each time.

    ``number`` is that of its last work; only calls that are alone in their object write it.
    """

    __slots__ = ("ended", "node", "number", "others", "progress")

    def __init__(self, progress: Progress, node: Node) -> None:
        self.progress = progress
        self.node = node
        self.number = 0
        self.others = 0
        self.ended = False
        hold(node)
        progress.works[self] = None

    @property
    def pending(self) -> bool:
        """Whether the work may not be done yet."""
        return max(self.number, self.others) > self.progress.done

    def note(self, number: int, alone: bool) -> None:
        """Work with that number has been queued."""
        if alone:
            self.number = number
        else:
            self.beside(number)

    def beside(self, number: int) -> None:
        """The same from calls that are not alone, which may come here in any order."""
        with self.progress.mutex:
            self.others = max(self.others, number)

    def end(self) -> None:
        """Nothing more will be queued; callable from finalizers."""
        self.ended = True
        self.settle()

    def settle(self) -> None:
        """Let go of the node if nothing is queued nor will be."""
        # Of several threads that find the same, one takes the entry.
        if self.ended and not self.pending and self.progress.works.pop(self, self) is None:
            drop(self.node)


class Working(Resource):
    """An object that queues work on a stream again and again."""

    __slots__ = ("_next", "_work")

    _next: Callable[[], int]
    _work: Any

    def _own(self, node: Node, handle: Any = None) -> None:
        self._work = None
        super()._own(node, handle)

    def _works_on(self, stream: Stream) -> None:
        """Keep the node in use by what has been queued, from now on."""
        self._next = stream._next
        self._work = Work(stream._progress, self._node)
        self._finalizer.detach()
        self._finalizer = weakref.finalize(self, _end, self._work)
        self._finalizer.atexit = False

    def _closing(self) -> None:
        if self._work is not None:
            self._work.end()


def _end(work: Work) -> None:
    """An object that worked on a stream is gone."""
    work.end()
    drop(work.node)


class StreamSemaphore(Working):
    """A semaphore with a stream; from :meth:`Semaphore.on`.

    What :meth:`Semaphore.wait` and :meth:`Semaphore.signal` do for any stream costs less here.
    """

    __slots__ = (
        "_key",
        "_observed",
        "_signal",
        "_signals",
        "_value",
        "_wait",
        "semaphore",
        "stream",
    )

    def __init__(self, semaphore: Semaphore, stream: Stream) -> None:
        stream._fit(semaphore)
        self.semaphore = semaphore
        self.stream = stream
        importer = semaphore.importer
        with inside(stream, importer):
            native = importer._handle, semaphore._handle, stream._handle
            label = f"{semaphore._node.label} on {stream._node.label}"
            needs = [semaphore._node, stream._node, importer._node]
            self._own(Node("", label, needs, None), native)
        self._wait = bound(importer._wait, *native)
        self._signal = bound(importer._signal, *native)
        self._value = Value()
        self._signals = stream._signals
        self._key, self._observed = semaphore._observed()
        self._works_on(stream)

    def wait(self, value: int) -> None:
        """Make later work of the stream wait until the semaphore has reached a value."""
        calls = self._calls
        calls.append(None)
        try:
            self._handle  # noqa: B018 - raises when closed
            alone = len(calls) == 1
            variable = self._value if alone else Value()
            try:
                variable.view[0] = value
            except ValueError:
                raise Value.problem(value) from None
            self._wait(variable.native)
            if _WAIT_BORROWS:
                self._work.note(self._next(), alone)
        finally:
            calls.pop()

    def signal(self, value: int) -> None:
        """Set the semaphore to a value once the stream's earlier work is done."""
        calls = self._calls
        calls.append(None)
        try:
            self._handle  # noqa: B018 - raises when closed
            alone = len(calls) == 1
            variable = self._value if alone else Value()
            try:
                variable.view[0] = value
            except ValueError:
                raise Value.problem(value) from None
            # Numbered first: what another thread queues meanwhile may come after the signal.
            number = self._next()
            self._signal(variable.native)
            if _SIGNAL_BORROWS:
                self._work.note(number, alone)
            if self._key:
                self._signals[self._key] = self._observed, value, number
        finally:
            calls.pop()


class Stream(Resource):
    """A device's stream: work on it runs in order, beside the host.

    The stream keeps what its queued work uses.  That ends when the layer knows that the work is
    done: a synchronous run on the stream has returned, a semaphore that was signalled after the work
    is seen to have reached its value, or :meth:`assume_idle` says so.
    """

    __slots__ = ("_fits", "_mutex", "_next", "_progress", "_signals", "_used", "device")

    def __init__(self, device: Device, node: Node, handle: Any) -> None:
        self.device = device
        self._progress = Progress()
        self._mutex = self._progress.mutex
        # Numbers what is queued; all that has a smaller number was queued before.
        self._next = self._progress.next
        self._used: dict[Node, int] = {}
        self._fits: Importer | None = None
        self._signals: dict[int, tuple[Callable[[], Observer | None], int, int]] = {}
        self._own(node, handle)
        weakref.finalize(self, _let_go, self._used, self._progress.works).atexit = False
        _streams.add(self)

    @property
    @entered
    def native_handle(self) -> int | None:
        """The EP's own stream, such as a ``CUstream``."""
        handle = self._handle
        return self.device.runtime.library.api.SyncStream_GetHandle(handle)

    @property
    def pending(self) -> tuple[str, ...]:
        """What queued work may still use, as far as the layer can tell."""
        self._look()
        return tuple(node.label for node in self._using())

    def assume_idle(self) -> None:
        """Tell the layer that all work queued so far is done, as another API's fence has shown."""
        self._done(self._next())

    def _using(self) -> list[Node]:
        """The nodes that queued work may still use."""
        with self._mutex:
            used = list(self._used)
        return used + [work.node for work in list(self._progress.works) if work.pending]

    def _queued(self, node: Node, number: int = 0) -> int:
        """Work that uses a node has been queued; gives it a number if it has none, and returns it.

        The caller keeps the node meanwhile.
        """
        used = self._used
        with self._mutex:
            number = number or self._next()
            known = used.get(node)
            if known is not None:
                if known < number:
                    used[node] = number
                return number
        hold(node)
        with self._mutex:
            known = used.get(node)
            used[node] = max(known or 0, number)
        if known is not None:
            drop(node)
        return number

    def _fit(self, semaphore: Semaphore) -> None:
        """Refuse a semaphore of another device; remember the importer of one that fits."""
        importer = semaphore.importer
        mine, other = importer.device, self.device
        if mine != other:
            raise WrongDeviceError(
                f"{semaphore._node.label} is of {mine.ep_name} (LUID {mine.luid}, UUID "
                f"{mine.uuid}), {self._node.label} of {other.ep_name} (LUID {other.luid}, UUID "
                f"{other.uuid})"
            )
        self._fits = importer

    def _look(self) -> None:
        """Let go of what a reached semaphore shows to be done."""
        with self._mutex:
            signals = list(self._signals.values())
        done = 0
        for observer, value, number in signals:
            found = observer()
            if found is not None and found.value >= value:
                done = max(done, number)
        if done:
            self._done(done)

    def _done(self, number: int) -> None:
        with self._mutex:
            self._progress.done = max(self._progress.done, number)
            over = [node for node, queued in self._used.items() if queued <= number]
            for node in over:
                del self._used[node]
        for node in over:
            drop(node)
        for work in list(self._progress.works):
            work.settle()

    def _close(self, strict: bool) -> None:
        if not self.closed:
            self._look()
            users = self.pending if strict else ()
            if users:
                raise InUseError(
                    f"{self._node.label} cannot be closed: its work may still use "
                    f"{', '.join(users)}; wait for a semaphore that it signals, or call "
                    "assume_idle() once another fence has shown that it is done",
                    users,
                )
        super()._close(strict)
        if self.closed:
            self._done(self._next())


def _let_go(used: dict[Node, int], works: dict[Work, None]) -> None:
    """The stream is gone, and with it what its work used."""
    while used:
        drop(used.popitem()[0])
    while works:
        drop(works.popitem()[0].node)


def streams_with(node: Node) -> list[Stream]:
    """The streams whose queued work may still use a node, itself or through what it runs."""
    found = []
    for stream in list(_streams):
        stream._look()
        if any(used is node or node in used.needs for used in stream._using()):
            found.append(stream)
    return found


def _look_at_all() -> None:
    for stream in list(_streams):
        if stream._signals or stream._progress.works:
            stream._look()


before_close(_look_at_all)


def _expect(name: str, value: Any, kind: str) -> Any:
    """The value, if it is a member of an enumeration: kinds cannot be mixed up."""
    if not isinstance(value, get(kind)):
        raise TypeError(f"{name}: expected a member of {kind}, not {value!r}")
    return value
