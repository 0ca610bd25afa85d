"""Makes the types of the ABI from its compact description, each when it is first asked for.

A type is written as a word: ``*T`` is a pointer to ``T``, ``[n]T`` an array, ``text`` a
``const char*`` that ctypes turns into bytes, ``path`` ORT's path character string, ``address`` a
``void*``; the rest are C names.
"""

from __future__ import annotations

import ctypes
import os
from _thread import RLock

from ._abi import ENUMS, ERRORS, OPAQUE, STRUCTS, TYPEDEFS
from ._errors import NotSupportedByHost, OrtError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from ._library import Library

_WORDS: dict[str, Any] = {
    "address": ctypes.c_void_p,
    "bool": ctypes.c_bool,
    "char": ctypes.c_char,
    "double": ctypes.c_double,
    "float": ctypes.c_float,
    "int": ctypes.c_int,
    "int16_t": ctypes.c_int16,
    "int32_t": ctypes.c_int32,
    "int64_t": ctypes.c_int64,
    "int8_t": ctypes.c_int8,
    "intptr_t": ctypes.c_ssize_t,
    "long": ctypes.c_long,
    "long long": ctypes.c_longlong,
    "path": ctypes.c_wchar_p if os.name == "nt" else ctypes.c_char_p,
    "path_char": ctypes.c_wchar if os.name == "nt" else ctypes.c_char,
    "ptrdiff_t": ctypes.c_ssize_t,
    "short": ctypes.c_short,
    "signed char": ctypes.c_byte,
    "size_t": ctypes.c_size_t,
    "text": ctypes.c_char_p,
    "uint16_t": ctypes.c_uint16,
    "uint32_t": ctypes.c_uint32,
    "uint64_t": ctypes.c_uint64,
    "uint8_t": ctypes.c_uint8,
    "uintptr_t": ctypes.c_size_t,
    "unsigned char": ctypes.c_ubyte,
    "unsigned int": ctypes.c_uint,
    "unsigned long": ctypes.c_ulong,
    "unsigned long long": ctypes.c_ulonglong,
    "unsigned short": ctypes.c_ushort,
    "wchar_t": ctypes.c_wchar,
}
_TEXTS = frozenset({"text", "path"})
# For functions of the C convention ctypes takes more arguments than were declared, and for those of
# ``__stdcall`` it does not.  The two conventions are one everywhere but on 32-bit Windows.
_STDCALL: int = getattr(ctypes, "_FUNCFLAG_STDCALL", 0)
_C_CALL: int = _STDCALL
if os.name == "nt" and ctypes.sizeof(ctypes.c_void_p) == 4:
    _C_CALL = ctypes._FUNCFLAG_CDECL  # type: ignore[attr-defined]
_API_CALL = _STDCALL
"""``ORT_API_CALL``: ``__stdcall`` on Windows, the C convention elsewhere."""
_Simple: Any = ctypes._SimpleCData
FunctionPointer: Any = ctypes._CFuncPtr  # type: ignore[attr-defined]

# Two threads that made one type at the same time would have two that do not fit each other.
_making = RLock()
_made: dict[str, Any] = {}
_parameters: dict[str, Any] = {}
_results: dict[str, Any] = {}


class Record(ctypes.Structure):
    """A struct of the C API."""

    def __repr__(self) -> str:
        return f"<{type(self).__name__} at {ctypes.addressof(self):#x}>"


class Handle(Record):
    """An object of the library of which only the address is known.

    Handles are reached through pointers that the library fills (``pointer.contents``) and are
    equal when they are the same object.  They do not own what they stand for.
    """

    def __init__(self) -> None:
        name = type(self).__name__
        raise TypeError(f"{name} objects are made by ONNX Runtime; use POINTER({name})() for one")

    @property
    def address(self) -> int:
        """The address of the object."""
        return ctypes.addressof(self)

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return ctypes.addressof(self) == ctypes.addressof(other)

    def __hash__(self) -> int:
        return ctypes.addressof(self)


class Table(Record):
    """A function table of the library; its slots are callables and cannot be set."""

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{type(self).__name__} belongs to ONNX Runtime and is read-only")


class Implementation(Record):
    """A struct with function slots that an execution provider fills and ONNX Runtime calls.

    ``Library.make`` fills one from Python functions; ``Library.bind`` makes the slots of one that
    someone else filled callable.
    """


class Signature:
    """A function's parameters and result, as words."""

    __slots__ = ("api_call", "names", "params", "result")

    def __init__(self, text: str) -> None:
        inner, _, result = text.rpartition(")")
        self.api_call = not inner.startswith("@")
        pairs = [p.split(":") for p in inner.lstrip("@(").split(",") if p]
        self.names = tuple(pair[0] for pair in pairs)
        self.params = tuple(pair[1] for pair in pairs)
        self.result = result

    def __str__(self) -> str:
        pairs = (f"{name}: {self.params[at]}" for at, name in enumerate(self.names))
        return f"({', '.join(pairs)}) -> {self.result}"


def documentation(name: str, since: int, signature: Signature) -> str:
    """The docstring of a function."""
    from ._docs import DOCS

    head = f"{name}{signature}\n\nSince ONNX Runtime 1.{since}."
    text = DOCS.get(name, "").replace("\n    ", "\n").rstrip()
    return f"{head}\n\n{text}" if text else head


class Slot:
    """A function slot of a table, found and prepared at its first use.

    Read from the class it tells ``name``, ``offset``, ``since``, ``signature`` and
    ``documentation``; read from a bound table it is the callable.
    """

    __slots__ = ("_text", "name", "offset", "since", "size", "table")

    def __init__(self, table: str, name: str, since: int, text: str, field: Any) -> None:
        self.table = table
        self.name = name
        self.since = since
        self.offset: int = field.offset
        self.size: int = field.size
        self._text = text

    @property
    def signature(self) -> Signature:
        """The parameters and the result."""
        return Signature(self._text)

    @property
    def documentation(self) -> str:
        """What ``help()`` shows of the callable."""
        return documentation(f"{self.table}.{self.name}", self.since, self.signature)

    @property
    def callback(self) -> Any:
        """The type of a function pointer that can be put into the slot."""
        key = f"{self.table}.{self.name}"
        with _making:
            if key not in _made:
                _made[key] = callback_type(key, self.signature)
            return _made[key]

    def __repr__(self) -> str:
        return f"<slot {self.table}.{self.name}{self.signature}, since 1.{self.since}>"

    def resolve(self, table: Any) -> Any:
        """The callable for a bound table; :class:`NotSupportedByHost` where there is none."""
        name = f"{self.table}.{self.name}"
        library: Library | None = table.__dict__.get("_library")
        if library is None:
            raise TypeError(f"{name}: bind the struct to its library first, with Library.bind()")
        reason = ""
        if self.since <= library.api_version:
            version_field: str = type(table)._version_field_
            filled_for: int = getattr(table, version_field) if version_field else self.since
            if self.since > filled_for:
                reason = f"and the struct was filled for API version {filled_for}"
            else:
                address = ctypes.c_void_p.from_address(ctypes.addressof(table) + self.offset).value
                if address:
                    return function(library, name, self.since, self.signature, address)
                reason = "where the slot is empty"
        raise NotSupportedByHost(
            name, self.since, library.api_version, library.version, library.path, reason
        )

    def __get__(self, table: Any, owner: type | None = None) -> Any:
        if table is None:
            return self
        # Without __set__, the instance's own dictionary answers from now on.
        found = table.__dict__[self.name] = self.resolve(table)
        return found


class ImplementationSlot(Slot):
    """A slot that can also be filled, with a function pointer of its own ``callback`` type."""

    __slots__ = ()

    def __get__(self, table: Any, owner: type | None = None) -> Any:
        if table is None:
            return self
        # The slot may be filled anew at any time, so its address is part of the key.
        place = ctypes.addressof(table) + self.offset
        key = (self.name, ctypes.c_void_p.from_address(place).value)
        known: dict[object, Any] = table.__dict__.setdefault("_calls", {})
        if key not in known:
            known[key] = self.resolve(table)
        return known[key]

    def __set__(self, table: Any, value: Any) -> None:
        place = ctypes.c_void_p.from_address(ctypes.addressof(table) + self.offset)
        if value is None:
            place.value = None
        elif isinstance(value, self.callback):
            place.value = ctypes.cast(value, ctypes.c_void_p).value
        else:
            raise TypeError(
                f"{self.table}.{self.name}: expected None or a {self.table}.{self.name}.callback, "
                f"not {type(value).__name__}; Library.make() takes Python functions"
            )
        table.__dict__.setdefault("_kept", {})[self.name] = value


class _Status(dict[object, None]):
    """What a returned status means: nothing for null, an exception for any address.

    ctypes looks the result up through ``dict.__getitem__``, so a call that succeeds runs no
    Python code.
    """

    def __init__(self, library: Library, function: str) -> None:
        super().__init__({None: None})
        self.library = library
        self.function = function

    def __missing__(self, address: int) -> None:
        raise self.library.error_of(address, self.function)


def function(library: Library, name: str, since: int, signature: Signature, address: int) -> Any:
    """A callable with exact types for the function at an address."""
    if signature.result == "status":
        check = _Status(library, name).__getitem__
        result: Any = type(name, (_Simple,), {"_type_": "P", "_check_retval_": check})
    else:
        result = result_type(signature.result)
    attributes = {
        "_flags_": _API_CALL if signature.api_call else _C_CALL,
        "_argtypes_": tuple(map(parameter_type, signature.params)),
        "_restype_": result,
        "__doc__": documentation(name, since, signature),
        "__name__": name,
        "__module__": __package__,
    }
    return type(name.rpartition(".")[2], (FunctionPointer,), attributes)(address)


def callback_type(name: str, signature: Signature) -> Any:
    """The type of function pointers with a signature, fit to be made from Python functions.

    ctypes cannot return typed pointers from callbacks, so pointer results are addresses here.
    """
    word = signature.result
    result = None
    if word != "void":
        result = ctypes.c_void_p if _is_pointer(word) else storage_type(word)
    attributes = {
        "_flags_": _API_CALL if signature.api_call else _C_CALL,
        "_argtypes_": tuple(map(storage_type, signature.params)),
        "_restype_": result,
        "__module__": __package__,
    }
    return type(name, (FunctionPointer,), attributes)


def _is_pointer(word: str) -> bool:
    return word[0] == "*" or word in _TEXTS or word in {"status", "address"} or word in TYPEDEFS


def storage_type(word: str) -> Any:
    """The type of a field, a pointer's target or a callback's argument."""
    if word in ENUMS:
        return ctypes.c_int
    return _target(word)


def _target(word: str) -> Any:
    """The type that a pointer of that word points to, or that stands for the word itself."""
    found = _WORDS.get(word)
    if found is None:
        with _making:
            found = _WORDS[word] = _WORDS.get(word) or _make_target(word)
    return found


def _make_target(word: str) -> Any:
    if word[0] == "*":
        return ctypes.POINTER(_target(word[1:]))
    if word[0] == "[":
        length, _, of = word[1:].partition("]")
        return storage_type(of) * int(length)
    return get(f"c_{word}" if word in ENUMS else word)


def parameter_type(word: str) -> Any:
    """What a function's parameter takes."""
    if word not in ENUMS:
        return _target(word)
    if word not in _parameters:
        from ._enums import Parameter

        get(word)
        _parameters[word] = Parameter(word)
    return _parameters[word]


def result_type(word: str) -> Any:
    """What a function returns."""
    if word == "void":
        return None
    if word not in ENUMS:
        return _target(word)
    if word not in _results:
        from ._enums import make_result

        _results[word] = make_result(get(word))
    return _results[word]


def names() -> Iterator[str]:
    """The name of everything that :func:`get` can make."""
    yield from ENUMS
    yield from (f"c_{name}" for name in ENUMS)
    yield from STRUCTS
    yield from OPAQUE
    yield from TYPEDEFS
    yield from ERRORS.values()


def get(name: str) -> Any:
    """The type or exception class of a name; :class:`KeyError` for a name the ABI lacks."""
    with _making:
        if name not in _made:
            _made[name] = _make(name)
        return _made[name]


def _make(name: str) -> Any:
    if name in STRUCTS:
        return _make_struct(name)
    if name in OPAQUE:
        return type(name, (Handle,), {"__module__": __package__, "_since_": OPAQUE[name]})
    if name in TYPEDEFS:
        return callback_type(name, Signature(TYPEDEFS[name].partition(" ")[2]))
    if name in ENUMS:
        from ._enums import make_enum

        return make_enum(name)
    if name[:2] == "c_" and name[2:] in ENUMS:
        from ._enums import make_cell

        return make_cell(name, get(name[2:]))
    for constant, error in ERRORS.items():
        if error == name:
            code = get("OrtErrorCode")[constant]
            return type(name, (OrtError,), {"__module__": __package__, "code": code})
    raise KeyError(name)


def _make_struct(name: str) -> Any:
    head, *lines = STRUCTS[name].split("\n")
    kind, since, version_field = head.split(" ")
    rows = [line.split(" ", 2) for line in lines]
    slots = {field for field, _, word in rows if "(" in word}
    base: Any = Record
    if kind == "union":
        base = ctypes.Union
    elif kind == "table":
        base = Table
    elif slots:
        base = Implementation
    made: Any = type(
        name,
        (base,),
        {
            "__module__": __package__,
            "_kind_": kind,
            "_since_": int(since),
            "_version_field_": version_field if version_field != "-" else "",
            "_field_since_": {field: int(since_field) for field, since_field, _ in rows},
        },
    )
    # A struct may point to itself, so it is known before its fields are.
    _made[name] = made
    made._fields_ = [
        (field, ctypes.c_void_p if field in slots else storage_type(word))
        for field, _, word in rows
    ]
    slot_type: Callable[..., Slot] = Slot if kind == "table" else ImplementationSlot
    for field, field_since, word in rows:
        if field in slots:
            slot = slot_type(name, field, int(field_since), word, getattr(made, field))
            setattr(made, field, slot)
        elif word in ENUMS:
            from ._enums import EnumField

            setattr(made, field, EnumField(getattr(made, field), get(word)))
    return made
