"""Typed ctypes bindings of ONNX Runtime's C API, with its external resource interop.

``load()`` opens ONNX Runtime's shared library and negotiates an API version; the tables of the
:class:`Library` that it returns hold one callable for each slot::

    import ort_interop as ort

    lib = ort.load()
    options = ctypes.POINTER(ort.OrtSessionOptions)()
    lib.api.CreateSessionOptions(options)

Handles are instances of their own types, reached with ``pointer.contents``; a status becomes an
exception; a slot that the negotiated version lacks raises :class:`NotSupportedByHost`.  Arguments
are given by position: their number and their types are checked, but ctypes ignores keywords.
Variables that ONNX Runtime writes to are passed themselves (ctypes takes their address); a call that
fails leaves them as they were.  Names are made when they are first used, so that importing costs
little.
"""

_PLACES = {
    "Library": "_library",
    "ENVIRONMENT_VARIABLE": "_loading",
    "find_library": "_loading",
    "load": "_loading",
    "ortchar": "_loading",
    "LibraryNotFound": "_errors",
    "NotSupportedByHost": "_errors",
    "OrtError": "_errors",
    "OrtInteropError": "_errors",
    "UnsupportedVersion": "_errors",
    "OrtEnum": "_enums",
    "OrtFlag": "_enums",
    "Handle": "_types",
    "Implementation": "_types",
    "Record": "_types",
    "Table": "_types",
    "EP_STRUCTS_VERSION": "_abi",
    "FLOOR_VERSION": "_abi",
    "NEWEST_VERSION": "_abi",
}


def __getattr__(name: str) -> object:
    from importlib import import_module

    value: object
    if name in _PLACES:
        value = getattr(import_module(f"{__name__}.{_PLACES[name]}"), name)
    elif name == "__all__":
        value = [*_PLACES, *import_module(f"{__name__}._types").names()]
    elif name[:1] == "_":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    else:
        try:
            value = import_module(f"{__name__}._types").get(name)
        except KeyError:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}") from None
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__getattr__("__all__")})  # type: ignore[misc]
