"""Find the declarations of a header in its text, without the reader that is under test.

Only the shapes that ONNX Runtime's headers and the rendered C ABI header use are known; what has
another shape is passed over, and a test counts what was found.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

COMMENT = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"', re.S)
_DIRECTIVE = re.compile(r"^[ \t]*#(?:\\\n|[^\n])*", re.M)
_CPLUSPLUS = re.compile(r"^[ \t]*#[ \t]*if(?:def)?\b[^\n]*__cplusplus", re.M)
_REDUCED = re.compile(r"^[ \t]*#[ \t]*if defined\(ORT_\w+\)[^\n]*\n([^#]*)", re.M)
"""What only builds without a part of ONNX Runtime see."""
_LINE_KIND = re.compile(r"^[ \t]*#[ \t]*(if|ifdef|ifndef|else|elif|endif)\b", re.M)
_DEFINE = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(\w+)[ \t]+((?:\\\n|[^\n])+)$", re.M)
_STRUCT = re.compile(r"(?:typedef\s+)?(struct|union)\s+(\w+)\s*\{")
_ENUM = re.compile(r"(?:typedef\s+)?enum\s+(\w+)\s*\{")
_OPAQUE = re.compile(r"typedef\s+struct\s+(\w+)\s+(\w+)\s*$|ORT_RUNTIME_CLASS\((\w+)\)\s*$")
_POINTER = re.compile(r"\(\s*(ORT_API_CALL\b)?\s*\*\s*(\w+)\s*\)\s*\(")
_MACRO_SLOT = re.compile(r"(ORT_API2_STATUS|ORT_API_T|ORT_API_STATUS)\s*\(")
_RELEASE = re.compile(r"ORT_CLASS_RELEASE\s*\(\s*(\w+)\s*\)")
_FUNCTION = re.compile(r"\b(ORT_API_CALL\s+)?(\w+)\s*\(")
_PLAIN = re.compile(r"[\w\s*]+?\b(\w+)\s*(?:\[\s*\w*\s*\]\s*)*$")
_CONSTANT = re.compile(r"\s*(\w+)\s*(?:=\s*(.*))?$", re.S)
_MUST_USE = re.compile(r"\bORT_MUST_USE_RESULT\b")
_SAL = re.compile(r"\s*_[A-Z][A-Za-z]*(?:_[a-z]+)*_\b")


class Span(NamedTuple):
    start: int
    end: int

    def of(self, text: str) -> str:
        return text[self.start : self.end]


@dataclass(frozen=True, slots=True)
class Param:
    """One parameter: its whole text, its leading SAL annotations, its type, and its name."""

    span: Span
    sal: tuple[Span, ...]
    type: Span
    name: Span


@dataclass(frozen=True, slots=True)
class Signature:
    """The parts of a declared function; a part that a macro hides is None."""

    name: Span
    params: tuple[Param, ...]
    list: Span
    result: Span | None = None
    call: Span | None = None
    must_use: Span | None = None


@dataclass(frozen=True, slots=True)
class Member:
    """A field or slot of a struct up to its semicolon, or an enumerator without its comma."""

    kind: str
    name: str
    span: Span
    at: int
    value: Span | None = None
    signature: Signature | None = None


@dataclass(frozen=True, slots=True)
class Decl:
    """A declaration at the top level, up to its semicolon; a macro's whole line."""

    kind: str
    name: str
    span: Span
    body: Span | None = None
    members: tuple[Member, ...] = ()
    signature: Signature | None = None
    value: Span | None = None


@dataclass(slots=True)
class Unit:
    """One header file: its text, the text with comments and directives blanked, its declarations."""

    text: str
    masked: str = ""
    decls: list[Decl] = field(default_factory=list)

    def comment_before(self, offset: int) -> Span | None:
        """The comment that ends before an offset with nothing but space between."""
        lead = self.text[:offset].rstrip()
        if not lead.endswith("*/"):
            return None
        return Span(lead.rindex("/*"), len(lead))


def mask(text: str) -> str:
    """Blank comments, strings, directives and C++ parts, line breaks kept."""
    text = COMMENT.sub(_blank, text)
    for match in reversed(list(_CPLUSPLUS.finditer(text))):
        depth = 0
        for line in _LINE_KIND.finditer(text, match.start()):
            depth += {"endif": -1, "else": 0, "elif": 0}.get(line[1], 1)
            if depth == 0 or (depth == 1 and line[1] == "else"):
                text = (
                    text[: match.start()]
                    + _blank(text[match.start() : line.end()])
                    + text[line.end() :]
                )
                break
    for match in reversed(list(_REDUCED.finditer(text))):
        text = text[: match.start(1)] + _blank(match[1]) + text[match.end(1) :]
    return _DIRECTIVE.sub(_blank, text)


def _blank(match: re.Match[str] | str) -> str:
    word = match if isinstance(match, str) else match[0]
    return re.sub(r"[^\n]", " ", word)


def scan(text: str) -> Unit:
    """Every declaration of a header's text."""
    unit = Unit(text, mask(text))
    masked = unit.masked
    # ORT_RUNTIME_CLASS and the like, and extern "C", whose braces are not a declaration's.
    for start, end in _statements(masked):
        decl = _declaration(masked, start, end)
        if decl is not None:
            unit.decls.append(decl)
    without = COMMENT.sub(_blank, text)
    for match in _DEFINE.finditer(without):
        unit.decls.append(
            Decl("macro", match[1], Span(match.start(), match.end()), value=Span(*match.span(2)))
        )
    return unit


def _statements(masked: str, start: int = 0, end: int | None = None) -> Iterator[Span]:
    depth, begin = 0, start
    stop = len(masked) if end is None else end
    for match in re.finditer(r"extern\s*\{|[{}();]", masked[:stop]):
        if match.start() < start:
            continue
        token = match[0]
        if token.startswith("extern"):
            begin = match.end()
        elif token in "({":
            depth += 1
        elif token in ")}":
            depth -= 1
            if depth < 0:
                depth, begin = 0, match.end()
        elif depth == 0:
            lead = len(masked[begin : match.start()]) - len(masked[begin : match.start()].lstrip())
            yield Span(begin + lead, match.end())
            begin = match.end()


def _declaration(masked: str, start: int, end: int) -> Decl | None:
    text = masked[start : end - 1]
    span = Span(start, end)
    if found := _STRUCT.match(text):
        body = Span(start + found.end(), start + text.rindex("}"))
        members = tuple(m for s in _statements(masked, *body) if (m := _member(masked, s)))
        return Decl("struct", found[2], span, body, members)
    if found := _ENUM.match(text):
        body = Span(start + found.end(), start + text.rindex("}"))
        return Decl("enum", found[1], span, body, tuple(_constants(masked, body)))
    if found := _OPAQUE.match(text):
        name = f"Ort{found[3]}" if found[3] else found[2]
        return Decl("opaque", name, span)
    if text.startswith("typedef"):
        lead = len("typedef")
        if signature := _signature(masked, Span(start + lead, end - 1)):
            return Decl("callback", signature.name.of(masked), span, signature=signature)
        if found := _PLAIN.match(text):
            return Decl("typedef", found[1], span)
        return None
    if signature := _signature(masked, Span(start, end - 1)):
        name = signature.name.of(masked)
        return Decl("export", name, span, signature=signature)
    return None


def _member(masked: str, span: Span) -> Member | None:
    inner = Span(span.start, span.end - 1)
    text = inner.of(masked)
    if found := _RELEASE.match(text):
        return Member("slot", f"Release{found[1]}", span, span.start + found.start(1))
    if signature := _signature(masked, inner):
        name = signature.name
        return Member("slot", name.of(masked), span, name.start, signature=signature)
    if "(" not in text and "{" not in text and (found := _PLAIN.match(text)):
        return Member("field", found[1], span, span.start + found.start(1))
    return None


def _constants(masked: str, body: Span) -> Iterator[Member]:
    for part in _split(masked, body):
        found = _CONSTANT.match(part.of(masked))
        if found is None:
            continue
        span = _trim(masked, part)
        value = None
        if found[2]:
            value = _trim(masked, Span(part.start + found.start(2), part.end))
        at = part.start + found.start(1)
        yield Member("constant", found[1], span, at, value)


def _signature(masked: str, span: Span) -> Signature | None:
    text = span.of(masked)
    if found := _MACRO_SLOT.match(text):
        close = _close(masked, span.start + found.end() - 1)
        parts = list(_split(masked, Span(span.start + found.end(), close)))
        skip = 1 if found[1] == "ORT_API_T" else 0
        result = _trim(masked, parts[0]) if skip else None
        name = _trim(masked, parts[skip])
        params = tuple(_param(masked, _trim(masked, p)) for p in parts[skip + 1 :])
        first = params[0].span.start if params else close
        return Signature(name, params, Span(first, close), result)
    if found := _POINTER.search(text):
        name = Span(span.start + found.start(2), span.start + found.end(2))
        call = Span(span.start + found.start(1), span.start + found.end(1)) if found[1] else None
        return _listed(masked, span, found, name, call)
    found = _FUNCTION.search(text)
    while found and _SAL.match(found[2]):
        found = _FUNCTION.search(text, found.end())
    if found and text[: found.start(2)].strip():
        name = Span(span.start + found.start(2), span.start + found.end(2))
        call = Span(span.start + found.start(1), span.start + found.end(1)) if found[1] else None
        return _listed(masked, span, found, name, call)
    return None


def _listed(
    masked: str, span: Span, found: re.Match[str], name: Span, call: Span | None
) -> Signature:
    opened = span.start + found.end() - 1
    close = _close(masked, opened)
    params = []
    for part in _split(masked, Span(opened + 1, close)):
        trimmed = _trim(masked, part)
        if trimmed.of(masked) not in ("", "void", "..."):
            params.append(_param(masked, trimmed))
    must_use = _MUST_USE.search(masked, close, span.end)
    result = _trim(masked, Span(span.start, span.start + found.start()))
    return Signature(
        name,
        tuple(params),
        Span(opened + 1, close),
        result,
        call,
        Span(*must_use.span()) if must_use else None,
    )


def _param(masked: str, span: Span) -> Param:
    at, sal = span.start, []
    while found := _SAL.match(masked, at, span.end):
        end = found.end()
        if masked[end : end + 1] == "(":
            end = _close(masked, end) + 1
        sal.append(Span(found.start() + len(found[0]) - len(found[0].lstrip()), end))
        at = end
    start = at + len(masked[at : span.end]) - len(masked[at : span.end].lstrip())
    name = re.search(r"(\w+)\s*(?:\[\s*\w*\s*\]\s*)?$", masked[start : span.end])
    words = re.findall(r"\w+", masked[start : span.end])
    if name is None or len([w for w in words if w not in ("const", "struct", "enum")]) < 2:
        return Param(span, tuple(sal), Span(start, span.end), Span(span.end, span.end))
    place = Span(start + name.start(1), start + name.end(1))
    return Param(span, tuple(sal), _trim(masked, Span(start, place.start)), place)


def _close(masked: str, opened: int) -> int:
    depth = 0
    for match in re.finditer(r"[()]", masked[opened:]):
        depth += 1 if match[0] == "(" else -1
        if depth == 0:
            return opened + match.start()
    return len(masked)


def _split(masked: str, span: Span) -> Iterator[Span]:
    depth, begin = 0, span.start
    for match in re.finditer(r"[(){},]", span.of(masked)):
        depth += {"(": 1, "{": 1, ")": -1, "}": -1}.get(match[0], 0)
        if match[0] == "," and depth == 0:
            yield Span(begin, span.start + match.start())
            begin = span.start + match.end()
    if masked[begin : span.end].strip():
        yield Span(begin, span.end)


def _trim(masked: str, span: Span) -> Span:
    text = span.of(masked)
    lead = len(text) - len(text.lstrip())
    return Span(span.start + lead, span.end - (len(text) - len(text.rstrip())))
