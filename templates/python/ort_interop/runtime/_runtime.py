"""The environment of an ONNX Runtime library, and the EP libraries that are registered in it."""

from __future__ import annotations

import ctypes
import os
import threading
import weakref
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from .._library import Library
from .._loading import load, ortchar
from .._types import get
from ._allocator import Allocator, MemorySource
from ._device import Device
from ._native import create, node_of, text
from ._node import Node, Resource, called_back, entered, inside, locked
from ._session import Session
from ._tensor import Tensor

if TYPE_CHECKING:
    from .. import GraphOptimizationLevel, OrtLoggingLevel

Logger = Callable[["OrtLoggingLevel", str, str, str, str], None]
"""Receives level, category, log id, code location and message."""

_registering = threading.RLock()
_registered: weakref.WeakValueDictionary[tuple[int, str], EpLibrary]
_registered = weakref.WeakValueDictionary()
"""By environment and name: an environment belongs to the process, not to a Runtime."""


class EpLibrary(Resource):
    """A registered EP library; closing it unregisters it.

    While anything made with one of its devices lives, ``close()`` raises :class:`InUseError` and
    names it: ONNX Runtime would unmap code that is in use.
    """

    __slots__ = ("_addresses", "name", "path", "runtime")

    def __init__(self, runtime: Runtime, path: str | os.PathLike[str], name: str) -> None:
        self.runtime = runtime
        self.path = os.path.abspath(path)
        self.name = name
        api = runtime.library.api
        with _registering:
            before = set(runtime._device_handles())
            location: Any = ortchar(self.path)
            api.RegisterExecutionProviderLibrary(runtime._handle, name.encode(), location)
            self._addresses = set(runtime._device_handles()) - before
            release = partial(self._unregister, runtime.library, runtime._handle, name)
            node = Node("OrtEpDevice", f"EP library {name!r}", [runtime._node], release)
            self._own(node)
            _registered[runtime._environment, name] = self
        runtime._libraries[name] = self

    @staticmethod
    def _unregister(library: Library, environment: Any, name: str) -> None:
        library.api.UnregisterExecutionProviderLibrary(environment, name.encode())

    @property
    def devices(self) -> list[Device]:
        """The devices that the library offers."""
        return [d for d in self.runtime.devices() if d.library is self]

    def _closing(self) -> None:
        self.runtime._libraries.pop(self.name, None)
        with _registering:
            key = self.runtime._environment, self.name
            if _registered.get(key) is self:
                del _registered[key]

    unregister = Resource.close


class Runtime(Resource):
    """An ONNX Runtime library and its environment.

    The environment is shared by the whole process: a second Runtime of the same library, and
    anything else that uses the same copy of the library, sees the same registered EP libraries.
    """

    __slots__ = ("_allocators", "_environment", "_libraries", "_memory_info", "library")

    library: Library
    """The low-level package's library, for calls that the layer does not wrap."""

    def __init__(
        self,
        library: Library,
        *,
        logger: Logger | None = None,
        log_level: OrtLoggingLevel | None = None,
        name: str = "ort_interop",
    ) -> None:
        self.library = library
        self._libraries: dict[str, EpLibrary] = {}
        self._allocators: list[Allocator] = []
        self._memory_info: Any = None
        level = get("OrtLoggingLevel").ORT_LOGGING_LEVEL_WARNING
        if log_level is not None:
            level = log_level
        log_id = name.encode()
        if logger is None:
            handle = create(library, "OrtApi.CreateEnv", level, log_id)
        else:
            # Others may go on using the environment, so the callback is never let go of.
            called = library.callback(get("OrtLoggingFunction"), partial(_log, logger))
            handle = create(
                library, "OrtApi.CreateEnvWithCustomLogger", called, None, level, log_id
            )
        self._environment = ctypes.addressof(library.base)
        label = f"ONNX Runtime {library.version}"
        self._own(node_of(library, handle, label, ()), handle)

    @classmethod
    def load(
        cls,
        path: str | os.PathLike[str] | None = None,
        api_version: int | None = None,
        *,
        logger: Logger | None = None,
        log_level: OrtLoggingLevel | None = None,
    ) -> Runtime:
        """Open a library (see :func:`ort_interop.load`) and its environment.

        ``logger`` receives what ONNX Runtime logs from ``log_level`` on.  An environment has one
        logger, that of whoever made it first.
        """
        return cls(load(path, api_version=api_version), logger=logger, log_level=log_level)

    @classmethod
    def from_api_base(cls, address: int, path: str, api_version: int | None = None) -> Runtime:
        """The runtime whose ``OrtApiBase`` is at an address, such as an EP library is given.

        The ``onnxruntime`` wheel for Linux has its own copy of ONNX Runtime inside its extension
        module, which exports nothing; this is the way to share that copy's environment.
        """
        return cls(Library(address, path, api_version=api_version))

    @property
    def version(self) -> str:
        """The library's release, such as ``1.24.1``."""
        return self.library.version

    @property
    def api_version(self) -> int:
        """The API version in use."""
        return self.library.api_version

    @entered
    def register_library(self, path: str | os.PathLike[str], name: str | None = None) -> EpLibrary:
        """Load an EP library and list its devices; ``with`` unregisters it at the end.

        A name that ends in ``.virtual`` lets the library offer devices that ONNX Runtime did not
        find.  Without a name the file's is taken.
        """
        return EpLibrary(self, path, name or os.path.basename(os.fspath(path)).partition(".")[0])

    @property
    def libraries(self) -> Mapping[str, EpLibrary]:
        """The EP libraries that were registered through this object, by name."""
        return dict(self._libraries)

    @entered
    def devices(self, ep_name: str | None = None) -> list[Device]:
        """Every EP device, those registered elsewhere in the process included."""
        with _registering:
            handles = self._device_handles()
            known = [entry for (at, _), entry in _registered.items() if at == self._environment]
        found = []
        for address, handle in handles.items():
            owner = next((e for e in known if address in e._addresses), None)
            device = Device(self, handle, owner)
            if ep_name is None or device.ep_name == ep_name:
                found.append(device)
        return found

    def device(
        self,
        ep_name: str | None = None,
        *,
        luid: int | None = None,
        uuid: Any = None,
    ) -> Device:
        """The one device that has the name and the identities given; LookupError otherwise."""
        found = [
            d
            for d in self.devices(ep_name)
            if (luid is None or d.luid == luid) and (uuid is None or d.uuid == uuid)
        ]
        if len(found) != 1:
            listed = ", ".join(
                f"{d.ep_name} (LUID {d.luid}, UUID {d.uuid})" for d in self.devices()
            )
            wanted = f"ep_name={ep_name!r}, luid={luid}, uuid={uuid}"
            raise LookupError(f"{len(found)} devices have {wanted}; there are: {listed}")
        return found[0]

    @entered
    def session(
        self,
        model: str | os.PathLike[str] | bytes | bytearray | memoryview,
        device: Device | Iterable[Device] | None = None,
        *,
        config: Mapping[str, str] | None = None,
        provider_options: Mapping[str, str] | None = None,
        parallel: bool = False,
        optimization: GraphOptimizationLevel | None = None,
        threads: int | None = None,
        env_allocators: bool = False,
    ) -> Session:
        """Load a model from a path or from bytes, to run on the devices given.

        ``config`` are entries of the session's configuration, ``provider_options`` go to the EP,
        ``threads`` is how many threads a node may use, ``parallel`` runs independent branches at
        once, which excludes runs on a stream, and with ``env_allocators`` the host's memory comes
        from the allocator that is registered by then, if one is.
        """
        devices = [device] if isinstance(device, Device) else list(device or ())
        with inside(*devices):
            return Session(
                self,
                model,
                devices,
                config=dict(config or {}),
                provider_options=dict(provider_options or {}),
                parallel=parallel,
                optimization=optimization,
                threads=threads,
                env_allocators=env_allocators,
            )

    @entered
    def allocator(
        self, source: MemorySource, device: Device | None = None, *, alignment: int = 64
    ) -> Allocator:
        """An allocator whose memory comes from a Python object; see :class:`MemorySource`.

        The memory is the host's, or the default memory of a device.  ``alignment``, in bytes, is
        what its addresses are multiples of.
        """
        with inside(device):
            return Allocator(self, source, device, alignment)

    def tensor(self, array: Any) -> Tensor:
        """A tensor over an array's own memory, without a copy; see :meth:`Tensor.of`."""
        return Tensor.of(self, array)

    def from_dlpack(self, array: Any, device: Device | None = None) -> Tensor:
        """A tensor over what another library exports through DLPack, without a copy."""
        from ._dlpack import import_tensor

        return import_tensor(self, array, device)

    def _device_handles(self) -> dict[int, Any]:
        """ONNX Runtime's EP devices by address."""
        devices = ctypes.POINTER(ctypes.POINTER(get("OrtEpDevice")))()
        count = ctypes.c_size_t()
        self.library.api.GetEpDevices(self._handle, devices, count)
        listed = [devices[at].contents for at in range(count.value)]
        return {ctypes.addressof(handle): handle for handle in listed}

    @entered
    def _cpu_memory(self) -> Any:
        """ONNX Runtime's description of plain CPU memory."""
        if self._memory_info is None:
            kind = get("OrtAllocatorType").OrtDeviceAllocator
            plain = get("OrtMemType").OrtMemTypeDefault
            out = ctypes.POINTER(get("OrtMemoryInfo"))()
            self.library.api.CreateCpuMemoryInfo(kind, plain, out)
            self._memory_info = out.contents
            inner = self._node.release
            assert inner is not None
            self._node.release = partial(
                _both, inner, partial(self.library.api.ReleaseMemoryInfo, out.contents)
            )
        return self._memory_info

    def _close(self, strict: bool) -> None:
        # Allocators and libraries that nobody uses go with their runtime.
        for thing in (*self._allocators, *self._libraries.values()):
            with locked():
                idle = not thing._node.users
            if idle:
                thing._close(strict)
        super()._close(strict)


def _both(first: Callable[[], None], second: Callable[[], None]) -> None:
    second()
    first()


def _log(logger: Logger, _param: Any, level: Any, *texts: bytes) -> None:
    with called_back():
        logger(level, *(text(part) for part in texts))
