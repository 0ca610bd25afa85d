"""Memory and timeline semaphores that the host EP imports, made and used from Python (Linux).

The layout and the names are those of ``generated/c/host/host_interop.h``.
"""

from __future__ import annotations

import ctypes
import fcntl
import mmap
import os
import struct
import time
from types import TracebackType

MEMORY_NAME = "ort-interop-memory"
SEMAPHORE_NAME = "ort-interop-semaphore"
_SEMAPHORE = struct.Struct("<QIIQ")
_MAGIC = int.from_bytes(b"ORTISEM\0", "little")
_VERSION = 1
_SEQUENCE_OFFSET = 12
_VALUE_OFFSET = 16
_SYS_FUTEX = {"x86_64": 202, "aarch64": 98}[os.uname().machine]
_FUTEX_WAKE = 1
_libc = ctypes.CDLL(None, use_errno=True)


class _Shared:
    """A sealed memfd and a mapping of it that belongs to this process alone."""

    def __init__(self, name: str, size: int) -> None:
        self.fd = os.memfd_create(name, os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        os.ftruncate(self.fd, size)
        fcntl.fcntl(self.fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK)
        self.view = mmap.mmap(self.fd, size)

    def close(self) -> None:
        self.view.close()
        os.close(self.fd)

    def __enter__(self):  # type: ignore[no-untyped-def]
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


class SharedMemory(_Shared):
    """Memory that is exported as an opaque file descriptor; ``view`` is the exporter's mapping."""

    def __init__(self, size: int) -> None:
        super().__init__(MEMORY_NAME, size)


class SharedSemaphore(_Shared):
    """A timeline semaphore that is exported as an opaque file descriptor."""

    def __init__(self, value: int = 0) -> None:
        super().__init__(SEMAPHORE_NAME, mmap.PAGESIZE)
        self.view[: _SEMAPHORE.size] = _SEMAPHORE.pack(_MAGIC, _VERSION, 0, value)
        self._value = ctypes.c_uint64.from_buffer(self.view, _VALUE_OFFSET)
        self._sequence = ctypes.c_uint32.from_buffer(self.view, _SEQUENCE_OFFSET)

    @property
    def value(self) -> int:
        """The semaphore's value now."""
        return self._value.value

    def signal(self, value: int) -> None:
        """Raise the value and wake everything that waits; one process signals at a time."""
        if value <= self.value:
            raise ValueError(f"the semaphore stands at {self.value}, so {value} is no progress")
        # Aligned stores of ctypes are single instructions; the system call orders them.
        self._value.value = value
        self._sequence.value += 1
        word = ctypes.c_void_p(ctypes.addressof(self._sequence))
        _libc.syscall(_SYS_FUTEX, word, _FUTEX_WAKE, 0x7FFFFFFF, None, None, 0)

    def wait(self, value: int, timeout: float = 10.0) -> None:
        """Sleep until the value is reached; :class:`TimeoutError` after ``timeout`` seconds."""
        deadline = time.monotonic() + timeout
        while self.value < value:
            if time.monotonic() > deadline:
                raise TimeoutError(f"the semaphore stands at {self.value}, not at {value}")
            time.sleep(0.0005)

    def close(self) -> None:
        # The mapping cannot close while ctypes objects point into it.
        del self._value, self._sequence
        super().close()
