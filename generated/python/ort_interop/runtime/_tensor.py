"""Tensors, and how the host reaches their bytes."""

from __future__ import annotations

import ctypes
import math
import weakref
from typing import TYPE_CHECKING, Any

from .._types import get
from ._elements import Element, element, numpy_dtype
from ._errors import NoHostAccessError, WrongDeviceError
from ._native import create, node_of
from ._node import Node, Resource, entered, exporting, inside, lean, unexport

if TYPE_CHECKING:
    from ._allocator import Allocator
    from ._device import Device, HostAccess, MemoryInfo
    from ._runtime import Runtime


class Tensor(Resource):
    """An ``OrtValue`` that is a tensor of fixed-size elements.

    ``shape`` is a tuple, ``dtype`` the name of the element type, ``device`` the EP device whose
    memory it is in (None for the host's), and ``owner`` what lends it the memory.
    """

    __slots__ = ("_address", "device", "element", "owner", "runtime", "shape")

    def __init__(
        self,
        runtime: Runtime,
        node: Node,
        handle: Any,
        kind: Element,
        shape: tuple[int, ...],
        device: Device | None,
        owner: object = None,
    ) -> None:
        self.runtime = runtime
        self.element = kind
        self.shape = shape
        self.device = device
        self.owner = owner
        self._address: int | None = None
        self._own(node, handle)

    @classmethod
    def of(cls, runtime: Runtime, array: Any) -> Tensor:
        """A tensor over a NumPy array's own memory, which must be contiguous and writable.

        The tensor keeps the array; what either writes the other sees.
        """
        import numpy

        data = numpy.asarray(array)
        if not data.flags.c_contiguous:
            raise ValueError("the array is not C-contiguous; numpy.ascontiguousarray() copies it")
        if not data.flags.writeable:
            raise ValueError("the array is read-only, and ONNX Runtime may write to a tensor")
        kind = element(data.dtype)
        if kind.bits < 8:
            raise ValueError(f"{kind.dtype} arrays are not packed; use Tensor.from_host()")
        return wrap(runtime, data.ctypes.data, kind, data.shape, data.nbytes, data)

    @classmethod
    def empty(
        cls,
        runtime: Runtime,
        shape: Any,
        dtype: Any,
        device: Device | None = None,
        *,
        allocator: Allocator | None = None,
    ) -> Tensor:
        """A new tensor in a device's default memory, or the host's; its content is undefined.

        With ``allocator`` the memory is what that allocates, on the device that it is for.
        """
        from ._interop import check_shape

        kind = element(dtype)
        dimensions, _ = check_shape("OrtExternalTensorDescriptor", shape)
        if allocator is not None:
            _check_owner(runtime, device, allocator)
            device = allocator.device
        with inside(runtime, device, allocator):
            return cls._empty(runtime, dimensions, kind, device, allocator)

    @classmethod
    def _empty(
        cls,
        runtime: Runtime,
        shape: tuple[int, ...],
        kind: Element,
        device: Device | None,
        given: Allocator | None = None,
    ) -> Tensor:
        library = runtime.library
        allocator = ctypes.POINTER(get("OrtAllocator"))()
        if given is not None:
            allocator = ctypes.pointer(given._handle)
        elif device is None:
            library.api.GetAllocatorWithDefaultOptions(allocator)
        else:
            info = device._memory_handle()
            if info is None:
                raise NoHostAccessError(f"{device.ep_name} has no allocator for its default memory")
            library.api.GetSharedAllocator(runtime._handle, info, allocator)
            if not allocator:
                raise NoHostAccessError(f"ONNX Runtime shares no allocator of {device.ep_name}")
        sizes = (ctypes.c_int64 * max(len(shape), 1))(*shape)
        slot = "OrtApi.CreateTensorAsOrtValue"
        if given is None:
            handle = create(library, slot, allocator, sizes, len(shape), kind.onnx)
        else:
            handle = given._create(slot, allocator, sizes, len(shape), kind.onnx)
        related = device._related if device is not None else [runtime._node]
        node = node_of(library, handle, f"tensor {kind.dtype}{list(shape)}", related, slot)
        if given is not None:
            lean(node, [given._node])
        return cls(runtime, node, handle, kind, shape, device)

    @property
    def dtype(self) -> str:
        """The element type's name in NumPy or ml_dtypes."""
        return self.element.dtype

    @property
    def count(self) -> int:
        """How many elements there are."""
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        """The size in bytes; sub-byte elements are packed."""
        return self.element.bytes_of(self.count)

    @property
    @entered
    def data_ptr(self) -> int:
        """The address of the first element, on the tensor's device."""
        if self._address is None:
            data = ctypes.c_void_p()
            handle = self._handle
            self.runtime.library.api.GetTensorMutableData(handle, data)
            self._address = data.value or 0
        self._handle  # noqa: B018 - raises when closed
        return self._address

    @property
    @entered
    def memory(self) -> MemoryInfo:
        """What ONNX Runtime says of the tensor's memory."""
        from ._device import MemoryInfo

        out = ctypes.POINTER(get("OrtMemoryInfo"))()
        handle = self._handle
        self.runtime.library.api.GetTensorMemoryInfo(handle, out)
        return MemoryInfo.of(self.runtime, out.contents)

    def host_access(self) -> HostAccess:
        """How the host reads and writes the tensor: the path, the reason and the facts.

        Answered from public queries alone; nothing is tried.
        """
        from ._device import access

        return access(self.device, self.memory)

    def _mapped(self, what: str) -> int:
        """The address for the host, where it may use one."""
        found = self.host_access()
        if found.path.value != "map":
            raise NoHostAccessError(
                f"{what} needs host-accessible memory, but {self._node.label} is not: "
                f"{found.reason}; use to_host() and from_host()"
            )
        return self.data_ptr

    def numpy(self) -> Any:
        """A NumPy array over the tensor's own memory, for host-accessible tensors.

        The tensor cannot be closed while the array lives.  Queued work that uses the tensor is not
        waited for.
        """
        import numpy

        if self.element.bits < 8:
            raise NoHostAccessError(
                f"{self.dtype} elements are packed, which NumPy cannot view; use to_host()"
            )
        return numpy.asarray(self._bytes()).view(numpy_dtype(self.element)).reshape(self.shape)

    def _bytes(self) -> Any:
        """The bytes as a NumPy array that keeps the tensor."""
        import numpy

        address = self._mapped("numpy()")
        with exporting(self._node):
            # A zero-length array has no address of its own to view.
            buffer: Any = (ctypes.c_uint8 * self.nbytes).from_address(
                address or ctypes.addressof(_NOTHING)
            )
            buffer._tensor = self
            weakref.finalize(buffer, unexport, self._node).atexit = False
        return numpy.frombuffer(buffer, numpy.uint8)

    def to_host(self) -> Any:
        """A NumPy array with a copy of the elements, by whichever path there is.

        Work that writes the tensor must have finished.  Sub-byte elements come unpacked.
        """
        import numpy

        packed = numpy.empty(self.nbytes, numpy.uint8)
        path = self.host_access()
        if path.path.value == "map":
            packed[...] = self._bytes()
        elif path.path.value == "copy_tensors":
            with self._host_twin(packed) as twin:
                copy(self, twin)
        else:
            raise NoHostAccessError(f"{self._node.label} cannot be read: {path.reason}")
        if self.element.bits < 8:
            return _unpack(packed, self.element, self.count).reshape(self.shape)
        return packed.view(numpy_dtype(self.element)).reshape(self.shape)

    def from_host(self, array: Any) -> None:
        """Copy an array's elements into the tensor, by whichever path there is.

        Shape and element type must be the tensor's.  Work that uses the tensor must have finished.
        """
        import numpy

        data = numpy.asarray(array, order="C")
        if data.shape != self.shape or element(data.dtype) is not self.element:
            raise ValueError(
                f"the array is {data.dtype}{list(data.shape)}, the tensor "
                f"{self.dtype}{list(self.shape)}"
            )
        if self.element.bits < 8:
            packed = _pack(data.reshape(-1), self.element)
        else:
            packed = data.reshape(-1).view(numpy.uint8).copy()
        path = self.host_access()
        if path.path.value == "map":
            self._bytes()[...] = packed
        elif path.path.value == "copy_tensors":
            with self._host_twin(packed) as twin:
                copy(twin, self)
        else:
            raise NoHostAccessError(f"{self._node.label} cannot be written: {path.reason}")

    def _host_twin(self, packed: Any) -> Tensor:
        """A tensor of the same type and shape over bytes of the host."""
        return wrap(
            self.runtime, packed.ctypes.data, self.element, self.shape, packed.nbytes, packed
        )

    def __dlpack_device__(self) -> tuple[int, int]:
        """The DLPack device type and number."""
        from ._dlpack import device_of

        return device_of(self)

    def __dlpack__(
        self,
        *,
        stream: Any = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        """A DLPack capsule over the tensor's own memory; BufferError where that cannot be.

        The tensor cannot be closed while the consumer keeps the memory.  Work on the tensor that
        is still queued refuses the export, since it cannot be ordered before the consumer's.
        """
        from ._dlpack import export

        return export(self, stream, max_version, dl_device, copy)


_NOTHING = (ctypes.c_uint8 * 64)()


def wrap(
    runtime: Runtime,
    address: int,
    kind: Element,
    shape: tuple[int, ...],
    nbytes: int,
    owner: object,
    device: Device | None = None,
    memory: Any = None,
) -> Tensor:
    """A tensor over memory that ``owner`` lends."""
    library = runtime.library
    sizes = (ctypes.c_int64 * max(len(shape), 1))(*shape)
    info = memory if memory is not None else runtime._cpu_memory()
    slot = "OrtApi.CreateTensorWithDataAsOrtValue"
    with inside(runtime, device):
        handle = create(library, slot, info, address, nbytes, sizes, len(shape), kind.onnx)
        related = device._related if device is not None else [runtime._node]
        node = node_of(library, handle, f"tensor {kind.dtype}{list(shape)}", related)
    release = node.release
    assert release is not None
    # Whoever lends the memory lends it until the native tensor is gone.
    node.release = lambda kept=owner: release()
    return Tensor(runtime, node, handle, kind, shape, device, owner)


def adopt(allocator: Allocator, block: Any, shape: Any, dtype: Any) -> Tensor:
    """A tensor that gives its memory back to an allocator; see :meth:`Allocator.adopt`."""
    from ._interop import check_shape

    runtime, device = allocator.runtime, allocator.device
    kind = element(dtype)
    dimensions, count = check_shape("OrtExternalTensorDescriptor", shape)
    size = kind.bytes_of(count)
    sizes = (ctypes.c_int64 * max(len(dimensions), 1))(*dimensions)
    slot = "OrtApi.CreateTensorWithDataAndDeleterAsOrtValue"
    with inside(runtime, device), allocator._lending(block, size) as address:
        native = allocator._handle
        handle = create(
            runtime.library, slot, native, address, size, sizes, len(dimensions), kind.onnx
        )
    related = device._related if device is not None else [runtime._node]
    label = f"tensor {kind.dtype}{list(dimensions)}"
    node = node_of(runtime.library, handle, label, related, slot)
    lean(node, [allocator._node])
    return Tensor(runtime, node, handle, kind, dimensions, device)


def _check_owner(runtime: Runtime, device: Device | None, allocator: Allocator) -> None:
    """Refuse an allocator of another ONNX Runtime, or of another device's memory."""
    theirs = allocator.runtime
    if theirs._environment != runtime._environment:
        raise WrongDeviceError(f"{allocator!r} is of {theirs!r}, not of {runtime!r}")
    if device is not None and device != allocator.device:
        raise WrongDeviceError(f"{allocator!r} is of {allocator.device!r}, not of {device!r}")


def copy(source: Tensor, destination: Tensor, stream: Any = None) -> None:
    """Copy a tensor to one of the same size through the EP, synchronously without a stream."""
    kind = ctypes.POINTER(get("OrtValue"))
    runtime = source.runtime
    with inside(runtime, source, destination, stream):
        one, other = (
            (kind * 1)(ctypes.pointer(tensor._handle)) for tensor in (source, destination)
        )
        native = stream._handle if stream is not None else None
        runtime.library.api.CopyTensors(runtime._handle, one, other, native, 1)


def _unpack(packed: Any, kind: Element, count: int) -> Any:
    """Sub-byte elements, low bits first, as one element a byte."""
    import numpy

    shifts = numpy.arange(0, 8, kind.bits, dtype=numpy.uint8)
    mask = numpy.uint8((1 << kind.bits) - 1)
    values = ((packed[:, None] >> shifts) & mask).reshape(-1)[:count]
    if kind.dtype in {"int4", "int2"}:
        sign = 1 << (kind.bits - 1)
        values = (values.astype(numpy.int16) ^ sign) - sign
        return values.astype(numpy.int8).astype(numpy_dtype(kind))
    if kind.dtype.startswith("uint"):
        return values.astype(numpy_dtype(kind))
    return values.view(numpy_dtype(kind))


def _pack(values: Any, kind: Element) -> Any:
    """The packed bytes of sub-byte elements."""
    import numpy

    per_byte = 8 // kind.bits
    if kind.dtype in {"int4", "int2", "uint4", "uint2"}:
        single = values.astype(numpy.int8).view(numpy.uint8)
    else:
        single = values.view(numpy.uint8)
    single = single & numpy.uint8((1 << kind.bits) - 1)
    padded = numpy.zeros(-(-len(single) // per_byte) * per_byte, numpy.uint8)
    padded[: len(single)] = single
    shifts = numpy.arange(0, 8, kind.bits, dtype=numpy.uint8)
    return numpy.bitwise_or.reduce(padded.reshape(-1, per_byte) << shifts, axis=1)
