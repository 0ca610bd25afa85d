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


def _number(field: int, value: int) -> bytes:
    return _varint(field << 3) + _varint(value)


def _message(field: int, *parts: bytes) -> bytes:
    body = b"".join(parts)
    return _varint(field << 3 | 2) + _varint(len(body)) + body


def _text(field: int, text: str) -> bytes:
    return _message(field, text.encode())


def _value(field: int, name: str, element_type: int, shape: Sequence[int]) -> bytes:
    dimensions = (_message(1, _number(1, size)) for size in shape)
    tensor = _message(1, _number(1, element_type), _message(2, *dimensions))
    return _message(field, _text(1, name), _message(2, tensor))


def identity_model(
    shape: Sequence[int], element_type: int = FLOAT, operators: Sequence[str] = ("Identity",)
) -> bytes:
    """The bytes of a model that passes ``input`` through one-input operators to ``output``."""
    names = ["input", *(f"middle_{at}" for at in range(len(operators) - 1)), "output"]
    nodes = (
        _message(
            1, _text(1, names[at]), _text(2, names[at + 1]), _text(3, f"n{at}"), _text(4, kind)
        )
        for at, kind in enumerate(operators)
    )
    graph = _message(
        7,
        *nodes,
        _text(2, "identity"),
        _value(11, "input", element_type, shape),
        _value(12, "output", element_type, shape),
    )
    return _number(1, 8) + graph + _message(8, _text(1, ""), _number(2, 17))
