"""C types as values: parse them from declarations, print them as C, measure them.

The spec, the recorded facts and the parsed headers all speak of types through this module, so
two types are the same exactly when they compare equal here.  ``struct``, ``enum`` and ``union``
tags are dropped: the C API declares a typedef of the same name for each of its tagged types.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import TypeAlias

from .words import C_KEYWORDS


class CTypeError(ValueError):
    """A declaration could not be read; ``offset`` is the character it failed at."""

    def __init__(self, message: str, offset: int) -> None:
        super().__init__(message)
        self.offset = offset


class ByFields:
    """Pickled as a call with its fields: a third of the time that dataclasses take to be read back."""

    __slots__: tuple[str, ...] = ()

    def __reduce__(self) -> tuple[type, tuple[object, ...]]:
        return type(self), tuple([getattr(self, name) for name in self.__slots__])


@dataclass(frozen=True, slots=True)
class Named(ByFields):
    """A built-in, typedef, struct or enum type, by name."""

    name: str
    const: bool = False


@dataclass(frozen=True, slots=True)
class Pointer(ByFields):
    """A pointer; ``const`` qualifies the pointer itself, not what it points to."""

    to: CType
    const: bool = False


@dataclass(frozen=True, slots=True)
class Array(ByFields):
    """An array; ``length`` is None for ``T[]``."""

    of: CType
    length: int | None = None


@dataclass(frozen=True, slots=True)
class FunctionType(ByFields):
    """The type of a function: what the ABI sees of it, without names and annotations."""

    returns: CType
    params: tuple[CType, ...] = ()
    variadic: bool = False


@dataclass(frozen=True, slots=True)
class Record(ByFields):
    """An anonymous struct or union that is written in place."""

    kind: str
    members: tuple[tuple[str, CType], ...]


CType: TypeAlias = "Named | Pointer | Array | FunctionType | Record"


@dataclass(frozen=True, slots=True)
class Declaration:
    """One declared name: ``_In_reads_(n) const char* names[4]``."""

    name: str
    type: CType
    sal: tuple[str, ...] = ()
    params: tuple[Declaration, ...] | None = field(default=None)
    """The named parameters, when the type is a function or a pointer to one."""


@dataclass(frozen=True, slots=True)
class Width:
    """Size and alignment in bytes of a built-in type on LP64 (Linux) and LLP64 (64-bit Windows)."""

    lp64: int
    llp64: int
    signed: bool | None


POINTER_SIZE = 8
MAX_LENGTH = (1 << 31) - 1
_MAX_DEPTH = 32

FIXED: dict[str, Width] = {
    "bool": Width(1, 1, False),
    "char": Width(1, 1, True),
    "signed char": Width(1, 1, True),
    "unsigned char": Width(1, 1, False),
    "short": Width(2, 2, True),
    "unsigned short": Width(2, 2, False),
    "int": Width(4, 4, True),
    "unsigned int": Width(4, 4, False),
    "long": Width(8, 4, True),
    "unsigned long": Width(8, 4, False),
    "long long": Width(8, 8, True),
    "unsigned long long": Width(8, 8, False),
    "int8_t": Width(1, 1, True),
    "uint8_t": Width(1, 1, False),
    "int16_t": Width(2, 2, True),
    "uint16_t": Width(2, 2, False),
    "int32_t": Width(4, 4, True),
    "uint32_t": Width(4, 4, False),
    "int64_t": Width(8, 8, True),
    "uint64_t": Width(8, 8, False),
    "intptr_t": Width(8, 8, True),
    "uintptr_t": Width(8, 8, False),
    "size_t": Width(8, 8, False),
    "ptrdiff_t": Width(8, 8, True),
    "wchar_t": Width(4, 2, None),
    "ORTCHAR_T": Width(1, 2, None),
    "float": Width(4, 4, None),
    "double": Width(8, 8, None),
}
"""The one table of built-in widths; ``ORTCHAR_T`` is ``char`` on Linux and ``wchar_t`` on Windows."""

_QUALIFIERS = {"const", "volatile", "restrict", "__restrict", "__restrict__"}
_TAGS = {"struct", "enum", "union"}
_BASE_WORDS = {"unsigned", "signed", "short", "long", "int", "char", "double", "float"}
_CANONICAL = {
    "_Bool": "bool",
    "unsigned": "unsigned int",
    "signed": "int",
    "signed int": "int",
    "short int": "short",
    "signed short": "short",
    "unsigned short int": "unsigned short",
    "long int": "long",
    "signed long": "long",
    "unsigned long int": "unsigned long",
    "long long int": "long long",
    "unsigned long long int": "unsigned long long",
}
IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_SAL = re.compile(r"_[A-Z][A-Za-z]*(?:_[a-z]+)*_\Z")
_TOKEN = re.compile(r"\s*(?:(\.\.\.)|([A-Za-z_][A-Za-z0-9_]*)|(\d+)|(.))", re.S)


def is_sal(word: str) -> bool:
    """Whether a word has the shape of a SAL annotation (``_In_``, ``_Outptr_result_maybenull_``)."""
    return _SAL.match(word) is not None


def canonical_base(words: list[str]) -> str:
    """The one spelling of a built-in type's words: ``unsigned long int`` is ``unsigned long``."""
    if len(words) == 1:
        return _CANONICAL.get(words[0], words[0])
    order = {"unsigned": 0, "signed": 0, "short": 1, "long": 1, "char": 2, "int": 2, "double": 2}
    text = " ".join(sorted(words, key=lambda w: order.get(w, 3)))
    return _CANONICAL.get(text, text)


def _same(base: CType) -> CType:
    return base


def _array(length: int | None, base: CType) -> CType:
    return Array(base, length)


def _function(params: tuple[CType, ...], variadic: bool, base: CType) -> CType:
    return FunctionType(base, params, variadic)


class _Reader:
    """A recursive-descent reader for one declaration."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens: list[tuple[str, int]] = []
        position = 0
        while position < len(text):
            match = _TOKEN.match(text, position)
            if match is None:
                break
            position = match.end()
            word = match[match.lastindex or 0]
            if word.strip():
                self.tokens.append((word, match.start(match.lastindex or 0)))
        self.at = 0
        self.depth = 0

    def peek(self) -> str:
        return self.tokens[self.at][0] if self.at < len(self.tokens) else ""

    def offset(self) -> int:
        return self.tokens[self.at][1] if self.at < len(self.tokens) else len(self.text)

    def take(self) -> str:
        word = self.peek()
        self.at += 1
        return word

    def expect(self, word: str) -> None:
        if self.peek() != word:
            found = self.peek() or "the end"
            raise CTypeError(f"expected '{word}' but found '{found}'", self.offset())
        self.at += 1

    def sal(self) -> tuple[str, ...]:
        found = []
        while is_sal(self.peek()):
            word = self.take()
            if self.peek() == "(":
                start = self.offset()
                self.balanced()
                end = self.tokens[self.at - 1][1] + 1
                word += self.text[start:end]
            found.append(word)
        return tuple(found)

    def balanced(self) -> None:
        depth = 0
        while self.at < len(self.tokens):
            word = self.take()
            depth += (word == "(") - (word == ")")
            if depth == 0:
                return
        raise CTypeError("unbalanced '('", self.offset())

    def record(self, kind: str) -> Record:
        """Read ``{ type name; ... }``, the body of an anonymous struct or union."""
        self.expect("{")
        members: list[tuple[str, CType]] = []
        while self.peek() != "}":
            member = self.declaration()
            self.expect(";")
            members.append((member.name, member.type))
        self.expect("}")
        return Record(kind, tuple(members))

    def base(self) -> CType:
        const = False
        words: list[str] = []
        while True:
            word = self.peek()
            if word in _QUALIFIERS:
                const = const or word == "const"
            elif word in _TAGS:
                self.at += 1
                if word != "enum" and not words and self.peek() == "{":
                    return self.record(word)
                if not IDENTIFIER.match(self.peek()):
                    raise CTypeError(f"'{word}' needs a name after it", self.offset())
                words.append(self.peek())
            elif word in _BASE_WORDS:
                words.append(word)
            elif IDENTIFIER.match(word) and not words:
                if word in C_KEYWORDS and word not in {"void", "_Bool"}:
                    raise CTypeError(f"'{word}' is not a type", self.offset())
                words.append(word)
            else:
                break
            self.at += 1
        if not words:
            raise CTypeError(
                f"expected a type but found '{self.peek() or 'the end'}'", self.offset()
            )
        return Named(canonical_base(words), const)

    def declaration(self) -> Declaration:
        sal = self.sal()
        base = self.base()
        name, wrap, params = self.declarator()
        return Declaration(name, wrap(base), sal, params)

    def declarator(self) -> tuple[str, Callable[[CType], CType], tuple[Declaration, ...] | None]:
        """Read a (possibly abstract) declarator; return its name, a type wrapper and parameters."""
        self.depth += 1
        if self.depth > _MAX_DEPTH:
            raise CTypeError("the declaration is nested too deeply", self.offset())
        pointers: list[bool] = []
        while self.peek() == "*":
            self.at += 1
            const = False
            while self.peek() in _QUALIFIERS:
                const = self.take() == "const" or const
            pointers.append(const)
        name = ""
        inner: Callable[[CType], CType] = _same
        params: tuple[Declaration, ...] | None = None
        if (
            self.peek() == "("
            and self.tokens[self.at + 1 : self.at + 2]
            and self.tokens[self.at + 1][0] in "*("
        ):
            self.at += 1
            name, inner, params = self.declarator()
            self.expect(")")
        elif IDENTIFIER.match(self.peek()):
            if self.peek() in C_KEYWORDS:
                raise CTypeError(f"'{self.peek()}' is a C keyword, not a name", self.offset())
            name = self.take()
        suffixes: list[Callable[[CType], CType]] = []
        while self.peek() in ("[", "("):
            if self.take() == "[":
                suffixes.append(partial(_array, self.length()))
            else:
                found, variadic = self.parameters()
                params = params if params is not None else found
                types = tuple(decay(p.type) for p in found)
                suffixes.append(partial(_function, types, variadic))
        self.depth -= 1

        def wrap(base: CType) -> CType:
            for const in pointers:
                base = Pointer(base, const)
            for suffix in reversed(suffixes):
                base = suffix(base)
            return inner(base)

        return name, wrap, params

    def length(self) -> int | None:
        length = None
        if self.peek() != "]":
            if not self.peek().isdigit():
                raise CTypeError("an array length must be a decimal number", self.offset())
            length = int(self.take())
        self.expect("]")
        return length

    def parameters(self) -> tuple[tuple[Declaration, ...], bool]:
        found: list[Declaration] = []
        if self.peek() == ")":
            self.at += 1
            return (), False
        while True:
            if self.peek() == "...":
                self.at += 1
                self.expect(")")
                return tuple(found), True
            found.append(self.declaration())
            if self.peek() != ",":
                break
            self.at += 1
        self.expect(")")
        if len(found) == 1 and found[0].type == VOID and not found[0].name:
            found = []
        return tuple(found), False


VOID = Named("void")


def decay(ctype: CType) -> CType:
    """What a parameter of this type is passed as: arrays and functions become pointers.

    ``const`` on the parameter itself concerns only the callee and is no part of a function's type.
    """
    match ctype:
        case Array(of):
            return Pointer(of)
        case FunctionType():
            return Pointer(ctype)
        case Named(name, True):
            return Named(name)
        case Pointer(to, True):
            return Pointer(to)
    return ctype


@lru_cache(maxsize=8192)
def parse_declaration(text: str) -> Declaration:
    """Read ``[SAL] type [name]``; raise :class:`CTypeError` with the offset of the fault."""
    reader = _Reader(text)
    found = reader.declaration()
    if reader.peek():
        raise CTypeError(f"unexpected '{reader.peek()}'", reader.offset())
    return found


@lru_cache(maxsize=8192)
def parse_type(text: str) -> CType:
    """Read a type without a name, such as ``const OrtValue* const*``."""
    found = parse_declaration(text)
    if found.name:
        raise CTypeError(f"unexpected name '{found.name}' in a type", text.find(found.name))
    return found.type


def declare(ctype: CType, name: str = "") -> str:
    """Print a type around a name, as C: ``declare(parse_type("int (*)(char)"), "f")``."""
    match ctype:
        case Named(base, const):
            return f"{'const ' if const else ''}{base}{' ' + name if name else ''}"
        case Pointer(to, const):
            star = f"*{' const' if const else ''}"
            if isinstance(to, (Array, FunctionType)):
                return declare(to, f"({star}{' ' if const and name else ''}{name})")
            inner = declare(to)
            return f"{inner}{star}{' ' + name if name else ''}"
        case Array(of, length):
            return declare(of, f"{name}[{'' if length is None else length}]")
        case FunctionType(returns, params, variadic):
            parts = [declare(p) for p in params] + (["..."] if variadic else [])
            return declare(returns, f"{name}({', '.join(parts) or 'void'})")
        case Record(kind, members):
            body = " ".join(f"{declare(t, n)};" for n, t in members)
            return f"{kind} {{ {body} }}{' ' + name if name else ''}"
    raise AssertionError(f"unknown type node {ctype!r}")


def type_text(ctype: CType) -> str:
    """The canonical spelling of a type."""
    return declare(ctype)


def unsound(ctype: CType, *, parameter: bool = False) -> str:
    """Why nothing can be declared with this type, though it can be written; empty if it can be."""
    match ctype:
        case Named("void"):
            return "'void' has no values; only 'void*' can be declared"
        case Pointer(to):
            return "" if to == VOID or to == Named("void", True) else unsound(to)
        case Array(of, length):
            if length is None and not parameter:
                return "an array needs its length"
            if length is not None and not 1 <= length <= MAX_LENGTH:
                return f"an array has 1 to {MAX_LENGTH} elements"
            return unsound(of)
        case FunctionType(returns, params):
            if isinstance(returns, (Array, FunctionType)):
                return "a function cannot return an array or a function"
            found = "" if returns == VOID else unsound(returns)
            return found or next((reason for p in params if (reason := unsound(p))), "")
        case Record(_, members):
            for name, member in members:
                if reason := unsound(member):
                    return f"'{name}': {reason}"
    return ""


def names_in(ctype: CType) -> frozenset[str]:
    """Every type name that a type mentions."""
    match ctype:
        case Named(name):
            return frozenset((name,))
        case Pointer(to) | Array(to):
            return names_in(to)
        case FunctionType(returns, params):
            return names_in(returns).union(*(names_in(p) for p in params))
        case Record(_, members):
            return frozenset().union(*(names_in(t) for _, t in members))
    raise AssertionError(f"unknown type node {ctype!r}")


def by_value(ctype: CType) -> frozenset[str]:
    """The type names whose size this type's own size depends on."""
    match ctype:
        case Named(name):
            return frozenset((name,))
        case Array(of):
            return by_value(of)
        case Record(_, members):
            return frozenset().union(*(by_value(t) for _, t in members))
    return frozenset()


def replaced(ctype: CType, names: dict[str, str]) -> CType:
    """The type with some named types exchanged, such as ``ORTCHAR_T`` for what a platform has."""
    match ctype:
        case Named(name, const):
            return Named(names.get(name, name), const)
        case Pointer(to, const):
            return Pointer(replaced(to, names), const)
        case Array(of, length):
            return Array(replaced(of, names), length)
        case FunctionType(returns, params, variadic):
            given = tuple(replaced(p, names) for p in params)
            return FunctionType(replaced(returns, names), given, variadic)
        case Record(kind, members):
            return Record(kind, tuple((n, replaced(t, names)) for n, t in members))
    raise AssertionError(f"unknown type node {ctype!r}")
