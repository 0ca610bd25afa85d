"""One edit of a header gives one finding, under the right rule, and neutral edits give none."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from ort_interop_gen.drift.compare import compare
from ort_interop_gen.drift.finding import Finding, Severity
from ort_interop_gen.drift.rules import RULES
from ort_interop_gen.header.reader import read_header
from ort_interop_gen.spec import load_spec
from ort_interop_gen.spec.abi import Abi, Doc, Enum
from ort_interop_gen.spec.facts import load_facts

ROOT = Path(__file__).resolve().parent.parent
HEADERS = Path(__file__).parent / "data" / "headers"
BASE = (HEADERS / "base.h").read_text()
COMMON = (HEADERS / "common.h").read_text()


def read(
    folder: Path, text: str, common: str = COMMON, view: str = "linux"
) -> tuple[Abi, list[object]]:
    (folder / "common.h").write_text(common)
    (folder / "base.h").write_text(text)
    result = read_header(folder / "base.h", view=view)
    return result.abi, list(result.unreadable)


@pytest.fixture(scope="module")
def base() -> Abi:
    return read_header(HEADERS / "base.h").abi


def after(folder: Path, base: Abi, *edits: tuple[str, str]) -> list[Finding]:
    """The findings after edits, each of which must have something to change."""
    text, common = BASE, COMMON
    for old, new in edits:
        assert (old in text) != (old in common), f"{old!r} is not in exactly one of the fixtures"
        text, common = text.replace(old, new, 1), common.replace(old, new, 1)
    abi, unreadable = read(folder, text, common)
    return compare(base, abi, unreadable)  # type: ignore[arg-type]


IMPORT = "  ORT_API2_STATUS(Import, _In_ const FxDescriptor* desc, _Outptr_ OrtFxHandle** out);\n"
EXPORT = IMPORT.replace("Import", "Export")
CAN = "  ORT_API_T(bool, CanImport, FxKind kind, size_t size);\n"
NAME = "  ORT_API_T(const char*, Name, _In_ const OrtFxHandle* handle);\n"
RELEASE = "  ORT_CLASS_RELEASE(FxHandle);\n"

EDITS: dict[str, tuple[str, str, str, str]] = {
    # name: rule, symbol, text, text after
    "slot removed": ("slot-removed", "FxTable.CanImport", CAN, ""),
    "last slot removed": ("slot-removed", "FxTable.Name", NAME, ""),
    "slot inserted": ("slot-inserted", "FxTable.New", CAN, f"  ORT_API2_STATUS(New);\n{CAN}"),
    "slot appended": ("slot-appended", "FxTable.New", NAME, f"{NAME}  ORT_API2_STATUS(New);\n"),
    "slot moved": ("slot-moved", "FxTable.Import", f"{IMPORT}{EXPORT}{CAN}{RELEASE}", f"{EXPORT}{CAN}{RELEASE}{IMPORT}"),
    "equal slots swapped": ("slot-swapped", "FxTable.Import", IMPORT + EXPORT, EXPORT + IMPORT),
    "far slots swapped": ("slot-swapped", "FxTable.Export", f"{EXPORT}{CAN}{RELEASE}", f"{RELEASE}{CAN}{EXPORT}"),
    "slot twice": ("slot-duplicate", "FxTable.CanImport", RELEASE, RELEASE + CAN),
    "slot renamed": ("slot-renamed", "FxTable.CanImport", "CanImport", "MayImport"),
    "slot replaced": ("slot-replaced", "FxTable.CanImport", CAN, "  ORT_API_T(void, Other, int a);\n"),
    "result retyped": ("result-type", "FxTable.CanImport", "(bool, CanImport", "(int, CanImport"),
    "result lost const": ("result-type", "FxTable.Name", "(const char*, Name", "(char*, Name"),
    "parameter added": ("param-count", "FxTable.CanImport", "FxKind kind, size_t size", "FxKind kind, size_t size, int flags"),
    "parameter removed": ("param-count", "FxTable.CanImport", "FxKind kind, size_t size", "FxKind kind"),
    "parameters reordered": ("param-order", "FxTable.CanImport", "FxKind kind, size_t size", "size_t size, FxKind kind"),
    "parameter widened": ("param-type", "FxTable.CanImport", "FxKind kind, size_t size", "FxKind kind, uint32_t size"),
    "parameter signed": ("param-type", "FxTable.Attach", "const int64_t* ids", "const uint64_t* ids"),
    "parameter lost const": ("param-type", "FxTable.Name", "const OrtFxHandle* handle", "OrtFxHandle* handle"),
    "pointer depth": ("param-type", "FxTable.Attach", "OrtFxSession* session", "OrtFxSession** session"),
    "parameter renamed": ("param-renamed", "FxTable.CanImport", "kind, size_t size", "kind, size_t bytes"),
    "variadic": ("variadic-changed", "FxTable.CanImport", "size_t size)", "size_t size, ...)"),
    "nullability": ("sal-changed", "FxTable.Attach", "_In_opt_ OrtFxSession", "_In_ OrtFxSession"),
    "direction": ("sal-changed", "FxTable.Import", "Import, _In_ const", "Import, _Inout_ const"),
    "buffer size": ("sal-changed", "FxTable.Attach", "_In_reads_(count)", "_In_reads_(count + 1)"),
    "annotation gone": ("sal-changed", "FxTable.Name", "Name, _In_ const", "Name, const"),
    "result annotation": ("return-sal-changed", "FxTable.Name", "  ORT_API_T(const char*, Name", "  ORT_API_T(_Ret_maybenull_ const char*, Name"),
    "must use lost": ("must-use-changed", "FxTable.Attach", "  ORT_API2_STATUS(Attach, _In_opt_ OrtFxSession* session, _In_reads_(count) const int64_t* ids, size_t count);", "  _Check_return_ _Ret_maybenull_ OrtStatusPtr(ORT_API_CALL* Attach)(_In_opt_ OrtFxSession* session, _In_reads_(count) const int64_t* ids, size_t count);"),
    "convention lost": ("calling-convention", "FxTable.CanImport", CAN, "  bool (*CanImport)(FxKind kind, size_t size);\n"),
    "callback convention": ("calling-convention", "FxCallback", "typedef void(ORT_API_CALL* FxCallback)", "typedef void(* FxCallback)"),
    "callback signature": ("param-type", "FxCallback", "void* state, size_t count);\ntypedef", "void* state, int count);\ntypedef"),
    "since moved": ("since-changed", "FxTable.Import", "since Version 1.24.", "since Version 1.25."),
    "field removed": ("field-removed", "FxDescriptor.native_handle", "  void* native_handle;\n", ""),
    "field inserted": ("field-inserted", "FxDescriptor.extra", "  void* native_handle;\n", "  int extra;\n  void* native_handle;\n"),
    "field appended": ("field-appended", "FxDescriptor.extra", "  size_t size_bytes;\n", "  size_t size_bytes;\n  int extra;\n"),
    "field moved": ("field-moved", "FxDescriptor.kind", "  FxKind kind;\n  void* native_handle;\n  size_t size_bytes;\n", "  void* native_handle;\n  size_t size_bytes;\n  FxKind kind;\n"),
    "fields swapped": ("field-swapped", "FxPlain.width", "  int32_t width;\n  int32_t height;\n", "  int32_t height;\n  int32_t width;\n"),
    "field twice": ("field-duplicate", "FxDescriptor.kind", "  void* native_handle;\n", "  void* native_handle;\n  FxKind kind;\n"),
    "field renamed": ("field-renamed", "FxDescriptor.native_handle", "native_handle", "handle"),
    "field replaced": ("field-replaced", "FxDescriptor.native_handle", "void* native_handle", "int number"),
    "field retyped": ("field-type", "FxDescriptor.size_bytes", "size_t size_bytes", "uint32_t size_bytes"),
    "field signed": ("field-type", "FxPlain.width", "int32_t width", "uint32_t width"),
    "enumerator value": ("enum-value", "FxKind.FX_KIND_SEMAPHORE", "FX_KIND_SEMAPHORE = 2", "FX_KIND_SEMAPHORE = 3"),
    "enumerator removed": ("enumerator-removed", "FxKind.FX_KIND_SEMAPHORE", "  FX_KIND_SEMAPHORE = 2,\n", ""),
    "enumerator renamed": ("enumerator-renamed", "FxKind.FX_KIND_SEMAPHORE", "FX_KIND_SEMAPHORE", "FX_KIND_TIMELINE_SEMAPHORE"),
    "enumerator added": ("enumerator-added", "FxKind.FX_KIND_NEW", "  FX_KIND_SEMAPHORE = 2,\n", "  FX_KIND_SEMAPHORE = 2,\n  FX_KIND_NEW,\n"),
    "enumerator alias": ("enumerator-alias", "FxKind.FX_KIND_TOO", "  FX_KIND_SEMAPHORE = 2,\n", "  FX_KIND_SEMAPHORE = 2,\n  FX_KIND_TOO = 1,\n"),
    "typedef retyped": ("typedef-changed", "FxFlags", "typedef uint32_t FxFlags", "typedef uint64_t FxFlags"),
    "typedef removed": ("type-removed", "FxFlags", "typedef uint32_t FxFlags;\n", ""),
    "type added": ("type-added", "FxNew", "typedef uint32_t FxFlags;\n", "typedef uint32_t FxFlags;\nstruct FxNew { int a; };\n"),
    "struct renamed": ("type-renamed", "FxHolder", "struct FxHolder", "struct FxCarrier"),
    "typedef renamed": ("type-renamed", "FxFlags", "FxFlags", "FxBits"),
    "kind": ("kind-changed", "FxFlags", "typedef uint32_t FxFlags;", "typedef enum FxFlags { FX_F } FxFlags;"),
    "function removed": ("function-removed", "FxGetTable", "ORT_EXPORT const FxTable* ORT_API_CALL FxGetTable(uint32_t version) NO_EXCEPTION;\n", ""),
    "function added": ("function-added", "FxNew", "ORT_EXPORT const FxTable*", "ORT_EXPORT void ORT_API_CALL FxNew(void);\nORT_EXPORT const FxTable*"),
    "function changed": ("param-type", "FxGetTable", "FxGetTable(uint32_t version)", "FxGetTable(uint64_t version)"),
    "macro value": ("macro-value", "FX_LIMIT", "#define FX_LIMIT 16", "#define FX_LIMIT 17"),
    "macro removed": ("macro-removed", "FX_LIMIT", "#define FX_LIMIT 16\n", ""),
    "alias removed": ("alias-missing", "FX_KIND_OLD", "#define FX_KIND_OLD FX_KIND_MEMORY\n", ""),
    "alias retargeted": ("macro-value", "FX_KIND_OLD", "FX_KIND_OLD FX_KIND_MEMORY", "FX_KIND_OLD FX_KIND_SEMAPHORE"),
    "macro added": ("macro-added", "FX_NEW", "#define FX_LIMIT 16\n", "#define FX_LIMIT 16\n#define FX_NEW 1\n"),
    "version back": ("version-went-back", "ORT_API_VERSION", "ORT_API_VERSION 24", "ORT_API_VERSION 23"),
    "version on": ("release-new", "ORT_API_VERSION", "ORT_API_VERSION 24", "ORT_API_VERSION 25"),
    "path character": ("platform-macro", "ORTCHAR_T", "#define ORTCHAR_T char", "#define ORTCHAR_T int"),
    "must use": ("must-use-changed", "ORT_MUST_USE_RESULT", "#define ORT_MUST_USE_RESULT __attribute__((warn_unused_result))", "#define ORT_MUST_USE_RESULT"),
    "opaque completed": ("opaque-completed", "OrtFxSession", "ORT_RUNTIME_CLASS(FxSession);", "ORT_RUNTIME_CLASS(FxSession);\nstruct OrtFxSession { int a; };"),
    "unreadable slot": ("unreadable", "FxTable.CanImport", "FxKind kind, size_t size", "FxKind kind, FxNowhere size"),
    "volatile behind a pointer": ("unreadable", "FxTable.Attach", "const int64_t* ids", "const volatile int64_t* ids"),
    "volatile as compilers spell it": ("unreadable", "FxTable.Attach", "const int64_t* ids", "const __volatile__ int64_t* ids"),
    "const as compilers spell it": ("param-type", "FxTable.Attach", "OrtFxSession* session", "__const OrtFxSession* session"),
    "volatile pointer": ("unreadable", "FxTable.Attach", "OrtFxSession* session", "OrtFxSession* volatile* session"),
    "unreadable struct": ("unreadable", "FxHolder.last", "  uint8_t last;\n", "  uint8_t last : 3;\n"),
}  # fmt: skip


@pytest.mark.parametrize("name", EDITS)
def test_one_edit_gives_one_finding(name: str, base: Abi, tmp_path: Path) -> None:
    rule, symbol, old, new = EDITS[name]
    findings = after(tmp_path, base, (old, new))
    assert [(f.rule, f.symbol) for f in findings] == [(rule, symbol)]
    (finding,) = findings
    assert finding.severity is RULES[rule].severity
    assert finding.message and finding.hint
    if rule != "unreadable":
        assert finding.expected or finding.actual
        assert finding.header_loc.file.startswith(str(tmp_path))


def test_every_rule_of_the_comparison_has_an_edit() -> None:
    others = {
        "field-appended-unversioned",
        "field-offset",
        "size-changed",
        "enum-width",
        "struct-made-opaque",
        "header-moved",
        "slot-relocated",
        "enumerator-conflict",
    }
    wanted = {r.id for r in RULES.values() if r.severity is not Severity.DOCUMENTATION}
    assert (
        wanted - {rule for rule, *_ in EDITS.values()} == others
    ), "the others have their own tests"


NEUTRAL: dict[str, tuple[tuple[str, str], ...]] = {
    "nothing": (),
    "spaces": (("(bool, CanImport, FxKind kind", "( bool ,CanImport,\n      FxKind   kind"),),
    "comment": ((CAN, f"  /* a comment; with {{ signs }} */ // and another\n{CAN}"),),
    "macro written out": ((CAN, "  bool(ORT_API_CALL* CanImport)(FxKind kind, size_t size);\n"),),
    "struct word": (("_In_opt_ OrtFxSession*", "_In_opt_ struct OrtFxSession*"),),
    "const after": (("_In_ const OrtFxHandle* handle", "_In_ OrtFxHandle const* handle"),),
    "const of compilers": (("const int64_t* ids", "__const__ int64_t* ids"),),
    "volatile parameter": (("size_t count);\n  ORT_API_T(const char*", "volatile size_t count);\n  ORT_API_T(const char*"),),
    "array for pointer": (("const int64_t* ids", "const int64_t ids[]"),),
    "unnamed parameter": (("FxKind kind, size_t size", "FxKind, size_t"),),
    "implicit value": (("FX_KIND_SEMAPHORE = 2", "FX_KIND_SEMAPHORE"),),
    "another spelling": (("FX_KIND_SEMAPHORE = 2", "FX_KIND_SEMAPHORE = (1 << 1)"),),
    "hexadecimal": (("FX_KIND_SEMAPHORE = 2", "FX_KIND_SEMAPHORE = 0x2u"),),
    "enumerators reordered": (("  FX_KIND_NONE = 0,\n  FX_KIND_MEMORY = 1,\n", "  FX_KIND_MEMORY = 1,\n  FX_KIND_NONE = 0,\n"),),
    "types reordered": (("ORT_RUNTIME_CLASS(FxHandle);\nORT_RUNTIME_CLASS(FxSession);", "ORT_RUNTIME_CLASS(FxSession);\nORT_RUNTIME_CLASS(FxHandle);"),),
    "include guard": (("#pragma once", "#ifndef FX_COMMON\n#define FX_COMMON\n#endif"),),
    "inline helper": (("struct FxHolder", "static inline int FxHelp(int a) { return a + 1; }\nstruct FxHolder"),),
    "documentation without since": (("\\since Version 1.24.", "Nothing said."),),
    "hidden from C": ((CAN, f"#ifdef __cplusplus\n  int cpp;\n#endif\n{CAN}"),),
}  # fmt: skip


@pytest.mark.parametrize("name", NEUTRAL)
def test_neutral_edits_give_no_finding(name: str, base: Abi, tmp_path: Path) -> None:
    assert after(tmp_path, base, *NEUTRAL[name]) == []


def test_additive_never_hides_breaking(base: Abi, tmp_path: Path) -> None:
    """Case 35: appended slots and swapped ones at once."""
    findings = after(
        tmp_path,
        base,
        (IMPORT + EXPORT, EXPORT + IMPORT),
        (NAME, f"{NAME}  ORT_API2_STATUS(New);\n"),
    )
    assert [f.rule for f in findings] == ["slot-swapped", "slot-appended"]


def test_several_causes_in_one_table_are_told_apart(base: Abi, tmp_path: Path) -> None:
    findings = after(
        tmp_path,
        base,
        (EXPORT, ""),
        (CAN, f"  ORT_API_T(int, Inserted, void);\n{CAN}"),
        ("Name, _In_ const", "Name, const"),
    )
    assert {(f.rule, f.symbol) for f in findings} == {
        ("slot-replaced", "FxTable.Export"),
        ("sal-changed", "FxTable.Name"),
    }
    findings = after(
        tmp_path, base, (IMPORT, ""), (CAN, f"{CAN}  ORT_API_T(int, Inserted, void);\n")
    )
    assert {(f.rule, f.symbol) for f in findings} == {
        ("slot-removed", "FxTable.Import"),
        ("slot-inserted", "FxTable.Inserted"),
    }


def test_a_struct_without_a_version_must_not_grow(base: Abi, tmp_path: Path) -> None:
    findings = after(tmp_path, base, ("  uint64_t flags;\n", "  uint64_t flags;\n  int extra;\n"))
    assert {(f.rule, f.symbol) for f in findings} == {
        ("field-appended-unversioned", "FxPlain.extra"),
        ("field-offset", "FxHolder.last"),
    }


def test_a_harmless_change_does_not_hide_another_layout(base: Abi, tmp_path: Path) -> None:
    grown = ("  uint64_t flags;\n", "  uint64_t flags;\n  int extra;\n")
    findings = after(tmp_path, base, grown, ("  uint8_t last;\n", "  uint8_t final;\n"))
    assert {(f.rule, f.symbol) for f in findings} == {
        ("field-appended-unversioned", "FxPlain.extra"),
        ("field-renamed", "FxHolder.last"),
        ("field-offset", "FxHolder.last"),
    }


def test_slots_swapped_without_their_comments_are_one_finding(base: Abi, tmp_path: Path) -> None:
    documented = IMPORT + "  /** \\since Version 1.25. */\n" + EXPORT
    old, _ = read(tmp_path, BASE.replace(IMPORT + EXPORT, documented))
    swapped = (
        documented.replace("(Import", "(X").replace("(Export", "(Import").replace("(X", "(Export")
    )
    new, _ = read(tmp_path, BASE.replace(IMPORT + EXPORT, swapped))
    assert [(f.rule, f.symbol) for f in compare(old, new)] == [("slot-swapped", "FxTable.Import")]


def test_a_grown_member_changes_the_size_of_its_holder(base: Abi, tmp_path: Path) -> None:
    moved = (
        "  struct FxPlain plain;\n  uint8_t last;\n",
        "  uint8_t last;\n  struct FxPlain plain;\n",
    )
    old, _ = read(tmp_path, BASE.replace(*moved))
    new, _ = read(
        tmp_path,
        BASE.replace(*moved).replace("  uint64_t flags;\n", "  uint64_t flags;\n  int extra;\n"),
    )
    assert {(f.rule, f.symbol) for f in compare(old, new)} == {
        ("field-appended-unversioned", "FxPlain.extra"),
        ("size-changed", "FxHolder"),
    }


@pytest.mark.parametrize(("value", "also"), [("-1", set()), ("0x1FFFFFFFFll", {"field-offset"})])
def test_an_enum_that_needs_another_storage(
    value: str, also: set[str], base: Abi, tmp_path: Path
) -> None:
    last = "  FX_KIND_SEMAPHORE = 2,\n"
    findings = after(tmp_path, base, (last, f"{last}  FX_KIND_NEW = {value},\n"))
    assert {f.rule for f in findings} == {"enumerator-added", "enum-width"} | also


def test_a_complete_type_that_becomes_opaque(base: Abi, tmp_path: Path) -> None:
    completed, _ = read(
        tmp_path,
        BASE.replace(
            "ORT_RUNTIME_CLASS(FxSession);",
            "struct OrtFxSession { int a; };\ntypedef struct OrtFxSession OrtFxSession;",
        ),
    )
    findings = compare(completed, base)
    assert [(f.rule, f.symbol) for f in findings] == [("struct-made-opaque", "OrtFxSession")]


def test_a_renamed_opaque_type_is_one_finding(base: Abi, tmp_path: Path) -> None:
    text = BASE.replace("FxSession", "FxRun")
    abi, _ = read(tmp_path, text)
    assert [(f.rule, f.symbol, f.actual) for f in compare(base, abi)] == [
        ("type-renamed", "OrtFxSession", "OrtFxRun")
    ]


@pytest.mark.parametrize(
    ("name", "rules"),
    [("FxSpareV2", {"type-renamed"}), ("FxOther", {"type-removed", "type-added"})],
)
def test_an_opaque_type_that_nothing_mentions_is_known_by_its_name(
    name: str, rules: set[str], tmp_path: Path
) -> None:
    first = "ORT_RUNTIME_CLASS(FxSession);"
    (old_folder := tmp_path / "old").mkdir()
    (new_folder := tmp_path / "new").mkdir()
    old, _ = read(old_folder, BASE.replace(first, f"{first}\nORT_RUNTIME_CLASS(FxSpare);"))
    new, _ = read(new_folder, BASE.replace(first, f"{first}\nORT_RUNTIME_CLASS({name});"))
    assert {f.rule for f in compare(old, new)} == rules


@pytest.mark.parametrize(
    ("old", "new", "symbols"),
    [
        ("struct FxHolder {\n", "struct FxHolder {{\n", {"FxHolder"}),
        (CAN, "int broken(((;\n", {"FxTable"}),
        (CAN, CAN.replace(");", ")"), {"FxTable.CanImport"}),
        ("typedef uint32_t FxFlags", "int broken((typedef uint32_t FxFlags", {"broken"}),
        (
            CAN,
            f"<<<<<<< HEAD\n{CAN}=======\n{CAN.replace('bool', 'int')}>>>>>>> theirs\n",
            {"FxTable.CanImport", "FxTable.ReleaseFxHandle"},
        ),
    ],
    ids=["brace", "parenthesis", "semicolon", "outside", "conflict"],
)
def test_what_an_unreadable_part_takes_with_it_is_not_gone(
    old: str, new: str, symbols: set[str], base: Abi, tmp_path: Path
) -> None:
    findings = after(tmp_path, base, (old, new))
    assert {f.rule for f in findings} == {"unreadable"}, [(f.rule, f.symbol) for f in findings]
    assert {f.symbol for f in findings} == symbols
    if new.startswith("<<<<<<<"):
        assert {f.message.partition(": ")[2] for f in findings} == {
            "a merge conflict that was not resolved"
        }
    assert not any("ort_mark" in f.actual for f in findings), "that is no text of the header"


def test_a_type_that_is_gone_is_named_beside_the_slot_that_it_made_unreadable(
    base: Abi, tmp_path: Path
) -> None:
    edits = [("typedef void(ORT_API_CALL* FxFn)(void);\n", "")]
    made = BASE.replace(CAN, f"FxFn(ORT_API_CALL* Find)(const char* name);\n{CAN}").replace(
        "typedef uint32_t FxFlags;", edits[0][0] + "typedef uint32_t FxFlags;"
    )
    (folder := tmp_path / "old").mkdir()
    old, unread = read(folder, made)
    assert not unread
    new, unreadable = read(tmp_path, made.replace(*edits[0]))
    found = {(f.rule, f.symbol) for f in compare(old, new, unreadable)}  # type: ignore[arg-type]
    assert found == {("type-removed", "FxFn"), ("unreadable", "FxTable.Find")}


def test_a_platform_macro_has_its_line(base: Abi, tmp_path: Path) -> None:
    (finding,) = after(tmp_path, base, ("#define ORTCHAR_T char", "#define ORTCHAR_T int"))
    assert finding.header_loc.file.endswith("common.h")
    line = (tmp_path / "common.h").read_text().splitlines()[finding.header_loc.line - 1]
    assert line.strip() == "#define ORTCHAR_T int"


@pytest.mark.parametrize(
    ("new", "where"),
    [
        ("unsigned long size_bytes", " on Windows"),
        ("uint32_t size_bytes", ""),
        ("uint16_t size_bytes", ""),
    ],
)
def test_a_width_that_differs_on_one_platform_says_on_which(
    new: str, where: str, base: Abi, tmp_path: Path
) -> None:
    (finding,) = after(tmp_path, base, ("size_t size_bytes", new))
    assert finding.rule == "field-type"
    assert finding.message.startswith(f"the width differs{where}: ")


def test_fields_are_not_called(base: Abi, tmp_path: Path) -> None:
    text = BASE.replace("  uint8_t last;\n", "  union { uint8_t last; int8_t other; };\n")
    abi, _ = read(tmp_path, text)
    (finding,) = compare(base, abi)
    assert finding.rule == "field-replaced"
    assert finding.message.startswith("union { uint8_t last; int8_t other; } stands in its place")
    (swapped,) = after(tmp_path, base, (IMPORT + EXPORT, EXPORT + IMPORT))
    assert "a call of one reaches the other" in swapped.message


def test_the_calling_convention_of_the_windows_view(tmp_path: Path) -> None:
    base, _ = read(tmp_path, BASE, view="windows")
    common = COMMON.replace("#define ORT_API_CALL __stdcall", "#define ORT_API_CALL __cdecl")
    abi, _ = read(tmp_path, BASE, common, view="windows")
    (finding,) = compare(base, abi)
    assert (finding.rule, finding.symbol, finding.actual) == (
        "platform-macro",
        "ORT_API_CALL",
        "__cdecl",
    )


def test_documented_since_stands_for_since(base: Abi, tmp_path: Path) -> None:
    """ORT's own documentation is wrong at places; the spec then says what it documents."""
    abi, _ = read(tmp_path, BASE.replace("since Version 1.24.", "since Version 1.23."))
    (finding,) = compare(base, abi)
    assert finding.rule == "since-changed"
    table = base.structs["FxTable"]
    stated = replace(table.fields[0], doc=Doc(since=23))
    spec = replace(
        base,
        structs={**base.structs, "FxTable": replace(table, fields=(stated, *table.fields[1:]))},
    )
    assert compare(spec, abi) == []


def test_a_vendored_enum_with_shifted_values() -> None:
    """Case 29: an invented error-code enum, against the release: breaking, once a constant."""
    release = load_facts(ROOT / "spec" / "facts" / "ort-1.28.0.json")
    real = release.enums["OrtErrorCode"]
    kept = [c for c in real.constants if c.name != "ORT_FAIL"]
    shifted = tuple(replace(c, value=at) for at, c in enumerate(kept))
    invented = replace(
        release, enums={**release.enums, "OrtErrorCode": Enum("OrtErrorCode", shifted)}
    )
    findings = compare(release, invented)
    assert {f.severity for f in findings} == {Severity.BREAKING}
    assert Counter(f.rule for f in findings) == {"enum-value": 14, "enumerator-removed": 1}
    assert len({f.symbol for f in findings}) == len(real.constants) - 1


def test_a_new_name_for_a_value_that_meant_something_else(base: Abi, tmp_path: Path) -> None:
    """Case 35: what looks like an addition takes the value of an enumerator that moved."""
    old = "  FX_KIND_SEMAPHORE = 2,\n"
    findings = after(tmp_path, base, (old, "  FX_KIND_UNHEARD = 2,\n  FX_KIND_SEMAPHORE = 3,\n"))
    assert [(f.rule, f.symbol, f.severity) for f in findings] == [
        ("enumerator-conflict", "FxKind.FX_KIND_UNHEARD", Severity.BREAKING),
        ("enum-value", "FxKind.FX_KIND_SEMAPHORE", Severity.BREAKING),
    ]


@pytest.mark.parametrize(
    ("older", "newer"),
    [("1.24.1", "1.25.0"), ("1.25.0", "1.26.0"), ("1.26.0", "1.28.0"), ("1.28.0", "1.29.0")],
)
def test_releases_in_pairs_give_each_change_once(older: str, newer: str) -> None:
    old, new = (load_facts(ROOT / "spec" / "facts" / f"ort-{v}.json") for v in (older, newer))
    findings = compare(old, new)
    assert len({(f.rule, f.symbol, f.expected, f.actual) for f in findings}) == len(findings)
    grown = {
        f"{name}.{field.name}"
        for name, struct in new.structs.items()
        if name in old.structs
        for field in struct.fields[len(old.structs[name].fields) :]
    }
    assert {f.symbol for f in findings if f.rule in ("slot-appended", "field-appended")} == grown
    new_constants = {
        f"{name}.{c.name}"
        for name, enum in new.enums.items()
        if name in old.enums
        for c in enum.constants[len(old.enums[name].constants) :]
    }
    assert {f.symbol for f in findings if f.rule == "enumerator-added"} == new_constants
    added = {*(new.structs.keys() | new.enums.keys() | new.typedefs.keys() | new.opaque.keys())} - {
        *(old.structs.keys() | old.enums.keys() | old.typedefs.keys() | old.opaque.keys())
    }
    assert {f.symbol for f in findings if f.rule == "type-added"} == added
    rest = {f.rule for f in findings if f.severity is not Severity.ADDITIVE}
    assert rest <= {"sal-changed", "slot-renamed", "param-renamed", "header-moved"}, sorted(rest)


def test_the_spec_agrees_with_every_recorded_release() -> None:
    model = load_spec(ROOT / "spec")
    for path in sorted((ROOT / "spec" / "facts").glob("*.json")):
        facts = load_facts(path)
        if facts.api_version >= model.floor:
            assert compare(model.at(facts.api_version), facts) == [], path.name


def test_a_record_that_lacks_an_aspect_says_nothing_of_it(base: Abi, tmp_path: Path) -> None:
    abi, _ = read(
        tmp_path,
        BASE.replace(
            "ORT_API_T(bool, CanImport, FxKind kind, size_t size);",
            "bool (*CanImport)(FxKind kind, size_t size);",
        ),
    )
    assert [f.rule for f in compare(base, abi)] == ["calling-convention"]
    assert compare(base, replace(abi, lacks=frozenset({"calling_convention"}))) == []


def test_apis_that_have_little_in_common_are_compared_as_fast(base: Abi) -> None:
    """Every vanished type is held against every new one: that must not cost a pass over all slots."""
    release = load_facts(ROOT / "spec" / "facts" / "ort-1.29.0.json")
    began = time.process_time()
    findings = compare(base, release)
    assert time.process_time() - began < 1.0, "it takes some hundredths of a second"
    assert {f.symbol for f in findings if f.rule == "type-removed"} >= {"FxTable", "FxDescriptor"}


def test_neither_side_is_changed_by_a_comparison(base: Abi, tmp_path: Path) -> None:
    before = repr(base)
    abi, _ = read(
        tmp_path, BASE.replace("FxSession", "FxRun").replace("size_t size_bytes", "int size_bytes")
    )
    other = repr(abi)
    assert compare(base, abi)
    assert (repr(base), repr(abi)) == (before, other)
