"""Element types: their sizes, and their names in NumPy, ml_dtypes and DLPack."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

from .._types import get
from ._errors import DescriptorError

if TYPE_CHECKING:
    from .. import ONNXTensorElementDataType

_PREFIX = "ONNX_TENSOR_ELEMENT_DATA_TYPE_"


class Element(NamedTuple):
    """An element type of fixed size.

    ``dtype`` is its name in NumPy or ml_dtypes, ``bits`` its size, ``alignment`` in bytes, and
    ``code`` its type code in DLPack.
    """

    name: str
    dtype: str
    bits: int
    alignment: int
    code: int

    @property
    def onnx(self) -> ONNXTensorElementDataType:
        """The enumerator of the C API."""
        found: ONNXTensorElementDataType = get("ONNXTensorElementDataType")[_PREFIX + self.name]
        return found

    def bytes_of(self, count: int) -> int:
        """How many bytes that many elements take; the last byte may be used in part."""
        return (count * self.bits + 7) // 8


_INT, _UINT, _FLOAT, _BFLOAT, _COMPLEX, _BOOL = 0, 1, 2, 4, 5, 6
_TABLE = (
    Element("FLOAT", "float32", 32, 4, _FLOAT),
    Element("UINT8", "uint8", 8, 1, _UINT),
    Element("INT8", "int8", 8, 1, _INT),
    Element("UINT16", "uint16", 16, 2, _UINT),
    Element("INT16", "int16", 16, 2, _INT),
    Element("INT32", "int32", 32, 4, _INT),
    Element("INT64", "int64", 64, 8, _INT),
    Element("BOOL", "bool", 8, 1, _BOOL),
    Element("FLOAT16", "float16", 16, 2, _FLOAT),
    Element("DOUBLE", "float64", 64, 8, _FLOAT),
    Element("UINT32", "uint32", 32, 4, _UINT),
    Element("UINT64", "uint64", 64, 8, _UINT),
    Element("COMPLEX64", "complex64", 64, 4, _COMPLEX),
    Element("COMPLEX128", "complex128", 128, 8, _COMPLEX),
    Element("BFLOAT16", "bfloat16", 16, 2, _BFLOAT),
    Element("FLOAT8E4M3FN", "float8_e4m3fn", 8, 1, 10),
    Element("FLOAT8E4M3FNUZ", "float8_e4m3fnuz", 8, 1, 11),
    Element("FLOAT8E5M2", "float8_e5m2", 8, 1, 12),
    Element("FLOAT8E5M2FNUZ", "float8_e5m2fnuz", 8, 1, 13),
    Element("UINT4", "uint4", 4, 1, _UINT),
    Element("INT4", "int4", 4, 1, _INT),
    Element("FLOAT4E2M1", "float4_e2m1fn", 4, 1, 17),
    Element("UINT2", "uint2", 2, 1, _UINT),
    Element("INT2", "int2", 2, 1, _INT),
    Element("FLOAT8E8M0", "float8_e8m0fnu", 8, 1, 14),
)
_BY_NAME = {e.name: e for e in _TABLE}
_BY_DTYPE = {e.dtype: e for e in _TABLE}
_BY_DLPACK = {(e.code, e.bits): e for e in _TABLE}
NUMPY_OWN = frozenset(e.dtype for e in _TABLE[:14])
"""The types that NumPy has itself; the others come with ml_dtypes."""


def element(dtype: Any) -> Element:
    """The element type for an enumerator, a NumPy or ml_dtypes type, or the name of one."""
    name = getattr(dtype, "name", None)
    if isinstance(dtype, get("ONNXTensorElementDataType")):
        found = _BY_NAME.get(str(name).removeprefix(_PREFIX))
    elif isinstance(dtype, str):
        found = _BY_DTYPE.get(dtype) or _BY_DTYPE.get(_numpy_name(dtype))
    else:
        # A dtype has its name, a scalar type such as numpy.float32 is named so itself.
        found = _BY_DTYPE.get(str(name or getattr(dtype, "__name__", "")).rstrip("_"))
    if found is None:
        raise DescriptorError(
            "OrtExternalTensorDescriptor",
            "element_type",
            f"is {dtype!r}, which is no element type of fixed size; give an enumerator of "
            f"ONNXTensorElementDataType or a name: {', '.join(_BY_DTYPE)}",
        )
    return found


def _numpy_name(text: str) -> str:
    """The full name of a type that is written as NumPy allows, such as ``f4``."""
    try:
        import numpy

        return str(numpy.dtype(text).name)
    except (ImportError, TypeError):
        return ""


def element_of_dlpack(code: int, bits: int) -> Element | None:
    """The element type of a DLPack type with one lane."""
    return _BY_DLPACK.get((code, bits))


def numpy_dtype(kind: Element) -> Any:
    """The NumPy type; types that are not NumPy's own need ml_dtypes."""
    import numpy

    if kind.dtype in NUMPY_OWN:
        return numpy.dtype(kind.dtype)
    try:
        ml_dtypes = import_module("ml_dtypes")
    except ImportError:
        raise ImportError(f"{kind.dtype} arrays need the package ml_dtypes") from None
    try:
        return numpy.dtype(getattr(ml_dtypes, kind.dtype))
    except AttributeError:
        raise ImportError(f"this release of ml_dtypes has no {kind.dtype}") from None
