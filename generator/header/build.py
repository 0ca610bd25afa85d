"""Turn a syntax tree, and what was lifted out before it, into an :class:`Abi`."""

from __future__ import annotations

import re
from bisect import bisect_right

from pycparser import c_ast

from ..spec.abi import (
    NOWHERE,
    Abi,
    Constant,
    Doc,
    Enum,
    Export,
    Field,
    Function,
    Location,
    Macro,
    Opaque,
    Param,
    Struct,
    Typedef,
)
from ..spec.ctype import (
    Array,
    CType,
    FunctionType,
    Named,
    Pointer,
    Record,
    by_value,
    canonical_base,
    decay,
)
from ..spec.layout import compute
from . import markers as mark
from .constants import MAX_DEPTH, ConstantError, Evaluator, Value, literal
from .docs import Docs
from .errors import UNREADABLE, HeaderError, Unreadable
from .parse import PLACEHOLDER, Parsed
from .preprocess import PROLOGUE, STRAY_HASH, Preprocessed
from .sources import KEPT, MAIN_HEADER, SourceSet

_BOUNDS = re.compile(r"[;{}]")
_SPACE = re.compile(r"\s*")
_PRAGMA_WORD = re.compile(r'_Pragma\s*\(\s*"\s*pack[^"]*"\s*\)')
_EXPRESSION = re.compile(r"[\w\s()<>|&+*~/%^-]+\Z")
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"\Z')
_IDENTIFIER = re.compile(r"[A-Za-z_]\w*")
_SUFFIXED = re.compile(r"\b0[xX][0-9a-fA-F]+[uUlL]*|\b\d+[uUlL]*")
_SPACED = re.compile(r"\s*,\s*|(?<=\()\s+|^\s+|\s+(?=\))")


_DECLARED = re.compile(
    r"\b(?:struct|union|enum)\s+(\w+)\s*[{;]"
    r"|\}\s*\**\s*(\w+)\s*;"
    r"|\*\s*(?:const\s+)?(\w+)\s*\)\s*\("
    # Not the result of such a pointer to a function.
    r"|\b(\w+)\s*\((?!\s*(?:\w+\s+)*\*\s*(?:const\s+)?\w+\s*\)\s*\()"
    r"|\btypedef\b[^;{}()]*?\b(\w+)\s*;"
    r"|\b(\w+)\s*(?:\[[^\]]*\]\s*)?;"
)
"""Names that text which could not be parsed may declare, in each form of a declaration."""
_MARKS = re.compile(rf"\b(?:{'|'.join(KEPT.values())})\b")
_MACRO_OF = {word: name for name, word in KEPT.items()}
ATOMIC = "_Atomic may change a layout; it is not modelled"
VOLATILE = "volatile behind a pointer makes another type of it; it is not modelled"


class _Refused(Exception):
    """A declaration that C allows and the model does not know."""


class Builder:
    """Builds the model of one preprocessed and parsed header."""

    def __init__(
        self, sources: SourceSet, pre: Preprocessed, marks: mark.Markers, parsed: Parsed, view: str
    ) -> None:
        self.sources = sources.sources
        self.pre = pre
        self.marks = marks
        self.parsed = parsed
        self.windows = view == "windows"
        self.abi = Abi(0, platform={"view": view})
        self.unreadable: list[Unreadable] = []
        self.starts = [0, *(m.end() for m in re.finditer("\n", pre.text))]
        self.bounds = [m.start() for m in _BOUNDS.finditer(marks.text)]
        self.values: dict[str, int] = {}
        self.evaluate = Evaluator(self.values, 32 if self.windows else 64)
        self.depth = 0
        self.types: dict[tuple[object, ...], CType] = {}
        self.forward: dict[str, tuple[str, Location]] = {}
        self._docs: dict[int, Docs] = {}

    # Places ------------------------------------------------------------------------------------

    def offset(self, node: c_ast.Node) -> int:
        """Where the declared name of a node stands in the text; -1 where the parser did not say."""
        while isinstance(
            node, (c_ast.Decl, c_ast.Typedef, c_ast.PtrDecl, c_ast.ArrayDecl, c_ast.FuncDecl)
        ):
            node = node.type
        coord = node.coord
        if coord is None:
            return -1
        return int(self.starts[coord.line - 1] + (coord.column or 1) - 1)

    def place(self, offset: int) -> tuple[int, int]:
        """Source number and line of an offset."""
        if offset < 0:
            return -1, 0
        return self.pre.lines[bisect_right(self.starts, offset) - 1]

    def loc(self, offset: int) -> Location:
        number, line = self.place(offset)
        return Location(self.sources[number].label, line) if number >= 0 else NOWHERE

    def header(self, offset: int) -> str:
        number, _ = self.place(offset)
        return self.sources[number].path.name if number >= 0 else ""

    def own(self, offset: int) -> bool:
        number, _ = self.place(offset)
        return number >= 0 and self.sources[number].own

    def span(self, offset: int) -> tuple[int, int]:
        """From the end of the declaration before to the end of the one that has this offset."""
        at = bisect_right(self.bounds, offset)
        start = self.bounds[at - 1] + 1 if at else 0
        end = self.bounds[at] if at < len(self.bounds) else len(self.marks.text)
        return start, end

    def doc(self, offset: int, *, enumerator: bool = False) -> Doc | None:
        number, line = self.place(offset)
        if number < 0:
            return None
        docs = self._docs.get(number)
        if docs is None:
            docs = self._docs[number] = Docs(self.sources[number])
        if enumerator:
            return docs.of(line, line)
        start, end = self.span(offset)
        space = _SPACE.match(self.pre.text, start)
        first = self.place(space.end() if space else start)
        last = self.place(end)
        return docs.of(
            first[1] if first[0] == number else line, last[1] if last[0] == number else line
        )

    def refuse(self, offset: int, message: str, symbol: str = "") -> None:
        start, end = self.span(offset) if offset >= 0 else (0, 0)
        self.unreadable.append(Unreadable(self.loc(offset), message, self.text(start, end), symbol))

    def text(self, start: int, end: int) -> str:
        """A stretch of the header for a report, on one line."""
        text = " ".join(self.pre.text[start:end].split())
        return _MARKS.sub(lambda word: _MACRO_OF[word[0]], text)[:200]

    # Types -------------------------------------------------------------------------------------

    def ctype(self, node: c_ast.Node) -> CType:
        """The type of a declaration or declarator; pointers to plain names are made only once."""
        stars: list[bool] = []
        inner = node
        while isinstance(inner, (c_ast.PtrDecl, c_ast.Decl, c_ast.Typename)):
            if isinstance(inner, c_ast.PtrDecl):
                quals = inner.quals
                if "_Atomic" in quals:
                    raise _Refused(ATOMIC)
                if stars and "volatile" in quals:
                    raise _Refused(VOLATILE)
                stars.append("const" in quals)
            inner = inner.type
        if len(stars) > MAX_DEPTH:
            raise _Refused(f"a type nested more than {MAX_DEPTH} levels deep")
        if isinstance(inner, c_ast.TypeDecl) and isinstance(inner.type, c_ast.IdentifierType):
            quals = inner.quals
            key = (*inner.type.names, *quals, *stars)
            known = self.types.get(key)
            if known is None:
                if "_Atomic" in quals:
                    raise _Refused(ATOMIC)
                if stars and "volatile" in quals:
                    raise _Refused(VOLATILE)
                known = Named(canonical_base(list(inner.type.names)), "const" in quals)
                for const in reversed(stars):
                    known = Pointer(known, const)
                self.types[key] = known
            return known
        if stars and "volatile" in getattr(inner, "quals", ()):
            raise _Refused(VOLATILE)
        found = self.compound(inner)
        for const in reversed(stars):
            found = Pointer(found, const)
        return found

    def compound(self, node: c_ast.Node) -> CType:
        """A type that is more than a name behind pointers."""
        if self.depth == MAX_DEPTH:
            raise _Refused(f"a type nested more than {MAX_DEPTH} levels deep")
        self.depth += 1
        try:
            if isinstance(node, c_ast.ArrayDecl):
                return Array(self.ctype(node.type), self.length(node.dim))
            if isinstance(node, c_ast.FuncDecl):
                types, variadic = self.parameter_types(node)
                return FunctionType(self.ctype(node.type), types, variadic)
            if isinstance(node, c_ast.TypeDecl):
                if "_Atomic" in node.quals:
                    raise _Refused(ATOMIC)
                return self.base(node.type, "const" in node.quals)
            return self.base(node, False)
        finally:
            self.depth -= 1

    def base(self, node: c_ast.Node, const: bool) -> CType:
        if isinstance(node, c_ast.IdentifierType):
            return Named(canonical_base(list(node.names)), const)
        if isinstance(node, (c_ast.Struct, c_ast.Union)):
            kind = "struct" if isinstance(node, c_ast.Struct) else "union"
            if node.name is None:
                members = tuple((d.name or "", self.ctype(d)) for d in node.decls or ())
                if any(getattr(d, "bitsize", None) is not None for d in node.decls or ()):
                    raise _Refused("a bit-field has no fixed place in the ABI")
                return Record(kind, members)
            self.tagged(node, node.name, kind)
            return Named(node.name, const)
        if isinstance(node, c_ast.Enum):
            if node.name is None and node.values is None:
                raise _Refused("an enum needs a name or a body")
            return (
                Named(self.enum(node, node.name), const)
                if node.values or node.name
                else Named("int")
            )
        raise _Refused(f"{type(node).__name__} is not a type that is known here")

    def length(self, node: c_ast.Node | None) -> int | None:
        if node is None:
            return None
        try:
            number = self.evaluate(node).number
        except ConstantError as error:
            raise _Refused(f"array length: {error}") from None
        if number < 0:
            raise _Refused(f"an array length of {number}")
        return number

    def parameter_types(self, node: c_ast.FuncDecl) -> tuple[tuple[CType, ...], bool]:
        params = list(node.args.params) if node.args is not None else []
        variadic = bool(params) and isinstance(params[-1], c_ast.EllipsisParam)
        types = [self.ctype(p) for p in (params[:-1] if variadic else params) if self.typed(p)]
        if types == [Named("void")]:
            types = []
        return tuple(decay(t) for t in types), variadic

    def typed(self, node: c_ast.Node) -> bool:
        if isinstance(node, c_ast.ID):
            raise _Refused(f"the parameter '{node.name}' has no type")
        return True

    # Functions ---------------------------------------------------------------------------------

    def function(self, node: c_ast.FuncDecl, owner: int) -> Function:
        start, end = self.span(owner)
        own = self.marks.between(start, owner)
        after = self.marks.between(owner, end)
        params = list(node.args.params) if node.args is not None else []
        variadic = bool(params) and isinstance(params[-1], c_ast.EllipsisParam)
        found = []
        before = owner
        for param in params[:-1] if variadic else params:
            self.typed(param)
            name = getattr(param, "name", None) or ""
            at = self.offset(param)
            if at < 0 and param.coord is not None:
                at = self.starts[param.coord.line - 1] + (param.coord.column or 1) - 1
            if at < 0:
                at = before
            comma = self.marks.text.rfind(",", before, at)
            words = self.marks.between(comma if comma >= 0 else before, at)
            found.append(Param(name, self.ctype(param), sal_words(words), self.loc(at)))
            before = at
        if len(found) == 1 and found[0].type == Named("void") and not found[0].name:
            found = []
        return Function(
            self.ctype(node.type),
            tuple(found),
            sal_words(own),
            any(mark.is_must_use(w) for w in own) or any(mark.is_must_use(w) for w in after),
            any(mark.is_api_call(w) for w in own),
            variadic,
        )

    # Declarations ------------------------------------------------------------------------------

    def run(self) -> Abi:
        for node in self.parsed.nodes:
            offset = self.offset(node)
            if offset >= 0 and not self.own(offset):
                continue
            try:
                self.declaration(node, offset)
            except _Refused as problem:
                self.refuse(offset, str(problem), getattr(node, "name", None) or "")
        for fault in self.parsed.faults:
            reason = fault.message.replace(repr(STRAY_HASH), "'#' in the middle of a line")
            message = f"cannot be read as C: {reason}"
            lost = _DECLARED.finditer(self.marks.text, fault.start, fault.end)
            self.unreadable.append(
                Unreadable(
                    self.loc(fault.start),
                    message,
                    self.text(fault.start, fault.end),
                    fault.symbol,
                    frozenset(found[found.lastindex or 0] for found in lost),
                )
            )
        self.attributes()
        self.macros()
        for name, (header, loc) in self.forward.items():
            if name not in self.abi.structs:
                self.abi.opaque[name] = Opaque(name, header, loc=loc)
        gaps = compute(self.abi)
        unknown = {gap.struct for gap in gaps}
        for gap in gaps:
            field = self.abi.structs[gap.struct].field(gap.field)
            # A struct that holds one whose layout is not known has no fault of its own.
            if field is None or field.type == UNREADABLE:
                continue
            if not by_value(field.type) & (unknown - {gap.struct}):
                self.unreadable.append(
                    Unreadable(field.loc, gap.message, "", f"{gap.struct}.{gap.field}")
                )
        return self.abi

    def declaration(self, node: c_ast.Node, offset: int) -> None:
        if isinstance(node, c_ast.Typedef):
            self.typedef(node, offset)
        elif isinstance(node, c_ast.Decl):
            inner = node.type
            if isinstance(inner, c_ast.FuncDecl):
                if "static" in (node.storage or ()) or "inline" in (node.funcspec or ()):
                    return
                self.export(node, inner, offset)
            elif isinstance(inner, c_ast.Enum):
                self.enum(inner, inner.name)
            elif isinstance(inner, (c_ast.Struct, c_ast.Union)):
                kind = "struct" if isinstance(inner, c_ast.Struct) else "union"
                if inner.name is None:
                    raise _Refused("a struct without a name declares nothing")
                self.tagged(inner, inner.name, kind)
            else:
                raise _Refused("a variable; the API has functions only")

    def typedef(self, node: c_ast.Typedef, offset: int) -> None:
        inner = node.type.type if isinstance(node.type, c_ast.TypeDecl) else None
        if isinstance(inner, (c_ast.Struct, c_ast.Union)) and inner.name in (None, node.name):
            self.tagged(
                inner, node.name, "struct" if isinstance(inner, c_ast.Struct) else "union", offset
            )
            return
        if isinstance(inner, c_ast.Enum) and inner.name in (None, node.name):
            self.enum(inner, node.name, offset)
            return
        ctype, function = self.declared_type(node.type, offset)
        old = self.abi.typedefs.get(node.name)
        if old is not None:
            if old.type != ctype:
                raise _Refused(f"'{node.name}' is defined again as something else")
            return
        doc = self.doc(offset)
        self.abi.typedefs[node.name] = Typedef(
            node.name,
            ctype,
            function,
            self.header(offset),
            doc.since if doc else None,
            doc,
            self.loc(offset),
        )

    def declared_type(self, node: c_ast.Node, owner: int) -> tuple[CType, Function | None]:
        """A type, with the signature where it is a pointer to a function."""
        if isinstance(node, c_ast.PtrDecl) and isinstance(node.type, c_ast.FuncDecl):
            function = self.function(node.type, owner)
            return Pointer(function.type, "const" in node.quals), function
        return self.ctype(node), None

    def export(self, node: c_ast.Decl, inner: c_ast.FuncDecl, offset: int) -> None:
        function = self.function(inner, offset)
        old = self.abi.functions.get(node.name)
        if old is not None:
            if old.function.type != function.type:
                raise _Refused(f"'{node.name}' is declared again with another signature")
            return
        doc = self.doc(offset)
        self.abi.functions[node.name] = Export(
            node.name,
            function,
            self.header(offset),
            doc.since if doc else None,
            doc,
            self.loc(offset),
        )

    def tagged(self, node: c_ast.Node, name: str, kind: str, offset: int = -1) -> None:
        """A struct or union: its definition, or a mention of it."""
        at = (
            int(self.starts[node.coord.line - 1] + (node.coord.column or 1) - 1)
            if node.coord
            else offset
        )
        if at >= 0 and not self.own(at):
            return
        if node.decls is None:
            self.forward.setdefault(name, (self.header(at), self.loc(at)))
            return
        if name in self.abi.structs:
            raise _Refused(f"'{name}' is defined twice")
        doc = self.doc(at)
        struct = Struct(
            name,
            (),
            kind,
            self.header(at),
            since=doc.since if doc else None,
            doc=doc,
            loc=self.loc(at),
        )
        self.abi.structs[name] = struct
        fields = []
        for decl in node.decls:
            if isinstance(decl, (c_ast.Pragma, c_ast.StaticAssert)):
                continue
            fields.append(self.field(name, decl))
        struct.fields = tuple(fields)

    def field(self, owner: str, node: c_ast.Decl) -> Field:
        offset = self.offset(node)
        name = node.name or ""
        if name.startswith(PLACEHOLDER):
            return Field(name[len(PLACEHOLDER) :], UNREADABLE)
        try:
            if node.bitsize is not None:
                raise _Refused("a bit-field has no fixed place in the ABI")
            if node.align:
                raise _Refused("_Alignas changes a layout in a way that is not modelled")
            ctype, function = self.declared_type(node.type, offset)
        except _Refused as problem:
            self.refuse(offset, str(problem), f"{owner}.{name}")
            return Field(name, UNREADABLE, loc=self.loc(offset))
        doc = self.doc(offset)
        return Field(
            name, ctype, function, doc.since if doc else None, doc=doc, loc=self.loc(offset)
        )

    def enum(self, node: c_ast.Enum, name: str | None, offset: int = -1) -> str:
        at = (
            int(self.starts[node.coord.line - 1] + (node.coord.column or 1) - 1)
            if node.coord
            else offset
        )
        if node.values is None:
            return name or "int"
        entries = node.values.enumerators
        name = name or f"(enum of {entries[0].name})"
        if name in self.abi.enums:
            raise _Refused(f"'{name}' is defined twice")
        constants = []
        following = 0
        for entry in entries:
            where = int(self.starts[entry.coord.line - 1] + (entry.coord.column or 1) - 1)
            if entry.value is not None:
                try:
                    following = self.evaluate(entry.value).number
                except ConstantError as error:
                    self.refuse(where, f"value of '{entry.name}': {error}", f"{name}.{entry.name}")
                    continue
            if self.windows:
                following = Value(following).fit().number
            doc = self.doc(where, enumerator=True)
            constants.append(
                Constant(entry.name, following, doc.since if doc else None, doc, self.loc(where))
            )
            if entry.name in self.values:
                self.refuse(where, f"'{entry.name}' is defined twice", f"{name}.{entry.name}")
            self.values[entry.name] = following
            following += 1
        doc = self.doc(at)
        self.abi.enums[name] = Enum(
            name,
            tuple(constants),
            self.header(at),
            doc.since if doc else None,
            doc,
            self.loc(at),
        )
        return name

    # What is not a declaration -----------------------------------------------------------------

    def attributes(self) -> None:
        for offset, word in zip(self.marks.offsets, self.marks.words, strict=True):
            if mark.changes_layout(word) and self.own(offset):
                self.refuse(offset, f"{word} changes a layout in a way that is not modelled")
        for offset in self.marks.unbalanced():
            if self.own(offset):
                self.refuse(offset, "an annotation whose parenthesis never closes")
        for match in _PRAGMA_WORD.finditer(self.pre.text):
            if self.own(match.start()):
                self.refuse(match.start(), f"{match[0]} changes layouts; it is not modelled")
        for number, line in self.pre.packed:
            loc = Location(self.sources[number].label, line)
            self.unreadable.append(
                Unreadable(loc, "#pragma pack changes layouts; it is not modelled")
            )

    def macros(self) -> None:
        abi, found = self.abi, self.pre.macros
        for name, word in KEPT.items():
            if name in found:
                abi.platform[name], number, line = found[name]
                if number >= 0:
                    abi.platform_locs[name] = Location(self.sources[number].label, line)
                continue
            used = re.search(rf"\b{word}\b", self.pre.text[len(PROLOGUE) :])
            if used is not None:
                self.refuse(used.start() + len(PROLOGUE), f"{name} is used but never defined")
        for name, (value, number, line) in found.items():
            if name in KEPT or number < 0 or not self.sources[number].own:
                continue
            if self.constant(value):
                abi.macros[name] = Macro(name, value, Location(self.sources[number].label, line))
        version = abi.macros.get("ORT_API_VERSION")
        main = Location(self.sources[0].label)
        if version is None:
            raise HeaderError(
                "ORT_API_VERSION is not defined", main, f"give the path of {MAIN_HEADER}"
            )
        try:
            abi.api_version = literal(version.value.strip("() ")).number
        except ConstantError as error:
            raise HeaderError(f"ORT_API_VERSION: {error}", version.loc) from None
        abi.release = f"1.{abi.api_version}"

    def constant(self, value: str) -> bool:
        """Whether a macro's text is a value of the ABI: a number, a string, or made of enumerators."""
        if _STRING.match(value):
            return True
        if not _EXPRESSION.match(value):
            return False
        names = _IDENTIFIER.findall(_SUFFIXED.sub("0", value))
        return all(name in self.values for name in names)


def sal_words(words: list[str]) -> tuple[str, ...]:
    """The SAL annotations among lifted words, spelled in one way."""
    return tuple(_spelled(w) if "(" in w else w for w in words if mark.is_annotation(w))


def _spelled(word: str) -> str:
    name, _, arguments = word.partition("(")
    spaced = _SPACED.sub(lambda match: ", " if "," in match[0] else "", arguments)
    return f"{name.rstrip()}({spaced}"
