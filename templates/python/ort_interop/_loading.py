"""Finds ONNX Runtime's shared library and opens it."""

from __future__ import annotations

import ctypes
import os
import sys

from ._abi import FLOOR_VERSION
from ._errors import LibraryNotFound
from ._library import Library

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

ENVIRONMENT_VARIABLE = "ORT_INTEROP_LIBRARY"
"""The environment variable that names the library, or its folder, when no path is given."""


def _release(name: str) -> tuple[int, ...]:
    """The numbers in a library's file name, to order several of one folder."""
    return tuple(int(part) for part in name.split(".") if part.isdigit())


def _libraries(folder: str) -> Iterator[str]:
    """The ONNX Runtime libraries of a folder, the newest release first."""
    try:
        names = os.listdir(folder)
    except OSError:
        return
    if os.name == "nt":
        found = [n for n in names if n.lower() == "onnxruntime.dll"]
    elif sys.platform == "darwin":
        found = [n for n in names if n.startswith("libonnxruntime.") and n.endswith(".dylib")]
    else:
        found = [n for n in names if n.startswith("libonnxruntime.so")]
    for name in sorted(found, key=_release, reverse=True):
        yield os.path.join(folder, name)


def _wheel_folders() -> Iterator[str]:
    """Where an installed ``onnxruntime`` wheel keeps its library; the wheel is not imported."""
    from importlib.util import find_spec

    try:
        spec = find_spec("onnxruntime")
    except (ImportError, ValueError):
        spec = None
    for folder in (spec and spec.submodule_search_locations) or ():
        yield os.path.join(folder, "capi")


def find_library(path: str | os.PathLike[str] | None = None) -> str:
    """The absolute path of ONNX Runtime's library.

    Looks at ``path`` (a library, its folder, or a folder with the wheel) if given, else at the
    environment variable ``ORT_INTEROP_LIBRARY``, else into the installed ``onnxruntime`` wheel.
    Raises :class:`LibraryNotFound`, which names what was looked at.
    """
    given = os.fspath(path) if path is not None else os.environ.get(ENVIRONMENT_VARIABLE)
    if given:
        given = os.path.abspath(given)
        if os.path.isfile(given):
            return given
        inside = (("capi",), ("onnxruntime", "capi"))
        for folder in (given, *(os.path.join(given, *parts) for parts in inside)):
            for found in _libraries(folder):
                return found
        source = "" if path is not None else f" (from {ENVIRONMENT_VARIABLE})"
        raise LibraryNotFound(f"no ONNX Runtime library at {given}{source}", (given,))
    folders = tuple(_wheel_folders())
    for folder in folders:
        for found in _libraries(folder):
            return os.path.abspath(found)
    where = f"none in {', '.join(folders)}" if folders else "no onnxruntime wheel is installed"
    raise LibraryNotFound(
        f"no ONNX Runtime library found: {where}; install onnxruntime, give a path, "
        f"or set {ENVIRONMENT_VARIABLE}",
        folders,
    )


def load(
    path: str | os.PathLike[str] | None = None,
    *,
    api_version: int | None = None,
    floor: int = FLOOR_VERSION,
) -> Library:
    """Open ONNX Runtime's library and negotiate an API version.

    The newest version is taken that both the library and this package know, but none below
    ``floor``; with ``api_version`` exactly that one.  The library's release is read first, so
    that it is never asked for a version that it lacks (which it would print to stderr).  Raises
    :class:`LibraryNotFound`, or :class:`UnsupportedVersion` where no such version exists.  The
    library stays loaded until the process ends.
    """
    found = find_library(path)
    try:
        # The flag, which only Windows reads, lets the library find the others in its folder.
        handle = ctypes.CDLL(found, winmode=0x8)
    except OSError as error:
        raise LibraryNotFound(f"{found} cannot be loaded: {error}", (found,)) from None
    try:
        entry = handle.OrtGetApiBase
    except AttributeError:
        raise LibraryNotFound(
            f"{found} does not export OrtGetApiBase: it is not ONNX Runtime's library", (found,)
        ) from None
    entry.argtypes = ()
    entry.restype = ctypes.c_void_p
    return Library(entry(), found, api_version=api_version, floor=floor, exports=handle)


def ortchar(path: str | os.PathLike[str]) -> bytes | str:
    """A path as ``ORTCHAR_T*`` parameters take it: text on Windows, bytes elsewhere."""
    return os.fspath(path) if os.name == "nt" else os.fsencode(path)
