"""Bring the spec up to a newer header: write what is certain, name what a person must decide.

The spec files are edited by line, with the places that the YAML reader kept.  A round trip through
a YAML library would wrap long texts again and re-indent flow mappings, so that the few new lines
would drown in the diff; inserted lines leave every other byte as its author wrote it.

What is written: new slots and fields at the end of what may grow, new enumerators, types, exported
functions and macros, each with the release it came in; renamed enumerators; parameters whose name
or annotation changed, with their earlier form under ``before``; elements that moved to another
header.  All of it carries a comment that asks for review.  Whatever is left is what a comparison
of the updated spec with the header still finds.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from ..header.errors import UNREADABLE, Unreadable
from ..spec.abi import (
    NOWHERE,
    Abi,
    Constant,
    Enum,
    Export,
    Field,
    Function,
    Opaque,
    Param,
    Struct,
    Typedef,
)
from ..spec.ctype import CType, Record, decay, declare, names_in, parse_declaration
from ..spec.facts import merge
from ..spec.load import load_texts, spec_files
from ..spec.model import STATUS, STATUS_SAL, Model, Source, header_at, param_text
from ..spec.problems import Problem, SpecErrors
from ..spec.schema import Element, FunctionSpec, ParamSpec, SlotSpec
from ..spec.yamlfile import Path_
from .compare import compare
from .compare.enums import renamed_constant
from .compare.structs import VERSION_FIELDS, may_grow
from .finding import Finding

REVIEW = "# review: "
"""How the comment starts that marks what was written."""

_SECTIONS = ("enums", "opaque", "structs", "typedefs", "functions", "macros")
_SIZED = re.compile(r"_(?:reads|writes|updates|buffer)_")
_PLAIN = re.compile(r"[A-Za-z_][\w ()*.<>+&/-]*\Z")
_PLAIN_BLOCK = re.compile(r"[A-Za-z_][\w ()*.<>+&/,\[\]-]*\Z")


@dataclass(frozen=True, slots=True)
class Change:
    """One thing that was written: what, and in which spec file."""

    file: str
    symbol: str
    what: str

    def __str__(self) -> str:
        return f"{self.file}: {self.symbol}: {self.what}"


@dataclass(slots=True)
class Update:
    """New texts by path (only of files that change), what was written, and what is left to decide."""

    release: int
    texts: dict[Path, str]
    originals: dict[Path, str]
    changes: list[Change]
    decide: list[Finding]


def update_spec(
    spec_dir: Path,
    header: Abi,
    *,
    records: Mapping[int, Abi] | None = None,
    unreadable: tuple[Unreadable, ...] = (),
) -> Update:
    """Edit the spec in ``spec_dir``, in memory, for the release that ``header`` declares.

    ``records`` are recorded releases: they tell in which release between the spec's newest and the
    header's an element came; a partial record is completed with the one before it.  Raises
    :class:`SpecErrors` for a header older than the spec, and for a spec that is at fault before.
    """
    paths = {str(p): p for p in spec_files(spec_dir)}
    originals = {name: path.read_text(encoding="utf-8") for name, path in paths.items()}
    model = load_texts(originals)
    if header.api_version < model.newest:
        version = header.macros.get("ORT_API_VERSION")
        problem = Problem(
            version.loc if version else NOWHERE,
            f"the header is of 1.{header.api_version}, but the spec knows releases up to "
            f"1.{model.newest} already",
            "use `check` to compare it with the spec of its release",
        )
        raise SpecErrors([problem])
    known = records or {}
    if header.partial:
        older = [n for n, a in known.items() if n < header.api_version and not a.partial]
        header = merge(known[max(older)], header) if older else header
    work = _Updater(model, originals, header, known)
    texts = work.run()
    updated = load_texts(texts)
    decide = compare(updated.at(header.api_version), header, unreadable)
    return Update(
        header.api_version,
        {paths[name]: text for name, text in texts.items() if text != originals[name]},
        {paths[name]: text for name, text in originals.items()},
        work.changes,
        decide,
    )


@dataclass(slots=True)
class _Edits:
    """The edits of one file, kept until all are known; places are 0-based."""

    lines: list[str]
    before: dict[int, list[str]] = field(default_factory=dict)
    after: dict[int, list[str]] = field(default_factory=dict)
    within: list[tuple[int, int, int, str]] = field(default_factory=list)
    dropped: set[int] = field(default_factory=set)
    sections: dict[str, list[str]] = field(default_factory=dict)
    """New sections, which go to the end of the file."""

    def put_before(self, line: int, new: Iterable[str]) -> None:
        self.before.setdefault(line, []).extend(new)

    def put_after(self, line: int, new: Iterable[str]) -> None:
        self.after.setdefault(line, []).extend(new)

    def replace(self, line: int, start: int, end: int, new: str) -> None:
        self.within.append((line, start, end, new))

    def drop(self, first: int, last: int) -> None:
        self.dropped.update(range(first, last + 1))

    def text(self) -> str:
        lines = list(self.lines)
        for number, start, end, new in sorted(self.within, reverse=True):
            lines[number] = lines[number][:start] + new + lines[number][end:]
        out: list[str] = []
        for number, line in enumerate(lines):
            out += self.before.get(number, ())
            if number not in self.dropped:
                out.append(line)
            out += self.after.get(number, ())
        if self.sections:
            while out and not out[-1].strip():
                out.pop()
            for name, rows in self.sections.items():
                out += [f"{name}:", *rows]
            out.append("")
        return "\n".join(out)


class _File:
    """One spec file: where its nodes are, and the edits of it."""

    def __init__(self, source: Source, text: str) -> None:
        self.source = source
        self.name = source.document.file
        self.edits = _Edits(text.split("\n"))

    @property
    def lines(self) -> list[str]:
        return self.edits.lines

    def place(self, path: Path_) -> tuple[int, int]:
        """0-based line and column of a node."""
        mark = self.source.document.marks[path]
        return mark.line - 1, mark.column - 1

    def dash(self, path: Path_) -> int:
        """The column of the dash of a sequence's item; -1 where the sequence is in flow style."""
        line, column = self.place(path)
        lead = self.lines[line][:column]
        at = lead.rfind("- ")
        return at if at >= 0 and not lead[at + 1 :].strip() and not lead[:at].strip("- ") else -1

    def last_line(self, path: Path_) -> int:
        """The last line of a sequence's item."""
        line, _ = self.place(path)
        dash = self.dash(path)
        last = line
        for number in range(line + 1, len(self.lines)):
            text = self.lines[number]
            body = text.lstrip(" ")
            if not body or (body.startswith("#") and len(text) - len(body) <= dash):
                continue
            if len(text) - len(body) <= dash:
                break
            last = number
        return last

    def count(self, path: Path_) -> int:
        """How many items a sequence has."""
        count = 0
        while (*path, count) in self.source.document.marks:
            count += 1
        return count


class _Updater:
    def __init__(
        self, model: Model, texts: Mapping[str, str], header: Abi, records: Mapping[int, Abi]
    ) -> None:
        self.model = model
        self.texts = texts
        self.header = header
        self.release = header.api_version
        self.old = model.at(model.newest)
        self.files = [_File(s, texts[s.document.file]) for s in model.sources]
        self.target = self.files[-1]
        self.backends: dict[str, _Edits] = {}
        self.changes: list[Change] = []
        self.records = [
            abi for number, abi in sorted(records.items())
            if number <= self.release and not abi.partial
        ]  # fmt: skip

    def run(self) -> dict[str, str]:
        for file in self.files:
            # In this order, because a table's last slot may change and be followed by new ones.
            self.functions(file)
            self.constants(file)
            self.members(file)
            self.headers(file)
        self.new_types()
        self.versions()
        edited = {f.name: f.edits.text() for f in self.files}
        edited |= {name: edits.text() for name, edits in self.backends.items()}
        return {name: edited.get(name, text) for name, text in self.texts.items()}

    def note(self, file: _File, symbol: str, what: str) -> None:
        self.changes.append(Change(file.name, symbol, what))

    # Since when --------------------------------------------------------------------------------

    def since(
        self, has: Callable[[Abi], bool], documented: int | None = None
    ) -> tuple[int, int | None]:
        """The release that brought an element, and what its comment says where that is another one."""
        first, before = self.release, 0
        for abi in self.records:
            if has(abi):
                first = abi.api_version
                break
            before = abi.api_version
        if first > self.model.newest:
            before = max(before, self.model.newest)
        elif before == 0 and first == self.release:
            before = first - 1
        if documented is None or documented == first:
            return first, None
        return (documented, None) if before < documented <= first else (first, documented)

    # What is there and grew --------------------------------------------------------------------

    def constants(self, file: _File) -> None:
        for index, enum in enumerate(file.source.file.enums):
            new = self.header.enums.get(enum.name)
            old = self.old.enums.get(enum.name)
            if new is None or old is None:
                continue
            path: Path_ = ("enums", index, "constants")
            known = {c.name: at for at, c in enumerate(enum.constants)}
            gone = [c for c in old.constants if all(c.name != n.name for n in new.constants)]
            come = [c for c in new.constants if c.name not in known]
            for constant in gone:
                match = renamed_constant(constant, come)
                if match is not None and self.rename(file, enum.name, path, known, constant, match):
                    come.remove(match)
                    known[match.name] = known[constant.name]
            kept = {c.name: c.value for c in new.constants if c.name in known}
            elsewhere = self.enumerators - known.keys()
            written: dict[int, tuple[str, int]] = {}
            place = -1
            for constant in new.constants:
                value = constant.value
                if constant.name in known:
                    place = known[constant.name]
                if constant not in come or constant.name in elsewhere:
                    continue
                twins = [n for n, at in known.items() if enum.constants[at].value == value]
                same = [n for n in twins if kept.get(n) == value]
                if twins and not same:
                    # The value is another enumerator's in the spec: which is right, a person decides.
                    continue
                # An alias stands behind what it is an alias of, wherever the header has it.
                alias_of, at = (
                    (same[0], known[same[0]]) if same else written.get(value, ("", place))
                )
                at = max(place, at)
                if self.constant(file, enum.name, path, at, constant, alias_of):
                    written.setdefault(value, (constant.name, at))

    @cached_property
    def enumerators(self) -> set[str]:
        """The names of all enumerators that the spec has, their earlier names among them."""
        every = [c for s in self.model.sources for e in s.file.enums for c in e.constants]
        return {c.name for c in every} | {c.renamed.name for c in every if c.renamed}

    def constant(
        self, file: _File, owner: str, path: Path_, place: int, constant: Constant, alias_of: str
    ) -> bool:
        anchor = (*path, max(place, 0))
        dash = file.dash(anchor)
        if dash < 0:
            return False

        def has(abi: Abi) -> bool:
            found = abi.enums.get(owner)
            return found is not None and any(c.name == constant.name for c in found.constants)

        since, _ = self.since(has, constant.since)
        parts = [f"name: {constant.name}", f"value: {constant.value}", f"since: {since}"]
        parts += [f"alias_of: {alias_of}"] if alias_of else []
        row = f"- {{{', '.join(parts)}}}"
        rows = _block(dash, [f"{REVIEW}new in 1.{since}", row])
        if place >= 0:
            file.edits.put_after(file.last_line(anchor), rows)
        else:
            file.edits.put_before(file.place(anchor)[0], rows)
        what = f", an alias of {alias_of}" if alias_of else ""
        self.note(file, f"{owner}.{constant.name}", f"new enumerator of 1.{since}{what}")
        return True

    def rename(
        self,
        file: _File,
        owner: str,
        path: Path_,
        known: Mapping[str, int],
        old: Constant,
        new: Constant,
    ) -> bool:
        """Write another name for an enumerator with the same value."""
        if old.name not in known:
            return False
        item = (*path, known[old.name])
        dash = file.dash(item)
        keys = file.source.document.keys
        if dash < 0 or (*item, "renamed") in keys:
            return False

        def has(abi: Abi) -> bool:
            found = abi.enums.get(owner)
            return found is not None and any(c.name == new.name for c in found.constants)

        release, _ = self.since(has)
        macro = self.header.macros.get(old.name)
        alias = (
            ", alias: true" if macro is not None and macro.value.strip("() ") == new.name else ""
        )
        renamed = f"renamed: {{name: {old.name}, release: {release}{alias}}}"
        line, column = file.place((*item, "name"))
        first, start = file.place(item)
        if file.lines[first][start : start + 1] == "{":
            file.edits.replace(line, column, column + len(old.name), new.name)
            last = file.last_line(item)
            close = file.lines[last].rstrip().rfind("}")
            file.edits.replace(last, close, close, f", {renamed}")
        else:
            file.edits.replace(line, column, column + len(old.name), new.name)
            last = file.last_line(item)
            file.edits.put_after(last, _block(dash + 2, [renamed]))
        file.edits.put_before(first, _block(dash, [f"{REVIEW}renamed in 1.{release}"]))
        self.note(file, f"{owner}.{new.name}", f"was {old.name} before 1.{release}")
        self.rename_in_backends(old.name, new.name)
        return True

    def rename_in_backends(self, old: str, new: str) -> None:
        """Backends name the handle types that they import."""
        for backend in self.model.backends.values():
            for section in ("memory", "semaphores"):
                for at, handle in enumerate(getattr(backend.spec, section)):
                    if handle.type != old:
                        continue
                    name, mark = backend.document.file, backend.document.marks[section, at, "type"]
                    edits = self.backends.setdefault(name, _Edits(self.texts[name].split("\n")))
                    start = mark.column - 1
                    edits.replace(mark.line - 1, start, start + len(old), new)
                    self.changes.append(Change(name, f"{section}.{new}", f"was {old}"))

    def members(self, file: _File) -> None:
        for index, spec in enumerate(file.source.file.structs):
            old, new = self.old.structs.get(spec.name), self.header.structs.get(spec.name)
            if old is None or new is None or not may_grow(old):
                continue
            count = len(old.fields)
            if [f.name for f in new.fields[:count]] != [f.name for f in old.fields]:
                continue
            path: Path_ = ("structs", index, "fields")
            anchor = (*path, file.count(path) - 1)
            dash = file.dash(anchor)
            if dash < 0:
                continue
            for item in new.fields[count:]:
                if item.type == UNREADABLE:
                    break
                rows = self.member(spec.name, item, spec.since)
                since = self.member_since(spec.name, item)[0]
                review = f"{REVIEW}new in 1.{since}{self.unsized(item.function)}"
                file.edits.put_after(file.last_line(anchor), _block(dash, [review, *rows]))
                kind = "slot" if item.function is not None else "field"
                self.note(file, f"{spec.name}.{item.name}", f"new {kind} of 1.{since}")

    def unsized(self, function: Function | None) -> str:
        """What to add to a slot's review, where a record leaves out the sizes in annotations."""
        if function is None or "sal_arguments" not in self.header.lacks:
            return ""
        found = [
            f"{w} of {p.name}"
            for p in function.params
            for w in p.sal
            if _SIZED.search(w) and "(" not in w
        ]
        return f"; the record lacks the size in {' and '.join(found)}" if found else ""

    def member_since(self, owner: str, item: Field) -> tuple[int, int | None]:
        def find(abi: Abi) -> Field | None:
            struct = abi.structs.get(owner)
            return struct.field(item.name) if struct else None

        found = [f for f in map(find, self.records) if f is not None]
        documented = item.since or next((f.since for f in found if f.since), None)
        return self.since(lambda abi: find(abi) is not None, documented)

    def member(self, owner: str, item: Field, owner_since: int) -> list[str]:
        """The rows of a slot or field, dash included."""
        since, documented = self.member_since(owner, item)
        gate = [f"since: {since}"] if since != owner_since else []
        gate += [f"documented_since: {documented}"] if documented is not None else []
        if item.function is not None:
            return [f"- slot: {item.name}", *_indented([*gate, *self.signature(item.function)])]
        if isinstance(item.type, Record):
            parts = ", ".join(_flow(declare(t, n)) for n, t in item.type.members)
            return [f"- field: {item.name}", *_indented([*gate, f"union: [{parts}]"])]
        return [f"- field: {_scalar(declare(item.type, item.name))}", *_indented(gate)]

    def signature(self, function: Function, *, callback: bool = False) -> list[str]:
        lacks = self.header.lacks
        rows = []
        checked = function.must_use or "must_use" in lacks
        # A partial record has types only; ORT declares every status with the same annotations.
        annotated = function.return_sal == STATUS_SAL or self.header.partial
        if function.returns == STATUS and annotated and checked:
            rows.append("returns: status")
        else:
            rows.append(f"returns: {_scalar(declare(function.returns))}")
            if function.return_sal:
                rows.append(f"return_sal: [{', '.join(map(_flow, function.return_sal))}]")
            if function.must_use:
                rows.append("must_use: true")
        if not function.api_call:
            rows.append("call: c")
        if function.params:
            rows.append("params:")
            rows += [f"  - {_scalar(_parameter(p))}" for p in function.params]
        return rows

    # What is there and reads differently -------------------------------------------------------

    def functions(self, file: _File) -> None:
        for index, struct in enumerate(file.source.file.structs):
            new = self.header.structs.get(struct.name)
            for at, member in enumerate(struct.fields):
                if new is None or not isinstance(member, SlotSpec):
                    continue
                found = new.field(member.slot)
                if found is not None and found.function is not None:

                    def slot(
                        abi: Abi, owner: str = struct.name, name: str = member.slot
                    ) -> Function | None:
                        fields = abi.structs.get(owner)
                        item = fields.field(name) if fields else None
                        return item.function if item else None

                    symbol = f"{struct.name}.{member.slot}"
                    path: Path_ = ("structs", index, "fields", at, "params")
                    self.params(file, symbol, path, member, found.function, slot)
        for index, typedef in enumerate(file.source.file.typedefs):
            callback = self.header.typedefs.get(typedef.name)
            if typedef.function is not None and callback is not None and callback.function:

                def of_typedef(abi: Abi, name: str = typedef.name) -> Function | None:
                    item = abi.typedefs.get(name)
                    return item.function if item else None

                path = ("typedefs", index, "function", "params")
                self.params(
                    file, typedef.name, path, typedef.function, callback.function, of_typedef
                )
        for index, export in enumerate(file.source.file.functions):
            other = self.header.functions.get(export.name)
            if other is not None:

                def of_export(abi: Abi, name: str = export.name) -> Function | None:
                    item = abi.functions.get(name)
                    return item.function if item else None

                path = ("functions", index, "function", "params")
                self.params(file, export.name, path, export.function, other.function, of_export)

    def params(
        self,
        file: _File,
        symbol: str,
        path: Path_,
        spec: FunctionSpec,
        new: Function,
        find: Callable[[Abi], Function | None],
    ) -> None:
        if len(spec.params) != len(new.params):
            return
        for at, (item, param) in enumerate(zip(spec.params, new.params, strict=True)):
            before = param_text(item, self.model.newest)
            old = _parsed(before)
            param = self.with_arguments(old, param)
            if (old.name, self.sal(old)) == (param.name or old.name, self.sal(param)):
                continue
            if decay(old.type) != decay(param.type) or file.dash((*path, at)) < 0:
                continue

            def has(abi: Abi, at: int = at, param: Param = param) -> bool:
                function = find(abi)
                if function is None or at >= len(function.params):
                    return False
                other = function.params[at]
                return other.name == param.name and self.sal(other, abi) == self.sal(param, abi)

            release, _ = self.since(has)
            if self.param(file, (*path, at), item, before, _parameter(param), release):
                self.note(file, symbol, f"parameter {at + 1} reads otherwise from 1.{release} on")

    def sal(self, param: Param, other: Abi | None = None) -> tuple[str, ...]:
        """Annotations as far as the header's record, and another one, tell them."""
        if "sal_arguments" in self.header.lacks | (other.lacks if other else frozenset()):
            return tuple(word.partition("(")[0] for word in param.sal)
        return tuple("".join(word.split()) for word in param.sal)

    def with_arguments(self, old: Param, new: Param) -> Param:
        """The new annotations, with the old ones' arguments where the record leaves them out."""
        if "sal_arguments" not in self.header.lacks:
            return new
        known = {word.partition("(")[0]: word for word in old.sal}
        return Param(new.name, new.type, tuple(known.get(word, word) for word in new.sal), new.loc)

    def param(
        self, file: _File, path: Path_, item: str | ParamSpec, old: str, new: str, release: int
    ) -> bool:
        line, column = file.place(path)
        dash, last = file.dash(path), file.last_line(path)
        review = f"{REVIEW}changed in 1.{release}"
        earlier = f"{{release: {release}, decl: {json.dumps(old)}}}"
        if isinstance(item, str):
            file.edits.drop(line, last)
            rows = [review, f"- decl: {_scalar(new)}", "  before:", f"    - {earlier}"]
            file.edits.put_after(last, _block(dash, rows))
            return True
        decl_line, decl_column = file.place((*path, "decl"))
        text = file.lines[decl_line]
        if item.before:
            return False
        if file.lines[line][column : column + 1] == "{":
            if decl_line != last or line != last:
                return False
            quoted = text[decl_column] in "\"'"
            end = decl_column + (len(item.decl) + 2 if quoted else len(item.decl))
            file.edits.replace(decl_line, decl_column, end, _flow(new))
            close = text.rstrip().rfind("}")
            file.edits.replace(last, close, close, f", before: [{earlier}]")
        else:
            file.edits.replace(decl_line, decl_column, len(text), _scalar(new))
            file.edits.put_after(last, _block(dash + 2, ["before:", f"  - {earlier}"]))
        file.edits.put_before(line, _block(dash, [review]))
        return True

    def headers(self, file: _File) -> None:
        """Elements that another header declares now."""
        default = file.source.file.header
        for section, found in (
            ("enums", self.header.enums),
            ("structs", self.header.structs),
            ("typedefs", self.header.typedefs),
            ("functions", self.header.functions),
            ("opaque", self.header.opaque),
        ):
            elements: list[Element] = getattr(file.source.file, section)
            for index, element in enumerate(elements):
                new = found.get(element.name)
                old = header_at(element, default, self.model.newest)
                if new is None or not new.header or new.header == old or element.moved is not None:
                    continue
                self.move(file, (section, index), element, old, new.header)

    def move(self, file: _File, path: Path_, element: Element, old: str, new: str) -> None:
        dash = file.dash(path)
        line, column = file.place(path)
        if dash < 0 or file.lines[line][column : column + 1] == "{":
            return

        def has(abi: Abi) -> bool:
            sections = (abi.enums, abi.structs, abi.typedefs, abi.functions, abi.opaque)
            return any(s[element.name].header == new for s in sections if element.name in s)

        release, _ = self.since(has)
        moved = f"moved: {{header: {old}, release: {release}}}"
        if element.header is not None:
            at, start = file.place((*path, "header"))
            file.edits.replace(at, start, start + len(element.header), new)
            file.edits.put_after(at, _block(dash + 2, [moved]))
        else:
            after = file.place((*path, "since"))[0] if (*path, "since") in file.source.document.marks else line  # fmt: skip
            file.edits.put_after(after, _block(dash + 2, [f"header: {new}", moved]))
        file.edits.put_before(line, _block(dash, [f"{REVIEW}moved in 1.{release}"]))
        self.note(file, element.name, f"declared in {new} from 1.{release} on")

    # What is new -------------------------------------------------------------------------------

    @cached_property
    def used_since(self) -> dict[str, int]:
        """The earliest release with a slot or field that mentions a type, directly or by another type."""
        found: dict[str, int] = {}

        def use(ctype: CType, since: int) -> None:
            for name in names_in(ctype):
                if since < found.get(name, self.release + 1):
                    found[name] = since
                    typedef, struct = self.header.typedefs.get(name), self.header.structs.get(name)
                    for inner in [typedef.type] if typedef else []:
                        use(inner, since)
                    for item in struct.fields if struct and name not in self.old.structs else ():
                        use(item.type, since)

        for struct in self.header.structs.values():
            known = self.old.structs.get(struct.name)
            for item in struct.fields if known else ():
                if known is not None and known.field(item.name) is None:
                    use(item.type, self.member_since(struct.name, item)[0])
        return found

    def new_types(self) -> None:
        known = {
            name for s in self.model.sources for section in _SECTIONS for name in _names(s, section)
        }
        known |= self.old.macros.keys()
        every: dict[str, Mapping[str, Enum | Struct | Opaque | Typedef | Export]] = {
            "enums": self.header.enums,
            "opaque": self.header.opaque,
            "structs": self.header.structs,
            "typedefs": self.header.typedefs,
            "functions": self.header.functions,
        }
        for section, found in every.items():
            previous = ""
            for name, element in found.items():
                if name not in known:
                    rows = self.element(section, element)
                    if rows:
                        self.add(section, previous, name, rows)
                previous = name
        renamed = {c.name for e in self.old.enums.values() for c in e.constants}
        for macro in self.header.macros.values():
            if macro.name not in known and macro.name not in renamed:

                def has(abi: Abi, name: str = macro.name) -> bool:
                    return name in abi.macros

                since, _ = self.since(has)
                value = _flow(macro.value)
                row = f"- {{name: {macro.name}, value: {value}, since: {since}}}"
                self.add("macros", "", macro.name, [f"{REVIEW}new in 1.{since}", row])

    def add(self, section: str, previous: str, name: str, rows: list[str]) -> None:
        """Put a new element behind the one that the header has before it, or into its alphabetical place."""
        file = self.target
        names = _names(file.source, section)
        if not names:
            file.edits.sections.setdefault(section, []).extend(_block(2, rows))
        else:
            if len(names) > 2 and names == sorted(names):
                place = sum(n < name for n in names) - 1
            else:
                place = names.index(previous) if previous in names else len(names) - 1
            anchor = (section, max(place, 0))
            dash = file.dash(anchor)
            if dash < 0:
                return
            block = _block(dash, rows)
            if place >= 0:
                file.edits.put_after(file.last_line(anchor), block)
            else:
                file.edits.put_before(file.place(anchor)[0], block)
        self.note(file, name, f"new in section '{section}'")

    def element(
        self, section: str, element: Enum | Struct | Opaque | Typedef | Export
    ) -> list[str]:
        def has(abi: Abi) -> bool:
            found: Mapping[str, object] = getattr(abi, section)
            return element.name in found

        since, _ = self.since(has, element.since)
        since = min(since, self.used_since.get(element.name, since))
        default = self.target.source.file.header
        place = [f"header: {element.header}"] if element.header not in ("", default) else []
        review = f"{REVIEW}new in 1.{since}"
        if isinstance(element, Opaque):
            parts = [f"name: {element.name}", f"since: {since}", *place]
            return [review, f"- {{{', '.join(parts)}}}"]
        head = [review, f"- name: {element.name}"]
        body = [f"since: {since}", *place]
        match element:
            case Enum(constants=constants):
                if any(c.name in self.enumerators for c in constants):
                    return []
                body.append("constants:")
                for at, constant in enumerate(constants):
                    parts = [f"name: {constant.name}", f"value: {constant.value}"]
                    same = [c.name for c in constants[:at] if c.value == constant.value]
                    parts += [f"alias_of: {same[0]}"] if same else []
                    body.append(f"  - {{{', '.join(parts)}}}")
            case Struct(kind="struct") if all(f.type != UNREADABLE for f in element.fields):
                body = [f"kind: {_struct_kind(element)}", *body]
                if element.fields[0].name in VERSION_FIELDS:
                    body.append(f"version_field: {element.fields[0].name}")
                body.append("fields:")
                for item in element.fields:
                    body += _indented(self.member(element.name, item, since))
            case Struct():
                return []
            case Typedef(function=None):
                body.append(f"type: {_scalar(declare(element.type))}")
            case Typedef(function=function) | Export(function=function):
                assert function is not None
                body += ["function:", *_indented(self.signature(function))]
        return [*head, *_indented(body)]

    # Releases ----------------------------------------------------------------------------------

    def versions(self) -> None:
        file = next(f for f in self.files if f.source.file.versions is not None)
        wanted = {"newest": self.release}
        if not self.header.partial and self._ep_structs_agree():
            wanted["ep_structs"] = self.release
        for key, value in wanted.items():
            old = getattr(self.model.versions, key)
            if old != value:
                line, column = file.place(("versions", key))
                file.edits.replace(line, column, column + len(str(old)), str(value))
                self.note(file, f"versions.{key}", f"1.{old} is now 1.{value}")

    def _ep_structs_agree(self) -> bool:
        """Whether no struct of the EP header differs otherwise than by growing."""
        for name, old in self.old.structs.items():
            new = self.header.structs.get(name)
            if old.header.startswith("onnxruntime_ep"):
                same = new is not None and all(
                    a.name == b.name and a.type == b.type
                    for a, b in zip(old.fields, new.fields, strict=False)
                )
                if not same or new is None or len(new.fields) < len(old.fields):
                    return "path_char" in self.header.lacks and new is not None
        return True


def _struct_kind(struct: Struct) -> str:
    slots = [f for f in struct.fields if f.function is not None]
    versioned = struct.fields[0].name in VERSION_FIELDS
    if slots and versioned:
        return "implementation"
    if versioned:
        return "descriptor"
    return "table" if len(slots) == len(struct.fields) else "plain"


def _names(source: Source, section: str) -> list[str]:
    return [element.name for element in getattr(source.file, section)]


def _parsed(text: str) -> Param:
    found = parse_declaration(text)
    return Param(found.name, found.type, found.sal)


def _parameter(param: Param) -> str:
    return "".join(f"{word} " for word in param.sal) + declare(param.type, param.name)


def _scalar(text: str) -> str:
    """Text as a YAML scalar on a line of its own."""
    return text if _PLAIN_BLOCK.match(text) else json.dumps(text)


def _flow(text: str) -> str:
    """Text as a YAML scalar inside brackets."""
    return text if _PLAIN.match(text) else json.dumps(text)


def _indented(rows: Iterable[str]) -> list[str]:
    return [f"  {row}" for row in rows]


def _block(column: int, rows: Iterable[str]) -> list[str]:
    return [" " * column + row for row in rows]


def patch(update: Update) -> Iterator[str]:
    """The changes as a unified diff, line by line, to be applied in the working directory."""
    from difflib import unified_diff

    for path, text in update.texts.items():
        old = update.originals[path].splitlines(keepends=True)
        full, here = path.resolve(), Path.cwd()
        name = full.relative_to(here if full.is_relative_to(here) else full.anchor).as_posix()
        yield from unified_diff(old, text.splitlines(keepends=True), f"a/{name}", f"b/{name}")
