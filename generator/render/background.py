"""Run one function beside the main work: in a forked process where the system has that."""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class Background(Generic[T]):
    """``with Background(f) as b: ...; b.result()`` gives what ``f()`` returns, or its exception.

    The child process inherits all that is loaded and sends back only the result, pickled.
    """

    def __init__(self, function: Callable[[], T]) -> None:
        self.function = function
        self.pid = 0
        self.reader = -1

    def __enter__(self) -> Background[T]:
        if not hasattr(os, "fork"):
            return self
        self.reader, writer = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            os.close(self.reader)
            _child(self.function, writer)
        os.close(writer)
        return self

    def result(self) -> T:
        """Wait for the function; with no process to wait for, call it now."""
        if not self.pid:
            return self.function()
        with os.fdopen(self.reader, "rb") as stream:
            self.reader = -1
            data = stream.read()
        self._reap()
        if not data:
            raise RuntimeError("the background process ended without an answer")
        value: Any
        failed, value = pickle.loads(data)
        if failed:
            raise value
        found: T = value
        return found

    def _reap(self) -> None:
        if self.pid:
            os.waitpid(self.pid, 0)
            self.pid = 0

    def __exit__(self, *_: object) -> None:
        if self.reader >= 0:
            # Closed unread: the child's write fails and it ends.
            os.close(self.reader)
        self._reap()


def _child(function: Callable[[], object], writer: int) -> None:
    try:
        try:
            answer = pickle.dumps((False, function()))
        except Exception as error:
            answer = _pickled(error)
        with os.fdopen(writer, "wb") as stream:
            stream.write(answer)
    except BaseException:
        os._exit(1)
    os._exit(0)


def _pickled(error: Exception) -> bytes:
    """An exception as bytes; one that does not survive the trip is sent as its text."""
    try:
        data = pickle.dumps((True, error))
        pickle.loads(data)
        return data
    except Exception:
        return pickle.dumps((True, RuntimeError(f"{type(error).__name__}: {error}")))
