"""A loaded library: its tables, the version in use, its errors, and structs filled for it."""

from __future__ import annotations

import ctypes

from ._abi import EP_STRUCTS_VERSION, ERRORS, EXPORTS, FLOOR_VERSION, NEWEST_VERSION
from ._errors import NotSupportedByHost, OrtError, UnsupportedVersion
from ._types import Implementation, Signature, Slot, function, get

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeVar

    from . import (
        OrtApi,
        OrtApiBase,
        OrtCompileApi,
        OrtEpApi,
        OrtInteropApi,
        OrtModelEditorApi,
        OrtStatus,
    )

    _R = TypeVar("_R", bound=ctypes.Structure)


def _minor(version: str) -> int | None:
    """The API version of a release: 24 for ``1.24.1``; None where the text is no such release."""
    parts = version.split(".")
    if len(parts) < 2 or parts[0] != "1" or not parts[1].isdigit():
        return None
    return int(parts[1])


class Exports:
    """The functions that the library exports by name, beside its tables.

    Which of them exist depends on the build: ``name in exports`` and ``absent`` tell, and reading
    one that is missing raises :class:`NotSupportedByHost`.
    """

    def __init__(self, library: Library, handle: ctypes.CDLL | None) -> None:
        self._library = library
        self._handle = handle

    def _address(self, name: str) -> int | None:
        try:
            found = ctypes.cast(self._handle[name], ctypes.c_void_p)  # type: ignore[index]
        except (AttributeError, TypeError):
            return None
        return found.value

    def __contains__(self, name: object) -> bool:
        return name in EXPORTS and self._address(str(name)) is not None

    @property
    def absent(self) -> tuple[str, ...]:
        """The known functions that this library does not export."""
        return tuple(name for name in EXPORTS if self._address(name) is None)

    def __getattr__(self, name: str) -> Any:
        if name not in EXPORTS:
            raise AttributeError(f"the C API has no exported function {name!r}")
        since, _, signature = EXPORTS[name].partition(" ")
        library = self._library
        address = self._address(name)
        if address is None:
            raise NotSupportedByHost(
                name,
                int(since),
                library.api_version,
                library.version,
                library.path,
                "which does not export it",
            )
        found = function(library, name, int(since), Signature(signature), address)
        setattr(self, name, found)
        return found


class Library:
    """An ONNX Runtime library with a negotiated API version.

    ``path`` is where it is, ``version`` its release as it names itself and ``api_version`` the
    version in use.  ``base`` and ``api`` are its first two tables; the others are fetched when
    first used and raise :class:`NotSupportedByHost` where the build or the version has none.
    """

    path: str
    version: str
    api_version: int
    base: OrtApiBase
    api: OrtApi
    exports: Exports

    def __init__(
        self,
        base: int,
        path: str,
        *,
        api_version: int | None = None,
        floor: int = FLOOR_VERSION,
        exports: ctypes.CDLL | None = None,
    ) -> None:
        """``base`` is the address of an ``OrtApiBase``, such as an EP library is given."""
        self.path = path
        self.version = "of an unknown release"
        self.api_version = 1
        self.exports = Exports(self, exports)
        self._tables: dict[str, Any] = {}
        self._alive: dict[int, object] = {}
        self.base = self.bind(get("OrtApiBase").from_address(base))
        self.version = (self.base.GetVersionString() or b"").decode("utf-8", "replace")
        self.api_version = self._negotiate(api_version, floor)
        pointer = self.base.GetApi(self.api_version)
        if not pointer:
            raise UnsupportedVersion(self.api_version, self.version, path, "it has no such API")
        self.api = self.bind(pointer.contents)

    def _negotiate(self, wanted: int | None, floor: int) -> int:
        minor = _minor(self.version)
        if minor is None:
            raise UnsupportedVersion(
                wanted or floor, self.version, self.path, "which is no release 1.x"
            )
        if wanted is None:
            if minor < floor:
                raise UnsupportedVersion(floor, self.version, self.path, "which is older")
            return min(minor, NEWEST_VERSION)
        if wanted > minor:
            raise UnsupportedVersion(wanted, self.version, self.path, "which is older")
        if not floor <= wanted <= NEWEST_VERSION:
            raise UnsupportedVersion(
                wanted,
                self.version,
                self.path,
                f"and this package knows API versions {floor} to {NEWEST_VERSION}",
            )
        return wanted

    def __repr__(self) -> str:
        return f"<ONNX Runtime {self.version}, API version {self.api_version}, {self.path}>"

    def _table(self, getter: str) -> Any:
        if getter not in self._tables:
            pointer = getattr(self.api, getter)()
            if not pointer:
                raise NotSupportedByHost(
                    f"OrtApi.{getter}",
                    getattr(type(self.api), getter).since,
                    self.api_version,
                    self.version,
                    self.path,
                    "which is built without that table",
                )
            self._tables[getter] = self.bind(pointer.contents)
        return self._tables[getter]

    @property
    def interop_api(self) -> OrtInteropApi:
        """The external resource interop table, since 1.24."""
        return self._table("GetInteropApi")  # type: ignore[no-any-return]

    @property
    def ep_api(self) -> OrtEpApi:
        """The table for plugin execution providers, since 1.22."""
        return self._table("GetEpApi")  # type: ignore[no-any-return]

    @property
    def model_editor_api(self) -> OrtModelEditorApi:
        """The table that builds and edits models, since 1.22."""
        return self._table("GetModelEditorApi")  # type: ignore[no-any-return]

    @property
    def compile_api(self) -> OrtCompileApi:
        """The table that compiles models ahead of time, since 1.22."""
        return self._table("GetCompileApi")  # type: ignore[no-any-return]

    def bind(self, struct: _R | ctypes._Pointer[_R]) -> _R:
        """Make the function slots of a struct callable, as those of this library's version.

        Takes a struct or a pointer to one and returns the struct; the memory stays its owner's.
        """
        if isinstance(struct, ctypes._Pointer):
            struct = struct.contents
        vars(struct)["_library"] = self
        return struct

    def error_of(self, status: int, function: str = "") -> OrtError:
        """The exception for the status at an address; the status is released."""
        held: OrtStatus = get("OrtStatus").from_address(status)
        code = self.api.GetErrorCode(held)
        message = (self.api.GetErrorMessage(held) or b"").decode("utf-8", "replace")
        self.api.ReleaseStatus(held)
        name = ERRORS.get(code.name)
        if name is None:
            return OrtError(message, function, code)
        error: type[OrtError] = get(name)
        return error(message, function)

    def status_of(self, error: BaseException, function: str = "") -> int:
        """The address of a new status for an exception; whoever receives it releases it.

        An :class:`OrtError` keeps its code and message; ``NotImplementedError`` becomes
        ``ORT_NOT_IMPLEMENTED`` and anything else ``ORT_FAIL``.
        """
        if isinstance(error, OrtError):
            code, message = error.code, error.message
        else:
            codes = get("OrtErrorCode")
            unknown = isinstance(error, NotImplementedError)
            code = codes.ORT_NOT_IMPLEMENTED if unknown else codes.ORT_FAIL
            message = f"{type(error).__name__}: {error}"
            message = f"{function}: {message}" if function else message
        text = message.replace("\0", "\\0").encode("utf-8", "backslashreplace")
        return ctypes.addressof(self.api.CreateStatus(code, text).contents)

    def callback(self, kind: Any, call: Callable[..., Any]) -> Any:
        """A function pointer of a callback type that runs a Python function.

        An exception becomes a status where the callback returns one, and goes to
        ``sys.unraisablehook`` elsewhere, with zero as the result.  The pointer is kept alive by
        this library until :meth:`forget`, because C does not tell how long it keeps one.
        """
        from ._abi import TYPEDEFS
        from ._callbacks import wrap

        name = kind.__name__
        made = kind(wrap(self, name, call, Signature(TYPEDEFS[name].partition(" ")[2])))
        self._alive[id(made)] = made
        return made

    def make(self, kind: type[_R], /, **fields: Any) -> _R:
        """A struct of the kind, stamped with its API version and filled with the fields given.

        Function slots take Python functions, which get typed arguments and whose exceptions become
        statuses, as in :meth:`callback`.  Slots and fields newer than the version in use are left
        empty, since ONNX Runtime would not read them.  A struct with functions is kept alive, and
        they with it, until :meth:`forget`.
        """
        from ._callbacks import wrap

        about: Any = kind
        if about._since_ > self.api_version:
            raise NotSupportedByHost(
                kind.__name__, about._since_, self.api_version, self.version, self.path
            )
        struct = self.bind(kind())
        if about._version_field_:
            setattr(struct, about._version_field_, self.stamp(kind))
        for name, value in fields.items():
            since = about._field_since_.get(name)
            if since is None:
                raise TypeError(f"{kind.__name__} has no field {name!r}")
            if since > self.api_version:
                continue
            field = getattr(kind, name)
            if isinstance(field, Slot) and not isinstance(value, (type(None), field.callback)):
                whole = f"{kind.__name__}.{name}"
                value = field.callback(wrap(self, whole, value, field.signature))
            setattr(struct, name, value)
        if isinstance(struct, Implementation):
            self._alive[id(struct)] = struct
        return struct

    def stamp(self, kind: type[ctypes.Structure]) -> int:
        """The API version that a struct of this kind carries when it is made here.

        Structs that ONNX Runtime reads from an EP are never stamped above the newest release whose
        structs are known, because a newer one would read past their end.
        """
        about: Any = kind
        if about._kind_ in {"implementation", "handle"}:
            return min(self.api_version, EP_STRUCTS_VERSION)
        return self.api_version

    def forget(self, made: object) -> None:
        """Let go of a callback or struct that C no longer uses."""
        self._alive.pop(id(made), None)
