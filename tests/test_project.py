"""The project itself: lint, types, format, freshness, packaging, and what users type."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from support import GENERATED, ROOT, missing, need_tool

PYTHON = sys.executable
SOURCES = ["generator", "tests", "bench", "examples", "generated/python", "generated/tests"]


def tool(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([PYTHON, "-m", *command], capture_output=True, text=True, cwd=ROOT)


def existing(*names: str) -> list[str]:
    return [name for name in names if (ROOT / name).exists()]


def test_python_is_formatted() -> None:
    done = tool("black", "--check", "--quiet", "--diff", *existing(*SOURCES))
    assert done.returncode == 0, done.stdout[:4000]


def test_python_is_lint_free() -> None:
    done = tool("ruff", "check", "--quiet", *existing(*SOURCES))
    assert done.returncode == 0, done.stdout[:4000]


def test_the_generator_is_typed() -> None:
    done = tool("mypy", "--strict", "generator")
    assert done.returncode == 0, done.stdout[:4000]


def test_copied_c_is_formatted() -> None:
    """Templates are formatted when they are rendered; plain files are copied as they are."""
    from ort_interop_gen.render.format import clang_format_path

    files = [str(p) for p in (ROOT / "templates").rglob("*.[ch]")]
    files += [str(p) for p in GENERATED.rglob("*.[ch]")]
    style = f"--style=file:{ROOT / 'templates' / '.clang-format'}"
    done = subprocess.run(
        [clang_format_path(), style, "--dry-run", "-Werror", *files], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr[:4000]


def test_the_generated_files_are_fresh() -> None:
    done = tool("ort_interop_gen", "generate", "--check")
    assert done.returncode == 0, done.stdout[:4000] + done.stderr


def test_stages_import_only_to_their_left() -> None:
    order = ["spec", "header", "drift", "render", "cli"]
    wrong = []
    for at, stage in enumerate(order):
        for path in (ROOT / "generator" / stage).rglob("*.py"):
            depth = len(path.relative_to(ROOT / "generator").parts)
            for match in re.finditer(r"^\s*from (\.+)(\w+)", path.read_text("utf-8"), re.M):
                if len(match[1]) == depth and match[2] in order[at + 1 :]:
                    wrong.append(f"{path.relative_to(ROOT)}: {match[0].strip()}")
            assert "import ort_interop_gen" not in path.read_text("utf-8"), path
    assert wrong == []


def test_no_file_names_a_machines_folders() -> None:
    git = need_tool("git")
    if not (ROOT / ".git").exists():
        missing("this is not a git checkout")
    paths = [f"{'/'}{name}/" for name in ("work", "root", "home", "farm")]
    done = subprocess.run(
        [git, "grep", "-nIE", "|".join(rf"(^|[^.A-Za-z0-9_]){p}" for p in paths)],
        capture_output=True,
        text=True,
        cwd=ROOT,
    )
    assert done.stdout == ""


def test_the_readme_names_real_commands_and_folders() -> None:
    readme = (ROOT / "README.md").read_text("utf-8")
    makefile = (ROOT / "Makefile").read_text("utf-8")
    for target in set(re.findall(r"(?:`|^    )make ([a-z-]+)", readme, re.M)):
        assert re.search(rf"^{target}:", makefile, re.M), target
    commands = set(re.findall(r"`ort-interop-gen ([a-z-]+)", readme))
    assert commands
    for command in commands:
        assert tool("ort_interop_gen", command, "--help").returncode == 0, command
    for folder in set(re.findall(r"`((?:generated|spec|generator|templates)/[\w/]*)[`*]", readme)):
        assert (ROOT / folder).is_dir(), folder


def test_the_first_two_commands_of_the_readme_are_the_two_that_matter() -> None:
    readme = (ROOT / "README.md").read_text("utf-8")
    assert re.findall(r"^    (make \w+)$", readme, re.M)[:2] == ["make generate", "make test"]


def test_packages_are_all_listed() -> None:
    """A package that is missing from the list would be missing from the wheel."""
    text = (ROOT / "pyproject.toml").read_text("utf-8")
    listed = re.findall(r'^  "(ort_interop_gen[\w.]*)",$', text, re.M)
    found = {
        ".".join(["ort_interop_gen", *p.parent.relative_to(ROOT / "generator").parts])
        for p in (ROOT / "generator").rglob("__init__.py")
    }
    assert {p for p in listed if "._data" not in p} == found


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The project as its wheel installs it, without its dependencies."""
    folder = tmp_path_factory.mktemp("wheel")
    source = folder / "source"
    for name in ("generator", "spec", "templates"):
        shutil.copytree(ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source / name)
    pip = [PYTHON, "-m", "pip", "--disable-pip-version-check", "--quiet"]
    done = subprocess.run(
        [*pip, "wheel", "--no-deps", "-w", str(folder), str(source)], capture_output=True, text=True
    )
    if done.returncode != 0 and "No matching distribution" in done.stderr:
        missing("setuptools cannot be downloaded to build the wheel")
    assert done.returncode == 0, done.stderr
    (wheel,) = folder.glob("*.whl")
    target = folder / "site"
    subprocess.run([*pip, "install", "--no-deps", "--target", str(target), str(wheel)], check=True)
    return target


def run_installed(site: Path, cwd: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environ = {k: v for k, v in os.environ.items() if not k.startswith("ORT_")}
    return subprocess.run(
        (
            [PYTHON, "-P", "-m", "ort_interop_gen", *arguments]
            if sys.version_info >= (3, 11)
            else [PYTHON, "-m", "ort_interop_gen", *arguments]
        ),
        capture_output=True,
        text=True,
        cwd=cwd,
        env=environ | {"PYTHONPATH": str(site)},
    )


def test_the_wheel_carries_everything_and_works_in_any_folder(
    installed: Path, tmp_path: Path
) -> None:
    code = "import ort_interop_gen; print(ort_interop_gen.__file__)"
    environ = os.environ | {"PYTHONPATH": str(installed)}
    where = subprocess.run([PYTHON, "-c", code], capture_output=True, text=True, env=environ)
    assert where.stdout.startswith(str(installed))
    done = run_installed(installed, tmp_path, "generate")
    assert done.returncode == 0, done.stdout + done.stderr
    ours = json.loads((GENERATED / "manifest.json").read_text())
    theirs = json.loads((tmp_path / "generated" / "manifest.json").read_text())
    assert theirs == ours
    done = run_installed(installed, tmp_path, "generate", "--check")
    assert done.returncode == 0, done.stdout + done.stderr
    assert (installed / "bin" / "ort-interop-gen").is_file()
    assert (installed / "ort_interop_gen" / "py.typed").is_file()


def test_the_wheel_can_read_headers(installed: Path, tmp_path: Path) -> None:
    """The stub headers that reading needs travel, too."""
    header = GENERATED / "include" / "ort_interop_abi.h"
    for preprocessor in ("python", "cc"):
        if preprocessor == "cc":
            need_tool("gcc")
        done = run_installed(
            installed, tmp_path, "check", "--header", str(header), "--preprocessor", preprocessor
        )
        # The header mixes what two releases declare, so differences are right; failing is not.
        assert done.returncode in (0, 1), done.stderr
        assert "Traceback" not in done.stderr


def test_the_ci_script_is_strict_and_runs_everything() -> None:
    script = ROOT / ".ci" / "run"
    assert os.access(script, os.X_OK)
    need_tool("bash")
    subprocess.run(["bash", "-n", str(script)], check=True)
    text = script.read_text()
    assert "set -euo pipefail" in text and "REQUIRE_ALL=1 make test" in text


def test_the_makefile_lists_its_targets() -> None:
    done = subprocess.run(
        [need_tool("make"), "-C", str(ROOT), "--no-print-directory", "help"],
        capture_output=True,
        text=True,
    )
    for target in ("generate", "test", "check-headers", "bench", "fuzz", "clean"):
        assert re.search(rf"^{target}\t", done.stdout, re.M), target
    done = subprocess.run(
        [need_tool("make"), "-C", str(ROOT), "-n", "check-headers"], capture_output=True, text=True
    )
    assert "usage: make check-headers HEADERS=dir" in done.stdout
