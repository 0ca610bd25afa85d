"""Python functions as C callbacks: typed arguments, kept results, exceptions as statuses."""

from __future__ import annotations

import ctypes

from ._abi import ENUMS
from ._types import get

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from ._library import Library
    from ._types import Signature


def address_of(value: Any) -> int | None:
    """The address that a pointer result stands for."""
    if value is None or isinstance(value, int):
        return value
    if isinstance(value, (ctypes.Structure, ctypes.Union, ctypes.Array)):
        return ctypes.addressof(value)
    if isinstance(value, (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_wchar_p, ctypes._Pointer)):
        return ctypes.cast(value, ctypes.c_void_p).value
    raise TypeError(f"a pointer was expected as the result, not {type(value).__name__}")


class _Texts:
    """Returns text results as C strings, which stay valid as long as the callback."""

    def __init__(self) -> None:
        self.kept: dict[bytes, Any] = {}

    def __call__(self, value: Any) -> int | None:
        if isinstance(value, str):
            value = value.encode()
        if not isinstance(value, bytes):
            return address_of(value)
        if value not in self.kept:
            self.kept[value] = ctypes.create_string_buffer(value)
        return ctypes.addressof(self.kept[value])


def _nothing(value: Any) -> None:
    if value is not None:
        raise TypeError(f"no result was expected, not {type(value).__name__}")


def _converter(word: str) -> Callable[[Any], Any]:
    if word == "text":
        return _Texts()
    if word == "void":
        return _nothing
    if word == "status" or word == "address" or word[0] == "*":
        return address_of
    if word == "bool":
        return bool
    return int


class _Failed:
    """A callback that failed, for Python's own report of errors that nobody can catch."""

    def __init__(self, name: str, error: BaseException) -> None:
        self.name = name
        self.error = error

    def __call__(self) -> None:
        raise self.error

    def __repr__(self) -> str:
        return f"<callback {self.name}>"


def report(name: str, error: BaseException) -> None:
    """Hand an error to ``sys.unraisablehook``, which only the interpreter itself can do."""
    ctypes.PYFUNCTYPE(None)(_Failed(name, error))()


def wrap(
    library: Library, name: str, call: Callable[..., Any], signature: Signature
) -> Callable[..., Any]:
    """A function that C can call in place of ``call``, and that never raises.

    After an exception ctypes would hand C whatever its result buffer held.
    """
    if not callable(call):
        raise TypeError(f"{name}: a function was expected, not {type(call).__name__}")
    convert = _converter(signature.result)
    members = [(at, get(word)) for at, word in enumerate(signature.params) if word in ENUMS]
    zero = 0 if convert in (bool, int) else None

    def run(*arguments: Any) -> Any:
        try:
            if members:
                typed = list(arguments)
                for at, member in members:
                    typed[at] = member(typed[at])
                arguments = tuple(typed)
            return convert(call(*arguments))
        except BaseException as error:
            if signature.result == "status":
                return library.status_of(error, name)
            report(name, error)
            return zero

    return run
