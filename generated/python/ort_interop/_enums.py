"""Enumerations whose members pass to C only where their own type is expected."""

from __future__ import annotations

import ctypes
import enum
from _operator import attrgetter

from ._abi import ENUMS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_SIGN = 1 << 31


def _int32(value: int) -> int:
    """The value of an ``int`` with these 32 bits."""
    return ((value + _SIGN) & 0xFFFFFFFF) - _SIGN


class OrtEnum(enum.IntEnum):
    """An enumeration of the C API; its values are those of a C ``int``.

    A value without a name, as a newer library may return, makes a nameless member: ``Kind(99)``.
    """

    @classmethod
    def _missing_(cls, value: object) -> OrtEnum | None:
        if not isinstance(value, int) or _int32(value) != value:
            return None
        member = int.__new__(cls, value)
        member._name_ = f"{cls.__name__}({value})"
        member._value_ = value
        return cls._value2member_map_.setdefault(value, member)  # type: ignore[return-value]


class OrtFlag(enum.IntFlag):
    """An enumeration of single bits that combine with ``|``, ``&``, ``^`` and ``~``.

    Bit 31 is the sign, as in C; an unsigned mask that the API returns is taken as well.
    """

    @classmethod
    def _missing_(cls, value: object) -> OrtFlag | None:
        if not isinstance(value, int) or not -_SIGN <= value < 2 * _SIGN:
            return None
        value = _int32(value)
        known = cls._value2member_map_.get(value)
        if known is not None:
            return known  # type: ignore[return-value]
        member = int.__new__(cls, value)
        member._name_ = f"{cls.__name__}({value})"
        member._value_ = value
        return cls._value2member_map_.setdefault(value, member)  # type: ignore[return-value]

    def __or__(self, other: int) -> OrtFlag:
        return type(self)(_int32(int(self) | int(other)))

    def __and__(self, other: int) -> OrtFlag:
        return type(self)(_int32(int(self) & int(other)))

    def __xor__(self, other: int) -> OrtFlag:
        return type(self)(_int32(int(self) ^ int(other)))

    def __invert__(self) -> OrtFlag:
        return type(self)(~int(self))

    __ror__ = __or__
    __rand__ = __and__
    __rxor__ = __xor__


class _Argument:
    """The C argument of a member: made once, then found in the member's own dictionary."""

    def __init__(self, key: str) -> None:
        self.key = key

    def __get__(self, member: Any, owner: type) -> Any:
        if member is None:
            return self
        argument = ctypes.c_int.from_param(int(member))
        member.__dict__[self.key] = argument
        return argument


class Parameter:
    """An entry of ``argtypes`` that takes the members of one enumeration and nothing else.

    Only they have the attribute that is asked for, and asking is one call in C.
    """

    __slots__ = ("from_param",)

    def __init__(self, name: str) -> None:
        self.from_param = attrgetter(f"_member_of_{name}")


class EnumCell(ctypes.c_int):
    """A variable of an enumeration, for parameters that ONNX Runtime writes to."""

    member_type: type[OrtEnum] | type[OrtFlag]

    @property
    def member(self) -> OrtEnum | OrtFlag:
        """The member that the variable holds."""
        return self.member_type(self.value)


class EnumField:
    """A field of a struct that holds a member of one enumeration."""

    def __init__(self, field: Any, members: type[OrtEnum] | type[OrtFlag]) -> None:
        self.field = field
        self.members = members
        self.offset: int = field.offset
        self.size: int = field.size

    def __get__(self, instance: Any, owner: type) -> Any:
        if instance is None:
            return self
        return self.members(self.field.__get__(instance, owner))

    def __set__(self, instance: Any, value: object) -> None:
        if not isinstance(value, self.members):
            raise TypeError(f"expected {self.members.__name__}, not {type(value).__name__}")
        self.field.__set__(instance, int(value))


def make_enum(name: str) -> Any:
    """Build an enumeration from its description."""
    kind, *lines = ENUMS[name].split("\n")
    members: list[tuple[str, int]] = []
    for line in lines:
        constant, value, _ = line.split(" ")
        members.append((constant, int(value)))
    base: Any = OrtFlag if kind == "flags" else OrtEnum
    made = base(name, members, module="ort_interop")
    setattr(made, f"_member_of_{name}", _Argument(f"_member_of_{name}"))
    return made


def make_cell(name: str, members: Any) -> type[EnumCell]:
    """The variable type of an enumeration."""
    return type(f"c_{name}", (EnumCell,), {"member_type": members, "__module__": "ort_interop"})


class _Members(dict[int, object]):
    """The members by value, so that ctypes finds a result's member without running Python code."""

    def __init__(self, members: Any) -> None:
        super().__init__((int(member), member) for member in members)
        self.members = members

    def __missing__(self, value: int) -> object:
        found = self[value] = self.members(value)
        return found


def make_result(members: Any) -> Any:
    """A ``restype`` that turns the C result into a member."""
    base: Any = ctypes._SimpleCData
    check = _Members(members).__getitem__
    return type(members.__name__, (base,), {"_type_": "i", "_check_retval_": check})
