"""Configuration and baseline: severities by rule with a reason, and findings that are accepted."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from ort_interop_gen.drift.config import (
    Config,
    ConfigErrors,
    Entry,
    baseline_text,
    find_config,
    load_baseline,
    load_config,
    settle,
)
from ort_interop_gen.drift.finding import Finding, Severity
from ort_interop_gen.drift.report import FAIL_ON, Report

MOVED = Finding("slot-moved", Severity.BREAKING, "OrtApi.Run", "moved", "place 1", "place 2")
ADDED = Finding("slot-appended", Severity.ADDITIVE, "OrtApi.New", "new", "", "text")
RENAMED = Finding("param-renamed", Severity.SOURCE, "OrtApi.Run", "renamed", "a", "b")


def write(folder: Path, text: str, name: str = "ort-interop-gen.toml") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def test_severities_are_set_with_a_reason(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        'fail-on = "source"\nbaseline = "known.json"\n\n'
        '[rules.slot-appended]\nseverity = "breaking"\nreason = "we stamp sizes"\n\n'
        '[rules.param-renamed]\nseverity = "off"\nreason = "by position only"\n',
    )
    config = load_config(path)
    assert (config.fail_on, config.baseline) == ("source", tmp_path / "known.json")
    settled = settle([MOVED, ADDED, RENAMED], config)
    assert [(f.rule, f.severity) for f in settled.findings] == [
        ("slot-appended", Severity.BREAKING),
        ("slot-moved", Severity.BREAKING),
    ]
    assert [(a.finding, a.reason) for a in settled.accepted] == [(RENAMED, "by position only")]
    assert settled.accepted[0].by == f"{path}:8"
    assert [(o.rule, o.default) for o in settled.overrides] == [
        ("slot-appended", Severity.ADDITIVE)
    ]


@pytest.mark.parametrize(
    ("text", "line", "message", "hint"),
    [
        ("fail-on = [", 1, "not valid TOML", ""),
        ('fail_on = "any"', 1, "unknown key 'fail_on'", "did you mean 'fail-on'?"),
        ('\nfail-on = "bad"', 2, "fail-on cannot be 'bad'", "one of breaking, source"),
        ('\nfail-on = ["any"]', 2, "fail-on cannot be ['any']", "one of breaking, source"),
        (
            '[rules.slot-moved]\nreason = "x"\nseverity = ["off"]',
            3,
            "severity of 'slot-moved' cannot be ['off']",
            "",
        ),
        ("x = " + "[" * 5000, 1, "not valid TOML", ""),
        ("[tool.ort-interop]\nx = 1", 0, "there is no table [tool.ort-interop-gen]", "top level"),
        ("tool = 3", 0, "there is no table [tool.ort-interop-gen]", ""),
        ("baseline = 3", 1, "baseline must be", ""),
        ("rules = 3", 1, "rules must be a table", ""),
        ('\n[rules.slot-movd]\nseverity = "off"', 2, "unknown rule 'slot-movd'", "slot-moved"),
        ('[rules]\nslot-moved = "off"', 2, "must have a severity and a reason", "reason"),
        ('[rules.slot-moved]\nseverity = "off"', 1, "'slot-moved' has no reason", "reason ="),
        ('[rules.slot-moved]\nseverity = "off"\nreason = " "', 1, "'slot-moved' has no reason", ""),
        ('[rules.slot-moved]\nreason = "x"', 1, "'slot-moved' has no severity", "one of breaking"),
        (
            '[rules.slot-moved]\nreason = "x"\nseverity = "fatal"',
            3,
            "severity of 'slot-moved' cannot be 'fatal'",
            "documentation, off",
        ),
        (
            '[rules.slot-moved]\nlevel = 1\nreason = "x"\nseverity = "off"',
            2,
            "unknown key 'level'",
            "",
        ),
    ],
)
def test_faults_have_a_line_and_a_way_out(
    tmp_path: Path, text: str, line: int, message: str, hint: str
) -> None:
    path = write(tmp_path, text)
    with pytest.raises(ConfigErrors) as caught:
        load_config(path)
    problem = caught.value.problems[0]
    assert (problem.loc.file, problem.loc.line) == (str(path), line)
    assert message in problem.message
    assert hint in problem.hint


def test_all_faults_at_once(tmp_path: Path) -> None:
    path = write(tmp_path, 'fail-on = 1\nbaseline = 2\n[rules.nothing]\nseverity = "off"\n')
    with pytest.raises(ConfigErrors) as caught:
        load_config(path)
    assert len(caught.value.problems) == 3


def test_the_nearest_file_counts_and_none_beyond_the_repository(tmp_path: Path) -> None:
    write(tmp_path, "", "ort-interop-gen.toml")
    repository = tmp_path / "repository"
    deep = repository / "a" / "b"
    deep.mkdir(parents=True)
    assert find_config(deep) == tmp_path / "ort-interop-gen.toml"
    (repository / ".git").mkdir()
    assert find_config(deep) is None
    write(repository, "[tool.other]\n", "pyproject.toml")
    assert find_config(deep) is None
    text = '[tool.ort-interop-gen]\nfail-on = "breaking"\n'
    project = write(repository, text, "pyproject.toml")
    assert find_config(deep) == project
    assert load_config(project).fail_on == "breaking"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[tool]\nort-interop-gen.fail-on = "source"\n', ""),
        ('tool.ort-interop-gen.fail-on = "source"\n', ""),
        ('[tool . "ort-interop-gen"]\nfail-on = "source"\n', ""),
        ("[tool]\nort-interop-gen = 3\n", "'ort-interop-gen' must be a table"),
        ("[[tool.ort-interop-gen.rules]]\nx = 1\n", "rules must be a table"),
        ("[tool.ort-interop-gen\n", "not valid TOML"),
        ("# \u00e9\n[tool.ort-interop-gen]\n", "not UTF-8"),
    ],
)
def test_a_table_is_found_however_it_is_spelt(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "pyproject.toml"
    path.write_text(text, encoding="latin-1")
    assert find_config(tmp_path) == path
    if message:
        with pytest.raises(ConfigErrors, match=message):
            load_config(path)
    else:
        assert load_config(path).fail_on == "source"


def test_a_project_that_only_depends_on_the_tool_has_no_table(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    for text in ('[project]\ndependencies = ["ort-interop-gen"]\n', "# ort-interop-gen\n[broken\n"):
        write(tmp_path, text, "pyproject.toml")
        assert find_config(tmp_path) is None


def test_a_baseline_accepts_by_fingerprint_and_tells_what_is_stale(tmp_path: Path) -> None:
    path = write(tmp_path, baseline_text([MOVED, ADDED], "until 2.0"), "known.json")
    entries = load_baseline(path)
    settled = settle([MOVED, RENAMED], Config(), entries, str(path))
    assert settled.findings == (RENAMED,)
    assert [(a.finding, a.reason, a.by) for a in settled.accepted] == [
        (MOVED, "until 2.0", str(path))
    ]
    assert settled.stale == ("OrtApi.New (slot-appended)",)


def test_writing_a_baseline_again_keeps_the_reasons_of_before() -> None:
    first = json.loads(baseline_text([MOVED], "first"))["accepted"]
    entries = [Entry(e["fingerprint"], e["rule"], e["symbol"], e["reason"]) for e in first]
    again = json.loads(baseline_text([MOVED, ADDED], "second", entries))
    assert {e["rule"]: e["reason"] for e in again["accepted"]} == {
        "slot-moved": "first",
        "slot-appended": "second",
    }


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "not JSON"),
        ("[" * 100_000, "not JSON"),
        ("[]", "not a baseline of schema 1"),
        ('{"schema": 2}', "not a baseline of schema 1"),
        ('{"schema": 1, "accepted": [{"rule": "x"}]}', "'accepted' must be a list"),
    ],
)
def test_damaged_baselines(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(ConfigErrors, match=message):
        load_baseline(write(tmp_path, text, "known.json"))


@pytest.mark.parametrize("level", FAIL_ON)
def test_what_fails_the_run(level: str) -> None:
    order = list(FAIL_ON)
    for severity in Severity:
        # What could not be read may be anything; documentation counts only with the rest.
        name = {"unreadable": "breaking", "documentation": "any"}.get(
            severity.value, severity.value
        )
        failing = order.index(name) <= order.index(level)
        finding = Finding("slot-moved", severity, "A.b", "m")
        assert Report("check", "", "", (finding,), fail_on=level).exit_code == int(failing)
