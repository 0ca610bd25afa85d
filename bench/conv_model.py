"""A small image model: an Identity for the EP, two convolutions for the CPU, an Identity again."""

from __future__ import annotations

import struct
from collections.abc import Sequence

from identity_model import FLOAT, message, number, text, value

CHANNELS = 8
"""Between the convolutions."""


def conv_model(shape: Sequence[int]) -> bytes:
    """The bytes of a model from ``input`` to ``output``, images of that shape (1, 3, rows, columns)."""
    _, planes, _, _ = shape
    graph = message(
        7,
        node("Identity", "first", ["input"], "a"),
        node("Conv", "widen", ["a", "w1"], "b"),
        node("Relu", "rectify", ["b"], "c"),
        node("Conv", "narrow", ["c", "w2"], "d"),
        node("Identity", "last", ["d"], "output"),
        text(2, "images"),
        weights("w1", (CHANNELS, planes, 3, 3)),
        weights("w2", (planes, CHANNELS, 3, 3)),
        value(11, "input", FLOAT, shape),
        value(12, "output", FLOAT, shape),
    )
    return number(1, 8) + graph + message(8, text(1, ""), number(2, 17))


def node(kind: str, name: str, inputs: Sequence[str], output: str) -> bytes:
    """A node of a graph."""
    attributes = b""
    if kind == "Conv":
        attributes = _integers("kernel_shape", (3, 3)) + _integers("pads", (1, 1, 1, 1))
    names = b"".join(text(1, given) for given in inputs)
    return message(1, names, text(2, output), text(3, name), text(4, kind), attributes)


def _integers(name: str, content: Sequence[int]) -> bytes:
    """An attribute of a node."""
    return message(5, text(1, name), number(20, 7), *(number(8, item) for item in content))


def weights(name: str, shape: Sequence[int]) -> bytes:
    """A constant whose elements are small and not all alike."""
    count = 1
    for size in shape:
        count *= size
    raw = b"".join(struct.pack("<f", (at % 7 - 3) / 16) for at in range(count))
    sizes = (number(1, size) for size in shape)
    return message(5, *sizes, number(2, FLOAT), text(8, name), message(9, raw))
