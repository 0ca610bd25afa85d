"""An ONNX model with a single ``Identity`` node, encoded by hand so that no package is needed.

ONNX models are protocol buffers; the field numbers are those of ``onnx.proto``.
"""

from __future__ import annotations

from collections.abc import Sequence

FLOAT = 1
"""``TensorProto.DataType.FLOAT``, which is also ``ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT``."""


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def number(field: int, content: int) -> bytes:
    """An integer field."""
    return _varint(field << 3) + _varint(content)


def message(field: int, *parts: bytes) -> bytes:
    """A field that holds other fields, or bytes."""
    body = b"".join(parts)
    return _varint(field << 3 | 2) + _varint(len(body)) + body


def text(field: int, content: str) -> bytes:
    """A text field."""
    return message(field, content.encode())


def value(field: int, name: str, element_type: int, shape: Sequence[int]) -> bytes:
    """An input or output of a graph."""
    dimensions = (message(1, number(1, size)) for size in shape)
    tensor = message(1, number(1, element_type), message(2, *dimensions))
    return message(field, text(1, name), message(2, tensor))


def identity_model(
    shape: Sequence[int], element_type: int = FLOAT, operators: Sequence[str] = ("Identity",)
) -> bytes:
    """The bytes of a model that passes ``input`` through one-input operators to ``output``."""
    names = ["input", *(f"middle_{at}" for at in range(len(operators) - 1)), "output"]
    nodes = (
        message(1, text(1, names[at]), text(2, names[at + 1]), text(3, f"n{at}"), text(4, kind))
        for at, kind in enumerate(operators)
    )
    graph = message(
        7,
        *nodes,
        text(2, "identity"),
        value(11, "input", element_type, shape),
        value(12, "output", element_type, shape),
    )
    return number(1, 8) + graph + message(8, text(1, ""), number(2, 17))
