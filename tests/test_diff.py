"""``diff``, and the report options of ``check``: whole processes, as a maintainer of CI meets them."""

from __future__ import annotations

import json
import os
import pty
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from header_synth import synthesise
from ort_interop_gen.drift.rules import RULES
from ort_interop_gen.spec import load_spec
from ort_interop_gen.spec.abi import Abi, Function
from ort_interop_gen.spec.ctype import declare, type_text
from ort_interop_gen.spec.facts import dump_facts, load_facts
from support import ROOT

FACTS = ROOT / "spec" / "facts"
PAIRS = {
    ("1.24.1", "1.25.0"): {"release-new": 1, "type-added": 13, "slot-appended": 35},
    ("1.25.0", "1.26.0"): {
        "release-new": 1,
        "type-added": 3,
        "slot-appended": 5,
        "enumerator-added": 4,
    },
    ("1.26.0", "1.28.0"): {
        "release-new": 1,
        "type-added": 1,
        "slot-appended": 9,
        "enumerator-added": 2,
        "sal-changed": 5,
        "header-moved": 1,
    },
    ("1.28.0", "1.29.0"): {"release-new": 1, "type-added": 1, "slot-appended": 4},
}
"""Every change between recorded releases, by rule."""


def run(*arguments: str | Path, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    environ = {k: v for k, v in os.environ.items() if k not in ("ORT_INCLUDE_DIR", "NO_COLOR")}
    done = subprocess.run(
        [sys.executable, "-m", "ort_interop_gen", *map(str, arguments)],
        capture_output=True,
        text=True,
        cwd=cwd,
        env=environ,
    )
    assert "Traceback" not in done.stderr, done.stderr
    return done


def report(*arguments: str | Path) -> dict[str, Any]:
    done = run(*arguments, "--format", "json")
    assert done.returncode in (0, 1), done.stderr
    data: dict[str, Any] = json.loads(done.stdout)
    assert data["exit_code"] == done.returncode
    return data


def _flat(abi: Abi) -> dict[str, str]:
    """Every fact of a release by name, without any notion of what changes mean."""
    facts: dict[str, str] = {"ORT_API_VERSION": str(abi.api_version)}

    def function(name: str, item: Function) -> None:
        facts[f"{name}()"] = f"{type_text(item.returns)} {item.must_use} {item.api_call}"
        for at, param in enumerate(item.params):
            words = " ".join(param.sal)
            facts[f"{name}({at})"] = f"{words} {declare(param.type, param.name)}"

    for enum in abi.enums.values():
        facts[enum.name] = f"enum in {enum.header}"
        for constant in enum.constants:
            facts[f"{enum.name}.{constant.name}"] = str(constant.value)
    for struct in abi.structs.values():
        facts[struct.name] = f"{struct.kind} in {struct.header}"
        for item in struct.fields:
            facts[f"{struct.name}.{item.name}"] = f"{item.offset} {item.offset_win64} {item.since}"
            if item.function is None:
                facts[f"{struct.name}.{item.name}"] += type_text(item.type)
            else:
                function(f"{struct.name}.{item.name}", item.function)
    for opaque in abi.opaque.values():
        facts[opaque.name] = "opaque"
    for typedef in abi.typedefs.values():
        facts[typedef.name] = f"{type_text(typedef.type)} in {typedef.header}"
    for export in abi.functions.values():
        facts[export.name] = f"function in {export.header}"
        function(export.name, export.function)
    for macro in abi.macros.values():
        facts[macro.name] = macro.value
    return facts


@pytest.mark.parametrize("pair", PAIRS, ids="-".join)
def test_every_recorded_change_is_reported_once(pair: tuple[str, str]) -> None:
    """The findings name exactly the facts that differ, found by comparing two flat lists."""
    old, new = (_flat(load_facts(FACTS / f"ort-{release}.json")) for release in pair)
    differing = {name for name in old.keys() | new.keys() if old.get(name) != new.get(name)}
    owners = {name.partition("(")[0] for name in differing}
    new_types = {n for n in owners if "." not in n and n not in old}
    changed = {n for n in owners if n.partition(".")[0] not in new_types or n in new_types}
    data = report("diff", *pair)
    assert Counter(f["symbol"] for f in data["findings"]) == Counter(changed)
    assert Counter(f["rule"] for f in data["findings"]) == Counter(PAIRS[pair])
    for finding in data["findings"]:
        assert finding["severity"] == RULES[finding["rule"]].severity.value


@pytest.mark.parametrize("pair", PAIRS, ids="-".join)
def test_real_headers_change_as_their_records_do(headers_dir: Path, pair: tuple[str, str]) -> None:
    def key(data: dict[str, Any]) -> Counter[tuple[str, str]]:
        return Counter((f["rule"], f["symbol"]) for f in data["findings"])

    old, new = (headers_dir / release for release in pair)
    recorded = key(report("diff", *pair))
    assert key(report("diff", old, new)) == recorded
    assert key(report("diff", pair[0], new)) == recorded
    assert key(report("diff", old, pair[1])) == recorded


def test_a_partial_record_tells_what_it_knows() -> None:
    data = report("diff", "1.29", "1.30")
    assert Counter(f["rule"] for f in data["findings"]) == {
        "release-new": 1,
        "slot-appended": 1,
        "enumerator-renamed": 2,
        "enumerator-added": 1,
        "macro-added": 2,
    }
    assert "OrtApi.KernelContext_GetPreallocatedOutput" in {f["symbol"] for f in data["findings"]}


def test_nothing_changes_from_a_release_to_itself() -> None:
    done = run("diff", "1.29", "1.29.0")
    assert done.returncode == 0
    assert done.stdout == "1.29.0 (recorded) against 1.29.0 (recorded): no differences\n"


def test_a_header_against_a_record(tmp_path: Path) -> None:
    """A header of the spec's 1.25, against the record of 1.24.1, and the other way round."""
    header = synthesise(load_spec(ROOT / "spec").at(25), tmp_path / "new")
    forward = report("diff", "1.24.1", header)
    assert Counter(f["rule"] for f in forward["findings"]) == PAIRS["1.24.1", "1.25.0"]
    slot = next(f for f in forward["findings"] if f["symbol"] == "OrtEpFactory.InitGraphicsInterop")
    assert (
        "InitGraphicsInterop"
        in Path(slot["header"]["file"]).read_text().splitlines()[slot["header"]["line"] - 1]
    )
    back = report("diff", header, "1.24.1")
    rules = Counter(f["rule"] for f in back["findings"])
    assert rules == {"version-went-back": 1, "type-removed": 13, "slot-removed": 35}


def test_a_record_is_quoted_at_its_line(tmp_path: Path) -> None:
    facts = tmp_path / "ort-1.26.0.json"
    abi = load_facts(FACTS / "ort-1.26.0.json")
    facts.write_text(
        dump_facts(abi).replace(
            '"ORT_EXTERNAL_SEMAPHORE_D3D12_FENCE": 0', '"ORT_EXTERNAL_SEMAPHORE_D3D12_FENCE": 5'
        )
    )
    data = report("diff", "1.26.0", facts)
    (finding,) = data["findings"]
    assert finding["rule"] == "enum-value"
    for side, file in (("spec", FACTS / facts.name), ("header", facts)):
        line = file.read_text().splitlines()[finding[side]["line"] - 1]
        assert "ORT_EXTERNAL_SEMAPHORE_D3D12_FENCE" in line


def test_what_the_older_side_cannot_say_is_told(tmp_path: Path) -> None:
    old = synthesise(load_spec(ROOT / "spec").at(25), tmp_path / "old")
    new = shutil.copytree(old.parent, tmp_path / "new")
    text = old.read_text()
    mark = "ORT_API2_STATUS(Run,"
    assert text.count(mark) == 1
    old.write_text(text.replace(mark, "ORT_API2_STATUS(Run Run,"))
    data = report("diff", old, new)
    assert [f["rule"] for f in data["findings"]] == ["unreadable"]
    assert data["findings"][0]["spec"]["line"] and data["findings"][0]["header"] is None


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("1.24.1", "nowhere"), "neither a header, a folder with one, a facts file nor a release"),
        (("1.24.1", "1.99"), "release 1.99 is not recorded here"),
        (("1.24.1", "1.24.9"), "recorded are 1.23.2, 1.24.1, 1.25.0"),
        (("1.24.1", "."), "no onnxruntime_c_api.h in"),
        (("1.24.1",), "Missing argument 'NEW'"),
        (("1.24.1", "1.25.0", "--output", "x.pdf"), "its ending means no format"),
        (
            ("1.24.1", "1.25.0", "--format", "json", "--output", "a", "--output", "b"),
            "--format goes with one",
        ),
        (("1.24.1", "1.25.0", "--config", "missing.toml"), "missing.toml: error"),
        (("1.24.1", "1.25.0", "--baseline", "missing.json"), "missing.json: error"),
        (("1.24.1", "1.25.0", "--write-baseline", "b.json"), "needs --reason"),
        (("1.24.1", "1.25.0", "--write-baseline", "b.json", "--reason", " "), "needs --reason"),
        (
            ("1.24.1", "1.25.0", "--write-baseline", "b", "--reason", "x", "--output", "o.md"),
            "leave --output and --format out",
        ),
        (("1.24.1", "1.25.0", "--output", "folder.json/x.sarif"), "error"),
    ],
)
def test_what_cannot_be_compared_exits_with_2(
    tmp_path: Path, arguments: tuple[str, ...], message: str
) -> None:
    (tmp_path / "folder.json").write_text("a file, not a folder")
    done = run("diff", *arguments, cwd=tmp_path)
    assert done.returncode == 2, done.stdout
    assert message in " ".join(done.stderr.split())
    assert [p.name for p in tmp_path.iterdir()] == ["folder.json"], "something was left behind"


# The options that all reporting commands share ---------------------------------------------------


def test_outputs_are_written_next_to_the_text(tmp_path: Path) -> None:
    names = ("r.json", "r.sarif", "r.md", "r.xml", "r.html", "sub/r.txt")
    outputs = [word for name in names for word in ("--output", tmp_path / name)]
    done = run("diff", "1.28.0", "1.29.0", *outputs)
    assert done.returncode == 1
    assert done.stdout.endswith(": 6 findings: 6 additive\n")
    starts = ("{", "{", "### ", "<?xml", "<!doctype html>", "additive")
    for name, start in zip(names, starts, strict=True):
        assert (tmp_path / name).read_text().startswith(start), name
    assert (tmp_path / "sub" / "r.txt").read_text() == done.stdout
    one = run("diff", "1.28.0", "1.29.0", "--format", "sarif", "--output", tmp_path / "odd.name")
    assert one.stdout == done.stdout
    assert json.loads((tmp_path / "odd.name").read_text())["version"] == "2.1.0"


@pytest.mark.parametrize(
    ("level", "code"),
    [("breaking", 0), ("source", 1), ("contract", 1), ("additive", 1), ("any", 1)],
)
def test_fail_on_decides_the_exit_code(level: str, code: int) -> None:
    assert run("diff", "1.26.0", "1.28.0", "--fail-on", level).returncode == code


def test_configuration_is_found_and_given_way_to(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / "pyproject.toml").write_text('[tool.ort-interop-gen]\nfail-on = "breaking"\n')
    assert run("diff", "1.26.0", "1.28.0", cwd=tmp_path).returncode == 0
    assert run("diff", "1.26.0", "1.28.0", "--fail-on", "any", cwd=tmp_path).returncode == 1
    other = tmp_path / "other.toml"
    other.write_text('[rules.sal-changed]\nseverity = "breaking"\nreason = "we rely on it"\n')
    done = run("diff", "1.26.0", "1.28.0", "--config", other, "--fail-on", "breaking", cwd=tmp_path)
    assert done.returncode == 1
    assert "breaking[sal-changed]" in done.stdout
    assert "sal-changed: breaking instead of contract, set at" in done.stdout
    assert "other.toml:1: we rely on it" in done.stdout


def test_a_baseline_makes_known_findings_pass_and_new_ones_fail(tmp_path: Path) -> None:
    known = tmp_path / "known.json"
    done = run("diff", "1.26.0", "1.28.0", "--write-baseline", known, "--reason", "seen")
    assert (done.returncode, done.stdout) == (0, f"{known}: 19 findings accepted\n")
    done = run("diff", "1.26.0", "1.28.0", "--baseline", known)
    assert done.returncode == 0
    assert done.stdout.endswith("no differences; 19 more accepted\n")
    done = run("diff", "1.26.0", "1.29.0", "--baseline", known)
    assert done.returncode == 1
    data = report("diff", "1.26.0", "1.29.0", "--baseline", known)
    assert len(data["accepted"]) == 18
    assert data["stale"] == ["ORT_API_VERSION (release-new)"]


@pytest.mark.skipif(sys.platform == "win32", reason="a pseudo-terminal needs a POSIX system")
def test_colour_on_a_terminal_only() -> None:
    command = [sys.executable, "-m", "ort_interop_gen", "diff", "1.28.0", "1.29.0"]
    assert "\x1b" not in run(*command[3:]).stdout

    def on_terminal(**environ: str) -> str:
        leader, follower = pty.openpty()
        clean = {k: v for k, v in os.environ.items() if k != "NO_COLOR"}
        process = subprocess.Popen(
            command, stdout=follower, stderr=follower, cwd=ROOT, env=clean | environ
        )
        os.close(follower)
        data = b""
        while True:
            try:
                part = os.read(leader, 65536)
            except OSError:
                break
            if not part:
                break
            data += part
        process.wait()
        os.close(leader)
        return data.decode()

    assert "\x1b[" in on_terminal()
    assert "\x1b[" not in on_terminal(NO_COLOR="1")


def test_an_output_that_lacks_characters_gets_substitutes() -> None:
    command = [sys.executable, "-m", "ort_interop_gen", "diff", "1.28.0", "1.29.0"]
    done = subprocess.run(
        [*command, "--format", "markdown"],
        capture_output=True,
        cwd=ROOT,
        env=os.environ | {"PYTHONIOENCODING": "cp1252"},
    )
    assert (done.returncode, done.stderr) == (1, b"")
    assert b"#### ? additive (6)" in done.stdout


def test_check_takes_documentation_in(tmp_path: Path) -> None:
    header = synthesise(load_spec(ROOT / "spec").at(29), tmp_path)
    mark = "ORT_API2_STATUS(ImportMemory,"
    comment = (
        "/** \\brief See ::ImportSemaphore. \\param[in] handle None. \\since Version 1.24. */\n"
    )
    text = header.read_text()
    assert text.count(mark) == 1
    start = text.index(mark)
    header.write_text(text[: text.rindex("\n", 0, start) + 1] + comment + text[start:])
    assert run("check", "--header", header).returncode == 0
    data = report("check", "--header", header, "--docs")
    rules = Counter(f["rule"] for f in data["findings"])
    assert rules["doc-reference"] == rules["doc-param-unknown"] == 1
    assert data["summary"]["documentation"] == len(data["findings"])
    assert run("check", "--header", header, "--docs", "--fail-on", "additive").returncode == 0


def test_the_rules_command_explains() -> None:
    listed = run("rules").stdout
    assert all(rule in listed for rule in RULES)
    done = run("rules", "slot-swapped")
    assert done.returncode == 0
    assert RULES["slot-swapped"].description in done.stdout
    assert run("rules", "slot-sweped").returncode == 2


def test_the_documented_table_is_what_is_found() -> None:
    rows = []
    for (old, new), rules in PAIRS.items():
        cells = []
        for severity in ("additive", "contract", "source", "breaking"):
            of = [(n, r) for r, n in rules.items() if RULES[r].severity.value == severity]
            counts = (
                f"{n} {r}"
                for n, r in sorted(of, key=lambda pair: (-pair[0], pair[1] != "type-added"))
            )
            cells.append(", ".join(counts) or "-")
        rows.append(f"| {old} | {new} | {sum(rules.values())} | {' | '.join(cells)} |\n")
    text = (ROOT / "docs" / "drift.md").read_text()
    table = text.partition("<!-- pairs -->\n")[2].partition("<!-- /pairs -->")[0]
    assert table.split("\n", 2)[2] == "".join(rows)
