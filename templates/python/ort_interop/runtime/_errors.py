"""Misuse that the layer refuses before ONNX Runtime would crash, block or answer wrongly."""

from __future__ import annotations

from .._errors import OrtInteropError


class MisuseError(OrtInteropError):
    """The base of every error about how objects of the layer are used."""


class ClosedError(MisuseError):
    """An object was used after it had been closed."""


class InUseError(MisuseError):
    """An object cannot be closed while others need it; ``users`` names those."""

    def __init__(self, message: str, users: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.users = users


class WrongDeviceError(MisuseError):
    """Two objects that must belong to one device do not."""


class DescriptorError(MisuseError, ValueError):
    """A field of a descriptor has a value that no EP can take; ``field`` is its name."""

    def __init__(self, struct: str, field: str, reason: str) -> None:
        super().__init__(f"{struct}.{field} {reason}")
        self.struct = struct
        self.field = field


class StreamError(MisuseError):
    """A session cannot run on a stream as asked."""


class WouldBlockError(StreamError):
    """A run was to return before its work is done, and ONNX Runtime would block in it."""


class AllocationError(OrtInteropError, MemoryError):
    """An allocator made in Python failed; ``failures`` are what was raised in it, first to last.

    The first one is also the error's cause.
    """

    def __init__(self, message: str, failures: tuple[BaseException, ...] = ()) -> None:
        super().__init__(message)
        self.failures = failures


class NoHostAccessError(MisuseError):
    """The tensor's bytes cannot be reached from the host in the way that was asked for."""
