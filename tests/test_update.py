"""``update`` and ``record``: an older spec brought up to a newer release, and what is left to people."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from header_synth import synthesise
from narrow import narrow_folder, narrow_text
from ort_interop_gen.cli.main import main
from ort_interop_gen.drift.check import run_check
from ort_interop_gen.drift.update import REVIEW, Update, patch, update_spec
from ort_interop_gen.header.reader import read_header
from ort_interop_gen.render.env import TargetEnv
from ort_interop_gen.render.targets.c_header import CHeader
from ort_interop_gen.spec.abi import Abi, Constant, Field, Function, Param
from ort_interop_gen.spec.ctype import parse_type
from ort_interop_gen.spec.facts import load_all, load_facts
from ort_interop_gen.spec.load import load_spec
from ort_interop_gen.spec.model import Model
from ort_interop_gen.spec.problems import SpecErrors
from ort_interop_gen.spec.schema import SpecFile

ROOT = Path(__file__).resolve().parent.parent
SPEC = ROOT / "spec"
FACTS = load_all(SPEC / "facts")
TREE = load_spec(SPEC)
PROSE = {"doc", "creates", "releases", "borrows", "unsupported", "threads", "errors"}
"""What a header cannot tell: the meaning that people write."""


@pytest.fixture
def older(tmp_path: Path) -> Path:
    """The tree's spec as it would be had 1.25 been the newest release."""
    narrow_folder(SPEC, tmp_path / "spec", 25)
    shutil.copytree(SPEC / "facts", tmp_path / "spec" / "facts")
    return tmp_path / "spec"


def headers_of(release: int, folder: Path) -> Path:
    """A release's headers, written from the tree's spec in the words of ONNX Runtime's."""
    folder.mkdir(exist_ok=True)
    abi, record = TREE.at(release), FACTS[release]
    structs = {}
    for name, struct in abi.structs.items():
        known = {f.name: f.doc for f in record.structs[name].fields}
        fields = tuple(replace(f, doc=known[f.name]) for f in struct.fields)
        structs[name] = replace(struct, fields=fields)
    return synthesise(replace(abi, structs=structs), folder)


def write(update: Update) -> None:
    for path, text in update.texts.items():
        path.write_text(text, encoding="utf-8")


def without_sizes(abi: Abi) -> Abi:
    """A copy whose annotations have no arguments, as records have them."""

    def function(item: Function | None) -> Function | None:
        if item is None:
            return None
        params = tuple(
            replace(p, sal=tuple(w.partition("(")[0] for w in p.sal)) for p in item.params
        )
        return replace(item, params=params)

    structs = {
        name: replace(s, fields=tuple(replace(f, function=function(f.function)) for f in s.fields))
        for name, s in abi.structs.items()
    }
    return replace(abi, structs=structs)


def bare(model: Model) -> list[Any]:
    """Everything that spec files say but their prose, section by section and in order."""

    def strip(value: Any) -> Any:
        if isinstance(value, dict):
            # 'direction' and 'nullable' repeat SAL; a mapping that holds nothing else is its text.
            left = {
                k: strip(v) for k, v in value.items() if k not in PROSE | {"direction", "nullable"}
            }
            return left["decl"] if left.keys() == {"decl"} else left
        return [strip(v) for v in value] if isinstance(value, list) else value

    def dumped(file: SpecFile) -> Any:
        data = file.model_dump(exclude_unset=True)
        return {k: v for k, v in strip(data).items() if k not in ("handles", "annotate")}

    return [dumped(source.file) for source in model.sources]


@pytest.mark.parametrize("release", range(24, 30))
def test_narrowing_is_what_the_spec_was(release: int, tmp_path: Path) -> None:
    narrow_folder(SPEC, tmp_path, release)
    model = load_spec(tmp_path)
    assert (model.newest, model.ep_structs) == (release, release)
    assert all(model.at(r) == TREE.at(r) for r in range(24, release + 1))


def test_update_ends_at_the_spec_of_the_tree(older: Path, tmp_path: Path) -> None:
    header = headers_of(29, tmp_path / "headers")
    update = update_spec(older, read_header(header).abi, records=FACTS)
    assert update.decide == []
    write(update)
    updated = load_spec(older)
    for release in range(24, 30):
        assert updated.at(release) == TREE.at(release), release
    narrow_folder(SPEC, tmp_path / "tree29", 29)
    assert bare(updated) == bare(load_spec(tmp_path / "tree29"))


def test_update_from_records_alone(older: Path) -> None:
    update = update_spec(older, FACTS[29], records=FACTS)
    assert update.decide == []
    write(update)
    second = update_spec(older, FACTS[30], records=FACTS)
    assert second.decide == []
    write(second)
    updated = load_spec(older)
    assert (updated.newest, updated.ep_structs) == (30, 29), "1.30's EP structs are not known"
    for release in range(24, 31):
        assert without_sizes(updated.at(release)) == without_sizes(TREE.at(release)), release
    text = (older / "ort_abi.yaml").read_text()
    assert "the record lacks the size in _In_reads_ of candidates" in text


def test_update_release_by_release_gives_the_same(older: Path, tmp_path: Path) -> None:
    for release in (26, 28, 29):
        header = headers_of(release, tmp_path / f"h{release}")
        write(update_spec(older, read_header(header).abi, records=FACTS))
    updated = load_spec(older)
    assert all(updated.at(r) == TREE.at(r) for r in range(24, 30))


def test_a_second_update_finds_nothing(older: Path, tmp_path: Path) -> None:
    header = read_header(headers_of(29, tmp_path / "headers")).abi
    write(update_spec(older, header, records=FACTS))
    again = update_spec(older, header, records=FACTS)
    assert (again.texts, again.changes, again.decide) == ({}, [], [])


def test_only_lines_that_change_are_touched(older: Path, tmp_path: Path) -> None:
    header = read_header(headers_of(29, tmp_path / "headers")).abi
    update = update_spec(older, header, records=FACTS)
    lines = [line for line in patch(update) if line.startswith("-") and not line.startswith("---")]
    wanted = {"-  newest: 25", "-  ep_structs: 25"}
    assert {line.rstrip("\n") for line in lines} - wanted == {
        f"-          - {json.dumps(b.decl)}"
        for s in TREE.sources for struct in s.file.structs for f in struct.fields
        for p in getattr(f, "params", ()) if not isinstance(p, str) for b in p.before if b.release > 25
    }  # fmt: skip
    reviews = sum(text.count(REVIEW) for text in update.texts.values())
    assert reviews == len(update.changes) - 2, "every change but the two versions is marked"


def test_without_records_since_comes_from_the_comments(older: Path, tmp_path: Path) -> None:
    shutil.rmtree(older / "facts")
    update = update_spec(older, read_header(headers_of(29, tmp_path / "headers")).abi)
    write(update)
    api = load_spec(older).at(29).structs["OrtApi"]
    since = {f.name: f.since for f in api.fields if (f.since or 0) > 25}
    tree = {f.name: f.since for f in TREE.at(29).structs["OrtApi"].fields if (f.since or 0) > 25}
    assert since == tree
    # Nothing tells when this enumerator came but that it is there now.
    constants = load_spec(older).at(29).enums["OrtErrorCode"].constants
    assert next(c.since for c in constants if c.name == "ORT_DEVICE_RESET") == 29


def changed(abi: Abi, struct: str, fields: tuple[Field, ...]) -> Abi:
    other = replace(abi.structs[struct], fields=fields, size=None, size_win64=None)
    return replace(abi, structs=abi.structs | {struct: other})


def test_what_breaks_is_listed_and_not_written(older: Path) -> None:
    base = TREE.at(25)
    fields = base.structs["OrtInteropApi"].fields
    swapped = (fields[1], fields[0], *fields[2:])
    update = update_spec(older, changed(base, "OrtInteropApi", swapped))
    assert update.texts == {}
    assert [(f.rule, f.symbol) for f in update.decide] == [
        ("slot-swapped", "OrtInteropApi.CreateExternalResourceImporterForDevice")
    ]


def test_what_is_additive_is_written_beside_what_breaks(older: Path) -> None:
    base = TREE.at(25)
    void = Function(parse_type("void"), (Param("count", parse_type("size_t"), ("_In_",)),))
    slot = Field("AddedLater", parse_type("void (*)(size_t)"), void, since=25)
    fields = base.structs["OrtInteropApi"].fields
    abi = changed(base, "OrtInteropApi", (*fields, slot))
    broken = replace(
        base.enums["OrtGraphicsApi"], constants=(Constant("ORT_GRAPHICS_API_NONE", 5),)
    )
    update = update_spec(older, replace(abi, enums=abi.enums | {"OrtGraphicsApi": broken}))
    write(update)
    found = load_spec(older).at(25).structs["OrtInteropApi"].fields[-1]
    assert (found.name, found.function) == ("AddedLater", void)
    assert {f.rule for f in update.decide} == {"enum-value", "enumerator-removed"}


def test_an_older_header_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SpecErrors, match=r"the header is of 1\.24.*up to 1\.30"):
        update_spec(SPEC, FACTS[24])


def test_a_rename_reaches_the_backends(tmp_path: Path) -> None:
    spec = tmp_path / "spec"
    narrow_folder(SPEC, spec, 29)
    (spec / "backends").mkdir()
    text = (SPEC / "backends" / "host.yaml").read_text()
    new, old = (f"ORT_EXTERNAL_MEMORY_HANDLE_TYPE_{n}OPAQUE_FD" for n in ("MEMORY_", "VK_MEMORY_"))
    assert new in text
    item = re.search(r"\n  - type: \w*HOST_ALLOCATION\n(?:    .*\n)+", text)
    assert item is not None
    older = text.replace(item[0], "\n").replace(new, old)
    (spec / "backends" / "host.yaml").write_text(older)
    update = update_spec(spec, FACTS[30], records=FACTS)
    assert update.decide == []
    written = {p.name: t for p, t in update.texts.items()}
    assert written["host.yaml"] == older.replace(old, new)


FLOW = """\
header: onnxruntime_c_api.h
versions: {floor: 24, newest: 24, ep_structs: 24}
# kept
enums:
  - {name: E, since: 1, constants: [{name: A, value: 0}]}
structs:
  - name: T
    kind: table
    fields:
      # the first
      - slot: F
        returns: void
        params: [int x]   # in flow style
"""


def small(tmp_path: Path, text: str, release: int, extra: str) -> Update:
    spec, header = tmp_path / "spec", tmp_path / "onnxruntime_c_api.h"
    spec.mkdir()
    (spec / "interop_api.yaml").write_text(text)
    header.write_text(f"#define ORT_API_VERSION {release}\n#define ORT_API_CALL\n{extra}")
    update = update_spec(spec, read_header(header).abi)
    write(update)
    return update


def test_a_sequence_in_flow_style_is_left_to_people(tmp_path: Path) -> None:
    update = small(
        tmp_path,
        FLOW,
        25,
        "typedef enum E { A, B } E;\ntypedef struct T { void(ORT_API_CALL* F)(int y); } T;\n",
    )
    assert [(f.rule, f.symbol) for f in update.decide] == [
        ("param-renamed", "T.F"),
        ("enumerator-added", "E.B"),
    ]
    assert "# kept" in (tmp_path / "spec" / "interop_api.yaml").read_text()


ENUM = """\
header: onnxruntime_c_api.h
versions: {floor: 24, newest: 24, ep_structs: 24}
enums:
  - name: E
    since: 1
    constants:
      - {name: ORT_A, value: 0}
      - {name: ORT_B, value: 1}
      - {name: ORT_C, value: 2}
"""


@pytest.mark.parametrize(
    ("header", "aliases"),
    [
        ("ORT_A, ORT_B, ORT_C, NEW = ORT_B", {"NEW": "ORT_B"}),
        # before what it is an alias of
        ("NEW, ORT_A = 0, ORT_B, ORT_C", {"NEW": "ORT_A"}),
        ("ORT_B = 1, ORT_C, NEW = 0, ORT_A = 0", {"NEW": "ORT_A"}),
        # of what is new itself, in another order than the spec's
        ("ORT_A, ORT_B, ORT_C, ONE, TWO = ONE, SIX = 1", {"TWO": "ONE", "SIX": "ORT_B"}),
        ("ORT_C = 2, ONE = 7, ORT_A = 0, TWO = ONE, ORT_B = 1", {"TWO": "ONE"}),
        # of what has another name now
        ("ORT_A, ORT_B2, NEW = 1, ORT_C", {"NEW": "ORT_B2"}),
    ],
)
def test_an_enumerator_alias_is_written_as_one(
    tmp_path: Path, header: str, aliases: dict[str, str]
) -> None:
    update = small(tmp_path, ENUM, 25, f"typedef enum E {{ {header} }} E;\n")
    assert update.decide == []
    spec = load_spec(tmp_path / "spec")
    (source,) = spec.sources
    constants = source.file.enums[0].constants
    assert {c.name: c.alias_of for c in constants if c.alias_of} == aliases
    told = {c.symbol: c.what for c in update.changes}
    assert all(told[f"E.{n}"].endswith(f"an alias of {of}") for n, of in aliases.items())
    assert run_check(spec, tmp_path / "onnxruntime_c_api.h", views=["linux"]).exit_code == 0


@pytest.mark.parametrize(
    ("header", "decide", "written"),
    [
        # the value belonged to an enumerator that has another one now, or none
        (
            "ORT_A, NEW, ORT_B = 9, ORT_C = 2, LAST",
            {("enum-value", "E.ORT_B"), ("enumerator-conflict", "E.NEW")},
            ["LAST"],
        ),
        (
            "ORT_A, UNLIKE, ORT_C, LAST",
            {("enumerator-removed", "E.ORT_B"), ("enumerator-conflict", "E.UNLIKE")},
            ["LAST"],
        ),
        # the name belongs to another enumeration
        (
            "ORT_A, ORT_C = 2 } E;\ntypedef enum H { ORT_B",
            {("enumerator-removed", "E.ORT_B"), ("type-added", "H")},
            [],
        ),
    ],
)
def test_an_enumerator_conflict_is_left_to_people(
    tmp_path: Path, header: str, decide: set[tuple[str, str]], written: list[str]
) -> None:
    update = small(tmp_path, ENUM, 25, f"typedef enum E {{ {header} }} E;\n")
    assert {(f.rule, f.symbol) for f in update.decide} == decide
    spec = load_spec(tmp_path / "spec")
    assert [c.name for c in spec.at(25).enums["E"].constants] == [
        "ORT_A",
        "ORT_B",
        "ORT_C",
        *written,
    ]


@pytest.mark.parametrize("last", ["NEW = -1", "NEW = 0x1FFFFFFFF"])
def test_an_enumerator_that_changes_the_storage_is_left_to_people(
    tmp_path: Path, last: str
) -> None:
    update = small(tmp_path, ENUM, 25, f"typedef enum E {{ ORT_A, ORT_B, ORT_C, {last} }} E;\n")
    assert {(f.rule, f.symbol) for f in update.decide} == {
        ("enum-width", "E"),
        ("enumerator-added", "E.NEW"),
    }
    assert not [c for c in update.changes if c.symbol == "E.NEW"]


HELD = """\
header: onnxruntime_ep_c_api.h
versions: {floor: 24, newest: 24, ep_structs: 24}
structs:
  - name: D
    kind: descriptor
    since: 24
    version_field: version
    fields:
      - field: uint32_t version
      - field: uint32_t kind
  - name: H
    kind: handle
    since: 24
    version_field: version
    fields:
      - field: uint32_t version
      - field: D d
      - field: uint32_t last
"""


def test_a_struct_that_others_hold_by_value_is_not_grown(tmp_path: Path) -> None:
    """It has a version, but what stands behind it in others moves: that breaks them."""
    update = small(
        tmp_path,
        HELD,
        25,
        "#include <stdint.h>\n"
        "typedef struct D { uint32_t version; uint32_t kind; uint64_t flags; } D;\n"
        "typedef struct H { uint32_t version; D d; uint32_t last; } H;\n",
    )
    left = {(f.rule, f.symbol) for f in update.decide}
    assert {("field-appended", "D.flags"), ("field-offset", "H.d")} <= left
    assert [str(c) for c in update.changes if "flags" in str(c)] == []
    (hint,) = {f.hint for f in update.decide if f.rule == "field-appended"}
    assert "by value" in hint and "`update`" not in hint
    versions = load_spec(tmp_path / "spec").versions
    assert (versions.newest, versions.ep_structs) == (25, 24), "an EP struct broke"


MEANING = """\
header: onnxruntime_c_api.h
versions: {floor: 24, newest: 24, ep_structs: 24}
enums:
  - name: OrtErrorCode
    since: 1
    constants:
      - {name: ORT_OK, value: 0}
opaque:
  - {name: Thing, since: 24}
structs:
  - name: T
    kind: table
    since: 24
    fields:
      - slot: Make
        returns: void
        params:
          - _Outptr_ Thing** out
        creates: out
      - slot: Use
        returns: void
        params:
          - {decl: _In_ Thing* thing, direction: in, nullable: false}
      - slot: Plain
        returns: void
        params:
          - int count
"""


def test_what_contradicts_the_meaning_is_left_to_people_and_the_rest_is_written(
    tmp_path: Path,
) -> None:
    update = small(
        tmp_path,
        MEANING,
        25,
        "#define _Outptr_\n#define _In_opt_\ntypedef struct Thing Thing;\n"
        "typedef enum OrtErrorCode { ORT_OK } OrtErrorCode;\n"
        "typedef struct T { void(ORT_API_CALL* Make)(_Outptr_ Thing** result);\n"
        "  void(ORT_API_CALL* Use)(_In_opt_ Thing* thing);\n"
        "  void(ORT_API_CALL* Plain)(int number);\n"
        "  void(ORT_API_CALL* Later)(void); } T;\n",
    )
    assert {(f.rule, f.symbol) for f in update.decide} == {
        ("param-renamed", "T.Make"),
        ("sal-changed", "T.Use"),
    }
    assert {c.symbol for c in update.changes} >= {"T.Plain", "T.Later"}
    table = load_spec(tmp_path / "spec").at(25).structs["T"]
    names = [f.function.params[0].name for f in table.fields if f.function and f.function.params]
    assert names == ["out", "thing", "number"]


def test_a_name_that_no_spec_may_have_is_no_traceback_and_nothing_is_written(
    tmp_path: Path,
) -> None:
    with pytest.raises(SpecErrors) as caught:
        small(tmp_path, ENUM, 25, "typedef enum E { ORT_A, ORT_B, ORT_C, None } E;\n")
    first, second = caught.value.problems
    assert "nothing was written" in first.message and first.hint
    assert "'None' is a Python keyword" in second.message and second.loc.line == 11
    assert (tmp_path / "spec" / "interop_api.yaml").read_text() == ENUM


def test_every_kind_of_new_element(tmp_path: Path) -> None:
    update = small(
        tmp_path,
        FLOW,
        25,
        "#include <stdint.h>\n#define ORT_LIMIT (1 << 3)\ntypedef struct Hidden Hidden;\n"
        "typedef enum E { A } E;\ntypedef enum G { P = -1, Q, R = Q } G;\n"
        "typedef void(ORT_API_CALL* Call)(void* user, const char* const* names);\n"
        "typedef int Number;\n"
        "typedef struct D { uint32_t version; union { int i; float f[4]; } u; } D;\n"
        "typedef struct Plain { Hidden* h; const char* names[4]; } Plain;\n"
        "typedef struct T { void(ORT_API_CALL* F)(int x); int (*G)(void); } T;\n"
        "Number ORT_API_CALL Export(Plain* p);\n",
    )
    assert update.decide == []
    abi = load_spec(tmp_path / "spec").at(25)
    assert abi.structs["D"].fields[1].type == parse_type("union { int i; float f[4]; }")
    assert [(c.name, c.value) for c in abi.enums["G"].constants] == [("P", -1), ("Q", 0), ("R", 0)]
    assert abi.structs["T"].fields[1].function == Function(parse_type("int"), api_call=False)
    assert abi.macros["ORT_LIMIT"].value == "(1 << 3)"
    assert {"Hidden", "Call", "Number", "Export"} <= {*abi.opaque, *abi.typedefs, *abi.functions}


@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_line_ends_and_a_mark_in_front_are_kept(
    mark: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As a checkout on Windows has the spec."""
    spec, header = tmp_path / "spec", tmp_path / "onnxruntime_c_api.h"
    (spec / "facts").mkdir(parents=True)
    file = spec / "interop_api.yaml"
    before = (mark + ENUM).replace("\n", "\r\n").encode()
    file.write_bytes(before)
    header.write_text(
        "#define ORT_API_VERSION 24\n#define ORT_API_CALL\n"
        "typedef enum E { ORT_A, ORT_B, ORT_C, ORT_D } E;\n"
    )
    arguments = ["update", "--header", str(header), "--spec-dir", str(spec)]
    assert main(arguments) == 1
    assert "+      - {name: ORT_D, value: 3" in capsys.readouterr().out
    assert file.read_bytes() == before
    assert main([*arguments, "--write"]) == 0
    after = file.read_bytes()
    assert after.count(b"\n") == after.count(b"\r\n") > before.count(b"\n")
    lines = after.splitlines(keepends=True)
    assert [line for line in before.splitlines(keepends=True) if line not in lines] == []
    assert main([*arguments, "--write"]) == 0 and file.read_bytes() == after


def test_what_cannot_be_read_is_not_written(tmp_path: Path) -> None:
    spec, header = tmp_path / "spec", tmp_path / "onnxruntime_c_api.h"
    spec.mkdir()
    (spec / "interop_api.yaml").write_text(FLOW)
    header.write_text(
        "#define ORT_API_VERSION 24\n#define ORT_API_CALL\ntypedef enum E { A } E;\n"
        "typedef struct T { void(ORT_API_CALL* F)(int x); int b : 3; void (*H)(void); } T;\n"
        "typedef struct S { int c : 3; } S;\n"
    )
    read = read_header(header)
    update = update_spec(spec, read.abi, unreadable=read.unreadable)
    assert update.texts == {}
    assert {f.rule for f in update.decide} >= {"unreadable", "slot-appended"}


# The command line ------------------------------------------------------------------------------


def test_cli_prints_a_patch_that_applies(
    older: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    header = headers_of(29, tmp_path / "headers")
    before = {p.name: p.read_text() for p in older.glob("*.yaml")}
    assert main(["update", "--header", str(header), "--spec-dir", "spec"]) == 1
    out, err = capsys.readouterr()
    assert "nothing left to decide" in err
    assert {p.name: p.read_text() for p in older.glob("*.yaml")} == before, "nothing is written"
    applied = subprocess.run(["patch", "-p1"], input=out, text=True, capture_output=True)
    assert applied.returncode == 0, applied.stdout
    assert load_spec(older).at(29) == TREE.at(29)


def statements(text: str) -> list[str]:
    """What the rendered header asserts of values, offsets and sizes."""
    found = re.findall(r"^\s*(ORT_INTEROP_ASSERT_\w+\([^;]*\));", text, re.M)
    return ["".join(statement.split()) for statement in found]


def test_cli_writes_then_everything_works(
    older: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    header = headers_of(29, tmp_path / "headers")
    command = ["update", "--spec-dir", str(older), "--write", "--header"]
    assert main([*command, str(header)]) == 0
    assert "marked with '# review:'" in capsys.readouterr().out
    assert run_check(load_spec(older), header).exit_code == 0
    assert main([*command, "1.30"]) == 0
    shutil.copytree(SPEC / "backends", older / "backends")
    assert main(["generate", "--spec-dir", str(older), "--out", str(tmp_path / "generated")]) == 0
    made = (tmp_path / "generated" / "include" / "ort_interop_abi_check.h").read_text()
    outputs = CHeader().render(TREE, TargetEnv(ROOT / "templates" / "c_header"))
    wanted = next(o.text for o in outputs if o.path.endswith("_check.h"))
    assert statements(made) == statements(wanted) != []


def test_cli_errors_are_one_line_with_a_hint(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["update", "--header", "1.24.1"]) == 2
    assert "use `check`" in capsys.readouterr().err
    assert main(["update", "--header", str(tmp_path / "none.h")]) == 2
    assert "give a path" in capsys.readouterr().err
    assert main(["record", "--header", str(tmp_path / "none.h")]) == 2
    assert "does not exist" in capsys.readouterr().err
    assert main(["update", "--header", "1.30", "--spec-dir", str(tmp_path)]) == 2
    assert "recorded" in capsys.readouterr().err
    facts = str(SPEC / "facts" / "ort-1.30.0.json")
    assert main(["update", "--header", facts, "--spec-dir", str(tmp_path)]) == 2
    assert f"{tmp_path}: error: there is no interop_api.yaml in" in capsys.readouterr().err
    (tmp_path / "interop_api.yaml").write_bytes(b"a: b\n# \xe9\n")
    assert main(["update", "--header", facts, "--spec-dir", str(tmp_path)]) == 2
    assert "interop_api.yaml:2: error: the file is not UTF-8" in capsys.readouterr().err


def test_record_is_read_back_equal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    header = headers_of(29, tmp_path / "headers")
    command = ["record", "--header", str(header), "--facts", str(tmp_path / "facts")]
    (tmp_path / "facts").mkdir()
    assert main([*command, "--release", "1.29.1"]) == 0
    made = load_facts(tmp_path / "facts" / "ort-1.29.1.json")
    assert (made.release, made.lacks) == ("1.29.1", frozenset())
    read = read_header(header).abi
    for part in ("enums", "structs", "typedefs", "functions", "macros"):
        assert getattr(made, part).keys() == getattr(read, part).keys()
    assert main(["diff", str(header), str(tmp_path / "facts" / "ort-1.29.1.json")]) == 0
    assert main([*command, "--release", "1.29.1"]) == 0
    assert "up to date" in capsys.readouterr().out


def test_record_replaces_another_only_when_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    facts = tmp_path / "facts"
    facts.mkdir()
    shutil.copy(SPEC / "facts" / "ort-1.29.0.json", facts)
    header = headers_of(29, tmp_path / "headers")
    command = ["record", "--header", str(header), "--facts", str(facts), "--release", "1.29.2"]
    assert main(command) == 2
    assert "recorded already as 1.29.0" in capsys.readouterr().err
    assert [p.name for p in facts.iterdir()] == ["ort-1.29.0.json"]
    assert main([*command, "--force"]) == 0
    assert [p.name for p in facts.iterdir()] == ["ort-1.29.2.json"]
    assert main([*command[:-1], "1.28.0"]) == 2
    assert "does not fit the header" in capsys.readouterr().err


def test_nothing_is_recorded_of_an_unreadable_header(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    header = tmp_path / "onnxruntime_c_api.h"
    header.write_text("#define ORT_API_VERSION 29\nstruct S { int a : 3; };\n")
    (tmp_path / "facts").mkdir()
    assert main(["record", "--header", str(header), "--facts", str(tmp_path / "facts")]) == 2
    assert f"{header}:2: error: a bit-field" in capsys.readouterr().err
    assert not list((tmp_path / "facts").iterdir())


def test_real_headers_end_at_the_spec_of_the_tree(headers_dir: Path, older: Path) -> None:
    update = update_spec(older, read_header(headers_dir / "1.29.0").abi, records=FACTS)
    assert update.decide == []
    write(update)
    updated = load_spec(older)
    assert all(updated.at(r) == TREE.at(r) for r in range(24, 30))


def test_narrowing_keeps_comments() -> None:
    text = (SPEC / "interop_api.yaml").read_text()
    kept = [line for line in text.splitlines() if line.startswith("#")]
    narrowed = narrow_text(text, "interop_api.yaml", 25).splitlines()
    assert [line for line in narrowed if line.startswith("#")] == kept
