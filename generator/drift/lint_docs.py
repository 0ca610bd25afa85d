"""Faults in a header's documentation comments: what Doxygen would stumble over, and what misleads.

Names are held against the declarations as a compiler sees them, so that macros which declare whole
slots are no excuse: a release macro calls its parameter ``input``, whatever the comment says.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..header.reader import HeaderResult
from ..header.sources import Source, SourceSet
from ..spec.abi import NOWHERE, Abi, Doc, Field, Function, Location, Param, Struct
from ..spec.cache import Releases
from ..spec.ctype import Named, Pointer, declare
from .finding import Finding, Severity
from .rules import RULES

_PARAM = re.compile(
    r"[\\@]param(?:\s*\[\s*([a-z, ]*?)\s*\])?\s+([A-Za-z_]\w*(?:\s*,\s*[A-Za-z_]\w*)*)"
)
_GROUP = re.compile(r"[\\@](addtogroup|defgroup|name)\s+(\w+)|[\\@]([{}])")
_REFERENCE = re.compile(
    r"(?<![\w:~])(?P<top>::)?(?:(?P<owner>[A-Za-z_]\w*)::|(?(top)|(?!)))(?P<name>[A-Za-z_]\w*)(?!\w*::)"
)
_TAG = re.compile(r"(?<![\\<])</?([A-Za-z][\w-]*)(?:\s[^<>\n]*)?/?>")
_CODE = re.compile(
    r"[\\@]code\b.*?[\\@]endcode\b|[\\@]verbatim\b.*?[\\@]endverbatim\b|```.*?```|~~~.*?~~~"
    r"|``[^\n]*?``|`[^`\n]+`|[\\@][cp]\s+\S+",
    re.S,
)
_DOCUMENTATION = ("/**", "/*!", "///", "//!")
_ELSEWHERE = frozenset({"Ort", "std"})
"""The namespace of the C++ API, which is declared in a header that the C ones do not include, and
C++'s own."""
_TAGS = (
    "a b blockquote body br caption center code dd del details dfn div dl dt em form h1 h2 h3 h4 h5 h6"
    " hr i img input ins kbd li meta multicol ol p pre s samp small span strike strong sub summary sup"
    " table tbody td tfoot th thead title tr tt u ul var"
)
_HTML = frozenset(_TAGS.split())
"""The tags that Doxygen passes on; XML documentation tags are not in use in these headers."""


def lint_docs(
    header: HeaderResult,
    path: Path,
    include_dirs: Sequence[Path] = (),
    model: Releases | None = None,
) -> list[Finding]:
    """All faults, in the order of the files.  With a spec, ``\\since`` is checked against it."""
    sources = SourceSet(header.files[0] if header.files else path, [*include_dirs])
    known = None
    if model is not None and header.abi.api_version >= model.floor:
        known = model.at(min(header.abi.api_version, model.newest))
    linter = _Linter(header.abi, [s for s in sources.sources if s.own], known)
    return linter.run()


@dataclass(frozen=True, slots=True)
class _Comment:
    """A documentation comment without its code parts, which keep their place as blanks."""

    file: str
    line: int
    text: str

    def at(self, offset: int) -> Location:
        return Location(self.file, self.line + self.text.count("\n", 0, offset))


def _comments(source: Source) -> Iterator[_Comment]:
    for first, _, text in source.comments:
        if text.startswith(_DOCUMENTATION):
            yield _Comment(source.label, first, _without_code(text))


def _without_code(text: str) -> str:
    return _CODE.sub(lambda m: re.sub(r"[^\n]", " ", m[0]), text)


def _direction(param: Param) -> str:
    words = " ".join(param.sal)
    if "_Inout_" in words:
        return "in,out"
    if "_Out" in words:
        return "out"
    return "in" if words else ""


class _Linter:
    def __init__(self, abi: Abi, sources: Sequence[Source], known: Abi | None) -> None:
        self.abi = abi
        self.sources = {source.label: source for source in sources}
        self.known = known
        self.raw: dict[str, list[str]] = {}
        self.found: list[Finding] = []
        self.members: dict[str, list[str]] = {}
        for struct in abi.structs.values():
            for item in struct.fields:
                self.members.setdefault(item.name, []).append(struct.name)
        self.globals = {
            *abi.structs,
            *abi.opaque,
            *abi.enums,
            *abi.typedefs,
            *abi.functions,
            *abi.macros,
            *(c.name for e in abi.enums.values() for c in e.constants),
        }

    def run(self) -> list[Finding]:
        for source in self.sources.values():
            comments = list(_comments(source))
            self.groups(comments)
            for comment in comments:
                self.references(comment)
                self.tags(comment)
        for symbol, function, doc, loc in self.documented():
            self.params(symbol, function, doc, loc)
        for struct in self.abi.structs.values():
            self.sinces(struct)
        order = {label: at for at, label in enumerate(self.sources)}
        return sorted(
            dict.fromkeys(self.found),
            key=lambda f: (order.get(f.header_loc.file, 0), f.header_loc.line, f.rule, f.symbol),
        )

    def add(
        self,
        rule: str,
        symbol: str,
        message: str,
        loc: Location,
        expected: str = "",
        actual: str = "",
        hint: str = "",
        spec_loc: Location = NOWHERE,
    ) -> None:
        self.found.append(
            Finding(
                rule,
                Severity.DOCUMENTATION,
                symbol,
                message,
                expected,
                actual,
                spec_loc,
                loc,
                hint or RULES[rule].hint,
            )
        )

    # What any comment may have wrong ------------------------------------------------------------

    def groups(self, comments: Sequence[_Comment]) -> None:
        opened: list[tuple[str, Location]] = []
        pending = ""
        for comment in comments:
            for match in _GROUP.finditer(comment.text):
                loc = comment.at(match.start())
                if match[1]:
                    pending = match[2] if match[1] != "name" else ""
                elif match[3] == "{":
                    outer = next((at for name, at in opened if name and name == pending), None)
                    if outer is not None:
                        self.add(
                            "doc-group-nested",
                            pending,
                            f"group {pending} is opened inside itself; it is open since line {outer.line}",
                            loc,
                            actual=f"\\addtogroup {pending}",
                        )
                    opened.append((pending, loc))
                    pending = ""
                elif opened:
                    opened.pop()
                else:
                    self.add(
                        "doc-group-unbalanced", "", "a group is closed that was never opened", loc
                    )
        for name, loc in opened:
            self.add(
                "doc-group-unbalanced",
                name,
                f"group {name or 'without a name'} is never closed",
                loc,
            )

    def references(self, comment: _Comment) -> None:
        for match in _REFERENCE.finditer(comment.text):
            owner, name = match["owner"], match["name"]
            struct = self.abi.structs.get(owner or "")
            if struct is not None and struct.field(name) is None:
                names = [f.name for f in struct.fields]
                close = difflib.get_close_matches(name, names, 1, 0.85)
                self.unresolved(match[0], [f"{owner}::{word}" for word in close], comment, match)
            elif match["top"] and (owner or name) not in self.globals | _ELSEWHERE:
                owners = self.members.get(name, [])
                self.unresolved(match[0], [f"{o}::{name}" for o in owners], comment, match)

    def unresolved(
        self, text: str, meant: Sequence[str], comment: _Comment, match: re.Match[str]
    ) -> None:
        loc = comment.at(match.start())
        self.add(
            "doc-reference",
            text,
            f"'{text}' names nothing that the headers declare, so no link can be made of it",
            loc,
            " or ".join(meant),
            text,
            f"write {' or '.join(meant)}" if meant else "name what is meant, or leave out the '::'",
        )

    def tags(self, comment: _Comment) -> None:
        for match in _TAG.finditer(comment.text):
            if match[1].lower() not in _HTML:
                self.add(
                    "doc-html",
                    match[0],
                    f"'{match[0]}' is taken for an HTML tag and left out of the page",
                    comment.at(match.start()),
                    f"\\<{match[0][1:-1]}\\>",
                    match[0],
                )

    # Comments of functions ----------------------------------------------------------------------

    def documented(self) -> Iterator[tuple[str, Function, Doc, Location]]:
        for struct in self.abi.structs.values():
            for slot in struct.fields:
                if slot.function is not None and slot.doc is not None:
                    yield f"{struct.name}.{slot.name}", slot.function, slot.doc, slot.loc
        for typedef in self.abi.typedefs.values():
            if typedef.function is not None and typedef.doc is not None:
                yield typedef.name, typedef.function, typedef.doc, typedef.loc
        for export in self.abi.functions.values():
            if export.doc is not None:
                yield export.name, export.function, export.doc, export.loc

    def place(self, doc: Doc, loc: Location) -> _Comment:
        """The comment of an element: its text, and where in the file it starts."""
        if loc.file not in self.raw:
            try:
                text = Path(loc.file).read_text(encoding="utf-8-sig", errors="replace")
            except OSError:
                text = ""
            self.raw[loc.file] = text.splitlines()
        lines = self.raw[loc.file]
        first = doc.text.partition("\n")[0].strip()
        for number in range(min(loc.line, len(lines)), 0, -1):
            if first in lines[number - 1]:
                return _Comment(loc.file, number, _without_code(doc.text))
        return _Comment(loc.file, loc.line, _without_code(doc.text))

    def params(self, symbol: str, function: Function, doc: Doc, loc: Location) -> None:
        comment = self.place(doc, loc)
        params = {p.name: p for p in function.params if p.name}
        described: dict[str, Location] = {}
        unknown: list[tuple[str, Location]] = []
        for match in _PARAM.finditer(comment.text):
            at = comment.at(match.start())
            for name in re.split(r"\s*,\s*", match[2]):
                if name not in params:
                    unknown.append((name, at))
                    continue
                if name in described:
                    self.add(
                        "doc-param-duplicate",
                        f"{symbol}.{name}",
                        f"parameter '{name}' is documented a second time; the first is on line "
                        f"{described[name].line}",
                        at,
                        actual=f"\\param {name}",
                    )
                    continue
                described[name] = at
                self.direction(symbol, params[name], (match[1] or "").replace(" ", ""), at)
        missing = [name for name in params if name not in described]
        for name, at in unknown:
            meant = _meant(name, missing)
            if meant:
                missing.remove(meant)
            listed = ", ".join(params) or "none"
            self.add(
                "doc-param-unknown",
                f"{symbol}.{name}",
                f"there is no parameter '{name}'; there is {listed}",
                at,
                meant or listed,
                name,
                f"write \\param {meant}" if meant else "remove it",
            )
        if described or unknown:
            for name in missing:
                self.add(
                    "doc-param-missing",
                    f"{symbol}.{name}",
                    f"parameter '{name}' is not documented, though others are",
                    Location(comment.file, comment.line),
                    declare(params[name].type, name),
                )

    def direction(self, symbol: str, param: Param, stated: str, at: Location) -> None:
        stated = "in,out" if stated in ("inout", "out,in") else stated
        declared = _direction(param)
        if declared == "in,out" and stated == "in" and self.is_object(param):
            return  # what the object holds changes, not which object it is
        if stated and declared and stated != declared:
            self.add(
                "doc-param-direction",
                f"{symbol}.{param.name}",
                f"the comment says [{stated}], the annotation {' '.join(param.sal)} says [{declared}]",
                at,
                f"\\param[{declared}] {param.name}",
                f"\\param[{stated}] {param.name}",
            )

    def is_object(self, param: Param) -> bool:
        """Whether a parameter is an opaque object that the function works on."""
        to = param.type.to if isinstance(param.type, Pointer) else None
        return isinstance(to, Named) and (to.name in self.abi.opaque or to.name in self.abi.structs)

    def sinces(self, struct: Struct) -> None:
        slots = [f for f in struct.fields if f.function is not None and f.doc is not None]
        stated = [f for f in slots if f.doc is not None and f.doc.since is not None]
        known = self.known.structs.get(struct.name) if self.known else None
        for slot in stated:
            assert slot.doc is not None and slot.doc.since is not None
            spec = known.field(slot.name) if known else None
            right = spec.since if spec and spec.since else None
            wrong = (
                slot.doc.since > self.abi.api_version if right is None else slot.doc.since != right
            )
            if wrong:
                self.add(
                    "doc-since-wrong",
                    f"{struct.name}.{slot.name}",
                    f"says since 1.{slot.doc.since}, "
                    + (
                        f"but is there since 1.{right}"
                        if right
                        else f"in a header of 1.{self.abi.api_version}"
                    ),
                    self.since_place(slot.doc, slot.loc),
                    f"1.{right}" if right else "",
                    f"1.{slot.doc.since}",
                    spec_loc=spec.loc if spec else NOWHERE,
                )
        # The oldest slots never had one: only those are asked for it that came with the first that
        # has one, or after it.
        begun = struct.doc is not None and struct.doc.since is not None
        first = stated[0] if stated else None
        for slot in slots:
            assert slot.doc is not None
            begun = begun or slot.doc.since is not None or self.came_with(known, slot, first)
            if begun and slot.doc.since is None:
                self.add(
                    "doc-since-missing",
                    f"{struct.name}.{slot.name}",
                    "the comment does not say since which release the slot exists",
                    Location(slot.loc.file, self.place(slot.doc, slot.loc).line),
                )

    @staticmethod
    def came_with(known: Struct | None, slot: Field, other: Field | None) -> bool:
        """Whether the spec has two slots of a table since the same release."""
        here = known.field(slot.name) if known else None
        there = known.field(other.name) if known and other else None
        return here is not None and there is not None and here.since == there.since

    def since_place(self, doc: Doc, loc: Location) -> Location:
        comment = self.place(doc, loc)
        match = re.search(r"[\\@]since\b", comment.text)
        return comment.at(match.start()) if match else loc


def _meant(name: str, missing: Sequence[str]) -> str:
    """The undocumented parameter that an unknown name most likely stands for."""
    if len(missing) == 1:
        return missing[0]
    return next(iter(difflib.get_close_matches(name, missing, 1)), "")
