"""Compare the spec's view of a release with a header's, element by element."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from dataclasses import replace
from difflib import SequenceMatcher
from functools import lru_cache
from typing import Protocol, TypeAlias

from ..header.errors import UNREADABLE, Unreadable
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
    Opaque,
    Param,
    Struct,
    Typedef,
)
from ..spec.ctype import (
    FIXED,
    Array,
    CType,
    FunctionType,
    Named,
    Pointer,
    Record,
    decay,
    declare,
    names_in,
    type_text,
)
from ..spec.layout import enum_measures
from .align import Alignment, align
from .finding import Finding, severity_order
from .rules import RULES

Type: TypeAlias = "Enum | Struct | Opaque | Typedef"

VERSION_FIELDS = frozenset({"version", "ort_version_supported"})
PLATFORM: dict[str, dict[str, frozenset[str]]] = {
    "linux": {
        "ORT_API_CALL": frozenset({""}),
        "ORTCHAR_T": frozenset({"char"}),
        "ORT_MUST_USE_RESULT": frozenset({"__attribute__((warn_unused_result))"}),
    },
    "windows": {
        "ORT_API_CALL": frozenset({"__stdcall", "_stdcall"}),
        "ORTCHAR_T": frozenset({"wchar_t"}),
        "ORT_MUST_USE_RESULT": frozenset({""}),
    },
}
"""What the macros that differ by platform expand to in the releases."""

_SUCCESS = ("_Success_", "_Return_type_success_")
_SIMILAR = 0.5
"""How alike the names of an enumerator must be to count as renamed and not as replaced."""


def compare(
    spec: Abi, header: Abi, unreadable: Collection[Unreadable] = (), *, base: str = "the spec"
) -> list[Finding]:
    """All differences, worst first.  Neither side is changed.

    What one side does not record (:attr:`Abi.lacks`, :attr:`Abi.partial`) is left out.  Elements of
    the header that could not be read give one ``unreadable`` finding each and no other.  Messages
    call the first side ``base``.
    """
    return sorted(_Comparison(spec, header, unreadable, base).run(), key=severity_order)


@lru_cache(maxsize=8192)
def _plain_chars(ctype: CType) -> CType:
    """ORTCHAR_T as a platform's record has it that does not tell it from ``char``."""
    match ctype:
        case Named("ORTCHAR_T", const):
            return Named("char", const)
        case Pointer(to, const):
            return Pointer(_plain_chars(to), const)
        case Array(of, length):
            return Array(_plain_chars(of), length)
        case FunctionType(returns, params, variadic):
            return FunctionType(
                _plain_chars(returns), tuple(_plain_chars(p) for p in params), variadic
            )
    return ctype


def _renamed(ctype: CType, names: dict[str, str]) -> CType:
    match ctype:
        case Named(name, const):
            return Named(names.get(name, name), const)
        case Pointer(to, const):
            return Pointer(_renamed(to, names), const)
        case Array(of, length):
            return Array(_renamed(of, names), length)
        case FunctionType(returns, params, variadic):
            return FunctionType(
                _renamed(returns, names), tuple(_renamed(p, names) for p in params), variadic
            )
        case Record(kind, members):
            return Record(kind, tuple((n, _renamed(t, names)) for n, t in members))
    raise AssertionError(f"unknown type node {ctype!r}")


def signature(function: Function, name: str = "") -> str:
    """A function as C, with its annotations."""
    parts = ["".join(f"{w} " for w in p.sal) + declare(p.type, p.name) for p in function.params]
    parts += ["..."] if function.variadic else []
    return declare(function.returns, f"{name}({', '.join(parts) or 'void'})")


def field_text(item: Field) -> str:
    """A field as C."""
    return signature(item.function, item.name) if item.function else declare(item.type, item.name)


def _files(abi: Abi) -> frozenset[str]:
    return frozenset(e.header for e in (*_types(abi).values(), *abi.functions.values()))


def _kind(element: Type) -> str:
    if isinstance(element, Struct):
        return element.kind
    return {Enum: "enum", Opaque: "opaque struct", Typedef: "typedef"}[type(element)]


def _types(abi: Abi) -> dict[str, Type]:
    return {**abi.opaque, **abi.typedefs, **abi.enums, **abi.structs}


def _depth(ctype: CType) -> int:
    return 1 + _depth(ctype.to) if isinstance(ctype, Pointer) else 0


def _unqualified(ctype: CType) -> CType:
    match ctype:
        case Named(name):
            return Named(name)
        case Pointer(to):
            return Pointer(_unqualified(to))
        case Array(of, length):
            return Array(_unqualified(of), length)
    return ctype


def _type_change(old: CType, new: CType) -> str:
    """What a change of type does, in a few words."""
    if _unqualified(old) == _unqualified(new):
        return "constness differs: who may write through it has changed"
    if _depth(old) != _depth(new):
        return "the pointer depth differs: callers pass an address of another level"
    if (
        isinstance(old, Named)
        and isinstance(new, Named)
        and old.name in FIXED
        and new.name in FIXED
    ):
        a, b = FIXED[old.name], FIXED[new.name]
        if (a.lp64, a.llp64) != (b.lp64, b.llp64):
            return "the width differs: callers pass and read the wrong number of bytes"
        if a.signed != b.signed:
            return "the signedness differs: large values change their meaning"
    return "callers pass or read another type"


class _Add(Protocol):
    """How comparisons of signatures report."""

    def __call__(
        self, rule: str, message: str, expected: str, actual: str, param: Param | None = None
    ) -> None: ...


class _Comparison:
    def __init__(
        self, spec: Abi, header: Abi, unreadable: Collection[Unreadable], base: str
    ) -> None:
        self.base = base
        self.spec = spec
        self.header = header
        self.unreadable = unreadable
        self.unread = {u.symbol for u in unreadable if u.symbol}
        self.unread_owners = {s.partition(".")[0] for s in self.unread}
        self.lacks = spec.lacks | header.lacks
        self.plain = "path_char" in self.lacks
        self.files = (_files(spec), _files(header))
        self.found: list[Finding] = []
        self.users: tuple[dict[str, frozenset[str]], dict[str, frozenset[str]]] | None = None

    def add(
        self,
        rule: str,
        symbol: str,
        message: str,
        expected: str = "",
        actual: str = "",
        spec_loc: Location = NOWHERE,
        header_loc: Location = NOWHERE,
        hint: str = "",
    ) -> None:
        known = RULES[rule]
        self.found.append(
            Finding(
                rule,
                known.severity,
                symbol,
                message,
                expected,
                actual,
                spec_loc,
                header_loc,
                hint or known.hint,
            )
        )

    def run(self) -> list[Finding]:
        for item in self.unreadable:
            self.add("unreadable", item.symbol, item.message, "", item.text, NOWHERE, item.loc)
        self.version()
        self.platform()
        renames = self.type_renames()
        if renames:
            self.header = _with_names(self.header, {new: old for old, new in renames.items()})
        self.types(renames)
        self.relocations()
        self.functions()
        self.macros()
        return self.found

    # Types -------------------------------------------------------------------------------------

    def same_type(self, old: CType, new: CType) -> bool:
        if old == new:
            return True
        one, other = _spelled_out(old, self.spec), _spelled_out(new, self.header)
        if one == other:
            return True
        return self.plain and _plain_chars(one) == _plain_chars(other)

    def same_field(self, old: Field, new: Field) -> bool:
        return self.same_type(old.type, new.type)

    def types(self, renames: dict[str, str]) -> None:
        old, new = _types(self.spec), _types(self.header)
        for name, element in old.items():
            other = new.get(name)
            if other is None:
                if not self.header.partial and name not in self.unread_owners:
                    self.add(
                        "type-removed",
                        name,
                        f"the {_kind(element)} is not declared any more; code that names it breaks",
                        _kind(element),
                        "",
                        element.loc,
                        Location(self.main_file()),
                    )
                continue
            self.declared_in(name, element, other)
            self.element(name, element, other)
        if not self.spec.partial:
            for name, element in new.items():
                if name not in old:
                    self.add(
                        "type-added",
                        name,
                        f"{self.base} does not know this {_kind(element)}",
                        "",
                        _kind(element),
                        NOWHERE,
                        element.loc,
                    )

    def declared_in(self, name: str, old: Type | Export, new: Type | Export) -> None:
        """Whether an element went to a header that the first side does not have."""
        before, after = self.files
        if not old.header or new.header in before or old.header not in after:
            return
        if isinstance(old, Opaque) and "opaque_header" in self.lacks:
            return
        self.add(
            "header-moved",
            name,
            f"is declared in {new.header} now: copies and includes of {old.header} alone lack it",
            old.header,
            new.header,
            old.loc,
            new.loc,
        )

    def main_file(self) -> str:
        version = self.header.macros.get("ORT_API_VERSION")
        return version.loc.file if version else NOWHERE.file

    def element(self, name: str, old: Type, new: Type) -> None:
        if _kind(old) != _kind(new):
            if name in self.unread_owners:
                return
            if isinstance(old, Opaque) and isinstance(new, Struct):
                rule, what = "opaque-completed", "its layout is now a promise"
            elif isinstance(old, Struct) and isinstance(new, Opaque):
                rule, what = "struct-made-opaque", "code that reads its fields does not compile"
            else:
                rule, what = "kind-changed", "code that uses the name means something else"
            self.add(
                rule,
                name,
                f"was {_article(_kind(old))}, is {_article(_kind(new))}: {what}",
                _kind(old),
                _kind(new),
                old.loc,
                new.loc,
            )
            return
        if isinstance(old, Struct) and isinstance(new, Struct):
            self.since(name, old, new)
            self.struct(old, new)
        elif isinstance(old, Enum) and isinstance(new, Enum):
            self.since(name, old, new)
            self.enum(old, new)
        elif isinstance(old, Typedef) and isinstance(new, Typedef):
            self.since(name, old, new)
            self.typedef(old, new)

    def since(
        self,
        symbol: str,
        old: Struct | Enum | Typedef | Field | Export | Constant,
        new: Struct | Enum | Typedef | Field | Export | Constant,
    ) -> None:
        stated = new.since
        doc: Doc | None = old.doc
        expected = doc.since if doc is not None and doc.since is not None else old.since
        # Where the spec knows that ORT's comment is wrong, a header that has corrected it is right.
        if stated is None or expected is None or stated in (expected, old.since):
            return
        self.add(
            "since-changed",
            symbol,
            f"says since 1.{stated}, {self.base} 1.{expected}: version gates go wrong",
            f"1.{expected}",
            f"1.{stated}",
            old.loc,
            new.loc,
        )

    def typedef(self, old: Typedef, new: Typedef) -> None:
        if old.function is not None and new.function is not None:
            self.function(old.name, old.function, new.function, old.loc, new.loc, callback=True)
        elif not self.same_type(old.type, new.type):
            self.add(
                "typedef-changed",
                old.name,
                _type_change(old.type, new.type),
                type_text(old.type),
                type_text(new.type),
                old.loc,
                new.loc,
            )

    # Structs -----------------------------------------------------------------------------------

    def struct(self, old: Struct, new: Struct) -> None:
        before = len(self.found)
        if self.spec.partial and not self.header.partial:
            self.known_fields(old, new)
            return
        if self.header.partial and not self.spec.partial:
            self.new_fields(old, new)
            return
        alignment = align(old.fields, new.fields, self.same_field)
        self.places(old, new, alignment)
        elsewhere = {*alignment.moved, *(pair for both in alignment.swapped for pair in both)}
        for i, j in alignment.kept:
            # A declaration that was moved without its comment stands under another one's.
            self.field(old, old.fields[i], new.fields[j], since=(i, j) not in elsewhere)
        for i, j in alignment.renamed:
            self.field(old, old.fields[i], replace(new.fields[j], name=old.fields[i].name))
        told = any(_moves_fields(finding.rule) for finding in self.found[before:])
        if not told and old.name not in self.unread_owners:
            self.layout(old, new)

    def known_fields(self, old: Struct, new: Struct) -> None:
        """A delta record tells of single fields, and where they are."""
        for item in old.fields:
            other = new.field(item.name)
            symbol = f"{old.name}.{item.name}"
            if other is None:
                if symbol not in self.unread:
                    rule = "slot-removed" if item.function else "field-removed"
                    self.add(
                        rule, symbol, "it is not declared", field_text(item), "", item.loc, new.loc
                    )
                continue
            self.field(old, item, other)
            self.field_offset(old, item, other)

    def new_fields(self, old: Struct, new: Struct) -> None:
        """What a delta record adds; of what was there before it tells no more than the place."""
        for item in new.fields:
            known = old.field(item.name)
            if known is not None:
                self.field_offset(old, known, item)
                continue
            what = "slot" if item.function is not None else "field"
            if item.offset is None or old.size is None or item.offset >= old.size:
                self.added(old, item, f"{what}-appended", "older hosts do not have it")
            else:
                self.added(old, item, f"{what}-inserted", "all that follow it are shifted")

    def places(self, old: Struct, new: Struct, a: Alignment) -> None:
        fields, others = old.fields, new.fields

        def rule(item: Field, what: str) -> str:
            return f"{'slot' if item.function is not None else 'field'}-{what}"

        for j in a.duplicate:
            item = others[j]
            self.add(
                rule(item, "duplicate"),
                f"{old.name}.{item.name}",
                f"declared a second time at place {j}: all that follow it are shifted",
                "",
                field_text(item),
                old.loc,
                item.loc,
            )
        for (i, j), (k, m) in a.swapped:
            first, second = fields[i], fields[k]
            self.add(
                rule(first, "swapped"),
                f"{old.name}.{first.name}",
                f"has changed places with {second.name}: a call of one reaches the other",
                f"{first.name} at {i}, {second.name} at {k}",
                f"{second.name} at {m}, {first.name} at {j}",
                first.loc,
                others[j].loc,
            )
        for i, j in a.moved:
            item = fields[i]
            self.add(
                rule(item, "moved"),
                f"{old.name}.{item.name}",
                f"was at place {i}, is at place {j}: calls compiled for one reach the other",
                f"place {i}",
                f"place {j}",
                item.loc,
                others[j].loc,
            )
        for i in a.removed:
            item = fields[i]
            after = len(fields) - i - 1
            shifted = f"; the {after} after it are shifted" if after else ""
            self.add(
                rule(item, "removed"),
                f"{old.name}.{item.name}",
                f"is gone{shifted}",
                field_text(item),
                "",
                item.loc,
                new.loc,
            )
        for i, j in a.renamed:
            item, other = fields[i], others[j]
            self.add(
                rule(item, "renamed"),
                f"{old.name}.{item.name}",
                f"is called {other.name} now, at the same place and with the same type",
                item.name,
                other.name,
                item.loc,
                other.loc,
            )
        for i, j in a.replaced:
            item, other = fields[i], others[j]
            if other.type == UNREADABLE:
                continue
            self.add(
                rule(item, "replaced"),
                f"{old.name}.{item.name}",
                f"{other.name} stands in its place and is something else",
                field_text(item),
                field_text(other),
                item.loc,
                other.loc,
            )
        for j in a.inserted:
            self.added(
                old, others[j], rule(others[j], "inserted"), "all that follow it are shifted"
            )
        for j in a.appended:
            item = others[j]
            if may_grow(old):
                self.added(old, item, rule(item, "appended"), "older hosts do not have it")
            else:
                self.added(
                    old,
                    item,
                    "field-appended-unversioned",
                    "the struct grows and carries no version that would tell",
                )

    def added(self, owner: Struct, item: Field, rule: str, why: str) -> None:
        if item.type == UNREADABLE:
            return
        self.add(
            rule,
            f"{owner.name}.{item.name}",
            f"is new: {why}",
            "",
            field_text(item),
            owner.loc,
            item.loc,
        )

    def field(self, owner: Struct, old: Field, new: Field, *, since: bool = True) -> None:
        if new.type == UNREADABLE:
            return
        symbol = f"{owner.name}.{old.name}"
        if old.function is not None and new.function is not None:
            self.function(symbol, old.function, new.function, old.loc, new.loc)
        elif not self.same_type(old.type, new.type):
            self.add(
                "field-type",
                symbol,
                _type_change(old.type, new.type),
                type_text(old.type),
                type_text(new.type),
                old.loc,
                new.loc,
            )
        if since:
            self.since(symbol, old, new)

    def field_offset(self, owner: Struct, old: Field, new: Field) -> bool:
        wanted, got = (old.offset, old.offset_win64), (new.offset, new.offset_win64)
        if None in wanted or None in got or wanted == got:
            return False
        self.add(
            "field-offset",
            f"{owner.name}.{old.name}",
            "compiled code reads and writes the wrong bytes",
            f"{wanted[0]} (Windows {wanted[1]})",
            f"{got[0]} (Windows {got[1]})",
            old.loc,
            new.loc,
        )
        return True

    def layout(self, old: Struct, new: Struct) -> None:
        """Places and sizes of a struct whose declaration is as expected."""
        for item, other in zip(old.fields, new.fields, strict=False):
            if self.field_offset(old, item, other):
                return
        if len(old.fields) != len(new.fields):
            return
        wanted, got = (old.size, old.size_win64), (new.size, new.size_win64)
        if None not in wanted and None not in got and wanted != got:
            self.add(
                "size-changed",
                old.name,
                "arrays of it and structs that hold it are laid out differently",
                f"{wanted[0]} bytes (Windows {wanted[1]})",
                f"{got[0]} bytes (Windows {got[1]})",
                old.loc,
                new.loc,
            )

    def relocations(self) -> None:
        """A slot that went from one table to another is one change, whatever it lost of its name."""
        come = [
            (struct, slot)
            for struct in self.header.structs.values()
            for slot in struct.fields
            if slot.function is not None and not _has(self.spec, struct.name, slot.name)
        ]
        if not come:
            return
        relocated: dict[Finding, Finding] = {}
        for finding in [f for f in self.found if f.rule in ("slot-removed", "slot-replaced")]:
            owner, _, name = finding.symbol.partition(".")
            old = self.spec.structs[owner].field(name)
            found = [(s, f) for s, f in come if s.name != owner and _same_slot(name, f.name)]
            if old is None or old.function is None or len(found) != 1:
                continue
            struct, slot = found[0]
            assert slot.function is not None
            symbol = f"{struct.name}.{slot.name}"
            relocated[finding] = replace(
                finding,
                rule="slot-relocated",
                severity=RULES["slot-relocated"].severity,
                message=f"is {symbol} now",
                expected=finding.symbol,
                actual=symbol,
                header_loc=slot.loc,
                hint=RULES["slot-relocated"].hint,
            )
            if finding.rule == "slot-replaced":
                instead = self.header.structs[owner].fields
                occupant = next(f for f in instead if field_text(f) == finding.actual)
                why = "it stands where other slots were"
                self.added(self.spec.structs[owner], occupant, "slot-inserted", why)
            self.function(symbol, old.function, slot.function, old.loc, slot.loc)
        places = {f.actual for f in relocated.values()}
        self.found = [
            relocated.get(f, f)
            for f in self.found
            if f.rule != "slot-appended" or f.symbol not in places
        ]

    # Functions ---------------------------------------------------------------------------------

    def functions(self) -> None:
        for name, old in self.spec.functions.items():
            new = self.header.functions.get(name)
            if new is None:
                if not self.header.partial and name not in self.unread:
                    self.add(
                        "function-removed",
                        name,
                        "it is not declared any more; code that links to it breaks",
                        signature(old.function, name),
                        "",
                        old.loc,
                        Location(self.main_file()),
                    )
                continue
            self.declared_in(name, old, new)
            self.since(name, old, new)
            self.function(name, old.function, new.function, old.loc, new.loc, callback=True)
        if not self.spec.partial:
            for name, new in self.header.functions.items():
                if name not in self.spec.functions:
                    self.add(
                        "function-added",
                        name,
                        f"{self.base} does not know this exported function",
                        "",
                        signature(new.function, name),
                        NOWHERE,
                        new.loc,
                    )

    def function(
        self,
        symbol: str,
        old: Function,
        new: Function,
        spec_loc: Location,
        header_loc: Location,
        *,
        callback: bool = False,
    ) -> None:
        """Compare two signatures; ``callback`` for those whose result annotations facts leave out."""
        if old == new:
            return

        def add(
            rule: str, message: str, expected: str, actual: str, param: Param | None = None
        ) -> None:
            at = param.loc if param is not None and param.loc != NOWHERE else spec_loc
            self.add(rule, symbol, message, expected, actual, at, header_loc)

        if not self.same_type(old.returns, new.returns):
            add(
                "result-type",
                f"the result: {_type_change(old.returns, new.returns)}",
                type_text(old.returns),
                type_text(new.returns),
            )
        if old.variadic != new.variadic:
            add(
                "variadic-changed",
                "variable arguments are passed another way than fixed ones",
                signature(old),
                signature(new),
            )
        if self.compare_counts(old, new, add):
            for one, other in zip(old.params, new.params, strict=True):
                self.param(one, other, add)
        if not callback or "callback_return_sal" not in self.lacks:
            wanted, got = self.sal(old.return_sal), self.sal(new.return_sal)
            if wanted != got:
                add(
                    "return-sal-changed",
                    "what callers may expect of the result has changed",
                    " ".join(wanted) or "no annotation",
                    " ".join(got) or "no annotation",
                )
        if "must_use" not in self.lacks and old.must_use != new.must_use:
            lost = old.must_use
            add(
                "must-use-changed",
                (
                    "compilers no longer warn where the result is dropped"
                    if lost
                    else "compilers now warn where the result is dropped"
                ),
                "result must be used" if lost else "result may be dropped",
                "result may be dropped" if lost else "result must be used",
            )
        if "calling_convention" not in self.lacks and old.api_call != new.api_call:
            names = {True: "ORT_API_CALL", False: "plain C"}
            add(
                "calling-convention",
                "on 32-bit Windows the stack is cleaned up by the wrong side",
                names[old.api_call],
                names[new.api_call],
            )

    def compare_counts(self, old: Function, new: Function, add: _Add) -> bool:
        """Whether parameters can be compared one by one; if not, says why."""
        if len(old.params) != len(new.params):
            add(
                "param-count",
                f"takes {len(new.params)} parameters, not {len(old.params)}: "
                "compiled calls pass the wrong ones",
                signature(old),
                signature(new),
            )
            return False
        wanted = [(p.name, type_text(decay(p.type))) for p in old.params]
        got = [(p.name, type_text(decay(p.type))) for p in new.params]
        if wanted != got and sorted(wanted) == sorted(got) and all(n for n, _ in got):
            add(
                "param-order",
                "compiled calls pass the parameters in the wrong places",
                signature(old),
                signature(new),
            )
            return False
        return True

    def param(self, old: Param, new: Param, add: _Add) -> None:
        shown = old.name or "a parameter"
        wanted, got = decay(old.type), decay(new.type)
        if not self.same_type(wanted, got):
            add(
                "param-type",
                f"parameter '{shown}': {_type_change(wanted, got)}",
                declare(old.type, old.name),
                declare(new.type, new.name),
                old,
            )
        if old.name != new.name and new.name:
            add(
                "param-renamed",
                f"parameter '{shown}' is called '{new.name}' now",
                old.name,
                new.name,
                old,
            )
        before, after = self.sal(old.sal), self.sal(new.sal)
        if before != after:
            add(
                "sal-changed",
                f"parameter '{shown}': what callers must pass or may expect has changed",
                " ".join([*before, declare(old.type, old.name)]),
                " ".join([*after, declare(new.type, new.name)]),
                old,
            )

    def sal(self, words: Iterable[str]) -> tuple[str, ...]:
        # _Success_ tells when the other annotations hold; for a status that is always "no error".
        kept = (w for w in words if not w.startswith(_SUCCESS))
        if "sal_arguments" in self.lacks:
            return tuple(w.partition("(")[0] for w in kept)
        return tuple("".join(w.split()) for w in kept)

    # Enums -------------------------------------------------------------------------------------

    def enum(self, old: Enum, new: Enum) -> None:
        wanted = {c.name: c for c in old.constants}
        got = {c.name: c for c in new.constants}
        changed = False
        for name, constant in wanted.items():
            other = got.get(name)
            if other is None:
                continue
            if other.value != constant.value:
                changed = True
                self.add(
                    "enum-value",
                    f"{old.name}.{name}",
                    "compiled code passes and compares the wrong value",
                    str(constant.value),
                    str(other.value),
                    constant.loc,
                    other.loc,
                )
            self.since(f"{old.name}.{name}", constant, other)
        gone = [
            c for n, c in wanted.items() if n not in got and f"{old.name}.{n}" not in self.unread
        ]
        come = [c for n, c in got.items() if n not in wanted]
        for constant in gone:
            match = None if changed else renamed_constant(constant, come)
            if match is not None:
                come.remove(match)
                self.add(
                    "enumerator-renamed",
                    f"{old.name}.{constant.name}",
                    f"is called {match.name} now, with the same value {match.value}",
                    constant.name,
                    match.name,
                    constant.loc,
                    match.loc,
                )
            else:
                self.add(
                    "enumerator-removed",
                    f"{old.name}.{constant.name}",
                    f"is gone; {constant.value} has no name any more",
                    f"{constant.name} = {constant.value}",
                    "",
                    constant.loc,
                    new.loc,
                )
        for constant in come:
            self.new_constant(old, constant, got)
        if enum_measures(old) != enum_measures(new) or (
            not changed and not gone and _unsigned(old) != _unsigned(new)
        ):
            self.add(
                "enum-width",
                old.name,
                "its values are stored in another width or signedness",
                _storage(old),
                _storage(new),
                old.loc,
                new.loc,
            )

    def new_constant(self, old: Enum, constant: Constant, got: dict[str, Constant]) -> None:
        same = [c for c in old.constants if c.value == constant.value]
        kept = [c for c in same if c.name in got and got[c.name].value == c.value]
        if kept:
            rule = "enumerator-alias"
            message = f"has the value of {kept[0].name}: one switch cannot have cases for both"
        elif same:
            rule = "enumerator-conflict"
            message = f"has the value that {self.base} has for {same[0].name}"
        else:
            rule = "enumerator-added"
            message = f"{self.base} does not know this enumerator"
        self.add(
            rule,
            f"{old.name}.{constant.name}",
            message,
            "".join(f"{c.name} = {c.value}" for c in (kept or same)[:1]),
            f"{constant.name} = {constant.value}",
            (kept or same)[0].loc if kept or same else old.loc,
            constant.loc,
        )

    # Macros, version, platform -----------------------------------------------------------------

    def macros(self) -> None:
        constants = {c.name for e in self.spec.enums.values() for c in e.constants}
        for name, old in self.spec.macros.items():
            new = self.header.macros.get(name)
            if name == "ORT_API_VERSION":
                continue
            if new is None:
                if self.header.partial:
                    continue
                alias = old.value in constants
                self.add(
                    "alias-missing" if alias else "macro-removed",
                    name,
                    (
                        f"the macro is gone; code that uses the old name of {old.value} does not compile"
                        if alias
                        else "the macro is gone; code that uses it does not compile"
                    ),
                    old.value,
                    "",
                    old.loc,
                    Location(self.main_file()),
                )
            elif _bare(old.value) != _bare(new.value):
                self.add(
                    "macro-value",
                    name,
                    "compiled code has the old value in it",
                    old.value,
                    new.value,
                    old.loc,
                    new.loc,
                )
        if not self.spec.partial:
            for name, new in self.header.macros.items():
                if name not in self.spec.macros and name != "ORT_API_VERSION":
                    self.add(
                        "macro-added",
                        name,
                        f"{self.base} does not know this macro",
                        "",
                        new.value,
                        NOWHERE,
                        new.loc,
                    )

    def version(self) -> None:
        wanted, got = self.spec.api_version, self.header.api_version
        macro = self.header.macros.get("ORT_API_VERSION")
        loc = macro.loc if macro else NOWHERE
        old = self.spec.macros.get("ORT_API_VERSION")
        spec_loc = old.loc if old else NOWHERE
        if got < wanted:
            self.add(
                "version-went-back",
                "ORT_API_VERSION",
                f"a client that asks for it gets an older table than {self.base} describes",
                str(wanted),
                str(got),
                spec_loc,
                loc,
            )
        elif got > wanted:
            self.add(
                "release-new",
                "ORT_API_VERSION",
                f"the header is of release 1.{got}; it was compared with what {self.base} knows of 1.{wanted}",
                str(wanted),
                str(got),
                spec_loc,
                loc,
            )

    def platform(self) -> None:
        view = self.header.platform.get("view", "")
        for name, allowed in PLATFORM.get(view, {}).items():
            got = self.header.platform.get(name)
            if got is None or _attribute(got) in {_attribute(a) for a in allowed}:
                continue
            self.add(
                "platform-macro",
                name,
                f"in the {view} view it expands to something that the releases do not have",
                " or ".join(sorted(allowed)) or "nothing",
                got or "nothing",
                NOWHERE,
                Location(self.main_file()),
            )

    # Renamed types -----------------------------------------------------------------------------

    def type_renames(self) -> dict[str, str]:
        """Types that only have another name: old name to new."""
        if self.spec.partial or self.header.partial:
            return {}
        old, new = _types(self.spec), _types(self.header)
        gone = [n for n in old if n not in new and n not in self.unread_owners]
        come = [n for n in new if n not in old]
        found: dict[str, str] = {}
        for name in gone if come else ():
            for other in come:
                if other not in found.values() and self.same_content(old[name], new[other]):
                    found[name] = other
                    self.add(
                        "type-renamed",
                        name,
                        f"is called {other} now and is otherwise the same",
                        name,
                        other,
                        old[name].loc,
                        new[other].loc,
                    )
                    break
        return found

    def same_content(self, old: Type, new: Type) -> bool:
        if _kind(old) != _kind(new):
            return False
        names = {new.name: old.name}
        if isinstance(old, Struct) and isinstance(new, Struct):
            return len(old.fields) == len(new.fields) and all(
                a.name == b.name and self.same_type(a.type, _renamed(b.type, names))
                for a, b in zip(old.fields, new.fields, strict=True)
            )
        if isinstance(old, Enum) and isinstance(new, Enum):
            return [(c.name, c.value) for c in old.constants] == [
                (c.name, c.value) for c in new.constants
            ]
        if isinstance(old, Typedef) and isinstance(new, Typedef):
            same = self.same_type(old.type, _renamed(new.type, names))
            return same and self.same_users(old.name, new.name)
        return self.same_users(old.name, new.name, some=True)

    def same_users(self, old: str, new: str, *, some: bool = False) -> bool:
        """Whether the same signatures and fields mention two types; ``some``: at least one does."""
        if self.users is None:
            self.users = _users(self.spec), _users(self.header)
        before, after = (users.get(n) for users, n in zip(self.users, (old, new), strict=True))
        return before == after and (before is not None or not some)


def _spelled_out(ctype: CType, abi: Abi) -> CType:
    """A type with its typedefs followed: whether a header names one is no matter of the ABI."""
    match ctype:
        case Named(name, const) if name in abi.typedefs:
            to = _spelled_out(abi.typedefs[name].type, abi)
            return replace(to, const=True) if const and isinstance(to, (Named, Pointer)) else to
        case Pointer(to, const):
            return Pointer(_spelled_out(to, abi), const)
        case Array(of, length):
            return Array(_spelled_out(of, abi), length)
        case FunctionType(returns, params, variadic):
            parts = tuple(_spelled_out(p, abi) for p in params)
            return FunctionType(_spelled_out(returns, abi), parts, variadic)
    return ctype


def _has(abi: Abi, struct: str, field: str) -> bool:
    return struct in abi.structs and abi.structs[struct].field(field) is not None


def _same_slot(old: str, new: str) -> bool:
    """Whether a slot has the same name in another table, where it needs no prefix."""
    return old == new or old.endswith(f"_{new}")


def _article(kind: str) -> str:
    return f"{'an' if kind[0] in 'aeo' else 'a'} {kind}" if kind[0] != "u" else f"a {kind}"


def may_grow(struct: Struct) -> bool:
    """Whether fields may come at the end: function tables, and structs that carry a version."""
    if struct.fields and struct.fields[0].name in VERSION_FIELDS:
        return True
    return bool(struct.fields) and all(f.function is not None for f in struct.fields)


def _moves_fields(rule: str) -> bool:
    """Whether a finding explains that the fields of its struct have other offsets."""
    kind, _, what = rule.partition("-")
    return kind in ("slot", "field") and what not in ("renamed", "appended")


def _unsigned(enum: Enum) -> bool:
    """Whether GCC takes the enum for ``unsigned int``: where no value is negative."""
    return all(c.value >= 0 for c in enum.constants)


def _attribute(text: str) -> str:
    """A platform macro's text in the one of its spellings without underscores and blanks."""
    return re.sub(r"\b__(\w+?)__\b", r"\1", "".join(text.split()))


def _storage(enum: Enum) -> str:
    size = enum_measures(enum)[0][0]
    return f"{size} bytes{', unsigned' if _unsigned(enum) else ''}"


def renamed_constant(old: Constant, candidates: list[Constant]) -> Constant | None:
    """The new name of an enumerator: one of the same value and much the same name."""
    alike = [
        (SequenceMatcher(None, old.name, c.name).ratio(), c)
        for c in candidates
        if c.value == old.value
    ]
    best = max(alike, key=lambda pair: pair[0], default=(0.0, None))
    return best[1] if best[0] >= _SIMILAR else None


def _bare(value: str) -> str:
    text = "".join(value.split())
    while text.startswith("(") and text.endswith(")"):
        text = text[1:-1]
    return text


def _users(abi: Abi) -> dict[str, frozenset[str]]:
    """For each type name, the signatures and fields that mention it."""
    found: dict[str, set[str]] = {}
    for symbol, function in abi.signatures():
        for name in names_in(function.type):
            found.setdefault(name, set()).add(symbol)
    for struct in abi.structs.values():
        for item in struct.fields:
            for name in names_in(item.type):
                found.setdefault(name, set()).add(f"{struct.name}.{item.name}")
    return {name: frozenset(symbols) for name, symbols in found.items()}


def _with_names(abi: Abi, names: dict[str, str]) -> Abi:
    """A copy in which types have other names."""

    def function(item: Function | None) -> Function | None:
        if item is None:
            return None
        return replace(
            item,
            returns=_renamed(item.returns, names),
            params=tuple(replace(p, type=_renamed(p.type, names)) for p in item.params),
        )

    def struct(item: Struct) -> Struct:
        return replace(
            item,
            name=names.get(item.name, item.name),
            fields=tuple(
                replace(f, type=_renamed(f.type, names), function=function(f.function))
                for f in item.fields
            ),
        )

    return replace(
        abi,
        enums={names.get(n, n): replace(e, name=names.get(n, n)) for n, e in abi.enums.items()},
        structs={names.get(n, n): struct(s) for n, s in abi.structs.items()},
        opaque={names.get(n, n): replace(o, name=names.get(n, n)) for n, o in abi.opaque.items()},
        typedefs={
            names.get(n, n): replace(
                t,
                name=names.get(n, n),
                type=_renamed(t.type, names),
                function=function(t.function),
            )
            for n, t in abi.typedefs.items()
        },
        functions={
            n: replace(x, function=function(x.function) or x.function)
            for n, x in abi.functions.items()
        },
    )
