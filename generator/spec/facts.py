"""Recorded facts: one compact JSON file a release, the oracle that the spec is checked against.

A file holds C declarations rather than trees: ``"OrtStatusPtr (*Run)(_In_ OrtSession* session)"``
says in one line what a reviewer can read and a diff can show.  Offsets are kept as recorded, apart
from the declarations, so that they stay a check on the layout engine.  Schema 1::

    {"schema": 1, "release": "1.29.0", "api_version": 29, "lacks": [...],
     "headers": ["onnxruntime_c_api.h", ...],          what "header" numbers refer to
     "return_sal": [["_Check_return_", ...], ...],     what "~0" in a declaration stands for
     "platform": {macro: text}, "since": {type, function or Enum.CONSTANT: minor},
     "macros": {name: text}, "opaque": {name: header}, "enums": {name: {"header", "constants"}},
     "typedefs": {name: {"header", "type"}}, "functions": {name: {"header", "type"}},
     "structs": {name: {"kind"?, "header", "size", "size_win64"?, "offsets", "offsets_win64"?,
                        "fields": [declaration], "since"?: {field: minor}}}}

A declaration starts with ``!`` where the result must be used and with ``@`` where the function is
declared without ORT_API_CALL.  A number that is the same on 64-bit Windows is written once.
A file with ``"partial": true`` is a delta: it names only what is known of a release.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from .abi import (
    ASPECTS,
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
from .ctype import (
    CTypeError,
    Declaration,
    FunctionType,
    Pointer,
    declare,
    is_sal,
    parse_declaration,
)

SCHEMA = 1


class FactsError(ValueError):
    """A facts file that cannot be used; the message starts with the file's name."""


def _function(found: Declaration, sal: tuple[str, ...], flags: str) -> Function | None:
    ctype = found.type.to if isinstance(found.type, Pointer) else found.type
    if not isinstance(ctype, FunctionType) or found.params is None:
        return None
    return Function(
        returns=ctype.returns,
        params=tuple(Param(p.name, p.type, p.sal) for p in found.params),
        return_sal=sal,
        must_use="!" in flags,
        api_call="@" not in flags,
        variadic=ctype.variadic,
    )


class _Reader:
    def __init__(self, data: dict[str, Any], path: Path) -> None:
        self.data = data
        self.path = path
        self.headers: list[str] = data.get("headers", [])
        self.sal: list[tuple[str, ...]] = [tuple(words) for words in data.get("return_sal", [])]
        self.since: dict[str, int] = data.get("since", {})
        self.loc = Location(path.name)

    def declaration(self, text: str, where: str) -> tuple[Declaration, Function | None]:
        body = text.lstrip("!@")
        flags = text[: len(text) - len(body)]
        sal: tuple[str, ...] | None = None
        if body.startswith("~"):
            number, _, body = body[1:].partition(" ")
            sal = self.sal[int(number)]
        try:
            found = parse_declaration(body)
        except CTypeError as error:
            raise FactsError(f"{self.path}: {where}: {error} in '{body}'") from None
        return found, _function(found, found.sal if sal is None else sal, flags)

    def header(self, entry: dict[str, Any]) -> str:
        return self.headers[entry["header"]] if "header" in entry else ""

    def documented(self, name: str) -> tuple[int | None, Doc | None]:
        minor = self.since.get(name)
        return minor, None if minor is None else Doc(since=minor)

    def struct(self, name: str, entry: dict[str, Any]) -> Struct:
        offsets = entry["offsets"]
        windows = entry.get("offsets_win64", offsets)
        since = entry.get("since", {})
        if not len(offsets) == len(windows) == len(entry["fields"]):
            raise FactsError(f"{self.path}: struct {name}: as many offsets as fields are needed")
        fields = []
        for text, offset, offset_win64 in zip(entry["fields"], offsets, windows, strict=True):
            found, function = self.declaration(text, f"struct {name}")
            minor = since.get(found.name)
            fields.append(
                Field(
                    found.name,
                    found.type,
                    function if isinstance(found.type, Pointer) else None,
                    minor,
                    offset,
                    offset_win64,
                    None if minor is None else Doc(since=minor),
                    self.loc,
                )
            )
        size = entry.get("size")
        return Struct(
            name,
            tuple(fields),
            entry.get("kind", "struct"),
            self.header(entry),
            size,
            entry.get("size_win64", size),
            *self.documented(name),
            self.loc,
        )

    def abi(self) -> Abi:
        data, loc = self.data, self.loc
        abi = Abi(
            data["api_version"],
            data["release"],
            partial=data.get("partial", False),
            lacks=frozenset(data.get("lacks", ())),
            platform=data.get("platform", {}),
        )
        for name, text in data.get("macros", {}).items():
            abi.macros[name] = Macro(name, text, loc)
        for name, header in data.get("opaque", {}).items():
            found = "" if header is None else self.headers[header]
            abi.opaque[name] = Opaque(name, found, loc=loc)
        for name, entry in data.get("enums", {}).items():
            constants = tuple(
                Constant(n, v, *self.documented(f"{name}.{n}"), loc)
                for n, v in entry["constants"].items()
            )
            abi.enums[name] = Enum(name, constants, self.header(entry), *self.documented(name), loc)
        for name, entry in data.get("typedefs", {}).items():
            declared, function = self.declaration(entry["type"], f"typedef {name}")
            function = function if isinstance(declared.type, Pointer) else None
            abi.typedefs[name] = Typedef(
                name, declared.type, function, self.header(entry), *self.documented(name), loc
            )
        for name, entry in data.get("functions", {}).items():
            function = self.declaration(entry["type"], f"function {name}")[1]
            if function is None:
                raise FactsError(f"{self.path}: function {name}: '{entry['type']}' is no function")
            abi.functions[name] = Export(
                name, function, self.header(entry), *self.documented(name), loc
            )
        for name, entry in data.get("structs", {}).items():
            abi.structs[name] = self.struct(name, entry)
        return abi


def load_facts(path: Path | str) -> Abi:
    """Read one facts file; raise :class:`FactsError` if it is missing, damaged or of another schema."""
    path = Path(path)
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise FactsError(f"{path}: cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise FactsError(f"{path}: not JSON: {error}") from None
    if not isinstance(data, dict) or data.get("schema") != SCHEMA:
        raise FactsError(f"{path}: not a facts file of schema {SCHEMA}; record it again")
    unknown = sorted(set(data.get("lacks", ())) - set(ASPECTS))
    if unknown:
        raise FactsError(f"{path}: unknown aspects in 'lacks': {', '.join(unknown)}")
    try:
        return _Reader(data, path).abi()
    except (KeyError, IndexError, TypeError, AttributeError) as error:
        raise FactsError(
            f"{path}: damaged: {type(error).__name__} {error}; record it again"
        ) from None


def load_all(folder: Path | str) -> dict[int, Abi]:
    """Every facts file of a folder by API version, in rising order."""
    found = [load_facts(path) for path in sorted(Path(folder).glob("ort-*.json"))]
    return {abi.api_version: abi for abi in sorted(found, key=lambda a: a.api_version)}


def merge(base: Abi, delta: Abi) -> Abi:
    """What is known of a release of which only a delta is recorded: ``base`` with it applied.

    Enums and macros of the delta take the place of the base's; fields of its structs are appended.
    The result stays ``partial``.
    """
    structs = dict(base.structs)
    for name, struct in delta.structs.items():
        old = structs.get(name)
        if old is None:
            structs[name] = struct
            continue
        new = tuple(f for f in struct.fields if old.field(f.name) is None)
        structs[name] = replace(old, fields=old.fields + new, size=None, size_win64=None)
    return Abi(
        delta.api_version,
        delta.release,
        base.enums | delta.enums,
        structs,
        base.opaque | delta.opaque,
        base.typedefs | delta.typedefs,
        base.functions | delta.functions,
        base.macros | delta.macros,
        partial=True,
        lacks=base.lacks | delta.lacks,
    )


def _documented(abi: Abi) -> dict[str, int]:
    """The releases that documentation names for all but fields, which keep theirs beside them."""
    found: dict[str, int] = {}
    for group in (abi.enums, abi.typedefs, abi.functions, abi.structs):
        for name, element in group.items():
            if element.since is not None:
                found[name] = element.since
    for enum in abi.enums.values():
        for constant in enum.constants:
            if constant.since is not None:
                found[f"{enum.name}.{constant.name}"] = constant.since
    return found


class _Writer:
    def __init__(self, abi: Abi) -> None:
        self.abi = abi
        self.headers: list[str] = []
        self.sal: list[tuple[str, ...]] = []

    def header(self, name: str) -> int:
        if name not in self.headers:
            self.headers.append(name)
        return self.headers.index(name)

    def annotations(self, words: Iterable[str]) -> str:
        return "".join(f"{word} " for word in words)

    def declaration(self, name: str, function: Function, pointer: bool) -> str:
        flags = ("!" if function.must_use else "") + ("" if function.api_call else "@")
        prefix = ""
        if function.return_sal:
            if (
                not all(is_sal(word) for word in function.return_sal)
                or len(function.return_sal) > 1
            ):
                if function.return_sal not in self.sal:
                    self.sal.append(function.return_sal)
                prefix = f"~{self.sal.index(function.return_sal)} "
            else:
                prefix = self.annotations(function.return_sal)
        parts = [self.annotations(p.sal) + declare(p.type, p.name) for p in function.params]
        parts += ["..."] if function.variadic else []
        declarator = f"(*{name})" if pointer else name
        signature = f"{declarator}({', '.join(parts) or 'void'})"
        return f"{flags}{prefix}{declare(function.returns, signature)}"

    def struct(self, struct: Struct) -> dict[str, Any]:
        entry: dict[str, Any] = {"header": self.header(struct.header)}
        if struct.kind != "struct":
            entry["kind"] = struct.kind
        if struct.size is not None:
            entry["size"] = struct.size
            if struct.size_win64 != struct.size:
                entry["size_win64"] = struct.size_win64
        entry["offsets"] = [f.offset for f in struct.fields]
        windows = [f.offset_win64 for f in struct.fields]
        if windows != entry["offsets"]:
            entry["offsets_win64"] = windows
        entry["fields"] = [
            (
                self.declaration(f.name, f.function, pointer=True)
                if f.function is not None
                else declare(f.type, f.name)
            )
            for f in struct.fields
        ]
        documented = {f.name: f.since for f in struct.fields if f.since is not None}
        if documented:
            entry["since"] = documented
        return entry

    def data(self) -> dict[str, Any]:
        abi = self.abi
        body: dict[str, Any] = {
            "macros": {m.name: m.value for m in abi.macros.values()},
            "opaque": {
                o.name: self.header(o.header) if o.header else None
                for o in sorted(abi.opaque.values(), key=lambda o: o.name)
            },
            "enums": {
                e.name: {
                    "header": self.header(e.header),
                    "constants": {c.name: c.value for c in e.constants},
                }
                for e in abi.enums.values()
            },
            "typedefs": {
                t.name: {
                    "header": self.header(t.header),
                    "type": (
                        declare(t.type)
                        if t.function is None
                        else self.declaration("", t.function, pointer=True)
                    ),
                }
                for t in abi.typedefs.values()
            },
            "functions": {
                f.name: {
                    "header": self.header(f.header),
                    "type": self.declaration(f.name, f.function, pointer=False),
                }
                for f in abi.functions.values()
            },
            "structs": {s.name: self.struct(s) for s in abi.structs.values()},
        }
        head: dict[str, Any] = {
            "schema": SCHEMA,
            "release": abi.release,
            "api_version": abi.api_version,
        }
        if abi.partial:
            head["partial"] = True
        if abi.lacks:
            head["lacks"] = sorted(abi.lacks)
        head["headers"] = self.headers
        if self.sal:
            head["return_sal"] = [list(words) for words in self.sal]
        if abi.platform:
            head["platform"] = abi.platform
        if since := _documented(abi):
            head["since"] = since
        return head | {key: value for key, value in body.items() if value}


def _text(value: Any, indent: str = "") -> str:
    """JSON with one line for each declaration and for each thing that is all numbers."""
    flat = json.dumps(value, ensure_ascii=False)
    inner = indent + " "
    match value:
        case dict() if value and (len(indent) < 2 or len(flat) > 96):
            rows = [f"{inner}{json.dumps(k)}: {_text(v, inner)}" for k, v in value.items()]
            return "{\n" + ",\n".join(rows) + f"\n{indent}}}"
        case list() if any(isinstance(v, str) for v in value) and len(flat) > 96:
            rows = [inner + json.dumps(v, ensure_ascii=False) for v in value]
            return "[\n" + ",\n".join(rows) + f"\n{indent}]"
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")) if indent else flat


def dump_facts(abi: Abi) -> str:
    """The text of the facts file that :func:`load_facts` reads back to an equal value."""
    return _text(_Writer(abi).data()) + "\n"
