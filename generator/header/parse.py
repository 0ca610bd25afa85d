"""Run pycparser over lifted text; what it refuses is set aside, and all the rest is still read."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass

from pycparser import CParser, c_ast
from pycparser.c_parser import ParseError

from .lexer import lexer_class

_LEXER = lexer_class()
PLACEHOLDER = "ort_unreadable_"
"""Prefix of the field that stands where a struct's member could not be read: the slots after it
keep their places."""

_TOKENS = re.compile(r"[{}();]")
_STRUCT = re.compile(r"\s*(?:typedef\s+)?(?:const\s+)?(struct|union)\s*([A-Za-z_]\w*)?\s*\{", re.S)
_TAG = re.compile(r"\s*(?:typedef\s+)?(?:const\s+)?(?:struct|union|enum)\s+([A-Za-z_]\w*)")
_NAMES = re.compile(r"[A-Za-z_]\w*")
_DECLARED = (
    re.compile(r"\(\s*\*\s*(?:const\s+)?([A-Za-z_]\w*)\s*\)\s*\("),
    re.compile(r"([A-Za-z_]\w*)\s*\("),
    re.compile(r"([A-Za-z_]\w*)\s*(?:\[[^\]]*\]\s*)*$"),
)
"""Where the declared name stands: in a function pointer, a function, a plain declaration."""
_POSITION = re.compile(r"^[^:]*:(\d+)(?::(\d+))?: (.*)", re.S)
_BEFORE = re.compile(r"\Abefore: (.*)", re.S)
_CONFLICT = re.compile(r"(?:<{7}|={7}|>{7}|\|{7})(?![<=>|])")
_MAX_DEPTH = 200
_NESTED = re.compile(r"[()\[\]{}*]")


@dataclass(frozen=True, slots=True)
class Fault:
    """Text from ``start`` to ``end`` that the parser did not take."""

    start: int
    end: int
    message: str
    symbol: str = ""


@dataclass(slots=True)
class Parsed:
    nodes: list[c_ast.Node]
    faults: list[Fault]


def parse(text: str) -> Parsed:
    """Parse a whole unit; where that fails, declaration by declaration, then member by member."""
    try:
        return Parsed(list(CParser(lexer=_LEXER).parse(text).ext or ()), [])
    except (ParseError, RecursionError, AssertionError, AttributeError, TypeError, ValueError):
        # pycparser reports bad input as ParseError, but inputs that it never foresaw end in the
        # others; all of them mean that one declaration cannot be read.
        return _Recovery(text).run()


class _Recovery:
    def __init__(self, text: str) -> None:
        self.text = text
        self.starts = [0, *(m.end() for m in re.finditer("\n", text))]
        self.known: set[str] = set()
        self.result = Parsed([], [])

    def run(self) -> Parsed:
        for start, end, complete in _chunks(self.text):
            body = self.text[start:end]
            stripped = body.strip()
            if not stripped or stripped == ";":
                continue
            if not complete:
                symbol = _symbol(body.lstrip().partition(";")[0])
                self.fault(start, end, "this declaration is never finished", symbol)
                continue
            nodes = self.attempt(start, end)
            if isinstance(nodes, str):
                nodes = self.members(start, end, nodes)
            for node in nodes:
                if isinstance(node, c_ast.Typedef) and node.name:
                    self.known.add(node.name)
            self.result.nodes.extend(nodes)
        return self.result

    def fault(self, start: int, end: int, message: str, symbol: str = "") -> None:
        lead = len(self.text[start:end]) - len(self.text[start:end].lstrip())
        if _CONFLICT.match(self.text, start + lead):
            message = "a merge conflict that was not resolved"
        self.result.faults.append(Fault(start + lead, end, message, symbol))

    def attempt(
        self, start: int, end: int, before: str = "", after: str = ""
    ) -> list[c_ast.Node] | str:
        """Parse one stretch of text on its own; the nodes carry the whole text's coordinates."""
        body = self.text[start:end]
        depth = 0
        for match in _NESTED.finditer(body):
            depth = depth + 1 if match[0] in "([{*" else 0 if match[0] == "}" else depth
            if depth > _MAX_DEPTH and body.count("(") + body.count("[") > _MAX_DEPTH:
                return "nested too deeply"
        used = sorted(self.known.intersection(_NAMES.findall(body)))
        line = _line_of(self.starts, start)
        prologue = f"typedef int {', '.join(used)};" if used else ""
        column = start - self.starts[line]
        padding = " " * max(0, column - len(before))
        try:
            ext = CParser(lexer=_LEXER).parse(f"{prologue}\n{before}{padding}{body}{after}").ext
        except (
            ParseError,
            RecursionError,
            AssertionError,
            AttributeError,
            TypeError,
            ValueError,
        ) as error:
            said = _POSITION.match(str(error))
            reason = said[3] if said else str(error).lstrip(": ") or type(error).__name__
            return _BEFORE.sub(r"something is wrong before '\1'", reason)
        nodes = list(ext or ())[1 if len(used) == 1 else len(used) :]
        _shift(nodes, line - 1)
        return nodes

    def members(self, start: int, end: int, reason: str) -> list[c_ast.Node]:
        """Read a struct member by member; a bad one leaves a placeholder of a pointer's size."""
        body = self.text[start:end]
        head = _STRUCT.match(body)
        close = body.rfind("}")
        if head is None or close < head.end():
            self.fault(start, end, reason, _symbol(body))
            return []
        name = head[2] or _trailing_name(body[close + 1 :])
        decls: list[c_ast.Node] = []
        stray = False
        for first, last, complete in _chunks(self.text, start + head.end(), start + close):
            member = self.text[first:last]
            if not member.strip() or member.strip() == ";":
                continue
            found = self.attempt(first, last, "struct{", "};") if complete else "never finished"
            if isinstance(found, list) and found and getattr(found[0], "type", None) is not None:
                inner = getattr(found[0].type, "decls", None)
                if inner:
                    decls.extend(inner)
                    continue
                found = "declares nothing"
            symbol = _declared(member)
            self.fault(first, last, str(found), f"{name}.{symbol}" if name and symbol else name)
            decls.append(_placeholder(symbol or str(len(decls))))
            stray = True
        tail = body[close + 1 :].rstrip(";").strip()
        if not name or (not stray and not decls) or tail not in ("", name):
            self.fault(start, end, reason, name)
            return []
        kind = c_ast.Struct if head[1] == "struct" else c_ast.Union
        line = _line_of(self.starts, start + head.start(1))
        coord = _coord_like(decls, line)
        node = c_ast.Decl(name, [], [], [], [], kind(name, decls, coord), None, None, coord)
        node.name = None
        if tail:
            self.known.add(name)
        return [node]


def _placeholder(name: str) -> c_ast.Node:
    inner = c_ast.TypeDecl(PLACEHOLDER + name, [], None, c_ast.IdentifierType(["void"]))
    return c_ast.Decl(PLACEHOLDER + name, [], [], [], [], c_ast.PtrDecl([], inner), None, None)


def _coord_like(decls: list[c_ast.Node], line: int) -> object:
    """A coordinate for a struct that was put together by hand: that of its first member, moved."""
    for decl in decls:
        if decl.coord is not None:
            return type(decl.coord)(decl.coord.file, line + 1, 1)
    return None


def _chunks(text: str, start: int = 0, end: int | None = None) -> Iterator[tuple[int, int, bool]]:
    """The declarations of a stretch of text, with whether each is complete."""
    stop = len(text) if end is None else end
    depth = 0
    at = start
    body_of_function = False
    for match in _TOKENS.finditer(text, start, stop):
        token = match[0]
        if token in "({":
            if token == "{" and depth == 0:
                body_of_function = text[at : match.start()].rstrip().endswith(")")
            depth += 1
        elif token in ")}":
            depth -= 1
            if depth < 0 or (depth == 0 and token == "}" and body_of_function):
                depth = 0
                body_of_function = False
                yield at, match.end(), True
                at = match.end()
        elif depth == 0:
            yield at, match.end(), True
            at = match.end()
    if text[at:stop].strip():
        yield at, stop, False


def _line_of(starts: list[int], offset: int) -> int:
    return bisect_right(starts, offset) - 1


def _shift(nodes: list[c_ast.Node], lines: int) -> None:
    """Move the coordinates of trees down; nodes share coordinates, and declarators their type."""
    seen: set[int] = set()
    pending = list(nodes)
    while pending:
        current = pending.pop()
        coord = current.coord
        if coord is not None and id(coord) not in seen:
            seen.add(id(coord))
            coord.line += lines
        pending.extend(child for _, child in current.children())


def _symbol(body: str) -> str:
    tag = _TAG.match(body)
    return tag[1] if tag else _declared(body)


def _declared(member: str) -> str:
    """The name that a declaration probably declares, for the report."""
    text = member.strip().rstrip(";").rstrip()
    for shape in _DECLARED:
        found = shape.search(text)
        if found is not None:
            return found[1]
    return ""


def _trailing_name(text: str) -> str:
    found = _NAMES.search(text)
    return found[0] if found else ""
