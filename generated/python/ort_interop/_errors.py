"""What can go wrong: a library that is missing or too old, a slot it lacks, a failed call."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from . import OrtErrorCode


class OrtInteropError(Exception):
    """The base of every error that this package raises on its own account."""

    def __reduce__(self) -> tuple[object, ...]:
        return _restore, (type(self), self.args, self.__dict__)


def _restore(
    kind: type[OrtInteropError], args: tuple[object, ...], state: dict[str, object]
) -> object:
    """An error as it was before it was pickled."""
    error = kind.__new__(kind, *args)
    error.__dict__.update(state)
    return error


class LibraryNotFound(OrtInteropError):
    """No ONNX Runtime library was found, or what was found is not one.

    ``searched`` names the places that were looked at.
    """

    def __init__(self, message: str, searched: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.searched = searched


class UnsupportedVersion(OrtInteropError):
    """The library cannot serve the API version that is wanted.

    ``wanted`` is an API version (the minor number of a release), ``host`` the library's release as
    it names itself, and ``path`` where the library is.
    """

    def __init__(self, wanted: int, host: str, path: str, reason: str = "") -> None:
        message = f"API version {wanted} (ONNX Runtime 1.{wanted}) is wanted, but {path} is {host}"
        super().__init__(f"{message}, {reason}" if reason else message)
        self.wanted = wanted
        self.host = host
        self.path = path


class NotSupportedByHost(OrtInteropError):
    """A function was asked for that the library, or the API version in use, does not have.

    ``function`` is its name, ``needs`` the API version that it came with, ``api_version`` the one
    in use, ``host`` the library's release and ``path`` where the library is.
    """

    def __init__(
        self, function: str, needs: int, api_version: int, host: str, path: str, reason: str = ""
    ) -> None:
        if not reason:
            reason = f"API version {api_version} is in use"
        super().__init__(f"{function} needs ONNX Runtime 1.{needs}; {path} is {host}, {reason}")
        self.function = function
        self.needs = needs
        self.api_version = api_version
        self.host = host
        self.path = path


class OrtError(OrtInteropError):
    """A call returned a status; there is one subclass for each :class:`OrtErrorCode`.

    ``code`` is the error code, ``message`` ONNX Runtime's text and ``function`` the call.  The
    status itself has been released.  Raised inside a callback, an ``OrtError`` becomes a status
    with its code and message.
    """

    code: OrtErrorCode

    def __init__(self, message: str, function: str = "", code: OrtErrorCode | None = None) -> None:
        super().__init__(f"{function}: {message}" if function else message)
        self.message = message
        self.function = function
        if code is not None:
            self.code = code
        elif not hasattr(type(self), "code"):
            raise TypeError("OrtError needs a code; its subclasses bring their own")
