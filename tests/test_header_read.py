"""The idioms of the C API's headers, each in a small fixture: cases 22 to 27, 31 to 33."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from ort_interop_gen.header.errors import UNREADABLE, HeaderError
from ort_interop_gen.header.reader import HeaderResult, read_header, read_views
from ort_interop_gen.spec.abi import Abi, Function
from ort_interop_gen.spec.ctype import type_text

HEADERS = Path(__file__).parent / "data" / "headers"
BOTH = pytest.mark.parametrize("preprocessor", ["cc", "python"])


def read(name: str, view: str = "linux", preprocessor: str = "auto") -> HeaderResult:
    return read_header(HEADERS / name, view=view, preprocessor=preprocessor)


def slot(abi: Abi, struct: str, name: str) -> Function:
    field = abi.structs[struct].field(name)
    assert field is not None and field.function is not None
    return field.function


def header(folder: Path, body: str, **others: str) -> Path:
    """A main header with the fixtures' common part, and other headers beside it."""
    for name, text in others.items():
        (folder / f"{name}.h").write_text(text)
    (folder / "common.h").write_text((HEADERS / "common.h").read_text())
    path = folder / "onnxruntime_c_api.h"
    path.write_text(f'#include "common.h"\n{body}\n')
    return path


# Enumerators ------------------------------------------------------------------------------------


@BOTH
def test_enumerators_have_the_values_of_a_c_compiler(preprocessor: str) -> None:
    enums = read("enums.h", preprocessor=preprocessor).abi.enums
    values = {e.name: {c.name: c.value for c in e.constants} for e in enums.values()}
    assert list(values["FxPlain"].values()) == [0, 1, 5, 6, 5, 6]
    assert values["FxSigned"] == {
        "FX_MINUS": -2,
        "FX_AFTER_MINUS": -1,
        "FX_BY_ANOTHER": -2,
        "FX_TOP_BIT": -2147483648,
        "FX_AFTER_TOP_BIT": -2147483647,
        "FX_NOT": -1,
        "FX_PRECEDENCE": 17,
        "FX_DIVIDED": -3,
        "FX_REMAINDER": -1,
        "FX_CHOICE": 65,
        "FX_OCTAL": 15,
    }
    assert values["FxUnsigned"] == {"FX_HIGH": 2147483648, "FX_HIGHER": 2147483649}
    assert values["FxUntagged"] == {"FX_UNTAGGED": 16}


def test_above_int_max_windows_wraps_where_gcc_widens() -> None:
    values = {c.name: c.value for c in read("enums.h", "windows").abi.enums["FxUnsigned"].constants}
    assert values == {"FX_HIGH": -2147483648, "FX_HIGHER": -2147483647}
    linux, windows = read_views(HEADERS / "enums.h")
    assert linux.abi.enums["FxUnsigned"] != windows.abi.enums["FxUnsigned"]


def test_the_compiler_prints_the_same_values(
    tmp_path: Path, need_tool: Callable[[str], str]
) -> None:
    constants = [c for e in read("enums.h").abi.enums.values() for c in e.constants]
    rows = "".join(f'printf("%lld\\n", (long long){c.name});' for c in constants)
    source = tmp_path / "values.c"
    source.write_text(
        f'#include "{HEADERS / "enums.h"}"\n#include <stdio.h>\nint main(void) {{{rows}}}\n'
    )
    program = tmp_path / "values"
    subprocess.run([need_tool("gcc"), "-w", str(source), "-o", str(program)], check=True)
    printed = subprocess.run([str(program)], check=True, capture_output=True, text=True).stdout
    assert [int(word) for word in printed.split()] == [c.value for c in constants]


def test_an_undefined_shift_is_refused_and_not_guessed(tmp_path: Path) -> None:
    result = read_header(header(tmp_path, "enum FxE { FX_A = 1 << 40, FX_B };"))
    (unread,) = result.unreadable
    assert "a shift by 40" in unread.message and unread.symbol == "FxE.FX_A"


@BOTH
def test_macros_with_values_are_kept_and_others_are_not(preprocessor: str) -> None:
    macros = read("enums.h", preprocessor=preprocessor).abi.macros
    assert {m.name: m.value for m in macros.values()} == {
        "ORT_API_VERSION": "24",
        "FX_OLD_NAME": "FX_D",
        "FX_NUMBER": "(1 << 4)",
    }
    assert macros["FX_OLD_NAME"].loc.line == 26


# Structs ----------------------------------------------------------------------------------------


@BOTH
def test_nested_and_mutual_structs(preprocessor: str) -> None:
    result = read("nested.h", preprocessor=preprocessor)
    assert result.unreadable == ()
    abi = result.abi
    assert list(abi.opaque) == ["OrtStatus", "OrtValue", "OrtFxHidden"]
    fields = {f.name: type_text(f.type) for f in abi.structs["FxList"].fields}
    assert fields == {
        "first": "FxNode",
        "tag": "uint16_t",
        "value": "union { uint64_t total; uint32_t parts[3]; "
        "struct { uint8_t low; uint64_t high; } pair; }",
        "name": "char [5]",
        "on_windows_shorter": "long",
        "last": "size_t",
    }
    assert abi.structs["FxEither"].kind == "union"
    assert abi.enums["(enum of FX_INNER_A)"].constants[1].value == 7


@pytest.mark.parametrize(
    ("compiler", "windows"), [("gcc", False), ("clang", False), ("x86_64-w64-mingw32-gcc", True)]
)
def test_compilers_agree_with_every_computed_offset_and_size(
    compiler: str, windows: bool, tmp_path: Path, need_tool: Callable[[str], str]
) -> None:
    rows = []
    checked = 0
    for struct in read("nested.h").abi.structs.values():
        name = f"{struct.kind} {struct.name}"
        size = struct.size_win64 if windows else struct.size
        if struct.name == "FxEither":
            name = "FxEither"
        rows.append(f'_Static_assert(sizeof({name}) == {size}, "{struct.name}");')
        for field in struct.fields:
            offset = field.offset_win64 if windows else field.offset
            rows.append(
                f'_Static_assert(offsetof({name}, {field.name}) == {offset}, "{field.name}");'
            )
            checked += 1
    assert checked == 20
    source = tmp_path / "layout.c"
    source.write_text(f'#include <stddef.h>\n#include "{HEADERS / "nested.h"}"\n' + "\n".join(rows))
    command = [need_tool(compiler), "-w", "-std=c11", "-fsyntax-only", str(source)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


# Markers ----------------------------------------------------------------------------------------


@BOTH
@pytest.mark.parametrize("view", ["linux", "windows"])
def test_markers_go_to_the_declaration_that_they_stand_in(view: str, preprocessor: str) -> None:
    result = read("markers.h", view, preprocessor)
    assert result.unreadable == ()
    abi = result.abi
    names = [field.name for field in abi.structs["FxTable"].fields]
    assert names[:7] == ["version", "Create", "Fill", "Empty", "Test", "Name", "ReleaseValue"]
    assert names[7:] == ["Get", "Checked", "Leading", "ForEach", "Open", "Names"]
    create = slot(abi, "FxTable", "Create")
    assert [(p.name, p.sal) for p in create.params] == [("name", ("_In_",)), ("out", ("_Outptr_",))]
    assert create.return_sal == ("_Check_return_", "_Ret_maybenull_")
    assert create.must_use and create.api_call
    fill = slot(abi, "FxTable", "Fill")
    assert fill.params[1].sal == ("_In_reads_(a * (b + 1))",)
    assert [p.sal for p in fill.params[2:]] == [(), ()]
    assert slot(abi, "FxTable", "Empty").params == ()
    test = slot(abi, "FxTable", "Test")
    assert [(p.name, p.sal, type_text(p.type)) for p in test.params] == [
        ("", ("_In_",), "const OrtValue*"),
        ("", (), "int"),
    ]
    assert not test.must_use and test.api_call and test.return_sal == ()
    assert slot(abi, "FxTable", "Name").params == ()
    release = slot(abi, "FxTable", "ReleaseValue")
    assert release.params[0].sal == ("_Frees_ptr_opt_",) and release.params[0].name == "input"
    checked = slot(abi, "FxTable", "Checked")
    assert not checked.must_use and checked.params[0].sal == ("_In_",)
    leading = slot(abi, "FxTable", "Leading")
    assert leading.must_use and not leading.api_call and leading.variadic
    each = slot(abi, "FxTable", "ForEach")
    assert [(p.name, p.sal) for p in each.params] == [("fn", ("_In_",)), ("state", ("_In_opt_",))]
    assert type_text(each.params[0].type) == "void (*)(void*, size_t)"
    arrays = slot(abi, "FxTable", "Names")
    assert [p.sal for p in arrays.params] == [("_In_",), ("_Out_writes_(4)",)]
    assert type_text(arrays.type.params[0]) == "const char**"
    assert type_text(slot(abi, "FxTable", "Open").params[0].type) == "const ORTCHAR_T*"


@BOTH
def test_callbacks_and_exports(preprocessor: str) -> None:
    abi = read("markers.h", preprocessor=preprocessor).abi
    callback, plain = abi.typedefs["FxCallback"].function, abi.typedefs["FxPlainCallback"].function
    assert callback is not None and plain is not None
    assert callback.api_call and not plain.api_call
    assert callback.params[1].sal == ("_In_reads_(count)",)
    assert plain.return_sal == ("_Ret_maybenull_",)
    assert list(abi.functions) == ["FxGetTable", "FxAppend"], "an inline function is no export"
    append = abi.functions["FxAppend"].function
    assert append.must_use and append.api_call
    assert append.return_sal == ("_Success_(return == 0)", "_Check_return_", "_Ret_maybenull_")
    assert type_text(abi.functions["FxGetTable"].function.returns) == "const FxTable*"


def test_no_parameters_and_void_are_the_same(tmp_path: Path) -> None:
    body = "struct FxT { void (*A)(); void (*B)(void); };"
    fields = read_header(header(tmp_path, body)).abi.structs["FxT"].fields
    assert fields[0].type == fields[1].type and fields[0].function == fields[1].function


def test_results_keep_their_types() -> None:
    """Case 31: void is void, a typed pointer stays typed, const char* is not a pointer to one char."""
    abi = read("markers.h").abi
    results = {
        name: type_text(slot(abi, "FxTable", name).returns)
        for name in ("ReleaseValue", "Get", "Name", "Test")
    }
    assert results == {
        "ReleaseValue": "void",
        "Get": "const OrtValue*",
        "Name": "const char*",
        "Test": "bool",
    }


@pytest.mark.parametrize(
    "attribute",
    ["__attribute__((packed))", "__attribute__((aligned(16)))", "__declspec(align(16))"],
)
def test_attributes_that_change_layouts_are_never_passed_over(
    attribute: str, tmp_path: Path
) -> None:
    result = read_header(header(tmp_path, f"struct {attribute} FxP {{ char a; int b; }};"))
    assert any("changes a layout" in u.message and u.loc.line == 2 for u in result.unreadable)


@BOTH
def test_pragma_pack_is_never_passed_over(preprocessor: str, tmp_path: Path) -> None:
    body = "#pragma pack(push, 1)\nstruct FxP { char a; int b; };\n#pragma pack(pop)"
    path = header(tmp_path, body)
    result = read_header(path, preprocessor=preprocessor)
    assert [u.loc.line for u in result.unreadable] == [2, 4]
    hidden = header(tmp_path, f"#ifdef FX_NEVER\n{body}\n#endif\nstruct FxQ {{ int a; }};")
    assert read_header(hidden, preprocessor=preprocessor).unreadable == ()


@BOTH
@pytest.mark.parametrize(
    ("body", "words"),
    [
        ('_Pragma("pack(push, 1)") struct FxP { char a; int b; };', "pack"),
        ("struct FxP { char a; _Alignas(16) int b; };", "_Alignas"),
        ("struct FxP { char a; _Atomic int b; };", "_Atomic"),
        ("struct FxP { char a; int b : 3; };", "bit-field"),
        ("struct FxP { int a; int b[]; };", "an array without a length"),
        ("struct FxP { int a; long double b; };", "is not a known type"),
        ("typedef int FxP; typedef long FxP;", "defined again as something else"),
        ("struct FxP { int a; }; struct FxP { int b; };", "is defined twice"),
        ("void FxP(int); void FxP(long);", "declared again with another signature"),
        ("void FxP(a);", "no type"),
    ],
)
def test_what_the_model_does_not_know_is_said(
    body: str, words: str, preprocessor: str, tmp_path: Path
) -> None:
    result = read_header(
        header(tmp_path, f"{body}\nstruct FxLast {{ int a; }};"), preprocessor=preprocessor
    )
    assert any(words in u.message for u in result.unreadable), result.unreadable
    assert {u.loc.line for u in result.unreadable} == {2}
    assert "FxLast" in result.abi.structs


@BOTH
def test_line_directives_do_not_hide_declarations(preprocessor: str, tmp_path: Path) -> None:
    body = '#line 7 "elsewhere.h"\nstruct FxT { int a; };\n# 9 "other.h" 3\nstruct FxU { int a; };'
    abi = read_header(header(tmp_path, body), preprocessor=preprocessor).abi
    assert [abi.structs[name].loc.line for name in ("FxT", "FxU")] == [3, 5]


# Documentation ----------------------------------------------------------------------------------


@BOTH
def test_documentation_belongs_to_what_follows_or_precedes_it(preprocessor: str) -> None:
    abi = read("docs.h", preprocessor=preprocessor).abi
    table = abi.structs["FxDocumented"]
    assert table.since == 22 and table.loc.line == 11
    since = {f.name: f.since for f in table.fields}
    assert since == {
        "version": 23,
        "Make": 24,
        "ReleaseValue": 14,
        "Undocumented": None,
        "Spaced": 18,
    }
    make = table.field("Make")
    assert make is not None and make.doc is not None and make.loc.line == 26
    assert make.doc.params == (("in", "name"), ("out", "out"), ("in,out", "both"), ("", "plain"))
    assert [c.since for c in abi.enums["FxDocEnum"].constants] == [20, 21]
    assert abi.typedefs["FxAfterDirective"].since is None


# Platforms --------------------------------------------------------------------------------------


@BOTH
def test_both_platforms_can_be_read_anywhere(preprocessor: str) -> None:
    linux, windows = read_views(HEADERS / "platform.h", preprocessor=preprocessor)
    assert [f.name for f in linux.abi.structs["FxPaths"].fields][1] == "OpenFd"
    assert [f.name for f in windows.abi.structs["FxPaths"].fields][1] == "OpenHandle"
    assert linux.abi.platform == {
        "view": "linux",
        "ORT_API_CALL": "",
        "ORT_MUST_USE_RESULT": "__attribute__((warn_unused_result))",
        "ORTCHAR_T": "char",
    }
    assert windows.abi.platform == {
        "view": "windows",
        "ORT_API_CALL": "__stdcall",
        "ORT_MUST_USE_RESULT": "",
        "ORTCHAR_T": "wchar_t",
    }
    for result in (linux, windows):
        length, letter = result.abi.structs["FxPaths"].fields[2:]
        assert (length.offset, length.offset_win64) == (16, 16)
        assert (letter.offset, letter.offset_win64) == (24, 20)
        open_slot = slot(result.abi, "FxPaths", "Open")
        assert open_slot.api_call and open_slot.must_use


def test_the_second_view_is_parsed_only_where_it_differs() -> None:
    linux, windows = read_views(HEADERS / "markers.h")
    assert windows.abi.structs is linux.abi.structs
    linux, windows = read_views(HEADERS / "platform.h")
    assert windows.abi.structs is not linux.abi.structs


def test_a_platform_macro_that_is_used_must_be_defined(tmp_path: Path) -> None:
    path = tmp_path / "onnxruntime_c_api.h"
    path.write_text("#define ORT_API_VERSION 24\nstruct FxT { void (ORT_API_CALL* F)(int a); };\n")
    (unread,) = read_header(path).unreadable
    assert "ORT_API_CALL is used but never defined" in unread.message and unread.loc.line == 2


# What cannot be read ----------------------------------------------------------------------------


@BOTH
def test_what_cannot_be_read_is_named_and_the_rest_is_read(preprocessor: str) -> None:
    result = read("unreadable.h", preprocessor=preprocessor)
    lines = {u.symbol: u.loc.line for u in result.unreadable}
    assert lines == {
        "FxTable.Broken": 8,
        "FxAlias": 12,
        "FxBits.low": 15,
        "FxBits.high": 16,
        "": 19,
        "FxIncomplete.inner": 25,
        "fx_variable": 29,
        "FxBadEnum.FX_BAD": 31,
    }
    assert all(u.loc.file.endswith("unreadable.h") for u in result.unreadable)
    abi = result.abi
    assert {"FxBefore", "FxAfter", "FxTable", "FxPacked"} <= set(abi.structs)
    table = abi.structs["FxTable"]
    assert [f.name for f in table.fields] == ["First", "Broken", "Last"]
    assert table.fields[1].type == UNREADABLE
    last = slot(abi, "FxTable", "Last")
    assert last.must_use and last.params[0].sal == ("_In_",)
    assert table.fields[2].loc.line == 9
    assert abi.enums["FxBadEnum"].constants[0].name == "FX_GOOD"


@BOTH
def test_a_missing_include_is_named_with_its_place(preprocessor: str, tmp_path: Path) -> None:
    path = header(tmp_path, '#include "onnxruntime_error_code.h"')
    with pytest.raises(HeaderError) as caught:
        read_header(path, preprocessor=preprocessor)
    assert "'onnxruntime_error_code.h' is included here but cannot be found" in str(caught.value)
    assert caught.value.loc.line == 2
    assert "include directory" in caught.value.hint
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "onnxruntime_error_code.h").write_text("typedef enum FxE { FX_OK } FxE;\n")
    abi = read_header(path, preprocessor=preprocessor, include_dirs=[elsewhere]).abi
    assert abi.enums["FxE"].header == "onnxruntime_error_code.h"


@BOTH
def test_an_include_that_no_compiler_reaches_may_be_missing(
    preprocessor: str, tmp_path: Path
) -> None:
    path = header(tmp_path, '#ifdef FX_NEVER\n#include "nowhere.h"\n#endif\nstruct FxT { int a; };')
    assert read_header(path, preprocessor=preprocessor).unreadable == ()


@BOTH
@pytest.mark.parametrize(
    ("body", "words", "line"),
    [
        ("#error this release is withdrawn", "this release is withdrawn", 2),
        ("#if 1\nint a;", "", None),
        ("/* never closed", "a comment is never closed", 2),
        ("#undef\nint a;", "", None),
        ("#if 1 +\n#endif", "", None),
        ("#include\n", "", None),
    ],
)
def test_headers_that_no_compiler_takes(
    body: str, words: str, line: int | None, preprocessor: str, tmp_path: Path
) -> None:
    with pytest.raises(HeaderError) as caught:
        read_header(header(tmp_path, body), preprocessor=preprocessor)
    assert words in str(caught.value)
    assert line is None or caught.value.loc.line == line
    assert "f0.h" not in str(caught.value), "names of the copies are no use to anyone"


def test_paths_that_are_no_header(tmp_path: Path) -> None:
    with pytest.raises(HeaderError, match="does not exist"):
        read_header(tmp_path / "nothing.h")
    with pytest.raises(HeaderError, match=r"no onnxruntime_c_api\.h in"):
        read_header(tmp_path)
    other = tmp_path / "other.h"
    other.write_text("int f(void);\n")
    with pytest.raises(HeaderError, match="ORT_API_VERSION is not defined"):
        read_header(other)
    other.write_bytes(b"\x7fELF\0\0\0")
    with pytest.raises(HeaderError, match="is not a text file"):
        read_header(other)


def test_a_folder_is_searched_in_the_usual_places(tmp_path: Path) -> None:
    inner = tmp_path / "include" / "onnxruntime" / "core" / "session"
    inner.mkdir(parents=True)
    header(inner, "struct FxT { int a; };")
    assert "FxT" in read_header(tmp_path).abi.structs


@BOTH
def test_line_ends_byte_order_marks_and_comments_change_nothing(
    preprocessor: str, tmp_path: Path
) -> None:
    plain = read("markers.h", preprocessor=preprocessor).abi
    text = (HEADERS / "markers.h").read_text()
    for name in ("common.h", "enums.h"):
        (tmp_path / name).write_text((HEADERS / name).read_text())
    path = tmp_path / "markers.h"
    changed = (
        text.replace("\n", "\r\n").replace(", ", " /* here */ , ").replace("(void)", "( void )")
    )
    path.write_bytes(b"\xef\xbb\xbf" + changed.encode())
    again = read_header(path, preprocessor=preprocessor).abi
    assert (again.structs, again.typedefs) == (plain.structs, plain.typedefs)
    assert again.functions == plain.functions


def test_types_of_included_headers_are_whole(tmp_path: Path) -> None:
    """Case 33: naming the main header is enough."""
    path = header(
        tmp_path,
        '#include "inner.h"\nstruct FxT { FxInner inner; };',
        inner="#pragma once\ntypedef enum FxCode { FX_OK, FX_FAIL } FxCode;\n"
        "typedef struct FxInner { FxCode code; } FxInner;\n",
    )
    abi = read_header(path).abi
    assert [c.name for c in abi.enums["FxCode"].constants] == ["FX_OK", "FX_FAIL"]
    assert abi.structs["FxInner"].fields and abi.structs["FxInner"].header == "inner.h"


def test_the_compiler_is_asked_for_and_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(HeaderError, match="no C compiler found"):
        read("enums.h", preprocessor="cc")
    assert read("enums.h").preprocessor == "pcpp"
