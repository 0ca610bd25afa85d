"""``lint-docs``: each fault of documentation comments is found where it is, and nothing else is."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mutation.source import own_macros_removed, rendered_text
from ort_interop_gen.cli.main import main
from ort_interop_gen.drift.finding import Finding, Severity
from ort_interop_gen.drift.lint_docs import lint_docs
from ort_interop_gen.drift.rules import RULES
from ort_interop_gen.header.errors import HeaderError
from ort_interop_gen.header.reader import read_header
from ort_interop_gen.spec import load_spec
from support import ROOT

HEADER = ROOT / "tests" / "data" / "docs" / "onnxruntime_c_api.h"
FOUND = [
    ("doc-group-nested", "Global", " * @{", 16),
    ("doc-reference", "::SetLogLevel", " * The level is that of", 27),
    ("doc-reference", "::RunSetLogLevel", " * The level is that of", 27),
    ("doc-html", "<ep_name>", ' * Keys look like "ep.', 29),
    ("doc-param-unknown", "FxApi.ReleaseFxImporter.importer", "   * \\param[in] importer", 50),
    ("doc-param-unknown", "FxApi.GetEntries.out", "   * \\param[out] out", 66),
    ("doc-param-missing", "FxApi.Make.count", "  /** \\brief Makes one.", 72),
    ("doc-param-direction", "FxApi.Make.kind", "   * \\param[out] kind", 74),
    ("doc-param-duplicate", "FxApi.Make.kind", "   * \\param[in] kind", 75),
    ("doc-param-direction", "FxApi.Make.result", "   * \\param[in] result", 77),
    ("doc-since-missing", "FxApi.Undated", "  /** \\brief Says nothing", 83),
    ("doc-since-wrong", "FxApi.Future", "   * \\since Version 1.40", 87),
    ("doc-reference", "::GetEntries", "  /// \\brief A slot", 91),
    ("doc-param-unknown", "FxApi.InLines.wrong", "  /// \\param[in] wrong", 93),
    ("doc-group-unbalanced", "", "/// @}", 98),
]
"""Rule, symbol, how the line begins, its number."""


@pytest.fixture(scope="module")
def findings() -> list[Finding]:
    return lint_docs(read_header(HEADER), HEADER)


def test_each_fault_is_found_in_its_line(findings: list[Finding]) -> None:
    lines = HEADER.read_text().splitlines()
    expected = [(rule, symbol, line) for rule, symbol, _, line in FOUND]
    assert sorted((f.rule, f.symbol, f.header_loc.line) for f in findings) == sorted(expected)
    for _, _, text, line in FOUND:
        assert lines[line - 1].startswith(text)


def test_every_documentation_rule_is_shown_by_the_fixture() -> None:
    rules = {r.id for r in RULES.values() if r.severity is Severity.DOCUMENTATION}
    assert {rule for rule, *_ in FOUND} == rules


@pytest.mark.parametrize(
    ("struct", "slot"),
    [
        ("OrtInteropApi", "CreateExternalResourceImporterForDevice"),
        ("OrtExternalMemoryHandle", "Release"),
    ],
)
def test_a_first_slot_is_asked_for_its_release_too(struct: str, slot: str, tmp_path: Path) -> None:
    """The spec knows what came with it, or the comment of the struct names the release."""
    model = load_spec(ROOT / "spec")
    text = own_macros_removed(rendered_text(model, model.newest))
    end = text.index(f"{slot})(", text.index(f"struct {struct} {{"))
    since = text.rindex("\\since Version", 0, end)
    header = tmp_path / "onnxruntime_c_api.h"
    header.write_text(text[:since] + text[since:].replace("\\since Version", "Was there", 1))
    found = lint_docs(read_header(header), header, (), model)
    assert [(f.rule, f.symbol) for f in found] == [("doc-since-missing", f"{struct}.{slot}")]


def test_hints_say_what_to_write(findings: list[Finding]) -> None:
    hints = {f.symbol: f.hint for f in findings}
    assert hints["FxApi.ReleaseFxImporter.importer"] == "write \\param input"
    assert hints["FxApi.GetEntries.out"] == "write \\param config_entries"
    assert hints["::SetLogLevel"] == "write FxApi::SetLogLevel"
    assert hints["::GetEntries"] == "write FxApi::GetEntries"


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("::FxApi::SetLogLevel", None),
        ("::Ort::Session", None),
        ("::std::vector", None),
        ("ID3D12Device::CreateSharedHandle", None),
        ("::Ort::Detail::Base", None),
        ("::FxApi::SetLogLevl", "write FxApi::SetLogLevel"),
        ("::FxNowhere::SetLogLevel", "write FxApi::SetLogLevel"),
        ("::FxNowhere::Nothing", "name what is meant"),
    ],
)
def test_references_from_the_top_are_resolved_too(
    text: str, hint: str | None, tmp_path: Path
) -> None:
    header = tmp_path / "onnxruntime_c_api.h"
    common = HEADER.parent.parent / "headers" / "common.h"
    (tmp_path / "common.h").write_text(common.read_text())
    fixture = HEADER.read_text().replace('"../headers/common.h"', '"common.h"')
    header.write_text(fixture.replace("See FxApi::SetLogLevel", f"See {text}", 1))
    found = lint_docs(read_header(header), header)
    hints = [f.hint for f in found if f.symbol == text]
    assert len(hints) == (hint is not None)
    if hint is not None:
        assert hints[0].startswith(hint)


def test_what_is_configured_for_drift_lets_no_fault_pass(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "ort-interop-gen.toml").write_text('fail-on = "contract"\n')
    monkeypatch.chdir(tmp_path)
    command = ["lint-docs", "--header", str(HEADER), "--format", "gcc"]
    assert main(command) == 1
    assert ": error: " in capsys.readouterr().out
    assert main([*command, "--fail-on", "contract"]) == 0
    assert ": error: " not in capsys.readouterr().out


def test_one_baseline_serves_check_and_lint_docs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from header_synth import synthesise

    header = synthesise(load_spec(ROOT / "spec").at(29), tmp_path / "include")
    text = header.read_text()
    at = text.index("struct OrtInteropApi {")
    header.write_text(text[:at] + "/** See ::Nowhere. */\n" + text[at:] + "#define ORT_NEW 1\n")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "ort-interop-gen.toml").write_text('baseline = "known.json"\n')
    where = ["--header", str(header)]
    write = ["--write-baseline", "known.json", "--reason", "known"]
    assert main(["lint-docs", *where, *write]) == 0
    assert main(["check", *where, *write]) == 0
    assert main(["lint-docs", *where, *write]) == 0
    accepted = json.loads((tmp_path / "known.json").read_text())["accepted"]
    rules = [(e["rule"], e["symbol"]) for e in accepted]
    assert {("doc-reference", "::Nowhere"), ("macro-added", "ORT_NEW")} <= set(rules)
    assert len(set(rules)) == len(rules) == 3, rules
    capsys.readouterr()
    for command in (["check"], ["lint-docs"], ["check", "--docs"]):
        assert main([*command, *where]) == 0
        assert "matches nothing any more" not in capsys.readouterr().out
    header.write_text(text)
    for command, stale in ((["check"], 1), (["lint-docs"], 1), (["check", "--docs"], 2)):
        assert main([*command, *where]) == 0
        assert capsys.readouterr().out.count("matches nothing any more") == stale


def test_since_is_held_against_the_spec(tmp_path: Path) -> None:
    """What the header of 1.24 says of slots that came with 1.24, and of one that did not."""
    from header_synth import synthesise

    model = load_spec(ROOT / "spec")
    header = synthesise(model.at(24), tmp_path)
    text = header.read_text()
    at = text.index("GetInteropApi")
    comment = "  /** \\since Version 1.23. */\n"
    start = text.rindex("\n", 0, at) + 1
    header.write_text(text[:start] + comment + text[start:])
    found = lint_docs(read_header(tmp_path), tmp_path, (), model)
    wrong = [f for f in found if f.symbol == "OrtApi.GetInteropApi"]
    assert [(f.rule, f.expected, f.actual) for f in wrong] == [("doc-since-wrong", "1.24", "1.23")]
    assert wrong[0].spec_loc.file.endswith("ort_abi.yaml")


_WORDS = [
    "\\param",
    "\\param[in] x",
    "@{",
    "@}",
    "\\addtogroup G",
    "::",
    "::a",
    "<a",
    "<b>",
    "*/",
    "/**",
    "`",
    "\\code",
    "\\since Version 1.",
    "///<",
    "\n",
    "\x00",
    "é",
]


@settings(max_examples=60)
@given(st.lists(st.tuples(st.integers(0, 4000), st.sampled_from(_WORDS)), min_size=1, max_size=8))
def test_no_comment_is_too_odd(edits: list[tuple[int, str]]) -> None:
    text = HEADER.read_text().replace('"../headers/common.h"', '"common.h"')
    for at, word in edits:
        at %= len(text)
        text = text[:at] + word + text[at:]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / HEADER.name
        path.write_text(text, encoding="utf-8")
        try:
            header = read_header(
                path, include_dirs=[HEADER.parent.parent / "headers"], preprocessor="cc"
            )
        except HeaderError:
            return
        for finding in lint_docs(header, path, [HEADER.parent.parent / "headers"]):
            assert finding.rule in RULES
            assert 0 < finding.header_loc.line <= text.count("\n") + 1


def test_real_headers(headers_dir: Path) -> None:
    """Known faults of 1.29, looked up by hand; release macros' names are among them."""
    found = lint_docs(
        read_header(headers_dir / "1.29.0"), headers_dir / "1.29.0", (), load_spec(ROOT / "spec")
    )
    symbols = {(f.rule, f.symbol) for f in found}
    assert {
        ("doc-param-unknown", "OrtApi.ReleaseOp.Op"),
        ("doc-param-unknown", "OrtApi.ReleaseKernelInfo.KernelInfo"),
        ("doc-since-wrong", "OrtCompileApi.ModelCompilationOptions_SetInputModel"),
        ("doc-reference", "OrtEnvCreationOptions::custom_logger_function"),
        ("doc-group-unbalanced", "Global"),
        ("doc-param-direction", "OrtApi.GetSessionConfigEntry.config_value"),
    } <= symbols
    assert len(found) < 80
