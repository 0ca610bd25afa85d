"""The command line as a user meets it: whole processes, exit codes, messages."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from ort_interop_gen.render.env import TargetEnv
from ort_interop_gen.render.targets.c_header import CHeader
from ort_interop_gen.spec import load_spec
from support import ROOT

SPEC = ROOT / "spec"
TEMPLATES = ROOT / "templates"
ENVIRON = {
    k: v
    for k, v in os.environ.items()
    if k not in {"ORT_INCLUDE_DIR", "CMAKE_PREFIX_PATH", "CONDA_PREFIX"}
}


def run(
    *arguments: str | Path, cwd: Path | None = None, env: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [sys.executable, "-m", "ort_interop_gen", *map(str, arguments)],
        capture_output=True,
        text=True,
        cwd=cwd,
        env=ENVIRON | (env or {}),
    )
    assert "Traceback" not in done.stderr, done.stderr
    return done


def snapshot(folder: Path) -> dict[str, bytes]:
    return {
        p.relative_to(folder).as_posix(): p.read_bytes()
        for p in folder.rglob("*")
        if p.is_file() and p.name != ".generate-state.json"
    }


@pytest.fixture(scope="module")
def fresh(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A generated folder to copy; made once, because it takes most of a second."""
    out = tmp_path_factory.mktemp("fresh") / "out"
    done = run("generate", "--out", out)
    assert done.returncode == 0, done.stderr
    return out


@pytest.fixture
def out(fresh: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(fresh, tmp_path / "out"))


@pytest.fixture
def templates(tmp_path: Path) -> Path:
    return Path(shutil.copytree(TEMPLATES, tmp_path / "templates"))


def test_it_says_what_it_was_held_against(tmp_path: Path) -> None:
    done = run("generate", "--out", tmp_path / "o", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    for release in ("1.23.2", "1.24.1", "1.25.0", "1.26.0", "1.28.0", "1.29.0"):
        assert release in done.stdout
    assert "header: none given or found" in done.stdout


def test_generate_twice_changes_nothing_and_is_told(out: Path) -> None:
    before = {p: p.stat().st_mtime_ns for p in out.rglob("*") if p.is_file()}
    done = run("generate", "--out", out)
    assert done.returncode == 0 and "nothing has changed" in done.stdout
    (out / ".generate-state.json").unlink()
    done = run("generate", "--out", out)
    assert done.returncode == 0 and ", 0 written" in done.stdout
    before.pop(out / ".generate-state.json")
    after = {p: p.stat().st_mtime_ns for p in before}
    assert after == before


def test_two_runs_write_the_same_bytes(fresh: Path, tmp_path: Path) -> None:
    """Hash seeds, folders and the time of day leave no trace in the output."""
    done = run("generate", "--out", "elsewhere", cwd=tmp_path, env={"PYTHONHASHSEED": "12345"})
    assert done.returncode == 0, done.stderr
    assert snapshot(tmp_path / "elsewhere") == snapshot(fresh)


def test_an_edited_output_is_repaired(out: Path, fresh: Path) -> None:
    (out / "include" / "ort_interop_abi.h").write_text("broken\n")
    (out / "include" / "ort_interop_abi_check.h").unlink()
    done = run("generate", "--out", out)
    assert done.returncode == 0 and "changed: include/ort_interop_abi.h" in done.stdout
    assert snapshot(out) == snapshot(fresh)


def test_check_is_clean_after_generate(out: Path) -> None:
    before = snapshot(out)
    done = run("generate", "--check", "--out", out)
    assert done.returncode == 0 and "all up to date" in done.stdout
    assert snapshot(out) == before


def test_check_after_touching_a_template_names_the_stale_files(out: Path, templates: Path) -> None:
    template = templates / "c_header" / "ort_interop_abi.h.j2"
    template.write_text(template.read_text().replace("Three version macros:", "The macros:"))
    before = snapshot(out)
    done = run("generate", "--check", "--out", out, "--templates", templates)
    assert done.returncode == 1
    assert "stale: include/ort_interop_abi.h\n" in done.stdout
    assert "stale: include/ort_interop_abi_check.h" not in done.stdout
    assert "- * Three version macros:\n+ * The macros:\n" in done.stdout
    assert "ort-interop-gen generate" in done.stderr
    assert snapshot(out) == before


def test_check_names_missing_and_orphan_files(out: Path) -> None:
    (out / "include" / "ort_interop_abi.h").unlink()
    (out / "notes.txt").write_text("by hand")
    manifest = json.loads((out / "manifest.json").read_text())
    manifest["files"]["old.h"] = "0" * 64
    (out / "manifest.json").write_text(json.dumps(manifest))
    (out / "old.h").write_text("/* no longer rendered */\n")
    done = run("generate", "--check", "--out", out)
    assert done.returncode == 1
    assert "missing: include/ort_interop_abi.h\n" in done.stdout
    assert "orphan (not written by this tool): notes.txt\n" in done.stdout
    assert "orphan (no longer rendered): old.h\n" in done.stdout
    assert run("generate", "--out", out).returncode == 0
    assert (out / "notes.txt").read_text() == "by hand" and not (out / "old.h").exists()


def test_check_does_not_trust_the_record_of_the_last_run(out: Path, fresh: Path) -> None:
    """A file and its manifest entry changed together: only rendering anew can tell."""
    header = out / "include" / "ort_interop_abi.h"
    header.write_text(header.read_text() + "/* tampered */\n")
    state = json.loads((out / ".generate-state.json").read_text())
    changed = hashlib.sha256(header.read_bytes()).hexdigest()
    state["files"]["include/ort_interop_abi.h"] = changed
    (out / ".generate-state.json").write_text(json.dumps(state))
    done = run("generate", "--check", "--out", out)
    assert done.returncode == 1 and "stale: include/ort_interop_abi.h" in done.stdout


@pytest.mark.parametrize("text", ["", "[]", '{"inputs": 1', '{"unknown": 1}', '"x"'])
def test_a_damaged_record_only_costs_time(out: Path, fresh: Path, text: str) -> None:
    (out / ".generate-state.json").write_text(text)
    done = run("generate", "--out", out)
    assert done.returncode == 0, done.stderr
    assert snapshot(out) == snapshot(fresh)


def test_bad_specs_are_told_with_file_and_line_and_nothing_is_written(tmp_path: Path) -> None:
    spec = Path(shutil.copytree(SPEC, tmp_path / "spec"))
    file = spec / "interop_api.yaml"
    lines = file.read_text().splitlines(keepends=True)
    number = next(i for i, line in enumerate(lines) if "handle_type" in line)
    lines[number] = lines[number].replace("OrtExternalMemoryHandleType", "OrtNoSuchType")
    file.write_text("".join(lines))
    done = run("generate", "--spec-dir", spec, "--out", tmp_path / "out")
    assert done.returncode == 2
    assert f"interop_api.yaml:{number + 1}:" in done.stderr
    assert "OrtNoSuchType" in done.stderr
    assert not (tmp_path / "out").exists()


def test_a_spec_that_contradicts_the_records_is_not_rendered(tmp_path: Path) -> None:
    spec = Path(shutil.copytree(SPEC, tmp_path / "spec"))
    file = spec / "ort_abi.yaml"
    text = file.read_text()
    assert "{name: ORT_NOT_IMPLEMENTED, value: 9}" in text
    file.write_text(text.replace("{name: ORT_NOT_IMPLEMENTED, value: 9}", "{name: ORT_NOT_IMPLEMENTED, value: 99}"))  # fmt: skip
    done = run("generate", "--spec-dir", spec, "--out", tmp_path / "out")
    assert done.returncode == 1
    assert "ORT_NOT_IMPLEMENTED" in done.stderr
    assert not (tmp_path / "out").exists()


def test_a_faulty_template_is_told_and_nothing_is_written(out: Path, templates: Path) -> None:
    template = templates / "c_header" / "ort_interop_abi_check.h.j2"
    template.write_text("{{ no_such_name }}\n" + template.read_text())
    before = snapshot(out)
    done = run("generate", "--out", out, "--templates", templates)
    assert done.returncode == 2
    assert "ort_interop_abi_check.h.j2:1: error: 'no_such_name' is undefined" in done.stderr
    assert snapshot(out) == before


def test_output_that_does_not_parse_is_told_and_nothing_is_written(
    out: Path, templates: Path
) -> None:
    template = templates / "c_header" / "ort_interop_abi_check.h.j2"
    template.write_text(template.read_text() + "int open[2;\n")
    before = snapshot(out)
    done = run("generate", "--out", out, "--templates", templates)
    assert done.returncode == 2
    assert "include/ort_interop_abi_check.h:" in done.stderr
    assert snapshot(out) == before


def test_an_interrupt_leaves_nothing_or_everything(tmp_path: Path) -> None:
    for delay in (0.15, 0.3, 0.45, 0.6, 0.75, 0.9):
        folder = tmp_path / f"out{delay}"
        process = subprocess.Popen(
            [sys.executable, "-m", "ort_interop_gen", "generate", "--out", str(folder)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=ENVIRON,
        )
        time.sleep(delay)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
        found = snapshot(folder) if folder.exists() else {}
        if found:
            listed = json.loads(found.pop("manifest.json"))["files"]
            assert {p: hashlib.sha256(data).hexdigest() for p, data in found.items()} == listed


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("generate", "--spec-dir", "nowhere"), "nowhere"),
        (("generate", "--header", "nowhere.h"), "no such header"),
        (("generate", "--spec-dir", os.devnull), "no interop_api.yaml in this folder"),
        (("generate", "--spec-dir", TEMPLATES), "no interop_api.yaml in this folder"),
        (("generate", "--templates", "nowhere"), "no .clang-format in this folder"),
        (("generate", "--templates", SPEC), "no .clang-format in this folder"),
        (("generate", "--out", ""), "'.' for the present folder"),
        (("generate", "--no-such-option"), "no-such-option"),
        (("no-such-command",), "no-such-command"),
        (("check", "--header", "nowhere.h"), "nowhere.h"),
        (("check",), "header"),
    ],
)
def test_bad_command_lines_exit_2(
    tmp_path: Path, arguments: tuple[str | Path, ...], message: str
) -> None:
    done = run(*arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert message in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_an_out_that_is_a_file_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("a file")
    done = run("generate", "--out", tmp_path / "out")
    assert done.returncode == 2 and "is not a folder" in done.stderr


def test_a_named_header_folder_without_a_header_is_an_error(tmp_path: Path) -> None:
    done = run("generate", "--out", tmp_path / "o", env={"ORT_INCLUDE_DIR": str(tmp_path)})
    assert done.returncode == 2 and "ORT_INCLUDE_DIR" in done.stderr


def test_a_given_header_is_a_witness_for_and_against(tmp_path: Path) -> None:
    target = TargetEnv(TEMPLATES / "c_header")
    header, _ = CHeader().render_release(load_spec(SPEC), target, 24)
    path = tmp_path / "another_name.h"
    path.write_text(header.text)
    done = run("generate", "--out", tmp_path / "good", "--header", path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"header {path} (by --header): agrees with the spec" in done.stdout

    path.write_text(header.text.replace("ORT_NOT_IMPLEMENTED = 9", "ORT_NOT_IMPLEMENTED = 90"))
    done = run("generate", "--out", tmp_path / "good", "--header", path)
    assert done.returncode == 1, "a header that changed since the last run is read again"
    done = run("generate", "--out", tmp_path / "bad", "--header", path)
    assert done.returncode == 1 and "ORT_NOT_IMPLEMENTED" in done.stderr
    assert not (tmp_path / "bad").exists()
    done = run("check", "--header", path)
    assert done.returncode == 1 and "ORT_NOT_IMPLEMENTED" in done.stdout


def test_a_header_before_the_floor_cannot_be_a_witness(tmp_path: Path) -> None:
    path = tmp_path / "onnxruntime_c_api.h"
    path.write_text("#define ORT_API_VERSION 23\nstruct OrtApi { int x; };\n")
    for command in (("check",), ("generate", "--out", tmp_path / "o")):
        done = run(*command, "--header", path)
        assert done.returncode == 2 and "starts at 1.24" in done.stderr
    assert not (tmp_path / "o").exists()


@pytest.mark.parametrize("kind", ["spec", "backend"])
def test_the_schema_is_json_schema_that_refuses_unknown_keys(kind: str) -> None:
    done = run("schema", "--kind", kind)
    schema = json.loads(done.stdout)
    assert schema["$schema"].startswith("https://json-schema.org/")
    assert schema["additionalProperties"] is False


def test_help_lists_the_commands_without_importing_them() -> None:
    done = run("--help")
    assert done.returncode == 0
    for name in ("generate", "check", "schema"):
        assert name in done.stdout


def test_a_run_with_nothing_to_do_loads_no_heavy_module(tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert run("generate", "--out", out).returncode == 0
    code = (
        "import sys; from ort_interop_gen.cli.main import main; "
        f"assert main(['generate', '--out', {str(out)!r}]) == 0; "
        "print(sorted({'pydantic', 'jinja2', 'black', 'yaml', 'pycparser'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=ENVIRON)
    assert done.stdout.splitlines()[-1] == "[]", done.stdout + done.stderr
    assert "nothing has changed" in done.stdout


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize("arguments", [("schema",), ("generate", "--check", "--out", "none")])
def test_a_full_disk_is_no_traceback(arguments: tuple[str, ...], tmp_path: Path) -> None:
    command = [sys.executable, "-m", "ort_interop_gen", *arguments]
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            command, stdout=full, stderr=subprocess.PIPE, text=True, cwd=tmp_path, env=ENVIRON
        )
    assert done.returncode == 2
    assert done.stderr.startswith("error: the output cannot be written"), done.stderr


def test_a_closed_pipe_is_no_traceback(out: Path) -> None:
    command = f"{sys.executable} -m ort_interop_gen schema | head -c 10"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, env=ENVIRON)
    assert "Traceback" not in done.stderr and "Exception" not in done.stderr


def test_an_interrupt_while_modules_load_is_no_traceback(tmp_path: Path) -> None:
    # In place of click, the first large module: Ctrl-C as it loads.
    (tmp_path / "click.py").write_text(
        "import os, signal, time\nos.kill(os.getpid(), signal.SIGINT)\ntime.sleep(60)\n"
    )
    paths = [str(tmp_path), os.environ.get("PYTHONPATH", "")]
    environ = ENVIRON | {"PYTHONPATH": os.pathsep.join(filter(None, paths))}
    script = Path(sys.executable).with_name("ort-interop-gen")
    for start in ([sys.executable, "-m", "ort_interop_gen"], [str(script)]):
        done = subprocess.run([*start, "rules"], capture_output=True, text=True, env=environ)
        assert done.returncode == 130, done.stderr
        assert done.stderr == "interrupted; nothing was half-written\n"
