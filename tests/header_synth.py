"""Write an Abi as headers in ONNX Runtime's own idioms, and list it element by element."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ort_interop_gen.spec.abi import Abi, Doc, Field, Function
from ort_interop_gen.spec.ctype import (
    Array,
    CType,
    FunctionType,
    Named,
    Pointer,
    Record,
    declare,
    type_text,
)

MAIN = "onnxruntime_c_api.h"
STATUS = ("_Check_return_", "_Ret_maybenull_")
COMMON = Path(__file__).parent / "data" / "headers" / "common.h"


def _guarded(name: str, body: str) -> str:
    return f"#pragma once\n// {name}\n{body}"


def _doc(doc: Doc | None) -> str:
    if doc is None or doc.since is None:
        return ""
    return f"  /** \\brief Text.\n   *\n   * \\since Version 1.{doc.since}.\n   */\n"


def _words(sal: tuple[str, ...]) -> str:
    # A record has _In_reads_ without its argument, which the headers' macros need.
    takes = ("_In_reads_", "_Inout_updates_", "_Out_writes_", "_Outptr_result_buffer_")
    return "".join(
        f"{w}(n) " if w.startswith(takes) and "(" not in w and w != "_In_reads_opt_" else f"{w} "
        for w in sal
    )


def _params(function: Function) -> str:
    parts = [_words(p.sal) + declare(p.type, p.name) for p in function.params]
    parts += ["..."] if function.variadic else []
    return ", ".join(parts)


def slot(field: Field) -> str:
    """A field as ORT's headers write it: status slots through the macro."""
    function = field.function
    if function is None:
        return f"{declare(field.type, field.name)};"
    params = _params(function)
    if type_text(function.returns) == "OrtStatusPtr" and function.return_sal == STATUS:
        return f"ORT_API2_STATUS({field.name}{', ' if params else ''}{params});"
    call = "ORT_API_CALL" if function.api_call else ""
    lead = _words(function.return_sal)
    trail = " ORT_MUST_USE_RESULT" if function.must_use else ""
    signature = declare(function.returns, f"({call}* {field.name})({params or 'void'})")
    return f"{lead}{signature} NO_EXCEPTION{trail};"


def synthesise(abi: Abi, folder: Path) -> Path:
    """Write the headers of ``abi`` and return the main one's path."""
    bodies: dict[str, list[str]] = {MAIN: []}

    def put(header: str, text: str) -> None:
        bodies.setdefault(header or MAIN, []).append(text)

    for name in [*abi.opaque, *abi.structs]:
        if name == "OrtStatus":
            continue
        if name.startswith("Ort"):
            bodies[MAIN].append(f"ORT_RUNTIME_CLASS({name[3:]});")
        else:
            bodies[MAIN].append(f"struct {name};\ntypedef struct {name} {name};")
    for enum in abi.enums.values():
        rows = "".join(f"  {c.name} = {c.value},\n" for c in enum.constants)
        put(enum.header, f"typedef enum {enum.name} {{\n{rows}}} {enum.name};")
    for typedef in abi.typedefs.values():
        if typedef.name == "OrtStatusPtr":
            continue
        if typedef.function is None:
            put(typedef.header, f"typedef {declare(typedef.type, typedef.name)};")
        else:
            put(
                typedef.header,
                f"typedef {slot(Field(typedef.name, typedef.type, typedef.function))}",
            )
    for struct in abi.structs.values():
        rows = "".join(f"{_doc(f.doc)}  {slot(f)}\n" for f in struct.fields)
        put(struct.header, f"{struct.kind} {struct.name} {{\n{rows}}};")
    for export in abi.functions.values():
        function = export.function
        lead = _words(function.return_sal)
        trail = " ORT_MUST_USE_RESULT" if function.must_use else ""
        body = declare(
            function.returns,
            f"{'ORT_API_CALL ' if function.api_call else ''}{export.name}({_params(function) or 'void'})",
        )
        put(export.header, f"ORT_EXPORT {lead}{body} NO_EXCEPTION{trail};")
    for macro in abi.macros.values():
        if macro.name != "ORT_API_VERSION":
            bodies[MAIN].append(f"#define {macro.name} {macro.value}")

    common = COMMON.read_text().replace(
        "#define ORT_API_VERSION 24", f"#define ORT_API_VERSION {abi.api_version}"
    )
    common = common.replace("#pragma once\n", "").replace("ORT_RUNTIME_CLASS(Value);\n", "")
    words = {w.partition("(")[0] for w in _sal(abi)}
    defines = "".join(
        f"#ifndef _MSC_VER\n#define {w}{'(X)' if _words((w,)).endswith(') ') else ''}\n#endif\n"
        for w in sorted(words)
        if f"#define {w}\n" not in common and f"#define {w}(" not in common
    )
    first = [h for h in bodies if h != MAIN and h.endswith("error_code.h")]
    last = [h for h in bodies if h != MAIN and h not in first]
    includes = "".join(f'#include "{h}"\n' for h in first)
    main = f"{includes}{common}{defines}" + "\n".join(bodies[MAIN])
    main += "\n" + "".join(f'#include "{h}"\n' for h in last)
    folder.mkdir(parents=True, exist_ok=True)
    for name in first + last:
        (folder / name).write_text(_guarded(name, "\n".join(bodies[name]) + "\n"))
    (folder / MAIN).write_text(_guarded(MAIN, main))
    return folder / MAIN


def _sal(abi: Abi) -> Iterator[str]:
    for _, function in abi.signatures():
        yield from function.return_sal
        for param in function.params:
            yield from param.sal


def _char(ctype: CType) -> CType:
    match ctype:
        case Named("ORTCHAR_T", const):
            return Named("char", const)
        case Pointer(to, const):
            return Pointer(_char(to), const)
        case Array(of, length):
            return Array(_char(of), length)
        case FunctionType(returns, params, variadic):
            return FunctionType(_char(returns), tuple(map(_char, params)), variadic)
        case Record(kind, members):
            return Record(kind, tuple((n, _char(t)) for n, t in members))
    return ctype


def _signature(function: Function | None, with_result: bool) -> Any:
    if function is None:
        return None
    return (
        type_text(_char(function.returns)),
        [
            (p.name, type_text(_char(p.type)), [w.partition("(")[0] for w in p.sal])
            for p in function.params
        ],
        list(function.return_sal) if with_result else [],
        function.variadic,
    )


def elements(abi: Abi) -> dict[tuple[str, ...], Any]:
    """Every fact that the recorded files have, by name, in a form that compares.

    ``since`` is apart: the records leave some of them out.
    """
    found: dict[tuple[str, ...], Any] = {}
    for name, macro in abi.macros.items():
        found["macro", name] = macro.value
    for name in abi.opaque:
        found["opaque", name] = True
    for name, enum in abi.enums.items():
        found["enum", name] = (enum.header, [c.name for c in enum.constants])
        for constant in enum.constants:
            found["constant", name, constant.name] = constant.value
    for name, typedef in abi.typedefs.items():
        found["typedef", name] = (
            typedef.header,
            type_text(_char(typedef.type)),
            _signature(typedef.function, False),
        )
    for name, export in abi.functions.items():
        found["function", name] = (export.header, _signature(export.function, False))
    for name, struct in abi.structs.items():
        found["struct", name] = (struct.header, struct.kind, struct.size, struct.size_win64)
        found["order", name] = [f.name for f in struct.fields]
        for field in struct.fields:
            found["field", name, field.name] = (
                type_text(_char(field.type)),
                _signature(field.function, True),
                field.offset,
                field.offset_win64,
            )
    return found


def documented(abi: Abi) -> dict[tuple[str, str], int]:
    """The ``since`` of every field that has one."""
    return {
        (s.name, f.name): f.since
        for s in abi.structs.values()
        for f in s.fields
        if f.since is not None
    }


def differences(one: Abi, other: Abi) -> list[tuple[Any, Any, Any]]:
    a, b = elements(one), elements(other)
    return [(k, a.get(k), b.get(k)) for k in a.keys() | b.keys() if a.get(k) != b.get(k)]
