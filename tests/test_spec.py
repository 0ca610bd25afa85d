"""The spec stage: what it accepts, what it refuses and how it says so."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from ort_interop_gen.spec import SpecErrors, load_spec, load_texts
from ort_interop_gen.spec.ctype import (
    FIXED,
    CTypeError,
    declare,
    parse_declaration,
    parse_type,
    replaced,
    type_text,
)
from ort_interop_gen.spec.facts import load_facts
from ort_interop_gen.spec.schema import SpecFile

ROOT = Path(__file__).resolve().parent.parent
SPEC = ROOT / "spec"
RELEASES = ("1.23.2", "1.24.1", "1.25.0", "1.26.0", "1.28.0", "1.29.0")

SMALL = """\
versions: {floor: 24, newest: 26, ep_structs: 26}
enums:
  - name: Color
    since: 24
    constants:
      - {name: COLOR_RED, value: 0}
      - {name: COLOR_BLUE, value: 1, since: 26}
opaque:
  - {name: Paint, since: 24}
structs:
  - name: Point
    since: 24
    fields:
      - field: int32_t x
      - field: int32_t y
        since: 25
  - name: Table
    kind: table
    since: 24
    fields:
      - slot: Mix
        returns: void
        creates: out
        params:
          - _In_ const Point* where
          - {decl: _Outptr_ Paint** out, direction: out, nullable: false, doc: The paint.}
      - slot: Dry
        since: 25
        returns: int
        params:
          - _In_ Paint* paint
handles:
  - {type: Paint, since: 24, released_by: Table.Dry, doc: Some paint.}
"""


@pytest.fixture(scope="module")
def model():
    return load_spec(SPEC)


def test_the_small_spec_is_valid():
    model = load_texts({"small.yaml": SMALL})
    assert [f.name for f in model.at(24).structs["Table"].fields] == ["Mix"]
    assert [f.name for f in model.at(25).structs["Table"].fields] == ["Mix", "Dry"]
    assert model.at(24).structs["Point"].size == 4
    assert model.at(25).structs["Point"].size == 8
    assert [c.name for c in model.at(25).enums["Color"].constants] == ["COLOR_RED"]


# Each row: what is replaced in the small spec, by what, and where and what the error says.
BAD = [
    ("unknown key", "kind: table", "kindd: table", "18:5", "unknown key 'kindd'", "did you mean 'kind'?"),
    ("unknown section", "enums:", "enumz:", "2:1", "unknown key 'enumz'", "did you mean 'enums'?"),
    ("unknown type", "const Point* where", "const Pointt* where", "25:13", "unknown type 'Pointt'", "did you mean 'Point'?"),
    ("unknown kind", "kind: table", "kind: tabel", "18:11", "kind", ""),
    ("duplicate key", "kind: table", "kind: table\n    kind: table", "19:5", "duplicate key 'kind'", ""),
    ("duplicate type", "name: Paint", "name: Point", "11:11", "duplicate name 'Point'", "it is also at"),
    ("duplicate constant", "name: COLOR_BLUE", "name: COLOR_RED", "7:9", "duplicate name 'COLOR_RED'", ""),
    ("duplicate slot", "slot: Dry", "slot: Mix", "27:9", "duplicate field 'Mix' in 'Table'", ""),
    ("duplicate field", "int32_t y", "int32_t x", "15:9", "duplicate field 'x' in 'Point'", ""),
    ("duplicate parameter", "Paint** out,", "Paint** where,", "26:13", "duplicate parameter 'where'", ""),
    ("repeated value", "value: 1", "value: 0", "7:", "has the value 0 of 'COLOR_RED'", "alias_of"),
    ("since after newest", "since: 26", "since: 27", "7:", "after the newest release", "raise 'versions: newest'"),
    ("since before owner", "value: 1, since: 26", "value: 1, since: 23", "7:", "before its 'Color'", "24 or later"),
    ("since goes back", "slot: Mix\n", "slot: Mix\n        since: 26\n", "29:", "'Dry' has since 1.25 but stands after", "grow at their end"),
    ("since a text", "since: 25\n        returns: int", "since: soon\n        returns: int", "28:16", "integer", ""),
    ("since out of range", "since: 26", "since: 0", "7:", "greater than or equal to 1", ""),
    ("bad identifier", "name: COLOR_RED", "name: 2RED", "6:16", "'2RED' is not valid here", "C identifier"),
    ("keyword", "name: COLOR_RED", "name: switch", "6:16", "'switch' is a C keyword", ""),
    ("value too large", "value: 1,", "value: 2147483648,", "7:", "less than or equal to 2147483647", ""),
    ("value too small", "value: 1,", "value: -2147483649,", "7:", "greater than or equal to -2147483648", ""),
    ("contains itself", "field: int32_t y", "field: Point y", "15:9", "'Point' contains itself by value", "pointer"),
    ("opaque by value", "field: int32_t y", "field: Paint y", "15:", "opaque 'Paint' is used by value", "pointers"),
    ("no name", "field: int32_t y", "field: int32_t", "15:", "has no type", "" ),
    ("unreadable type", "field: int32_t y", "field: int32_t (*y", "15:", "is not a C declaration", ""),
    ("direction against SAL", "direction: out", "direction: in", "26:", "contradicts SAL", ""),
    ("creates nothing known", "creates: out", "creates: outt", "23:18", "there is no parameter 'outt'", "did you mean 'out'?"),
    ("creates an input", "creates: out", "creates: where", "23:18", "'where' is not an out-parameter", ""),
    ("handle of nothing", "{type: Paint,", "{type: Print,", "33:", "unknown type 'Print'", "did you mean"),
    ("released by nothing", "released_by: Table.Dry", "released_by: Table.Wet", "33:", "unknown slot 'Table.Wet'", ""),
    ("released by no slot", "released_by: Table.Dry", "released_by: Dry", "33:", "'Dry' is not valid here", "Table.Slot"),
    ("missing key", "returns: int\n", "doc: x\n", "27:9", "the key 'returns' is missing", "add 'returns:'"),
    ("alias", "enums:", "enums: &a", None, None, None),
    ("an alias used", "  - {name: Paint, since: 24}", "  - &p {name: Paint, since: 24}\n  - *p", "9:", "aliases are not accepted", ""),
    ("custom tag", "name: Color", "name: !!python/name:os.system ''", "3:", "", ""),
    ("not YAML", "opaque:", "opaque: [", "9:", "not valid YAML", ""),
    ("a C++ keyword", "int32_t y", "int32_t class", "15:", "'class' is a C++ keyword", "another name"),
    ("a Python keyword", "int32_t y", "int32_t lambda", "15:", "'lambda' is a Python keyword", "another name"),
    ("a macro's name", "int32_t y", "int32_t NULL", "15:", "'NULL' is a macro of C's own headers", "another name"),
    ("a macro's name of a parameter", "Paint* paint", "Paint* errno", "31:", "'errno' is a macro of C's own headers", "another name"),
    ("a macro's name of a constant", "name: COLOR_RED", "name: stdin", "6:16", "'stdin' is a macro of C's own headers", "another name"),
    ("a field named self", "int32_t y", "int32_t self", "15:", "'self' is the structure itself in Python", "another name"),
    ("a slot named self", "slot: Dry", "slot: self", "27:15", "'self' is the structure itself in Python", "another name"),
    ("a name of ctypes", "int32_t y", "int32_t _fields_", "15:", "'_fields_' is reserved: ctypes", "another name"),
    ("a slot with a name of ctypes", "slot: Dry", "slot: _pack_", "27:15", "'_pack_' is reserved: ctypes", "another name"),
    ("a reserved field", "int32_t y", "int32_t _Y", "15:", "'_Y' is reserved: C keeps", "another name"),
    ("a reserved slot", "slot: Dry", "slot: __dry", "27:15", "'__dry' is reserved: C keeps", "another name"),
    ("a reserved parameter", "Paint* paint", "Paint* __paint", "31:", "'__paint' is reserved: C keeps", "another name"),
    ("a reserved type", "{name: Paint, since", "{name: _Paint, since", "9:12", "'_Paint' is reserved: C keeps", "another name"),
    ("a reserved constant", "name: COLOR_RED", "name: _red", "6:16", "'_red' is reserved: C keeps", "another name"),
    ("a method of enums", "name: COLOR_RED", "name: mro", "6:16", "'mro' is a method of Python's enumerations", "another name"),
    ("a C++ keyword of a parameter", "Paint* paint", "Paint* new", "31:", "'new' is a C++ keyword", "another name"),
    ("a type named as an enumerator", "name: COLOR_RED", "name: Paint", "6:9", "duplicate name 'Paint'", "it is also at small.yaml:9:"),
    ("void by value", "int32_t y", "void y", "15:", "'void' has no values", ""),
    ("a void parameter", "_In_ Paint* paint", "_In_ void paint", "31:", "'void' has no values", ""),
    ("an array of nothing", "int32_t y", "int32_t y[0]", "15:", "an array has 1 to", ""),
    ("an endless array", "int32_t y", "int32_t y[4294967296]", "15:", "an array has 1 to", ""),
    ("an array without length", "int32_t y", "int32_t y[]", "15:", "an array needs its length", ""),
    ("a function as a field", "int32_t y", "int32_t y(int)", "15:", "declares a function", "pointer"),
    ("an array as a result", "returns: int\n", "returns: 'int[2]'\n", "29:", "a function cannot return 'int[2]'", "pointer"),
    ("unknown SAL", "_In_ Paint* paint", "_Inn_ Paint* paint", "31:", "'_Inn_' is not a SAL annotation", "did you mean '_In_"),
    ("octal", "value: 1,", "value: 010,", "7:", "'010' is not a plain number", "decimal"),
    ("sexagesimal", "value: 1,", "value: 1:30,", "7:", "'1:30' is not a plain number", "decimal"),
    ("a version of another type", "  - name: Point\n", "  - name: Point\n    version_field: x\n", "12:20", "'x' cannot carry the version", "uint32_t"),
    ("two floors", "floor: 24, newest: 26", "floor: 27, newest: 26", "1:", "releases must be ordered", ""),
]  # fmt: skip


@pytest.mark.parametrize("row", BAD, ids=[row[0] for row in BAD])
def test_bad_input_is_named_with_its_place(row):
    _, old, new, place, message, hint = row
    assert SMALL.count(old) >= 1, "the row changes nothing"
    text = SMALL.replace(old, new, 1)
    if place is None:
        load_texts({"small.yaml": text})
        return
    with pytest.raises(SpecErrors) as caught:
        load_texts({"small.yaml": text})
    shown = str(caught.value)
    assert f"small.yaml:{place}" in shown, shown
    assert message in shown, shown
    assert hint in shown, shown
    for problem in caught.value.problems:
        assert problem.loc.line and problem.loc.column and problem.hint, problem


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("Paint* paint", "Paint* in"),
        ("Paint* paint", "Paint* self"),
        ("Paint* paint", "Paint* _fields_"),
        ("int32_t y", "int32_t __place_holder"),
        ("int32_t y", "int32_t y_"),
        ("slot: Dry\n", "slot: mro\n"),
    ],
)
def test_names_that_other_languages_can_spell_are_taken(old: str, new: str) -> None:
    """Parameters are positional in Python; and ONNX Runtime has a field with a leading '__'."""
    text = SMALL.replace(old, new).replace(
        "Table.Dry", "Table.mro" if "mro" in new else "Table.Dry"
    )
    load_texts({"small.yaml": text})


def test_all_errors_of_a_file_come_in_one_run():
    text = SMALL.replace("const Point* where", "const Nope* where").replace("int32_t x", "Nada x")
    text = text.replace("released_by: Table.Dry", "released_by: Table.Wet")
    with pytest.raises(SpecErrors) as caught:
        load_texts({"small.yaml": text})
    assert len(caught.value.problems) == 3
    lines = [p.loc.line for p in caught.value.problems]
    assert lines == sorted(lines)


def test_a_fault_of_form_hides_no_fault_of_meaning():
    """What only the whole file can show is looked for even where one of its elements is refused."""
    text = SMALL.replace("value: 1, since: 26", "value: 010, sinse: 26")
    text = text.replace("int32_t y", "int32_t class")
    text = text.replace("released_by: Table.Dry", "released_by: Table.Wet")
    text = text.replace("_In_ Paint* paint", "_In_ Pant* paint")
    with pytest.raises(SpecErrors) as caught:
        load_texts({"small.yaml": text})
    found = [(p.loc.line, p.message) for p in caught.value.problems]
    assert found == [
        (7, "'010' is not a plain number"),
        (7, "unknown key 'sinse'"),
        (15, "'class' is a C++ keyword and cannot name anything"),
        (31, "unknown type 'Pant'"),
        (33, "unknown slot 'Table.Wet'"),
    ], str(caught.value)


def test_a_missing_folder_says_what_to_do(tmp_path):
    with pytest.raises(SpecErrors, match="--spec-dir"):
        load_spec(tmp_path)


def test_a_struct_that_contains_itself_through_others():
    text = (
        SMALL.replace("int32_t x", "Pair a")
        + "  - {type: Pair, since: 24, released_by: Table.Dry, doc: x}\n"
    )
    text = text.replace(
        "structs:\n",
        "structs:\n  - name: Pair\n    since: 24\n    fields:\n      - field: Point p\n",
        1,
    )
    with pytest.raises(SpecErrors, match=r"Pair -> Point -> Pair|Point -> Pair -> Point"):
        load_texts({"small.yaml": text})


def test_duplicate_versions_are_refused():
    with pytest.raises(SpecErrors, match="exactly one spec file"):
        load_texts(
            {"a.yaml": SMALL, "b.yaml": "versions: {floor: 24, newest: 26, ep_structs: 26}\n"}
        )


@pytest.mark.fuzz
@given(data=st.data())
def test_mutated_specs_give_errors_and_no_other_exception(data):
    """Cut, repeat and overwrite pieces of a valid spec: it loads, or every fault has a place."""
    text = SMALL
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(text)))
        length = data.draw(st.integers(0, 12))
        piece = data.draw(
            st.text(st.sampled_from("abX019_ :-,[]{}&*!|>'\"#\n\t\\()\u00e9\x00"), max_size=8)
        )
        text = text[:at] + piece + text[at + length :]
    try:
        load_texts({"m.yaml": text})
    except SpecErrors as error:
        assert error.problems
        assert all(p.message and p.loc.file for p in error.problems)


_KEYWORD_TYPES = st.sampled_from([*sorted(FIXED), "OrtValue", "void"])


@st.composite
def _types(draw, depth=0):
    base = draw(_KEYWORD_TYPES)
    text = ("const " if draw(st.booleans()) else "") + base
    for _ in range(draw(st.integers(0, 3))):
        text += "*" + (" const" if draw(st.booleans()) else "")
    return text


@given(_types(), st.sampled_from(["", "x", "names"]))
def test_printing_a_type_reads_back_the_same(text, name):
    ctype = parse_type(text)
    again = parse_declaration(declare(ctype, name))
    assert (again.type, again.name) == (ctype, name)


@given(st.text(st.sampled_from("ab *()[],0_InOutx const.\n"), max_size=40))
def test_unreadable_declarations_raise_one_kind_of_error(text):
    try:
        found = parse_declaration(text)
    except CTypeError as error:
        assert 0 <= error.offset <= len(text)
    else:
        assert parse_declaration(declare(found.type, found.name)).type == found.type


@pytest.mark.parametrize(
    "text", ["(" * 5000 + "x", "int " + "(*" * 5000 + "x", "int x" + "[" * 5000]
)
def test_deep_nesting_is_an_error_and_no_crash(text):
    with pytest.raises(CTypeError):
        parse_declaration(text)


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("unsigned  long int", "unsigned long"),
        ("char const *", "const char*"),
        ("struct OrtEnv * const *", "OrtEnv* const*"),
        ("_Bool", "bool"),
        ("void (*)(void)", "void (*)(void)"),
        ("void (* (*)(int))(char)", "void (*(*)(int))(char)"),
        ("const OrtApi *(*)()", "const OrtApi* (*)(void)"),
    ],
)
def test_types_have_one_spelling(text, printed):
    assert type_text(parse_type(text)) == printed


# --- the project's own spec ---------------------------------------------------------------------


@pytest.mark.parametrize("release", RELEASES)
def test_the_spec_agrees_with_recorded_facts(model, release):
    """Element by element, on both ABIs: names, order, types, values, offsets, sizes, SAL words."""
    spec, facts = model.at(int(release.split(".")[1])), load_facts(
        SPEC / "facts" / f"ort-{release}.json"
    )
    for section in ("enums", "structs", "opaque", "typedefs", "functions"):
        assert set(getattr(spec, section)) == set(getattr(facts, section)), section
    for name, struct in facts.structs.items():
        ours = spec.structs[name]
        assert (ours.size, ours.size_win64) == (struct.size, struct.size_win64), name
        assert [(f.name, _linux(f.type), f.offset, f.offset_win64) for f in ours.fields] == [
            (f.name, f.type, f.offset, f.offset_win64) for f in struct.fields
        ], name
        for field, known in zip(ours.fields, struct.fields, strict=True):
            if known.function is not None:
                assert field.function is not None
                assert _signature(field.function) == _signature(
                    known.function
                ), f"{name}.{field.name}"
    for name, enum in facts.enums.items():
        assert [(c.name, c.value) for c in spec.enums[name].constants] == [
            (c.name, c.value) for c in enum.constants
        ]
    for name, typedef in facts.typedefs.items():
        assert _linux(spec.typedefs[name].type) == typedef.type, name
    for name, export in facts.functions.items():
        assert spec.functions[name].function.type == export.function.type, name


def _linux(ctype):
    """The facts were recorded on Linux, where ORTCHAR_T is char."""
    return replaced(ctype, {"ORTCHAR_T": "char"})


def _signature(function):
    words = [
        (p.name, _linux(p.type), [s.partition("(")[0] for s in p.sal]) for p in function.params
    ]
    return _linux(function.returns), words


def test_the_curated_surface_is_fully_described(model):
    """Every function has a purpose, thread rules and described parameters; every type is described."""
    file = model.sources[0].file
    assert model.sources[0].document.file.endswith("interop_api.yaml")
    for struct in file.structs:
        assert struct.doc, struct.name
        for field in model.abi.structs[struct.name].fields:
            if field.function is None:
                assert f"{struct.name}.{field.name}" in model.docs, f"{struct.name}.{field.name}"
                continue
            meaning = model.semantics[f"{struct.name}.{field.name}"]
            assert meaning.doc and meaning.threads, f"{struct.name}.{field.name}"
            assert all(p.doc for p in meaning.params), f"{struct.name}.{field.name}"
            if field.name.startswith(("Create", "Import")):
                assert meaning.creates, field.name
            if field.name.startswith("Release"):
                assert meaning.releases, field.name
    for enum in file.enums:
        assert enum.doc and all(c.doc for c in enum.constants), enum.name


def test_unsupported_answers_follow_the_contract(model):
    answers = {
        f.name: model.semantics[f"OrtInteropApi.{f.name}"].unsupported
        for f in model.abi.structs["OrtInteropApi"].fields
    }
    assert answers["CreateExternalResourceImporterForDevice"] == "null_result"
    assert answers["CanImportMemory"] == answers["CanImportSemaphore"] == "false"
    for name in (
        "ImportMemory",
        "ImportSemaphore",
        "CreateTensorFromMemory",
        "WaitSemaphore",
        "SignalSemaphore",
    ):
        assert answers[name] == "not_implemented", name
    assert (
        answers["InitGraphicsInteropForEpDevice"]
        == answers["DeinitGraphicsInteropForEpDevice"]
        == "not_implemented"
    )
    assert model.semantics["OrtApi.GetInteropApi"].unsupported == "null_table"


def test_renamed_enumerators_keep_both_names(model):
    before, after = model.at(29), model.at(30)
    names = [c.name for c in before.enums["OrtExternalMemoryHandleType"].constants]
    assert "ORT_EXTERNAL_MEMORY_HANDLE_TYPE_VK_MEMORY_WIN32" in names
    assert "ORT_EXTERNAL_MEMORY_HANDLE_TYPE_HOST_ALLOCATION" not in names
    alias = after.macros["ORT_EXTERNAL_MEMORY_HANDLE_TYPE_VK_MEMORY_WIN32"]
    assert alias.value == "ORT_EXTERNAL_MEMORY_HANDLE_TYPE_MEMORY_WIN32"
    assert not [m for m in before.macros if m != "ORT_API_VERSION"]


def test_a_slot_whose_header_claims_another_release_has_both(model):
    """ORT documents this slot as 1.24, but the table of 1.24 ends before it: a caller would read past the end."""
    slot = model.at(25).structs["OrtCompileApi"].field("ModelCompilationOptions_SetInputModel")
    assert slot.since == 25 and slot.doc.since == 24
    assert (
        model.at(24).structs["OrtCompileApi"].field("ModelCompilationOptions_SetInputModel") is None
    )


def test_sal_history_is_kept(model):
    def sal(release):
        slot = model.at(release).structs["OrtModelEditorApi"].field("AddGraphToModel")
        return slot.function.params[1].sal

    assert sal(26) == ("_In_",) and sal(28) == ("_Inout_",)


def test_signed_values_are_as_the_compiler_has_them(model):
    constants = {
        c.name: c.value for c in model.abi.enums["OrtDeviceEpIncompatibilityReason"].constants
    }
    assert constants["OrtDeviceEpIncompatibility_UNKNOWN"] == -2147483648


@pytest.mark.parametrize("name", sorted(FIXED))
def test_every_width_is_what_the_compilers_say(name):
    """The one table of widths, against C's own rules on both data models."""
    width = FIXED[name]
    exact = re.fullmatch(r"u?int(\d+)_t", name)
    if exact:
        assert width.lp64 == width.llp64 == int(exact[1]) // 8
        assert width.signed is not name.startswith("u")
    assert name != "long" or (width.lp64, width.llp64) == (8, 4)
    assert name != "wchar_t" or (width.lp64, width.llp64) == (4, 2)
    assert name != "ORTCHAR_T" or (width.lp64, width.llp64) == (1, 2)


def test_the_json_schema_describes_the_spec_files():
    jsonschema = pytest.importorskip("jsonschema", reason="jsonschema is in the test extra")
    schema = SpecFile.model_json_schema()
    validator = jsonschema.Draft202012Validator(schema)
    for path in SPEC.glob("*.yaml"):
        assert not list(validator.iter_errors(yaml.safe_load(path.read_text())))
    assert list(validator.iter_errors({"enumz": []}))
