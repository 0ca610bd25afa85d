"""Watching a timeline semaphore from the host: its value, waiting for it, and asyncio."""

from __future__ import annotations

import ctypes
import mmap
import os
import struct
import sys
import threading
import time
from typing import TYPE_CHECKING, Protocol

from ._node import INTERNAL_THREAD

if TYPE_CHECKING:
    import asyncio


class Observer(Protocol):
    """What tells a semaphore's value on the host; one may be given to ``import_semaphore``."""

    @property
    def value(self) -> int:
        """The value now."""
        ...

    def wait(self, value: int, timeout: float | None = None) -> bool:
        """Block until the value is reached (True) or ``timeout`` seconds are over (False)."""
        ...


_NAME = "ort-interop-semaphore"
_HEAD = struct.Struct("<QI")
_MAGIC = int.from_bytes(b"ORTISEM\0", "little")
_VERSION = 1
_SEQUENCE_OFFSET, _VALUE_OFFSET = 12, 16
_FUTEX_WAIT, _FUTEX_WAKE = ctypes.c_int(0), ctypes.c_int(1)
_EVERYBODY = ctypes.c_int((1 << 31) - 1)
_LOOK_AGAIN = 1.0
"""Seconds after which a waiting thread looks again by itself, whatever it was told."""
_SYS_FUTEX = {"x86_64": 202, "aarch64": 98, "riscv64": 98}


class _Timespec(ctypes.Structure):
    _fields_ = (("seconds", ctypes.c_long), ("nanoseconds", ctypes.c_long))


class HostSemaphore:
    """The shared counter behind a semaphore of the host EP (Linux), mapped a second time."""

    def __init__(self, fd: int) -> None:
        self._map = mmap.mmap(fd, mmap.PAGESIZE)
        self._value = ctypes.c_uint64.from_buffer(self._map, _VALUE_OFFSET)
        self._sequence = ctypes.c_uint32.from_buffer(self._map, _SEQUENCE_OFFSET)
        self._word = ctypes.c_void_p(ctypes.addressof(self._sequence))
        self._libc = ctypes.CDLL(None)
        self._number = ctypes.c_long(_SYS_FUTEX[os.uname().machine])

    @classmethod
    def of(cls, fd: int) -> HostSemaphore | None:
        """The semaphore behind a file descriptor, if it is one of the host EP's."""
        if not sys.platform.startswith("linux") or os.uname().machine not in _SYS_FUTEX:
            return None
        try:
            name = os.readlink(f"/proc/self/fd/{fd}").removesuffix(" (deleted)")
            marked = name.removeprefix("/memfd:").partition(":")[0] == _NAME
            if not marked or _HEAD.unpack(os.pread(fd, _HEAD.size, 0)) != (_MAGIC, _VERSION):
                return None
            return cls(fd)
        except (OSError, ValueError, struct.error):
            return None

    @property
    def value(self) -> int:
        """The value now."""
        return self._value.value

    @property
    def sequence(self) -> int:
        """Grows with every change of the value, and when somebody wants others to look again."""
        return self._sequence.value

    def wait(self, value: int, timeout: float | None = None) -> bool:
        """Sleep in the kernel until the value is reached or the time is over."""
        end = None if timeout is None else time.monotonic() + timeout
        while True:
            # Read before the value: a change in between makes the sleep end at once.
            sequence = self.sequence
            if self.value >= value:
                return True
            rest = None if end is None else end - time.monotonic()
            if rest is not None and rest <= 0:
                return False
            self.sleep(sequence, rest)

    def sleep(self, sequence: int, timeout: float | None) -> None:
        """Sleep while the sequence is the one given; may also end without a reason."""
        limit = None
        if timeout is not None:
            limit = ctypes.byref(_Timespec(int(timeout), int(timeout % 1 * 1e9)))
        expected = ctypes.c_uint32(sequence)
        self._libc.syscall(self._number, self._word, _FUTEX_WAIT, expected, limit, None, 0)

    def wake(self) -> None:
        """Make every sleeper look again; those of others look and sleep on."""
        self._sequence.value += 1
        self._libc.syscall(self._number, self._word, _FUTEX_WAKE, _EVERYBODY, None, None, 0)


class Waiters:
    """Futures that wait for values of one semaphore, served by one thread that sleeps."""

    def __init__(self, observer: Observer) -> None:
        self._observer = observer
        self._lock = threading.Lock()
        self._waiting: dict[asyncio.Future[None], int] = {}
        self._thread: threading.Thread | None = None

    async def reached(self, value: int) -> None:
        """Return once the value is reached."""
        import asyncio

        if self._observer.value >= value:
            return
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        with self._lock:
            self._waiting[future] = value
            if self._thread is None:
                name = f"{INTERNAL_THREAD}semaphore"
                self._thread = threading.Thread(target=self._watch, name=name, daemon=True)
                self._thread.start()
            else:
                self._look_again()
        try:
            await future
        finally:
            with self._lock:
                if self._waiting.pop(future, None) is not None:
                    self._look_again()

    def _look_again(self) -> None:
        if isinstance(self._observer, HostSemaphore):
            self._observer.wake()

    def _watch(self) -> None:
        observer = self._observer
        host = observer if isinstance(observer, HostSemaphore) else None
        while True:
            with self._lock:
                # Read before the value and the futures: a change after it ends the sleep at once.
                sequence = host.sequence if host is not None else 0
                reached = observer.value
                done = [f for f, value in self._waiting.items() if value <= reached]
                for future in done:
                    del self._waiting[future]
                running = bool(self._waiting)
                target = min(self._waiting.values(), default=0)
                if not running:
                    self._thread = None
            for future in done:
                _tell(future, None)
            if not running:
                return
            if host is not None:
                host.sleep(sequence, _LOOK_AGAIN)
            else:
                observer.wait(target, _LOOK_AGAIN)

    def close(self, error: BaseException) -> None:
        """Fail what still waits, since nobody can tell any more."""
        with self._lock:
            left = list(self._waiting)
            self._waiting.clear()
            if left:
                self._look_again()
        for future in left:
            _tell(future, error)


def _tell(future: asyncio.Future[None], error: BaseException | None) -> None:
    """Settle a future from another thread; its loop may be closed, or it cancelled."""

    def settle() -> None:
        if not future.done():
            if error is None:
                future.set_result(None)
            else:
                future.set_exception(error)

    try:
        future.get_loop().call_soon_threadsafe(settle)
    except RuntimeError:
        return
