"""The reports: each format says all of it, is well-formed, and survives hostile text."""

from __future__ import annotations

import json
import re
import subprocess
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import unquote
from xml.etree import ElementTree

import jsonschema
import pytest
from click import unstyle
from header_synth import synthesise
from markdown_it import MarkdownIt
from ort_interop_gen.drift.check import run_check
from ort_interop_gen.drift.config import Config, Entry, settle
from ort_interop_gen.drift.finding import Finding, Severity
from ort_interop_gen.drift.report import FORMATS, Override, Report, fingerprint, format_of, render
from ort_interop_gen.drift.report.source import difference
from ort_interop_gen.drift.rules import RULES, page
from ort_interop_gen.spec import load_spec
from ort_interop_gen.spec.abi import Location
from support import ROOT, missing

HOSTILE = 'a|b`c\n::error::x%0A "<script>alert(1)</script>" & ]]> \x07 \\ * _ [link](x) é中'
SARIF_PACKAGE = "@microsoft/jest-sarif@1.0.0-beta.0"
SARIF_SCHEMA = "package/lib/schemas/sarif-2.1.0-rtm.5.json"


@pytest.fixture(scope="module")
def changed(tmp_path_factory: pytest.TempPathFactory) -> Report:
    """A check of a header with one finding of most severities, in a folder of its own."""
    root = tmp_path_factory.mktemp("changed")
    model = load_spec(ROOT / "spec")
    header = synthesise(model.at(29), root / "include")
    text = header.read_text()
    for old, new in (
        ("ORT_EXTERNAL_SEMAPHORE_D3D12_FENCE = 0", "ORT_EXTERNAL_SEMAPHORE_D3D12_FENCE = 7"),
        ("ORT_API2_STATUS(ImportMemory, _In_", "ORT_API2_STATUS(ImportMemory, _In_opt_"),
        ("ORT_API2_STATUS(ImportSemaphore,", "ORT_API2_STATUS(ImportFence,"),
        (
            "typedef enum OrtGraphicsApi",
            "int not_a_function;\ntypedef enum OrtNew { ORT_NEW = 0 } OrtNew;\ntypedef enum OrtGraphicsApi",
        ),
    ):
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    header.write_text(text)
    result = run_check(model, header)
    return Report("check", "the spec of 1.29", "the header", result.findings, root=root)


@pytest.fixture(scope="module")
def hostile() -> Report:
    """Findings whose every text would break out of a format that does not escape it."""
    findings = tuple(
        Finding(rule.id, rule.severity, HOSTILE, HOSTILE, HOSTILE, HOSTILE[::-1], hint=HOSTILE)
        for rule in list(RULES.values())[::7]
    )
    place = Location("some folder/odd,name:1.h", 3, 2)
    findings = (*findings, Finding("slot-moved", Severity.BREAKING, "A.b", "m", header_loc=place))
    accepted = settle(findings[:1], Config(), [Entry(fingerprint(findings[0]), "", "", HOSTILE)])
    return Report(
        "check", HOSTILE, HOSTILE, findings, accepted.accepted, stale=(HOSTILE,), notes=(HOSTILE,)
    )


def test_the_fixture_has_what_the_formats_must_show(changed: Report) -> None:
    found = {(f.rule, f.severity) for f in changed.findings}
    assert found == {
        ("enum-value", Severity.BREAKING),
        ("unreadable", Severity.UNREADABLE),
        ("slot-renamed", Severity.SOURCE),
        ("sal-changed", Severity.CONTRACT),
        ("type-added", Severity.ADDITIVE),
    }


@pytest.mark.parametrize("name", [f for f in FORMATS if f != "junit"])
def test_every_format_names_every_finding_and_its_rule(changed: Report, name: str) -> None:
    text = render(changed, name)
    if name == "markdown":
        text = text.replace("\\", "")
    for finding in changed.findings:
        assert finding.rule in text
        assert finding.symbol in text
        assert "include/onnxruntime_c_api.h" in text


@pytest.mark.parametrize("name", FORMATS)
def test_reports_are_the_same_every_time(changed: Report, name: str) -> None:
    assert render(changed, name) == render(changed, name)


def test_endings_mean_formats() -> None:
    assert format_of(Path("x.sarif.json")) == "sarif"
    assert format_of(Path("x/report.JSON")) == "json"
    assert format_of(Path("x.htm")) == "html"
    assert format_of(Path("x.log")) is None
    with pytest.raises(ValueError, match="no report format 'pdf'"):
        render(Report("check", "", ""), "pdf")


# text ------------------------------------------------------------------------------------------


def test_text_shows_both_sources_with_the_difference_marked(changed: Report) -> None:
    text = render(changed, "text")
    at = text.index("breaking[enum-value]")
    part = text[at : text.index("\n\n", at)]
    rows = part.splitlines()
    header = next(i for i, row in enumerate(rows) if "SEMAPHORE_D3D12_FENCE = 7" in row)
    assert re.match(r"\s*\d+ \|   ORT_EXTERNAL_SEMAPHORE_D3D12_FENCE = 7,$", rows[header])
    assert rows[header + 1].index("^") == rows[header].index("7,")
    spec = next(i for i, row in enumerate(rows) if re.search(r"\| +value: 0$", row))
    assert rows[spec + 1].index("^") == rows[spec].index("0", rows[spec].index("value"))
    assert "spec/interop_api.yaml:" in part
    assert "include/onnxruntime_c_api.h:" in part


@pytest.mark.parametrize(("count", "folded"), [(10, False), (11, True), (504, True)])
def test_text_says_once_what_is_true_of_many(count: int, folded: bool) -> None:
    """As after one edit of a macro that declares every slot; each place is still named."""
    rule = RULES["must-use-changed"]
    same = [
        Finding(
            rule.id, rule.severity, f"Fx.S{at}", "no warning", "must be used", "may be dropped",
            header_loc=Location("/x/a.h", at + 1), hint="review the callers",
        )
        for at in range(count)
    ]  # fmt: skip
    other = Finding(rule.id, rule.severity, "Fx.Other", "begins to warn", "b", "a")
    text = render(Report("check", "a", "b", (*same, other)), "text")
    assert all(re.search(rf"\bFx\.S{at}$", text, re.M) for at in range(count))
    assert all(f"/x/a.h:{at + 1}" in text for at in range(count))
    assert text.count("review the callers") == (3 if folded else count)
    assert (f"and {count - 3} more, of which the same is true:" in text) == folded
    assert "begins to warn" in text and f"{count + 1} findings" in text


def test_text_ends_with_a_summary(changed: Report) -> None:
    last = render(changed, "text").splitlines()[-1]
    assert last == (
        "the header against the spec of 1.29: 5 findings: 1 breaking, 1 unreadable, 1 source,"
        " 1 contract, 1 additive"
    )
    clean = Report("check", "the spec", "h.h")
    assert render(clean, "text") == "h.h against the spec: no differences\n"


def test_colour_changes_nothing_but_colour(changed: Report) -> None:
    coloured = render(changed, "text", color=True)
    assert "\x1b[" in coloured
    assert unstyle(coloured) == render(changed, "text")
    assert "\x1b" not in render(changed, "json", color=True)


def test_differences_are_marked_word_by_word() -> None:
    found = difference("const OrtValue* value", "OrtValue** value")
    assert [found.expected[a:b] for a, b in found.removed] == ["const "]
    assert [found.actual[a:b] for a, b in found.added] == ["*"]
    assert difference("same", "same").removed == ()


# json ------------------------------------------------------------------------------------------


def _json_schema() -> Any:
    return json.loads((ROOT / "schemas" / "report.schema.json").read_text())


def test_json_follows_its_schema(changed: Report, hostile: Report) -> None:
    schema = _json_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    for report in (changed, hostile, Report("lint-docs", "a", "b")):
        jsonschema.validate(json.loads(render(report, "json")), schema)


def test_the_json_schema_refuses_what_it_does_not_know(changed: Report) -> None:
    data = json.loads(render(changed, "json"))
    data["findings"][0]["extra"] = 1
    with pytest.raises(jsonschema.ValidationError, match="extra"):
        jsonschema.validate(data, _json_schema())


def test_json_counts_what_it_lists(changed: Report) -> None:
    data = json.loads(render(changed, "json"))
    assert sum(data["summary"].values()) == len(data["findings"]) == len(changed.findings)
    assert data["findings"][0]["header"] == {
        "file": "include/onnxruntime_c_api.h",
        "line": changed.findings[0].header_loc.line,
        "column": None,
    }


def test_fingerprints_outlive_moves_and_not_changes() -> None:
    one = Finding(
        "slot-moved", Severity.BREAKING, "A.b", "text", "1", "2", header_loc=Location("h", 1)
    )
    moved = Finding(
        "slot-moved", Severity.BREAKING, "A.b", "other", "1", "2", header_loc=Location("h", 9)
    )
    other = Finding("slot-moved", Severity.BREAKING, "A.b", "text", "1", "3")
    assert fingerprint(one) == fingerprint(moved) != fingerprint(other)


# sarif -----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def sarif_schema(tmp_path_factory: pytest.TempPathFactory, need_tool: Callable[[str], str]) -> Any:
    """The standard's own schema, as a package of its authors carries it."""
    folder = tmp_path_factory.mktemp("npm")
    command = [need_tool("npm"), "pack", "--silent", SARIF_PACKAGE]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    if done.returncode != 0:
        missing(f"{SARIF_PACKAGE} cannot be downloaded: {done.stderr.strip()[-200:]}")
    (archive,) = folder.glob("*.tgz")
    with tarfile.open(archive) as packed:
        member = packed.extractfile(SARIF_SCHEMA)
        assert member is not None
        return json.load(member)


def test_sarif_follows_the_standard(changed: Report, hostile: Report, sarif_schema: Any) -> None:
    validator = jsonschema.Draft4Validator(sarif_schema, format_checker=jsonschema.FormatChecker())
    for report in (changed, hostile, Report("diff", "1.24", "1.25")):
        errors = [e.message for e in validator.iter_errors(json.loads(render(report, "sarif")))]
        assert errors == []
    broken = json.loads(render(changed, "sarif"))
    broken["runs"][0]["results"][0]["level"] = "fatal"
    assert list(validator.iter_errors(broken)), "the schema would have taken anything"


def test_sarif_locations_resolve_in_the_repository(changed: Report) -> None:
    run = json.loads(render(changed, "sarif"))["runs"][0]
    for result, finding in zip(run["results"], changed.findings, strict=True):
        rule = run["tool"]["driver"]["rules"][result["ruleIndex"]]
        assert rule["id"] == result["ruleId"] == finding.rule
        place = result["locations"][0]["physicalLocation"]
        assert place["artifactLocation"]["uriBaseId"] == "SRCROOT"
        path = changed.root / unquote(place["artifactLocation"]["uri"])
        line = path.read_text().splitlines()[place["region"]["startLine"] - 1]
        name = finding.symbol.rpartition(".")[2]
        assert finding.rule == "unreadable" or name in line or finding.actual in line
        for related in result.get("relatedLocations", ()):
            uri = related["physicalLocation"]["artifactLocation"]["uri"]
            assert Path(unquote(uri.removeprefix("file://"))).is_file()


def test_sarif_escapes_odd_paths_and_suppresses_what_is_accepted(hostile: Report) -> None:
    results = json.loads(render(hostile, "sarif"))["runs"][0]["results"]
    uris = [r["locations"][0]["physicalLocation"] for r in results if "locations" in r]
    assert [u["artifactLocation"]["uri"] for u in uris] == ["some%20folder/odd%2Cname%3A1.h"]
    assert results[-1]["suppressions"] == [{"kind": "external", "justification": HOSTILE}]


def test_a_header_outside_the_repository_is_shown_at_the_spec(tmp_path: Path) -> None:
    inside, outside = Location(str(tmp_path / "spec.yaml"), 4), Location("/usr/include/x.h", 9)
    finding = Finding("slot-moved", Severity.BREAKING, "A.b", "m", "1", "2", inside, outside)
    report = Report("check", "e", "a", (finding,), root=tmp_path)
    result = json.loads(render(report, "sarif"))["runs"][0]["results"][0]
    place = result["locations"][0]["physicalLocation"]
    assert place["artifactLocation"] == {"uri": "spec.yaml", "uriBaseId": "SRCROOT"}
    related = result["relatedLocations"][0]["physicalLocation"]["artifactLocation"]
    assert related == {"uri": "file:///usr/include/x.h"}
    assert render(report, "github").startswith("::error file=spec.yaml,line=4,")


def test_paths_start_at_the_repository(tmp_path: Path) -> None:
    """Code scanning resolves paths from there, wherever in it the check was run."""
    (tmp_path / ".git").mkdir()
    below = tmp_path / "bindings" / "c"
    below.mkdir(parents=True)
    finding = Finding(
        "slot-moved", Severity.BREAKING, "A.b", "m", header_loc=Location(str(below / "x.h"), 3)
    )
    report = Report("check", "e", "a", (finding,), root=below)
    result = json.loads(render(report, "sarif"))["runs"][0]["results"][0]
    place = result["locations"][0]["physicalLocation"]["artifactLocation"]
    assert place == {"uri": "bindings/c/x.h", "uriBaseId": "SRCROOT"}
    assert "file=bindings/c/x.h,line=3," in render(report, "github")
    assert "--> x.h:3" in render(report, "text")


# github, gcc, markdown, junit ------------------------------------------------------------------


def test_annotations_cannot_be_broken_out_of(hostile: Report) -> None:
    lines = render(hostile, "github").splitlines()
    assert len(lines) == len(hostile.findings) + 1
    assert all(re.match(r"::(error|warning|notice) ", line) for line in lines)
    assert "file=some folder/odd%2Cname%3A1.h,line=3,col=2," in "\n".join(lines)


def test_annotation_levels_follow_what_fails(changed: Report) -> None:
    strict = Report("check", "", "", changed.findings, fail_on="any", root=changed.root)
    mild = Report("check", "", "", changed.findings, fail_on="breaking", root=changed.root)
    assert {line.split()[0] for line in render(strict, "github").splitlines()[:-1]} == {"::error"}
    levels = [line.split()[0] for line in render(mild, "github").splitlines()[:-1]]
    assert levels == ["::error", "::error", "::warning", "::warning", "::notice"]


def test_compiler_lines_have_a_file_and_a_line(changed: Report) -> None:
    *lines, summary = render(changed, "gcc").splitlines()
    errors = [line for line in lines if ": note: " not in line]
    assert len(errors) == len(changed.findings)
    assert all(re.match(r"include/onnxruntime_c_api\.h:\d+: error: ", line) for line in errors)
    assert summary.startswith("the header: 5 findings")


def test_markdown_is_a_table_whatever_the_text(hostile: Report) -> None:
    text = render(hostile, "markdown")
    tokens = MarkdownIt("commonmark").enable("table").parse(text)
    rows = sum(t.type == "tr_open" for t in tokens)
    heads = sum(t.type == "thead_open" for t in tokens)
    cells = sum(t.type == "td_open" for t in tokens)
    assert (rows - heads, cells) == (len(hostile.findings), 4 * len(hostile.findings))
    kinds = {c.type for t in tokens if t.type == "inline" for c in t.children or ()}
    assert "link_open" not in kinds
    markup = [
        c.content for t in tokens if t.children for c in t.children if c.type == "html_inline"
    ]
    assert set(markup) <= {"<br>"}


def test_markdown_stays_below_what_hosts_accept() -> None:
    many = tuple(
        Finding("slot-moved", Severity.BREAKING, f"OrtApi.Slot{n}", "text " * 60)
        for n in range(900)
    )
    text = render(Report("check", "spec", "header", many), "markdown")
    assert len(text) < 65_536
    shown = text.count("`OrtApi.Slot")
    assert f"{900 - shown} more that do not fit" in text


def test_junit_counts_its_cases(changed: Report, hostile: Report) -> None:
    for report in (changed, hostile):
        root = ElementTree.fromstring(render(report, "junit"))
        failures = root.findall(".//failure")
        assert len(failures) == len(report.failing) == int(root.get("failures", ""))
        for suite in root:
            assert int(suite.get("tests", "")) == len(suite.findall("testcase"))
            assert int(suite.get("failures", "")) == len(suite.findall("testcase/failure"))
    passing = Report("check", "", "", changed.findings, fail_on="breaking")
    root = ElementTree.fromstring(render(passing, "junit"))
    assert len(root.findall(".//failure")) == 2
    assert len(root.findall(".//skipped")) == 3


def test_an_override_is_told_with_its_reason(changed: Report) -> None:
    override = Override(
        "sal-changed", None, "we know", Location("pyproject.toml", 7), Severity.CONTRACT
    )
    settled = settle(changed.findings, Config(overrides={"sal-changed": override}))
    report = Report("check", "e", "a", settled.findings, settled.accepted)
    assert len(report.findings) == len(changed.findings) - 1
    for name in ("text", "json", "sarif", "markdown", "html"):
        assert "we know" in render(report, name)


# rules -----------------------------------------------------------------------------------------


def test_the_rules_page_is_up_to_date() -> None:
    text = (ROOT / "docs" / "rules.md").read_text()
    assert text == page(), "run: ort-interop-gen rules --markdown > docs/rules.md"
    for rule in RULES.values():
        assert f"\n### {rule.id}\n" in text


def test_every_rule_that_is_emitted_is_registered() -> None:
    """Rule ids are plain words in the sources of the checks: none may be unknown, none unused."""
    folder = ROOT / "generator" / "drift"
    files = [folder / "lint_docs.py", *sorted((folder / "compare").glob("*.py"))]
    text = "".join(path.read_text() for path in files)
    written = set(re.findall(r'"([a-z]+(?:-[a-z]+)+|unreadable)"', text))
    for what in re.findall(r'\brule\([^"()]+, "([a-z]+)"\)', text):
        written |= {f"slot-{what}", f"field-{what}"}
    assert written == set(RULES)
