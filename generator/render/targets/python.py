"""The Python package ``ort_interop``: ctypes bindings of the whole C API.

The package's own code is copied as it is.  Rendered are the compact description that it makes its
types from (``_abi.py``), the documentation that ``help()`` shows (``_docs.py``), the stub that
type checkers read (``__init__.pyi``) and what the layer on top acts on (``runtime/_semantics.py``).
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ...spec.abi import Abi, Constant, Enum, Field, Function, Param, Struct, Typedef
from ...spec.ctype import Array, CType, FunctionType, Named, Pointer, Record, declare
from ..errors import render_error
from ..escape import py_docstring
from ..output import Output

if TYPE_CHECKING:
    from ...spec import Model
    from ...spec.model import Meaning
    from ..env import TargetEnv

PACKAGE = "python/ort_interop"
STATUS_MAKERS = frozenset({"OrtApi.CreateStatus"})
"""Functions whose status is what was asked for, and no failure."""
_WIDTH = 100
_CTYPES = {
    "address": "c_void_p",
    "bool": "c_bool",
    "char": "c_char",
    "double": "c_double",
    "float": "c_float",
    "int": "c_int",
    "int16_t": "c_int16",
    "int32_t": "c_int32",
    "int64_t": "c_int64",
    "int8_t": "c_int8",
    "intptr_t": "c_ssize_t",
    "long": "c_long",
    "long long": "c_longlong",
    "path": "_PathPointer",
    "path_char": "_PathChar",
    "ptrdiff_t": "c_ssize_t",
    "short": "c_short",
    "signed char": "c_byte",
    "size_t": "c_size_t",
    "text": "c_char_p",
    "uint16_t": "c_uint16",
    "uint32_t": "c_uint32",
    "uint64_t": "c_uint64",
    "uint8_t": "c_uint8",
    "uintptr_t": "c_size_t",
    "unsigned char": "c_ubyte",
    "unsigned int": "c_uint",
    "unsigned long": "c_ulong",
    "unsigned long long": "c_ulonglong",
    "unsigned short": "c_ushort",
    "wchar_t": "c_wchar",
}
_VALUES = {
    "address": "int | None",
    "bool": "bool",
    "char": "bytes",
    "double": "float",
    "float": "float",
    "path": "_Path | None",
    "path_char": "_Path",
    "text": "bytes | None",
    "void": "None",
    "wchar_t": "str",
}
_UNSUPPORTED = {
    "null_result": "Where the feature is missing the call succeeds and the result is null.",
    "false": "Where the feature is missing the answer is false.",
    "not_implemented": "Where the feature is missing OrtNotImplementedError is raised.",
    "null_table": "Where the feature is missing the table is null.",
}
_THREADS = {
    "any": "May be called from any thread at once.",
    "one_at_a_time": "Calls on one object must not overlap.",
    "setup": "Must not be called while work is in flight.",
}


@dataclass(frozen=True, slots=True)
class Entry:
    """A named piece of the description: the text that the package reads."""

    name: str
    text: str


@dataclass(frozen=True, slots=True)
class StubClass:
    """A class of the stub, with its lines ready and in black's layout."""

    name: str
    base: str
    doc: str
    lines: tuple[str, ...]


class Python:
    """Target ``python``: the package ``ort_interop`` below ``python/``."""

    name = "python"

    def render(self, model: Model, env: TargetEnv) -> Iterable[Output]:
        """The copied modules and the three rendered ones."""
        yield from env.copy_tree("ort_interop", PACKAGE)
        described = Description(model)
        context = {
            "floor": model.floor,
            "newest": model.newest,
            "ep_structs": model.ep_structs,
            "enums": described.enums(),
            "opaque": model.abi.opaque.values(),
            "structs": described.structs(),
            "typedefs": described.typedefs(),
            "exports": described.exports(),
            "errors": described.errors(),
            "docs": described.docs(),
        }
        stub = Stub(described)
        classes = {
            "enum_classes": list(stub.enums()),
            "handle_classes": list(stub.handles()),
            "struct_classes": list(stub.structs()),
            "callback_classes": list(stub.callbacks()),
            "error_classes": list(stub.errors()),
            "cells": list(model.abi.enums),
            "export_lines": stub.exports(),
        }
        classes["ctypes_names"] = stub.ctypes_names()
        context |= classes | semantics(model)
        # In black's layout as rendered: to import black takes as long as to render all of them.
        for file in ("_abi.py", "_docs.py", "__init__.pyi", "runtime/_semantics.py"):
            text = env.render(f"{file.rpartition('/')[2]}.j2", **context)
            yield Output(f"{PACKAGE}/{file}", text, "python", verbatim=True)


def semantics(model: Model) -> dict[str, list[object]]:
    """What the layer ``ort_interop.runtime`` acts on: lives, loans, and answers to the unknown."""
    told = model.semantics.items()
    return {
        "released_by": [(h.type, h.released_by) for h in model.handles.values()],
        "needs": [(h.type, " ".join(h.must_not_outlive)) for h in model.handles.values()],
        "creates": [(slot, m.creates) for slot, m in told if m.creates],
        "borrows": [(slot, " ".join(p for p, _ in m.borrows)) for slot, m in told if m.borrows],
        "unsupported": [(slot, m.unsupported) for slot, m in told if m.unsupported],
        "also_refused": [
            slot
            for slot, m in told
            if m.unsupported not in {None, "not_implemented"}
            and any(code == "ORT_NOT_IMPLEMENTED" for code, _ in m.errors)
        ],
    }


def error_class(constant: str) -> str:
    """The exception class of an error code: ``ORT_INVALID_GRAPH`` is ``OrtInvalidGraphError``."""
    name = "".join(word.capitalize() for word in constant.split("_"))
    return name if name.endswith(("Error", "Exception")) else f"{name}Error"


class Description:
    """The ABI in the words that the package reads; see ``_types.py`` for their meaning."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self.abi: Abi = model.abi
        self.unions: dict[str, Struct] = {}
        self.inner_callbacks: dict[str, Typedef] = {}

    def word(self, ctype: CType, owner: str) -> str:
        """The word for a type; ``owner`` names the place, for types that have no name."""
        match ctype:
            case Named(name):
                return self.named(name, owner)
            case Pointer(Named("void")):
                return "address"
            case Pointer(Named("char", const=True)):
                return "text"
            case Pointer(Named("ORTCHAR_T", const=True)):
                return "path"
            case Pointer(FunctionType() as signature):
                return self.inner_callback(ctype, signature, owner)
            case Pointer(to):
                return f"*{self.word(to, owner)}"
            case Array(of, length) if length is not None:
                return f"[{length}]{self.word(of, owner)}"
            case Record(kind, members):
                name = owner.replace(".", "_")
                fields = tuple(Field(n, t) for n, t in members)
                self.unions[name] = Struct(name, fields, kind, since=1)
                return name
        raise render_error(
            f"{owner}: '{declare(ctype)}' has no ctypes form", "declare it with another type"
        )

    def named(self, name: str, owner: str) -> str:
        """The word for a type that is used by its name."""
        if name == "ORTCHAR_T":
            return "path_char"
        typedef = self.abi.typedefs.get(name)
        if typedef is not None and typedef.function is None:
            return self.word(typedef.type, owner)
        return name

    def inner_callback(self, ctype: Pointer, signature: FunctionType, owner: str) -> str:
        """A function pointer type that is written in place gets the name of that place."""
        name = owner.replace(".", "_")
        params = tuple(Param(f"arg{at}", p) for at, p in enumerate(signature.params))
        # Written in place, the pointer has no ORT_API_CALL.
        function = Function(signature.returns, params, api_call=False)
        self.inner_callbacks[name] = Typedef(name, ctype, function, since=1)
        return name

    def param(self, param: Param, at: int, owner: str) -> tuple[str, str]:
        """A parameter's name and word; an array parameter is a pointer."""
        name = param.name or f"arg{at}"
        ctype = param.type
        if isinstance(ctype, Array):
            ctype = Pointer(ctype.of)
        return name, self.word(ctype, f"{owner}.{name}")

    def params(self, function: Function, owner: str) -> list[tuple[str, str]]:
        """The names and words of all parameters."""
        if function.variadic:
            raise render_error(f"{owner}: a variadic function has no ctypes form", "leave it out")
        return [self.param(p, at, owner) for at, p in enumerate(function.params)]

    def result(self, function: Function, owner: str) -> str:
        """The word for what a function returns."""
        word = self.word(function.returns, f"{owner}.result")
        return "status" if word == "*OrtStatus" and owner not in STATUS_MAKERS else word

    def signature(self, function: Function, owner: str) -> str:
        """A whole signature; ``@`` marks functions without ORT_API_CALL."""
        params = ",".join(f"{name}:{word}" for name, word in self.params(function, owner))
        call = "" if function.api_call else "@"
        return f"{call}({params}){self.result(function, owner)}"

    def enums(self) -> list[Entry]:
        """Every enumeration: its kind, then a constant a line, old names after the new ones."""
        return [Entry(e.name, "\n".join(self.enum_lines(e))) for e in self.abi.enums.values()]

    def enum_lines(self, enum: Enum) -> Iterator[str]:
        yield "flags" if enum.name in self.model.flag_enums else "enum"
        for constant in constants(self.model, enum):
            yield f"{constant.name} {constant.value} {constant.since or enum.since or 1}"

    def structs(self) -> list[Entry]:
        """Every struct: kind, release and version field, then a field a line."""
        found = [self.struct(s) for s in self.abi.structs.values()]
        return found + [self.struct(s) for s in self.unions.values()]

    def struct(self, struct: Struct) -> Entry:
        kind = self.model.struct_kinds.get(struct.name, struct.kind)
        version = self.model.version_fields.get(struct.name, "-")
        lines = [f"{kind} {struct.since or 1} {version}"]
        for item in struct.fields:
            owner = f"{struct.name}.{item.name}"
            if item.function is not None and not isinstance(item.type, Named):
                word = self.signature(item.function, owner)
            else:
                word = self.word(item.type, owner)
            lines.append(f"{item.name} {item.since or struct.since or 1} {word}")
        return Entry(struct.name, "\n".join(lines))

    def callbacks(self) -> list[Typedef]:
        """Every function pointer type."""
        named = [t for t in self.abi.typedefs.values() if t.function is not None]
        return [*named, *self.inner_callbacks.values()]

    def typedefs(self) -> list[Entry]:
        """Every function pointer type with its release and signature."""
        found = []
        for typedef in self.callbacks():
            assert typedef.function is not None
            signature = self.signature(typedef.function, typedef.name)
            found.append(Entry(typedef.name, f"{typedef.since or 1} {signature}"))
        return found

    def exports(self) -> list[Entry]:
        """Every exported function with its release and signature."""
        return [
            Entry(e.name, f"{e.since or 1} {self.signature(e.function, e.name)}")
            for e in self.abi.functions.values()
        ]

    def errors(self) -> list[Entry]:
        """The exception class of every error code."""
        return [
            Entry(c.name, error_class(c.name))
            for c in self.abi.enums["OrtErrorCode"].constants
            if c.value != 0
        ]

    def docs(self) -> list[Entry]:
        """What is told of each function beyond its signature."""
        found = []
        for name, meaning in self.model.semantics.items():
            text = meaning_text(meaning)
            if text:
                found.append(Entry(name, text))
        return found


def constants(model: Model, enum: Enum) -> Iterator[Constant]:
    """An enum's constants, then the old names that headers keep as macros."""
    yield from enum.constants
    values = {c.name: c for c in enum.constants}
    for macro in model.abi.macros.values():
        known = values.get(macro.value)
        if known is not None:
            yield Constant(macro.name, known.value, known.since)


def meaning_text(meaning: Meaning) -> str:
    """A function's documentation as paragraphs of plain text, without its release."""
    paragraphs = [meaning.doc] if meaning.doc else []
    told = [_UNSUPPORTED[meaning.unsupported]] if meaning.unsupported else []
    if meaning.creates:
        told.append(f"The caller owns {meaning.creates}.")
    if meaning.releases:
        told.append(f"Ends the life of {meaning.releases}.")
    told += [f"Keeps using {param} until {until}." for param, until in meaning.borrows]
    told += [_THREADS[meaning.threads]] if meaning.threads else []
    if told:
        paragraphs.append(" ".join(told))
    params = [f"- {p.name}: {p.doc}" for p in meaning.params if p.doc]
    if params:
        paragraphs.append("\n".join(params))
    errors = [f"- {error_class(code)}: {when}." for code, when in meaning.errors]
    if errors:
        paragraphs.append("Raises:\n" + "\n".join(errors))
    return "\n\n".join(paragraphs)


class Stub:
    """The package as type checkers see it, in black's layout so that it needs no formatting."""

    def __init__(self, described: Description) -> None:
        self.described = described
        self.model = described.model
        self.abi = described.abi
        self.used: set[str] = set()
        """The ctypes types that the stub has named so far."""

    def documented(self, *paragraphs: str, indent: str = "    ") -> str:
        """A docstring of the paragraphs that are not empty."""
        text = "\n\n".join(p for p in paragraphs if p)
        made = py_docstring(text, indent, _WIDTH)
        if made.count("\n") == 1:
            # One line that leaves no room for its closing quotes: break it earlier instead.
            made = py_docstring(text, indent, _WIDTH - 6)
        return made

    def target(self, word: str) -> str:
        """The ctypes type that a word stands for."""
        if word in self.abi.enums:
            return f"c_{word}"
        if word[0] == "*":
            return f"_Pointer[{self.target(word[1:])}]"
        if word[0] == "[":
            return f"Array[{self.target(word.partition(']')[2])}]"
        if word in _CTYPES:
            self.used.add(_CTYPES[word])
        return _CTYPES.get(word, word)

    def value(self, word: str) -> str:
        """What a result or a field reads as."""
        if word in _VALUES:
            return _VALUES[word]
        if word in _CTYPES:
            return "int"
        if word in self.abi.enums:
            return word
        return self.target(word)

    def argument(self, word: str, nullable: bool) -> str:
        """What a parameter takes."""
        if word == "address":
            return "_Address"
        if word in {"text", "path"}:
            kind = "bytes" if word == "text" else "_Path"
            return f"{kind} | None" if nullable else kind
        if word[0] == "*":
            return f"{'_Optional' if nullable else '_In'}[{self.target(word[1:])}]"
        return self.value(word)

    def method(self, name: str, function: Function, since: int, doc: str) -> Iterator[str]:
        """A function of a table as a method, with its docstring."""
        meaning = self.model.semantics.get(name)
        params = self.described.params(function, name)
        parts = ["self"]
        for at, (param, word) in enumerate(params):
            # Where SAL says nothing, whether null is taken is not known.
            nullable = not function.params[at].sal
            if meaning is not None and at < len(meaning.params):
                nullable = nullable or meaning.params[at].nullable
            parts.append(f"{safe(param)}: {self.argument(word, nullable)}")
        if params:
            parts.append("/")
        result = self.described.result(function, name)
        returns = "None" if result == "status" else self.value(result)
        yield ""
        yield from definition(name.rpartition(".")[2], parts, returns)
        yield f"        {self.documented(f'Since 1.{since}.', doc, indent=' ' * 8)}"

    def enums(self) -> Iterator[StubClass]:
        """Every enumeration with its constants."""
        for enum in self.abi.enums.values():
            base = "OrtFlag" if enum.name in self.model.flag_enums else "OrtEnum"
            lines = []
            for constant in constants(self.model, enum):
                lines.append(f"    {constant.name} = {constant.value}")
                told = self.model.docs.get(constant.name, "")
                since = constant.since or enum.since or 1
                if told or since > 1:
                    lines.append(f"    {self.documented(f'{told} Since 1.{since}.'.strip())}")
            yield StubClass(enum.name, base, self.about(enum.name, enum.since), tuple(lines))

    def about(self, name: str, since: int | None) -> str:
        """The docstring of a type."""
        told = self.model.docs.get(name, "")
        return self.documented(f"{told} Since 1.{since or 1}.".strip())

    def ctypes_names(self) -> list[str]:
        """What the stub imports from ctypes, as isort orders it."""
        always = {"Array", "Union", "_Pointer", "c_int", "c_void_p"}
        always |= {"c_char", "c_char_p", "c_wchar", "c_wchar_p"}
        # isort puts constants, then classes, then the rest, each in the order of natural sorting.
        return sorted(
            always | (self.used - {"_PathPointer", "_PathChar"}),
            key=lambda n: (not n[0].isupper(), _natural(n)),
        )

    def structs(self) -> Iterator[StubClass]:
        """Every struct with its fields and slots."""
        every = [*self.abi.structs.values(), *self.described.unions.values()]
        for struct in every:
            kind = self.model.struct_kinds.get(struct.name, struct.kind)
            slots = any(f.function and not isinstance(f.type, Named) for f in struct.fields)
            base = "Implementation" if slots else "Record"
            base = {"table": "Table", "union": "Union"}.get(kind, base)
            lines: list[str] = []
            for item in struct.fields:
                name = f"{struct.name}.{item.name}"
                since = item.since or struct.since or 1
                if item.function is not None and not isinstance(item.type, Named):
                    meaning = self.model.semantics.get(name)
                    doc = meaning_text(meaning) if meaning else ""
                    lines += self.method(name, item.function, since, doc)
                else:
                    word = self.described.word(item.type, name)
                    lines += self.data(struct.name, item.name, word)
            about = self.about(struct.name, struct.since)
            yield StubClass(struct.name, base, about, tuple(lines))

    def data(self, struct: str, name: str, word: str) -> Iterator[str]:
        """A data field, with what it reads as and what may be assigned to it."""
        taken = read = self.value(word)
        if word == "address":
            taken = "int | c_void_p | None"
        elif word[0] == "[":
            taken = f"{read} | tuple[int, ...]"
        kind = f"_Field[{read}, {taken}]"
        if word[0] == "*":
            kind = f"_PointerField[{self.target(word[1:])}]"
        yield f"    {safe(name)}: {kind}"
        told = self.model.docs.get(f"{struct}.{name}", "")
        if told:
            yield f"    {self.documented(told)}"

    def handles(self) -> Iterator[StubClass]:
        """Every opaque type."""
        for opaque in self.abi.opaque.values():
            handle = self.model.handles.get(opaque.name)
            ends = f"Released by {handle.released_by}." if handle else ""
            if handle and handle.must_not_outlive:
                ends += f" Must not outlive its {', '.join(handle.must_not_outlive)}."
            told = f"{self.model.docs.get(opaque.name, '')} Since 1.{opaque.since or 1}. {ends}"
            yield StubClass(opaque.name, "Handle", self.documented(told.strip()), ())

    def callbacks(self) -> Iterator[StubClass]:
        """Every function pointer type, as a class that is made from a Python function."""
        for typedef in self.described.callbacks():
            function = typedef.function
            assert function is not None
            words = [word for _, word in self.described.params(function, typedef.name)]
            takes = [self.stored(word) for word in words]
            result = self.described.result(function, typedef.name)
            returns = self.stored(result)
            lines = [
                *constructor(takes, returns),
                *definition("__call__", ["self", *_positional(takes)], returns, body=" ..."),
            ]
            yield StubClass(
                typedef.name, "_Callback", self.about(typedef.name, typedef.since), tuple(lines)
            )

    def stored(self, word: str) -> str:
        """What a callback's argument or result is in Python, as ctypes converts it."""
        if word == "status":
            return "int | None"
        if word in self.abi.enums:
            return "int"
        return self.value(word)

    def exports(self) -> list[str]:
        """The exported functions as methods."""
        lines: list[str] = []
        for export in self.abi.functions.values():
            lines += self.method(export.name, export.function, export.since or 1, "")
        return lines

    def errors(self) -> Iterator[StubClass]:
        """The exception class of every error code."""
        for entry in self.described.errors():
            told = self.model.docs.get(entry.name, "")
            doc = self.documented(f"The status code {entry.name}. {told}".strip())
            yield StubClass(entry.text, "OrtError", doc, ())


def _natural(name: str) -> list[tuple[int, str]]:
    """A sorting key by which ``c_int8`` comes before ``c_int16``."""
    return [(int(p), "") if p.isdigit() else (0, p.lower()) for p in re.split(r"(\d+)", name)]


def safe(name: str) -> str:
    """A parameter's name that Python accepts beside ``self``."""
    return f"{name}_" if keyword.iskeyword(name) or name == "self" else name


def _positional(types: list[str]) -> list[str]:
    parts = [f"arg{at}: {kind}" for at, kind in enumerate(types)]
    return [*parts, "/"] if parts else []


def constructor(takes: list[str], returns: str) -> Iterator[str]:
    """The constructor of a callback type, broken as black breaks it."""
    inside = ", ".join(takes)
    part = f"function: Callable[[{inside}], {returns}] = ..."
    whole = list(definition("__init__", ["self", part, "/"], "None", body=" ..."))
    if all(len(line) <= _WIDTH for line in whole):
        yield from whole
        return
    yield from (whole[0], whole[1], "        function: Callable[")
    if len(f"            [{inside}], {returns}") <= _WIDTH:
        yield f"            [{inside}], {returns}"
    else:
        yield "            ["
        yield from (f"                {kind}," for kind in takes)
        yield from ("            ],", f"            {returns},")
    yield from ("        ] = ...,", whole[3], whole[4])


def definition(name: str, parts: list[str], returns: str, body: str = "") -> Iterator[str]:
    """The head of a method, broken as black breaks it."""
    head, tail = f"    def {name}(", f") -> {returns}:{body}"
    inside = ", ".join(parts)
    if len(head) + len(inside) + len(tail) <= _WIDTH:
        yield f"{head}{inside}{tail}"
        return
    yield head
    if len(inside) + 8 <= _WIDTH:
        yield f"        {inside}"
    else:
        yield from (f"        {part}," for part in parts)
    yield f"    {tail}"
