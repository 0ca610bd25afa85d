"""Memory that Python gives to ONNX Runtime: allocators made of Python objects.

ONNX Runtime writes to what an allocator returns without looking at it first, so that a null crashes
the process.  An allocation that fails is therefore met from ONNX Runtime's own memory, and the call
that needed it raises what has failed.
"""

from __future__ import annotations

import ctypes
import threading
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol
from weakref import WeakValueDictionary

from .._callbacks import report
from .._types import get
from ._errors import AllocationError, InUseError, MisuseError
from ._native import create
from ._node import Node, Resource, called_back, entered

if TYPE_CHECKING:
    from .._library import Library
    from ._device import Device
    from ._runtime import Runtime
    from ._tensor import Tensor

_SIZE_MAX = (1 << 64) - 1


class MemorySource(Protocol):
    """What an :class:`Allocator` is made of; its methods are called from any thread.

    Beside these it may have ``reserve``, as ``allocate``, for memory that a session keeps (such as
    its weights); ``allocate_on_stream(size, alignment, stream)``, where ``stream`` is the EP's own,
    as an address; ``stats()``, a mapping of texts; and ``shrink()``, to let go of what is spare
    (since 1.25).  What any of them raises reaches the caller of ONNX Runtime.
    """

    def allocate(self, size: int, alignment: int) -> Any:
        """The address of ``size`` bytes, which is a multiple of ``alignment``; or a writable buffer
        that has as many from the first such address in it on; or None where memory is short."""

    def free(self, block: Any) -> None:
        """Take back what :meth:`allocate` returned."""


class Block(NamedTuple):
    """Memory that ONNX Runtime has: what the source returned, or None for its own."""

    given: Any
    size: int
    buffer: Any


class Watch:
    """A call of ONNX Runtime that may allocate, and what has failed in it so far."""

    __slots__ = ("failures", "thread")

    def __init__(self) -> None:
        self.thread = threading.get_ident()
        self.failures: list[BaseException] = []


class Pool:
    """The native side of an allocator: it lives as long as ONNX Runtime may call it."""

    def __init__(self, library: Library, source: MemorySource, alignment: int, name: str) -> None:
        self.library = library
        self.source: Any = source
        self.alignment = alignment
        self.name = name
        self.blocks: dict[int, Block] = {}
        self.starts: list[int] = []
        self.mutex = threading.Lock()
        self.watches: list[Watch] = []
        self.closed = False
        self.own: Any = None
        """ONNX Runtime's own allocator of the same memory, to stand in; None if there is none."""

    def make(self, info: Any) -> Any:
        """The ``OrtAllocator``, whose functions are this object's."""
        slots: dict[str, Callable[..., Any]] = {
            "Alloc": partial(self.allocate, "allocate"),
            "Free": self.free,
            "Info": lambda this: info,
        }
        if hasattr(self.source, "reserve"):
            slots["Reserve"] = partial(self.allocate, "reserve")
        if hasattr(self.source, "allocate_on_stream"):
            slots["AllocOnStream"] = self.allocate_on_stream
        if hasattr(self.source, "stats"):
            slots["GetStats"] = self.stats
        if hasattr(self.source, "shrink"):
            slots["Shrink"] = self.shrink
        return self.library.make(get("OrtAllocator"), **slots)

    def allocate(self, method: str, _this: Any, size: int, *more: Any) -> int | None:
        """The address of new memory; its failures are kept for those who wait for them."""
        if size == 0:
            return None
        with called_back():
            try:
                if self.closed:
                    raise MisuseError(f"{self.name} was closed, but something still allocates")
                given = getattr(self.source, method)(size, self.alignment, *more)
                if given is None:
                    raise MemoryError(f"{self.name} has no memory for {size} bytes")
                try:
                    address, buffer = _place(self.name, given, size, self.alignment)
                except MisuseError:
                    self.source.free(given)
                    raise
                # What overlaps is not given back: it is memory that ONNX Runtime still has.
                self.keep(address, Block(given, size, buffer))
                return address
            except BaseException as error:
                self.failed(error)
                return self.stand_in(size)

    def allocate_on_stream(self, this: Any, size: int, stream: Any) -> int | None:
        """The same for use in the order of a stream."""
        native = self.library.api.SyncStream_GetHandle(stream) if stream else None
        return self.allocate("allocate_on_stream", this, size, native)

    def free(self, _this: Any, address: int | None) -> None:
        """Give memory back to where it came from."""
        if not address:
            return
        with called_back():
            block = self.leave(address)
            if block.given is None:
                self.library.api.AllocatorFree(self.own, address)
                return
            given = block.given
            # A source may resize its buffer, or close it, once nothing views it.
            del block
            self.source.free(given)

    def stats(self, _this: Any, out: Any) -> None:
        """What the source tells of itself."""
        with called_back():
            told = self.source.stats().items()
            entries = [(str(key).encode(), str(value).encode()) for key, value in told]
            api = self.library.api
            pairs = ctypes.POINTER(get("OrtKeyValuePairs"))()
            api.CreateKeyValuePairs(pairs)
            for key, value in entries:
                api.AddKeyValuePair(pairs, key, value)
            out[0] = pairs

    def shrink(self, _this: Any) -> None:
        """Let go of what is spare."""
        with called_back():
            self.source.shrink()

    def keep(self, address: int, block: Block) -> None:
        """Write down a block that ONNX Runtime is to have."""
        with self.mutex:
            at = bisect_left(self.starts, address)
            near = self.starts[max(at - 1, 0) : at + 1]
            for start in near:
                if start < address + block.size and address < start + self.blocks[start].size:
                    raise MisuseError(
                        f"{self.name} returned {block.size} bytes at {address:#x}, of which ONNX "
                        f"Runtime still has {self.blocks[start].size} at {start:#x}"
                    )
            self.starts.insert(at, address)
            self.blocks[address] = block

    def leave(self, address: int) -> Block:
        """Strike out a block that ONNX Runtime has no more."""
        with self.mutex:
            block = self.blocks.pop(address, None)
            if block is None:
                raise MisuseError(
                    f"{self.name}: {address:#x} was freed, which ONNX Runtime was not given"
                )
            del self.starts[bisect_left(self.starts, address)]
        return block

    def failed(self, error: BaseException) -> None:
        """Tell the callers in whose calls an allocation has failed."""
        here = threading.get_ident()
        watches = list(self.watches)
        # A thread of ONNX Runtime's own works for any of the calls: none of them may seem good.
        concerned = [w for w in watches if w.thread == here][-1:] or watches
        for watch in concerned:
            watch.failures.append(error)
        if not concerned:
            report("OrtAllocator.Alloc", error)

    def stand_in(self, size: int) -> int | None:
        """Memory of ONNX Runtime's own, where the source has failed."""
        if self.own is None:
            return None
        out = ctypes.c_void_p()
        self.library.api.AllocatorAlloc(self.own, size, out)
        if out.value:
            self.keep(out.value, Block(None, size, None))
        return out.value


@contextmanager
def watching(pools: Sequence[Pool], what: str) -> Iterator[None]:
    """Raise what fails in the pools during a call of ONNX Runtime, whether or not that fails."""
    watch = Watch()
    for pool in pools:
        pool.watches.append(watch)
    try:
        yield
    except Exception:
        _raise(what, watch.failures)
        raise
    finally:
        for pool in pools:
            pool.watches.remove(watch)
    _raise(what, watch.failures)


def _raise(what: str, failures: Sequence[BaseException]) -> None:
    """Raise what has failed, if anything has."""
    if not failures:
        return
    first = failures[0]
    if not isinstance(first, Exception):
        # An interrupt, say, that happened to come in a callback.
        raise first
    message = f"{what}: an allocation failed: {type(first).__name__}: {first}"
    raise AllocationError(message, tuple(failures)) from first


def _place(name: str, given: Any, size: int, alignment: int) -> tuple[int, Any]:
    """Where a block starts, and what keeps a buffer from moving."""
    if isinstance(given, int) and not isinstance(given, bool):
        if not 0 < given <= _SIZE_MAX - size:
            raise MisuseError(f"{name} returned {given:#x}, no address of {size} bytes")
        if given % alignment:
            raise MisuseError(f"{name} returned {given:#x}, not a multiple of {alignment}")
        return given, None
    try:
        if isinstance(given, bool):
            raise TypeError("a truth value")
        length = memoryview(given).nbytes
        buffer = (ctypes.c_char * length).from_buffer(given)
    except (TypeError, ValueError) as error:
        raise MisuseError(
            f"{name} returned {type(given).__name__}, neither an address nor a writable buffer: "
            f"{error}"
        ) from None
    start = -(-ctypes.addressof(buffer) // alignment) * alignment
    room = ctypes.addressof(buffer) + length - start
    if room < size:
        raise MisuseError(
            f"{name} returned a buffer of {length} bytes, {max(room, 0)} of them from its first "
            f"multiple of {alignment} on, where {size} are needed"
        )
    return start, buffer


class Allocator(Resource):
    """An ``OrtAllocator`` whose memory comes from a Python object; from :meth:`Runtime.allocator`.

    ONNX Runtime may call it as long as anything that it was given for lives: until then it is kept,
    also where nothing in Python refers to it any more, and ``close()`` raises :class:`InUseError`.
    """

    __slots__ = ("_key", "_native", "_pool", "device", "runtime", "source")

    def __init__(
        self,
        runtime: Runtime,
        source: MemorySource,
        device: Device | None,
        alignment: int,
    ) -> None:
        from ._device import MemoryInfo

        for method in ("allocate", "free"):
            if not callable(getattr(source, method, None)):
                raise TypeError(f"{type(source).__name__} has no method {method}()")
        if alignment < 1 or alignment & (alignment - 1):
            raise ValueError(f"the alignment is {alignment}, not a power of two")
        self.runtime = runtime
        self.source = source
        self.device = device
        library = runtime.library
        label = f"allocator of {type(source).__name__}"
        pool = self._pool = Pool(library, source, alignment, type(source).__name__)
        needs = device._related if device is not None else [runtime._node]
        if device is None:
            pool.own = ctypes.POINTER(get("OrtAllocator"))()
            library.api.GetAllocatorWithDefaultOptions(pool.own)
            kind = get("OrtAllocatorType").OrtDeviceAllocator
            plain = get("OrtMemType").OrtMemTypeDefault
            info = create(library, "OrtApi.CreateCpuMemoryInfo", kind, plain)
        else:
            info = device._memory_handle()
            if info is None:
                raise MisuseError(f"{device!r} has no memory that tensors could be made in")
        self._key = runtime._environment, MemoryInfo.of(runtime, info)[1:]
        native = pool.make(info)
        self._native = Native(pool, runtime._handle, native, info, device is None)
        try:
            node = Node("OrtAllocator", label, needs, self._native.release)
        except BaseException:
            self._native.release()
            raise
        self._own(node, native)

    @property
    def native(self) -> Any:
        """The ``OrtAllocator``, for functions of ``runtime.library`` that take one."""
        return self._handle

    @property
    def blocks(self) -> Mapping[int, int]:
        """What ONNX Runtime has at the moment: sizes in bytes by address."""
        with called_back(), self._pool.mutex:
            return {address: block.size for address, block in self._pool.blocks.items()}

    @entered
    def register(self) -> None:
        """Offer the allocator to the sessions of the environment, until it is closed.

        Sessions that are made afterwards with ``env_allocators=True`` take the host's memory from
        it.  An environment has one such allocator.
        """
        if self.device is not None:
            raise MisuseError(
                f"{self._node.label} is for memory of {self.device!r}; sessions take that from the EP"
            )
        with registering:
            known = _registered.get(self._key)
            if known is not None and not known.closed:
                # ONNX Runtime would silently take the other one from now on.
                raise MisuseError(f"{known._node.label} is registered for the same memory")
            self._native.register()
            _registered[self._key] = self
            self.runtime._allocators.append(self)

    def tensor(self, shape: Any, dtype: Any) -> Tensor:
        """A new tensor in memory of the source; its content is what the memory has."""
        from ._tensor import Tensor

        return Tensor.empty(self.runtime, shape, dtype, allocator=self)

    @entered
    def adopt(self, block: Any, shape: Any, dtype: Any) -> Tensor:
        """A tensor over a block that the source has allocated already.

        ``block`` is such as :meth:`MemorySource.allocate` returns; the source's ``free`` is given it
        when the tensor is gone.  Where this raises, the block stays the caller's.
        """
        from ._tensor import adopt

        return adopt(self, block, shape, dtype)

    def _create(self, slot: str, *arguments: Any) -> Any:
        """What a creating function hands out that allocates here."""
        library = self.runtime.library
        handle = None
        try:
            with watching([self._pool], slot):
                handle = create(library, slot, *arguments)
            return handle
        except BaseException:
            # ONNX Runtime makes it all the same, over memory that stands in.
            if handle is not None:
                library.api.ReleaseValue(handle)
            raise

    @contextmanager
    def _lending(self, block: Any, size: int) -> Iterator[int]:
        """The address of a block that ONNX Runtime is given, unless that fails."""
        pool = self._pool
        # Also a tensor without elements needs an address that is freed.
        address, buffer = _place(pool.name, block, max(size, 1), pool.alignment)
        with called_back():
            pool.keep(address, Block(block, max(size, 1), buffer))
        try:
            yield address
        except BaseException:
            with called_back():
                pool.leave(address)
            raise

    def _close(self, strict: bool) -> None:
        blocks = {} if self.closed else self.blocks
        if strict and blocks and not self._node.users:
            reason = f"{len(blocks)} block(s) that ONNX Runtime has not freed"
            raise InUseError(f"{self._node.label} cannot be closed: in use by {reason}", (reason,))
        super()._close(strict)

    def _closing(self) -> None:
        with registering:
            if _registered.get(self._key) is self:
                del _registered[self._key]
        if self in self.runtime._allocators:
            self.runtime._allocators.remove(self)


class Native:
    """An ``OrtAllocator`` with its description, and what ends it."""

    def __init__(self, pool: Pool, environment: Any, native: Any, info: Any, owned: bool) -> None:
        self.pool = pool
        self.environment = environment
        self.native = native
        self.info = info
        self.owned = owned
        self.registered = False

    def register(self) -> None:
        """Let sessions use it."""
        self.pool.library.api.RegisterAllocator(self.environment, self.native)
        self.registered = True

    def release(self) -> None:
        """Nothing that the layer knows of needs the allocator any more."""
        library = self.pool.library
        if self.registered:
            library.api.UnregisterAllocator(self.environment, self.info)
        self.pool.closed = True
        if self.registered or self.pool.blocks:
            # What others made with it, sessions above all, is not known here and may call it yet:
            # the native part stays, and the source as long as it has blocks to take back.
            if not self.pool.blocks:
                self.pool.source = None
            return
        library.forget(self.native)
        if self.owned:
            library.api.ReleaseMemoryInfo(self.info)


registering = threading.RLock()
"""Held where what is registered must not change."""
_registered: WeakValueDictionary[tuple[int, Any], Allocator] = WeakValueDictionary()
"""By environment and memory: an environment belongs to the process, not to a Runtime."""


def registered(environment: int) -> list[Allocator]:
    """The allocators that sessions of an environment may use."""
    with registering:
        return [a for (at, _), a in list(_registered.items()) if at == environment and not a.closed]
