"""`check`: one answer for a header, with an exit code that a build can trust."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import ort_interop_gen
import pytest
from header_synth import synthesise
from ort_interop_gen.drift.check import CLEAN, DRIFT, NOT_CHECKED, report_lines, run_check, summary
from ort_interop_gen.drift.finding import Severity
from ort_interop_gen.spec import load_spec
from ort_interop_gen.spec.facts import load_facts, merge
from ort_interop_gen.spec.model import Model

ROOT = Path(__file__).resolve().parent.parent
FACTS = ROOT / "spec" / "facts"
REAL = ("1.24.1", "1.25.0", "1.26.0", "1.28.0", "1.29.0")


@pytest.fixture(scope="module")
def model() -> Model:
    return load_spec(ROOT / "spec")


@pytest.fixture
def clean(model: Model, tmp_path: Path) -> Path:
    """A header that agrees with the spec of 1.29."""
    return synthesise(model.at(29), tmp_path / "include")


def edit(path: Path, old: str, new: str) -> int:
    """Change a header in one place; return the line of the change."""
    text = path.read_text()
    assert text.count(old) == 1, f"{text.count(old)} x {old!r}"
    path.write_text(text.replace(old, new))
    return text[: text.index(old)].count("\n") + 1


@pytest.mark.parametrize("preprocessor", ["cc", "python"])
def test_a_header_that_agrees(model: Model, clean: Path, preprocessor: str) -> None:
    result = run_check(model, clean, preprocessor=preprocessor)
    assert (result.exit_code, result.findings) == (CLEAN, ())
    assert (result.release, result.compared_with) == (29, 29)
    assert "agrees with the spec of 1.29 (linux and windows view" in result.message
    assert run_check(model, clean.parent).exit_code == CLEAN, "a folder will do"


def test_a_header_that_differs_names_both_places(model: Model, clean: Path) -> None:
    path = clean.parent / "onnxruntime_c_api.h"
    line = edit(
        path,
        "  void* native_handle;\n  size_t size_bytes;",
        "  uint32_t native_handle;\n  size_t size_bytes;",
    )
    result = run_check(model, clean)
    assert result.exit_code == DRIFT
    rules = {(f.rule, f.symbol) for f in result.findings}
    assert ("field-type", "OrtExternalMemoryDescriptor.native_handle") in rules
    finding = next(f for f in result.findings if f.rule == "field-type")
    assert (finding.header_loc.file, finding.header_loc.line) == (str(path), line)
    assert finding.spec_loc.file.endswith("interop_api.yaml") and finding.spec_loc.line > 1
    assert result.message.endswith(f"{summary(result.findings)} (linux and windows view)")
    text = "\n".join(report_lines(result.findings))
    assert f"{path}:{line}: breaking [field-type] OrtExternalMemoryDescriptor.native_handle" in text
    assert "spec:   void*" in text and "header: uint32_t" in text


def test_drift_on_one_platform_only_says_on_which(model: Model, clean: Path) -> None:
    path = clean.parent / "onnxruntime_c_api.h"
    old = "  void* native_handle;\n  size_t size_bytes;"
    edit(path, old, f"#ifdef _WIN32\n  int windows_only;\n#endif\n{old}")
    result = run_check(model, clean)
    found = [f for f in result.findings if f.rule == "field-inserted"]
    assert [f.symbol for f in found] == ["OrtExternalMemoryDescriptor.windows_only"]
    assert found[0].message.endswith("(windows view)")
    assert run_check(model, clean, views=("linux",)).exit_code == CLEAN


def test_drift_on_linux_only_says_so_and_common_drift_names_no_view(
    model: Model, clean: Path
) -> None:
    path = clean.parent / "onnxruntime_c_api.h"
    edit(
        path,
        "  void* native_handle;\n  size_t size_bytes;",
        "#ifdef _WIN32\n  void* native_handle;\n#else\n  uint64_t native_handle;\n#endif\n"
        "  uint32_t size_bytes;",
    )
    result = run_check(model, clean)
    shown = {f.symbol.partition(".")[2]: f.message for f in result.findings}
    assert shown["native_handle"].endswith("(linux view)")
    assert "view" not in shown["size_bytes"]


def test_what_cannot_be_read_is_drift_and_not_silence(model: Model, clean: Path) -> None:
    edit(
        clean,
        "  void* native_handle;\n  size_t size_bytes;",
        "  FxNowhere* native_handle;\n  size_t size_bytes;",
    )
    result = run_check(model, clean)
    assert result.exit_code == DRIFT
    assert [(f.severity, f.symbol) for f in result.findings] == [
        (Severity.UNREADABLE, "OrtExternalMemoryDescriptor.native_handle")
    ]


def test_before_the_interop_api_there_is_nothing_to_compare(model: Model, tmp_path: Path) -> None:
    path = synthesise(load_facts(FACTS / "ort-1.23.2.json"), tmp_path)
    result = run_check(model, path)
    assert (result.exit_code, result.release, result.findings) == (NOT_CHECKED, 23, ())
    assert "declares API version 23" in result.message
    assert "the interop API starts at 1.24" in result.message


def test_the_delta_of_1_30_on_top_of_1_29_agrees(model: Model, tmp_path: Path) -> None:
    older, delta = (load_facts(FACTS / f"ort-1.{v}.0.json") for v in (29, 30))
    spec = model.at(30)
    known = merge(older, delta)
    assert [f.name for f in known.structs["OrtApi"].fields] == [
        f.name for f in spec.structs["OrtApi"].fields
    ]
    result = run_check(model, synthesise(spec, tmp_path))
    assert (result.exit_code, result.compared_with) == (CLEAN, 30)


def test_a_newer_header_is_compared_with_the_newest_known(model: Model, tmp_path: Path) -> None:
    newest = model.at(model.newest)
    result = run_check(model, synthesise(replace(newest, api_version=99), tmp_path))
    assert result.exit_code == DRIFT
    assert (result.release, result.compared_with) == (99, model.newest)
    assert [(f.rule, f.severity) for f in result.findings] == [("release-new", Severity.ADDITIVE)]


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("missing.h", None, "does not exist"),
        ("empty.h", "", "ORT_API_VERSION is not defined"),
        ("odd.h", "#define ORT_API_VERSION latest\n", "ORT_API_VERSION"),
        ("open.h", "#define ORT_API_VERSION 29\n#if 1\n", "cannot be preprocessed"),
        ("include.h", '#include "nowhere.h"\n', "'nowhere.h' is included here but cannot be found"),
    ],
)
def test_no_comparison_is_exit_code_2(
    name: str, text: str | None, words: str, model: Model, tmp_path: Path
) -> None:
    if text is not None:
        (tmp_path / name).write_text(text)
    result = run_check(model, tmp_path / name)
    assert (result.exit_code, result.findings) == (NOT_CHECKED, ())
    assert words in result.message


@pytest.mark.parametrize("release", REAL)
def test_real_headers_agree_with_the_spec(release: str, model: Model, headers_dir: Path) -> None:
    for preprocessor in ("cc", "python"):
        result = run_check(model, headers_dir / release, preprocessor=preprocessor)
        assert report_lines(result.findings) == []
        assert (result.exit_code, result.release) == (CLEAN, int(release.split(".")[1]))


def test_the_real_header_of_1_23_gets_a_clear_answer(model: Model, headers_dir: Path) -> None:
    result = run_check(model, headers_dir / "1.23.2")
    assert result.exit_code == NOT_CHECKED
    assert "the interop API starts at 1.24" in result.message


def test_an_invented_error_code_header_is_breaking(
    model: Model, headers_dir: Path, tmp_path: Path
) -> None:
    """Case 29: a binding's vendored enum, values shifted by one against the release."""
    release = headers_dir / "1.28.0"
    for path in release.glob("*.h"):
        (tmp_path / path.name).write_text(path.read_text())
    names = "INVALID_ARGUMENT NO_SUCHFILE NO_MODEL ENGINE_ERROR RUNTIME_EXCEPTION INVALID_PROTOBUF"
    rows = "".join(f"  ORT_{name} = {at},\n" for at, name in enumerate(names.split(), 1))
    (tmp_path / "onnxruntime_error_code.h").write_text(
        f"#pragma once\ntypedef enum OrtErrorCode {{\n  ORT_OK = 0,\n{rows}}} OrtErrorCode;\n"
    )
    result = run_check(model, tmp_path)
    assert result.exit_code == DRIFT
    counts = {
        rule: sum(f.rule == rule for f in result.findings)
        for rule in ("enum-value", "enumerator-removed")
    }
    assert counts == {"enum-value": 6, "enumerator-removed": 9}
    assert {f.severity for f in result.findings} == {Severity.BREAKING}


def test_the_command_exits_with_the_same_codes(clean: Path, tmp_path: Path) -> None:
    def run(path: Path) -> subprocess.CompletedProcess[str]:
        start = "import sys; from ort_interop_gen.cli.main import main; sys.exit(main())"
        command = [sys.executable, "-c", start, "check", "--header", str(path)]
        return subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)

    done = run(clean)
    assert (done.returncode, done.stderr) == (CLEAN, ""), done.stdout + done.stderr
    edit(
        clean,
        "  void* native_handle;\n  size_t size_bytes;",
        "  int native_handle;\n  size_t size_bytes;",
    )
    done = run(clean)
    assert done.returncode == DRIFT and "field-type" in done.stdout
    done = run(tmp_path / "nothing.h")
    assert done.returncode == NOT_CHECKED
    assert "nothing.h" in done.stderr and "Traceback" not in done.stderr
    # As compilers print it, so that editors and build logs find the line.
    bad = tmp_path / "bad.h"
    bad.write_text('#define ORT_API_VERSION 29\n\n#include "gone.h"\n')
    done = run(bad)
    assert done.returncode == NOT_CHECKED
    assert done.stderr.startswith(f"{bad}:3: error: 'gone.h' is included here")
    bad.write_bytes(b"\0\1")
    assert run(bad).stderr.startswith(f"{bad}: error: this is not a text file")
    old = synthesise(load_facts(FACTS / "ort-1.23.2.json"), tmp_path / "old")
    assert run(old).stderr.startswith(f"{old}:")


@pytest.mark.parametrize("preprocessor", ["cc", "python"])
def test_a_macro_call_that_is_never_closed_has_its_line(
    preprocessor: str, model: Model, clean: Path
) -> None:
    old = "_Outptr_ OrtExternalMemoryHandle** out_handle);"
    text = clean.read_text()
    clean.write_text(text.replace(old, old.replace(");", ";"), 1))
    call = text.rindex("ORT_API2_STATUS(", 0, text.index(old))
    result = run_check(model, clean, preprocessor=preprocessor)
    assert result.exit_code in (NOT_CHECKED, DRIFT)
    if preprocessor == "cc":
        assert "unterminated argument list" in result.message
        assert (result.loc.file, result.loc.line) == (
            str(clean),
            text[:call].count("\n") + 1,
        )


def test_a_package_behind_a_link_reads_the_same(clean: Path, tmp_path: Path) -> None:
    """Where site-packages or a home folder is a link, the package's own stubs are still its own."""
    (tmp_path / "ort_interop_gen").symlink_to(Path(ort_interop_gen.__file__).parent)
    start = "import sys; from ort_interop_gen.cli.main import main; sys.exit(main())"
    command = [sys.executable, "-c", start, "check", "--header", str(clean)]
    environ = os.environ | {"PYTHONPATH": str(tmp_path)}
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=environ)
    assert (done.returncode, done.stderr) == (CLEAN, ""), done.stdout + done.stderr
