"""EP devices: who they are, what of their memory the host reaches, and what they import."""

from __future__ import annotations

import ctypes
import enum
import weakref
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import UUID

from .._types import get
from ._interop import Importer, Stream
from ._native import KeyValues, create, node_of, pairs_of, text
from ._node import Node, Resource, entered, lean

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .. import OrtGraphicsApi, OrtHardwareDeviceType, OrtMemoryInfoDeviceType
    from ._runtime import EpLibrary, Runtime

HOST_ACCESS_KEY = "interop_host_access"
"""An entry of an EP device's metadata: ``map`` where the host may touch its default memory."""
CPU_EP = "CPUExecutionProvider"
NVIDIA, AMD = 0x10DE, 0x1002
"""PCI vendor ids."""
_graphics: weakref.WeakSet[GraphicsInterop] = weakref.WeakSet()


class TransferPath(str, enum.Enum):
    """How the host reads and writes a tensor."""

    MAP = "map"
    """Its bytes are at an address that the host may use."""
    COPY_TENSORS = "copy_tensors"
    """The EP copies it to and from the host."""
    NONE = "none"
    """Neither; only a model, such as one with a single Identity, can move it."""


class HostAccess(NamedTuple):
    """The answer to where a tensor can be read: the path, why, and the facts behind it."""

    path: TransferPath
    reason: str
    facts: Mapping[str, str]


class MemoryInfo(NamedTuple):
    """What ONNX Runtime says of a piece of memory; ``alignment`` is in bytes, 0 if not told."""

    name: str
    device_type: OrtMemoryInfoDeviceType
    vendor_id: int
    device_id: int
    host_accessible: bool

    @property
    def is_cpu(self) -> bool:
        """Whether it is ordinary memory of the host."""
        return self.device_type.name == "OrtMemoryInfoDeviceType_CPU"

    @classmethod
    def of(cls, runtime: Runtime, handle: Any) -> MemoryInfo:
        """What an ``OrtMemoryInfo`` says."""
        api = runtime.library.api
        name = ctypes.c_char_p()
        api.MemoryInfoGetName(handle, name)
        kind = get("c_OrtMemoryInfoDeviceType")()
        api.MemoryInfoGetDeviceType(handle, kind)
        number = ctypes.c_int()
        api.MemoryInfoGetId(handle, number)
        accessible = get("OrtDeviceMemoryType").OrtDeviceMemoryType_HOST_ACCESSIBLE
        return cls(
            text(name.value),
            kind.member,
            api.MemoryInfoGetVendorId(handle),
            number.value,
            api.MemoryInfoGetDeviceMemType(handle) is accessible,
        )


class Device:
    """An EP device.  Equal devices are the same device of the same environment."""

    def __init__(self, runtime: Runtime, handle: Any, library: EpLibrary | None) -> None:
        self.runtime = runtime
        self.library = library
        """The EP library that offers it; None for ONNX Runtime's own, and for libraries that
        something else in the process registered."""
        self._handle_ = handle

    @property
    def _handle(self) -> Any:
        """The native device, as long as it exists."""
        if self.library is not None and self.library.closed:
            from ._errors import ClosedError

            raise ClosedError(f"{self!r}: its EP library {self.library.name!r} is unregistered")
        self.runtime._handle  # noqa: B018 - raises when closed
        return self._handle_

    @property
    def _entries(self) -> tuple[list[None], ...]:
        entries = self.runtime._entries
        return entries if self.library is None else (*entries, *self.library._entries)

    @property
    def _related(self) -> list[Node]:
        """The nodes that objects of this device may need."""
        found = [self.runtime._node]
        return [*found, self.library._node] if self.library is not None else found

    def __repr__(self) -> str:
        gone = self.runtime.closed or (self.library is not None and self.library.closed)
        name = self.__dict__.get("ep_name", "of an EP library that is gone")
        return f"<device of {name if gone else self.ep_name}>"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Device):
            return NotImplemented
        return self._address == other._address

    def __hash__(self) -> int:
        return hash(self._address)

    @cached_property
    def _address(self) -> int:
        return ctypes.addressof(self._handle_)

    @cached_property
    @entered
    def ep_name(self) -> str:
        """The EP's name, such as ``CUDAExecutionProvider``."""
        return text(self.runtime.library.api.EpDevice_EpName(self._handle))

    @cached_property
    @entered
    def ep_vendor(self) -> str:
        """Who made the EP."""
        return text(self.runtime.library.api.EpDevice_EpVendor(self._handle))

    @cached_property
    @entered
    def metadata(self) -> Mapping[str, str]:
        """What the EP says of the device."""
        api = self.runtime.library.api
        return pairs_of(self.runtime.library, api.EpDevice_EpMetadata(self._handle))

    @cached_property
    @entered
    def _hardware(self) -> Any:
        return self.runtime.library.api.EpDevice_Device(self._handle).contents

    @cached_property
    @entered
    def hardware_metadata(self) -> Mapping[str, str]:
        """What ONNX Runtime found out about the hardware."""
        api = self.runtime.library.api
        return pairs_of(self.runtime.library, api.HardwareDevice_Metadata(self._hardware))

    @cached_property
    @entered
    def hardware_type(self) -> OrtHardwareDeviceType:
        """CPU, GPU or NPU."""
        return self.runtime.library.api.HardwareDevice_Type(self._hardware)

    @cached_property
    @entered
    def vendor_id(self) -> int:
        """The hardware's PCI vendor id."""
        return self.runtime.library.api.HardwareDevice_VendorId(self._hardware)

    @cached_property
    @entered
    def device_id(self) -> int:
        """The hardware's PCI device id, which does not tell two equal cards apart."""
        return self.runtime.library.api.HardwareDevice_DeviceId(self._hardware)

    @cached_property
    @entered
    def vendor(self) -> str:
        """The hardware's vendor."""
        return text(self.runtime.library.api.HardwareDevice_Vendor(self._hardware))

    def _fact(self, key: str) -> str | None:
        return self.metadata.get(key) or self.hardware_metadata.get(key)

    @cached_property
    def luid(self) -> int | None:
        """The adapter's LUID on Windows, to compare with that of a graphics API; None if untold."""
        found = self._fact("LUID")
        try:
            return int(found, 10) if found else None
        except ValueError:
            return None

    @cached_property
    def uuid(self) -> UUID | None:
        """The device's UUID as Vulkan, CUDA and HIP report it; None if the EP does not tell."""
        found = self._fact("UUID")
        try:
            return UUID(found) if found else None
        except ValueError:
            return None

    @property
    @entered
    def memory(self) -> MemoryInfo | None:
        """The memory that tensors of the device live in; None if the EP has no allocator for it."""
        kind = get("OrtDeviceMemoryType").OrtDeviceMemoryType_DEFAULT
        found = self.runtime.library.api.EpDevice_MemoryInfo(self._handle, kind)
        return MemoryInfo.of(self.runtime, found.contents) if found else None

    def _memory_handle(self) -> Any:
        kind = get("OrtDeviceMemoryType").OrtDeviceMemoryType_DEFAULT
        found = self.runtime.library.api.EpDevice_MemoryInfo(self._handle, kind)
        return found.contents if found else None

    def transfer_path(self) -> HostAccess:
        """How the host reads and writes tensors in the device's default memory, without a trial."""
        return access(self, self.memory)

    @entered
    def importer(self) -> Importer | None:
        """The device's importer; None where its EP imports nothing."""
        slot = "OrtInteropApi.CreateExternalResourceImporterForDevice"
        library = self.runtime.library
        handle = create(library, slot, self._handle)
        if handle is None:
            return None
        lent = {"ep_device": self.library._node} if self.library is not None else {}
        label = f"importer of {self.ep_name}"
        return Importer(self, node_of(library, handle, label, self._related, slot, lent), handle)

    @entered
    def stream(self, options: Mapping[str, str] | None = None) -> Stream:
        """A new stream of the device."""
        slot = "OrtApi.CreateSyncStreamForEpDevice"
        library = self.runtime.library
        graphics = [g for g in list(_graphics) if g.device == self and not g.closed]
        with KeyValues(library, dict(options or {})) as pairs:
            handle = create(library, slot, self._handle, pairs)
        lent = {"ep_device": self.library._node} if self.library is not None else {}
        node = node_of(library, handle, f"stream of {self.ep_name}", self._related, slot, lent)
        stream = Stream(self, node, handle)
        lean(node, [entry._node for entry in graphics])
        return stream

    @entered
    def graphics_interop(
        self,
        api: OrtGraphicsApi,
        command_queue: int | None = None,
        options: Mapping[str, str] | None = None,
    ) -> GraphicsInterop:
        """Let streams of the device work beside a graphics queue, until it is closed (since 1.25).

        ``command_queue`` is the address of an ``ID3D12CommandQueue``, None for Vulkan.  Streams made
        meanwhile must be closed first.  Raises :class:`OrtNotImplementedError` where the EP has no
        graphics interop and :class:`NotSupportedByHost` before 1.25.
        """
        if not isinstance(api, get("OrtGraphicsApi")):
            raise TypeError(f"api: expected an OrtGraphicsApi, not {type(api).__name__}")
        return GraphicsInterop(self, api, command_queue, dict(options or {}))


class GraphicsInterop(Resource):
    """A device's readiness to work beside a graphics queue; see :meth:`Device.graphics_interop`."""

    __slots__ = ("device",)

    def __init__(
        self,
        device: Device,
        api: OrtGraphicsApi,
        command_queue: int | None,
        options: dict[str, str],
    ) -> None:
        self.device = device
        library = device.runtime.library
        table = library.interop_api
        begin, end = table.InitGraphicsInteropForEpDevice, table.DeinitGraphicsInteropForEpDevice
        with KeyValues(library, options) as pairs:
            config = library.make(get("OrtGraphicsInteropConfig"), graphics_api=api)
            config.command_queue = command_queue
            if pairs is not None:
                config.additional_options = ctypes.pointer(pairs)
            begin(device._handle, config)
        release = partial(end, device._handle)
        label = f"graphics interop of {device.ep_name}"
        self._own(Node("OrtGraphicsInteropConfig", label, device._related, release), config)
        _graphics.add(self)


def access(device: Device | None, memory: MemoryInfo | None) -> HostAccess:
    """How the host reaches memory that an EP device may own."""
    facts = {}
    if memory is not None:
        facts["memory info"] = (
            f"{memory.device_type.name}, vendor {memory.vendor_id:#x}, device {memory.device_id}, "
            f"{'HOST_ACCESSIBLE' if memory.host_accessible else 'DEFAULT'}"
        )
        if memory.is_cpu:
            return HostAccess(TransferPath.MAP, "the memory info says CPU", facts)
        if memory.host_accessible:
            return HostAccess(TransferPath.MAP, "the memory info says HOST_ACCESSIBLE", facts)
    if device is not None:
        told = device.metadata.get(HOST_ACCESS_KEY)
        if told is not None:
            facts[f"EP metadata {HOST_ACCESS_KEY}"] = told
        if told == TransferPath.MAP.value:
            return HostAccess(TransferPath.MAP, "the EP says that the host may map it", facts)
        if memory is None and device.ep_name == CPU_EP:
            return HostAccess(TransferPath.MAP, "ONNX Runtime's own CPU device", facts)
        default = device.memory
        facts["default allocator"] = "none" if default is None else default.device_type.name
        if default is not None and not default.is_cpu:
            reason = "the device has an allocator of its own, so its EP copies to and from the host"
            return HostAccess(TransferPath.COPY_TENSORS, reason, facts)
    else:
        facts["EP device"] = "unknown"
    reason = "neither the memory is the host's, nor has the device an allocator of its own"
    return HostAccess(TransferPath.NONE, reason, facts)
