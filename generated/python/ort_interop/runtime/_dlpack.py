"""DLPack in both directions, without copies and without a compiled module."""

from __future__ import annotations

import atexit
import ctypes
import math
from typing import TYPE_CHECKING, Any

from ._device import AMD, NVIDIA, TransferPath
from ._elements import element_of_dlpack
from ._interop import streams_with
from ._node import exporting, unexport
from ._tensor import Tensor, wrap

if TYPE_CHECKING:
    from ._device import Device
    from ._runtime import Runtime

CPU, CUDA, CUDA_HOST, ROCM, ROCM_HOST, CUDA_MANAGED = 1, 2, 3, 10, 11, 13
_HOST = {CPU, CUDA_HOST, ROCM_HOST}
_VERSION = (1, 1)
_READ_ONLY = 1


class _Type(ctypes.Structure):
    _fields_ = (("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16))


class _Tensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("type", _Type),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


class _Managed(ctypes.Structure):
    """``DLManagedTensor``."""

    _fields_ = (
        ("tensor", _Tensor),
        ("manager", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
    )


class _Versioned(ctypes.Structure):
    """``DLManagedTensorVersioned``."""

    _fields_ = (
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("manager", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("tensor", _Tensor),
    )


class _Export:
    """A tensor that a consumer has, with all that its description points to."""

    def __init__(self, tensor: Tensor, managed: Any, shape: Any, strides: Any) -> None:
        self.tensor = tensor
        self.kept = (managed, shape, strides)
        self.managed = managed


_exports: dict[int, _Export] = {}
_Deleter = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
_api = ctypes.pythonapi
_new = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)(
    ("PyCapsule_New", _api)
)
_is_valid = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p)(
    ("PyCapsule_IsValid", _api)
)
_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", _api)
)
_rename = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p)(
    ("PyCapsule_SetName", _api)
)
# Capsules keep the address of their name, so the texts must never go.
_NAMES = {False: ctypes.c_char_p(b"dltensor"), True: ctypes.c_char_p(b"dltensor_versioned")}
_USED = {
    False: ctypes.c_char_p(b"used_dltensor"),
    True: ctypes.c_char_p(b"used_dltensor_versioned"),
}


def _deleted(address: int) -> None:
    """The consumer is done with a tensor."""
    export = _exports.pop(address, None)
    if export is not None:
        unexport(export.tensor._node)


_delete = _Deleter(_deleted)


def _capsule_gone(capsule: int) -> None:
    """A capsule goes; one that nobody has consumed takes its tensor along."""
    for name in _NAMES.values():
        if _is_valid(capsule, name):
            _deleted(_pointer(capsule, name))


_destroy = _Deleter(_capsule_gone)


def _leave_to_system() -> None:
    """Consumers may let go of tensors when Python is no longer there to hear of it.

    A deleter may be null: there is nothing to do then.
    """
    for export in list(_exports.values()):
        export.managed.deleter = None


atexit.register(_leave_to_system)


def device_of(tensor: Tensor) -> tuple[int, int]:
    """The DLPack device of a tensor; BufferError where DLPack has none."""
    info = tensor.memory
    if info.is_cpu:
        return CPU, 0
    gpu = info.device_type.name == "OrtMemoryInfoDeviceType_GPU"
    if gpu and info.vendor_id == NVIDIA:
        return (CUDA_HOST if info.host_accessible else CUDA), info.device_id
    if gpu and info.vendor_id == AMD:
        return (ROCM_HOST if info.host_accessible else ROCM), info.device_id
    access = tensor.host_access()
    if access.path is TransferPath.MAP:
        return CPU, 0
    raise BufferError(f"{tensor!r}: DLPack has no device type for it ({access.reason})")


def export(
    tensor: Tensor,
    stream: Any,
    max_version: tuple[int, int] | None,
    dl_device: tuple[int, int] | None,
    copy: bool | None,
) -> Any:
    """A capsule for a consumer."""
    device = device_of(tensor)
    if dl_device is not None and tuple(dl_device) != device:
        raise BufferError(f"{tensor!r} is on DLPack device {device}, not on {tuple(dl_device)}")
    if copy:
        raise BufferError(f"{tensor!r} is exported without a copy only; to_host() makes one")
    if stream not in (None, -1) and device[0] in _HOST:
        raise BufferError("memory of the host has no stream: pass stream=None")
    kind = tensor.element
    if kind.bits < 8:
        raise BufferError(f"{kind.dtype} elements are packed, which consumers do not read alike")
    if stream != -1:
        pending = [s._node.label for s in streams_with(tensor._node)]
        if pending:
            raise BufferError(
                f"{tensor!r} is used by work that is still queued on {', '.join(pending)}; wait for "
                "it, or pass stream=-1 and order the consumer yourself"
            )
    versioned = max_version is not None and max_version[0] >= 1
    managed = _Versioned() if versioned else _Managed()
    rank = len(tensor.shape)
    shape = (ctypes.c_int64 * max(rank, 1))(*tensor.shape)
    strides = (ctypes.c_int64 * max(rank, 1))(
        *(math.prod(tensor.shape[at + 1 :]) for at in range(rank))
    )
    inner = managed.tensor
    inner.data = tensor.data_ptr
    inner.device_type, inner.device_id = device
    inner.ndim = rank
    inner.type = _Type(kind.code, kind.bits, 1)
    inner.shape = ctypes.cast(shape, ctypes.POINTER(ctypes.c_int64))
    inner.strides = ctypes.cast(strides, ctypes.POINTER(ctypes.c_int64))
    managed.deleter = ctypes.cast(_delete, ctypes.c_void_p).value
    if isinstance(managed, _Versioned):
        managed.major, managed.minor = _VERSION
    address = ctypes.addressof(managed)
    with exporting(tensor._node):
        _exports[address] = _Export(tensor, managed, shape, strides)
        try:
            return _new(address, _NAMES[versioned], ctypes.cast(_destroy, ctypes.c_void_p))
        except BaseException:
            del _exports[address]
            raise


class _Import:
    """What another library lends, until the native tensor is gone."""

    def __init__(self, producer: Any, address: int, deleter: int | None) -> None:
        self.producer = producer
        self._address = address
        self._deleter = deleter

    def __del__(self) -> None:
        deleter, self._deleter = self._deleter, None
        if deleter:
            _Deleter(deleter)(self._address)


def import_tensor(runtime: Runtime, array: Any, device: Device | None) -> Tensor:
    """A tensor over what an object with ``__dlpack__`` exports."""
    kind, number = array.__dlpack_device__()
    memory = None
    if kind not in _HOST:
        if device is None:
            raise BufferError(
                f"the array is on DLPack device ({kind}, {number}); say which EP device that is"
            )
        info = device.memory
        expected = {NVIDIA: CUDA, AMD: ROCM}.get(info.vendor_id) if info is not None else None
        if info is None or expected != kind or info.device_id != number:
            raise BufferError(
                f"the array is on DLPack device ({kind}, {number}), which is not {device.ep_name}'s"
            )
        memory = device._memory_handle()
    else:
        device = None
    try:
        capsule = array.__dlpack__(max_version=_VERSION)
    except TypeError:
        capsule = array.__dlpack__()
    place = id(capsule)
    versioned = bool(_is_valid(place, _NAMES[True]))
    if not versioned and not _is_valid(place, _NAMES[False]):
        raise BufferError(f"{type(array).__name__}.__dlpack__() returned no DLPack capsule")
    address = _pointer(place, _NAMES[versioned])
    managed = (_Versioned if versioned else _Managed).from_address(address)
    if isinstance(managed, _Versioned):
        if managed.major > _VERSION[0]:
            raise BufferError(f"the array speaks DLPack {managed.major}, this layer 1")
        if managed.flags & _READ_ONLY:
            raise BufferError("the array is read-only, and ONNX Runtime may write to a tensor")
    inner = managed.tensor
    element = element_of_dlpack(inner.type.code, inner.type.bits)
    if element is None or inner.type.lanes != 1:
        raise BufferError(
            f"DLPack type code {inner.type.code}, {inner.type.bits} bits, {inner.type.lanes} lanes "
            "is no element type of ONNX Runtime"
        )
    shape = tuple(inner.shape[at] for at in range(inner.ndim))
    if inner.strides:
        dense = 1
        for at in reversed(range(inner.ndim)):
            if shape[at] > 1 and inner.strides[at] != dense:
                raise BufferError("the array is not C-contiguous")
            dense *= shape[at]
    # From here on the capsule is consumed, and the deleter is this side's to call.
    _rename(place, _USED[versioned])
    lent = _Import(array, address, managed.deleter)
    data = (inner.data or 0) + inner.byte_offset
    nbytes = element.bytes_of(math.prod(shape))
    return wrap(runtime, data, element, shape, nbytes, lent, device, memory)
