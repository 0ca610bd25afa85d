"""Who needs whom: native objects are released when the last that needs them is gone.

Every object of the layer stands for a node.  A node keeps the nodes that it needs; which kinds it
needs is told by the spec (``_semantics.NEEDS`` and ``BORROWS``).  Releases follow these counts and
not the order in which Python collects objects, which is arbitrary in cycles and at exit.
"""

from __future__ import annotations

import atexit
import os
import threading
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import wraps
from itertools import count
from types import TracebackType
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar, cast

from ._errors import ClosedError, InUseError

_S = TypeVar("_S", bound="Resource")
_E = TypeVar("_E", bound="Entering")
_P = ParamSpec("_P")
_R = TypeVar("_R")

_lock = threading.Lock()
_abandoned: deque[Node] = deque()
_living: dict[int, Node] = {}
_here = threading.local()
_serials = count(1)
_before_close: list[Callable[[], None]] = []
INTERNAL_THREAD = "ort-interop-"
"""How the names of the layer's own threads begin."""


class Node:
    """A native object with the nodes that it needs.

    ``users`` are those that need it; ``references`` counts them, its Python object and everything
    else that holds on to it: queued work, arrays that view it, runs that use it.
    """

    __slots__ = (
        "calls",
        "closed",
        "failure",
        "kind",
        "label",
        "needs",
        "process",
        "references",
        "release",
        "serial",
        "users",
        "views",
    )

    def __init__(
        self, kind: str, label: str, needs: Iterable[Node], release: Callable[[], None] | None
    ) -> None:
        self.kind = kind
        self.label = label
        self.release = release
        self.serial = next(_serials)
        self.references = 1
        self.closed = False
        self.failure: Exception | None = None
        self.process = os.getpid()
        self.users: dict[int, Node] = {}
        # One entry for each call in flight and each array; lists, because their methods are atomic.
        self.calls: list[None] = []
        self.views: list[None] = []
        self.needs = tuple(dict.fromkeys(needs))
        with locked():
            for need in self.needs:
                if need.references == 0:
                    raise ClosedError(f"{need.label} is closed")
            for need in self.needs:
                need.references += 1
                need.users[self.serial] = self
            _living[self.serial] = self

    def __repr__(self) -> str:
        return f"<{self.label}>"


@contextmanager
def locked() -> Iterator[None]:
    """Hold the lock of the graph; whatever was abandoned meanwhile is released afterwards."""
    with _lock:
        yield
    if _abandoned:
        drain()


def lean(node: Node, needs: Iterable[Node]) -> None:
    """Let a node need more nodes from now on."""
    with locked():
        added = [n for n in dict.fromkeys(needs) if n not in node.needs]
        for need in added:
            if need.references == 0:
                raise ClosedError(f"{need.label} is closed")
        for need in added:
            need.references += 1
            need.users[node.serial] = node
        node.needs = (*node.needs, *added)


def unlean(node: Node, need: Node) -> None:
    """Let a node no longer need another."""
    with locked():
        if need not in node.needs:
            return
        node.needs = tuple(n for n in node.needs if n is not need)
        need.users.pop(node.serial, None)
    drop(need)


def hold(node: Node) -> None:
    """Keep a node's native object until :func:`drop`."""
    with locked():
        if node.references == 0:
            raise ClosedError(f"{node.label} is closed")
        node.references += 1


def drop(node: Node) -> None:
    """Let go of a node; callable from finalizers on any thread, also one that holds the lock."""
    _abandoned.append(node)
    drain()


@contextmanager
def called_back() -> Iterator[None]:
    """Release nothing on this thread: ONNX Runtime is calling, and may hold locks of its own.

    What is abandoned meanwhile is released with the next thing that is.
    """
    _here.depth = getattr(_here, "depth", 0) + 1
    try:
        yield
    finally:
        _here.depth -= 1


def drain() -> None:
    """Release what nobody needs any more, users before what they need."""
    if getattr(_here, "depth", 0):
        return
    while _abandoned:
        # A finalizer may interrupt this very thread inside the lock: then its holder does the work.
        if not _lock.acquire(blocking=False):
            return
        try:
            ready = _count_down(_abandoned.popleft()) if _abandoned else None
        finally:
            _lock.release()
        if ready is not None:
            _release(ready)


def _count_down(node: Node) -> Node | None:
    node.references -= 1
    return node if node.references == 0 else None


def _release(node: Node) -> None:
    """Release one native object, then let go of what it needed.  The lock is not held meanwhile."""
    if node.release is not None and os.getpid() == node.process:
        try:
            node.release()
        except Exception as error:
            node.failure = error
    node.release = None
    with _lock:
        _living.pop(node.serial, None)
        for need in node.needs:
            need.users.pop(node.serial, None)
            _abandoned.append(need)
        node.needs = ()


@contextmanager
def exporting(node: Node) -> Iterator[None]:
    """Count a view of a node's memory that outlives the block, unless the block fails."""
    with locked():
        if node.closed:
            raise ClosedError(f"{node.label} is closed")
        node.references += 1
        node.views.append(None)
    try:
        yield
    except BaseException:
        unexport(node)
        raise


def unexport(node: Node) -> None:
    """A view of a node's memory is gone."""
    node.views.pop()
    drop(node)


def before_close(call: Callable[[], None]) -> None:
    """Call a function before it is decided whether something may be closed."""
    _before_close.append(call)


class Entering(Protocol):
    """What calls can enter: while one is inside, closing is refused."""

    @property
    def _entries(self) -> tuple[list[None], ...]:
        """Where a call is written down while it lasts."""
        ...


@contextmanager
def inside(*things: Entering | None) -> Iterator[None]:
    """Be inside of some objects: none of them can be closed until the block ends.

    Enter first, and read their handles then: either closing sees the entry, or the handle is gone.
    """
    entries = [calls for thing in things if thing is not None for calls in thing._entries]
    for calls in entries:
        calls.append(None)
    try:
        yield
    finally:
        for calls in entries:
            calls.pop()


def entered(method: Callable[Concatenate[_E, _P], _R]) -> Callable[Concatenate[_E, _P], _R]:
    """Make a method be inside of its own object."""

    @wraps(method)
    def run(self: _E, *args: _P.args, **kwargs: _P.kwargs) -> _R:
        with inside(self):
            return method(self, *args, **kwargs)

    return cast("Callable[Concatenate[_E, _P], _R]", run)


class Resource:
    """An object of the layer: closed by ``close()``, by ``with``, or when nobody refers to it.

    ``close()`` raises :class:`InUseError` while others need the object, and names them.  What is
    only still in use by queued work is closed at once for the program and released after the work.
    """

    __slots__ = ("__weakref__", "_calls", "_finalizer", "_handle", "_node")

    _node: Node
    _handle: Any
    _calls: list[None]
    _finalizer: weakref.finalize[..., Any]

    def _own(self, node: Node, handle: Any = None) -> None:
        """Stand for a node from now on."""
        self._node = node
        self._handle = handle
        self._calls = node.calls
        finalizer = weakref.finalize(self, drop, node)
        finalizer.atexit = False
        self._finalizer = finalizer

    def __getattr__(self, name: str) -> Any:
        # Closing deletes the handle, so that using an open object costs no check.
        if name == "_handle":
            raise ClosedError(f"{self._node.label} is closed")
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __repr__(self) -> str:
        return f"<{self._node.label}{', closed' if self._node.closed else ''}>"

    @property
    def _entries(self) -> tuple[list[None], ...]:
        return (self._calls,)

    @property
    def closed(self) -> bool:
        """Whether the object has been closed."""
        return self._node.closed

    def close(self) -> None:
        """Release what the object stands for; closing twice is fine."""
        self._close(strict=True)

    def _close(self, strict: bool) -> None:
        node = self._node
        for call in _before_close:
            call()
        with locked():
            if node.closed:
                return
            # Calls enter themselves before they read the handle: either they are seen, or they fail.
            handle = self._handle
            del self._handle
            users = tuple(u.label for u in node.users.values() if not u.closed)
            reasons = list(users)
            if node.views:
                reasons.append(f"{len(node.views)} array(s) that view it")
            if node.calls:
                reasons.append("a call in another thread")
            if reasons and not strict and node.calls:
                # It goes when the last of its callers lets go of it.
                self._handle = handle
                return
            if reasons and strict:
                self._handle = handle
                raise InUseError(
                    f"{node.label} cannot be closed: in use by {', '.join(reasons)}", tuple(reasons)
                )
            node.closed = True
        self._settle()
        self._closing()
        self._finalizer.detach()
        drop(node)
        if node.failure is not None:
            failure, node.failure = node.failure, None
            raise failure

    def _settle(self) -> None:
        """Called before the release, to wait for calls that still have the handle."""

    def _closing(self) -> None:
        """Called once, after the decision to close and before the release."""

    def __enter__(self: _S) -> _S:
        if self._node.closed:
            raise ClosedError(f"{self._node.label} is closed")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        # An error that is under way says more than that objects of its block are still in use.
        self._close(strict=kind is None)


def _abandon_at_exit() -> None:
    """Release everything when the interpreter ends, unless threads may still use it."""
    for thread in threading.enumerate():
        ours = thread.name.startswith(INTERNAL_THREAD)
        if thread is not threading.current_thread() and not ours:
            # A daemon thread may be inside a call; the system takes everything back anyway.
            _abandoned.clear()
            return
    for node in sorted(_living.values(), key=lambda n: -n.serial):
        if not node.closed and not node.views and not node.calls:
            node.closed = True
            drop(node)
    drain()


def _forget_in_child() -> None:
    """A forked child has none of the threads that the native objects rely on: touch nothing."""
    global _lock
    _lock = threading.Lock()
    _abandoned.clear()
    _living.clear()


atexit.register(_abandon_at_exit)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_in_child)
