"""The host EP inside real ONNX Runtimes: one binary for all releases, under sanitizers."""

from __future__ import annotations

import subprocess
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from pathlib import Path

import pytest
from ep_build import SANITIZE, Tree, fault_flags, render_tree, run

RELEASES = ("1.24.1", "1.28.0", "1.32.0")
OLD_RELEASE = "1.23.2"
RUNS = {
    "host_run": "passed 9",
    "host_objects": "passed 10",
    "importer_accepts": "passed 10",
    "factory_direct": "passed 11",
    "importer_hostile": "refused 107",
}
"""Each program, and the last line that it prints when all of it went well."""

Need = Callable[[str], str]
Ort = Callable[[str], Path]


@pytest.fixture(scope="session")
def tree(tmp_path_factory: pytest.TempPathFactory, need_tool: Need) -> Tree:
    """The generated sources."""
    need_tool("make")
    need_tool("gcc")
    return render_tree(tmp_path_factory.mktemp("tree"))


@pytest.fixture(scope="session")
def sanitized(tree: Tree, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The EP under ASan and UBSan, and the folder of the programs built likewise."""
    build = tmp_path_factory.mktemp("sanitized")
    library = tree.make(build / "ep", "CC=gcc", f"EXTRA_CFLAGS={SANITIZE}")
    for name in RUNS:
        tree.program(name, build, flags=SANITIZE)
    return library, build


@pytest.fixture(scope="session")
def plain(tree: Tree, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The EP as its users build it, and the folder of the programs."""
    build = tmp_path_factory.mktemp("plain")
    library = tree.make(build / "ep", "CC=gcc")
    for name in [*RUNS, "importer_threads", "old_host"]:
        tree.program(name, build)
    return library, build


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("program", RUNS)
def test_under_sanitizers(
    sanitized: tuple[Path, Path], ort_library: Ort, program: str, release: str
) -> None:
    """Addresses, undefined behaviour and leaks: no report, and every check holds."""
    library, build = sanitized
    out = run([str(build / program), str(ort_library(release)), str(library)])
    assert out.splitlines()[-1] == RUNS[program]


@pytest.mark.parametrize("release", RELEASES)
def test_exit_with_everything_open(
    plain: tuple[Path, Path], ort_library: Ort, release: str
) -> None:
    """The process ends silently while a stream waits for what never comes."""
    library, build = plain
    done = subprocess.run(
        [str(build / "host_run"), str(ort_library(release)), str(library), "--leave"],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "left\n", "")


@pytest.mark.parametrize("release", [RELEASES[0], RELEASES[-1]])
def test_every_system_call_failing_once(
    tree: Tree, ort_library: Ort, tmp_path: Path, release: str
) -> None:
    """At each place: a status, null out-parameters, and nothing left over."""
    flags = f"LDFLAGS={fault_flags(tmp_path)}"
    library = tree.make(tmp_path / "ep", "CC=gcc", f"EXTRA_CFLAGS={SANITIZE}", flags)
    program = tree.program("importer_faults", tmp_path, flags=f"{SANITIZE} -rdynamic")
    out = run([str(program), str(ort_library(release)), str(library)])
    words = out.split()
    assert words[:2] == ["failed", "at"] and int(words[2]) >= 40, out


@pytest.mark.parametrize("release", RELEASES)
def test_threads(plain: tuple[Path, Path], ort_library: Ort, release: str) -> None:
    """Eight threads on one importer; descriptors and memory stay flat over 8,000 round trips."""
    library, build = plain
    program = str(build / "importer_threads")
    out = run([program, str(ort_library(release)), str(library), "8", "1000"])
    words = out.split()
    assert words[:2] == ["passed", "8000"]
    assert int(words[-3]) < 1000, out


def test_threads_under_tsan(tree: Tree, ort_library: Ort, tmp_path: Path) -> None:
    """No data race in the EP, whose every access TSan sees."""
    flags = "-fsanitize=thread"
    library = tree.make(tmp_path / "ep", "CC=gcc", f"EXTRA_CFLAGS={flags}")
    program = tree.program("importer_threads", tmp_path, flags=flags)
    command = [str(program), str(ort_library(RELEASES[-1])), str(library), "8", "100"]
    assert run(command, TSAN_OPTIONS="exitcode=66").startswith("passed 800 ")


@pytest.mark.parametrize("program", ["host_run", "host_objects", "importer_accepts"])
def test_under_valgrind(
    plain: tuple[Path, Path], ort_library: Ort, need_tool: Need, tmp_path: Path, program: str
) -> None:
    """No error and no leak that the EP has a part in; ONNX Runtime's own are not ours to judge."""
    library, build = plain
    report = tmp_path / "report.xml"
    command = [need_tool("valgrind"), "--quiet", "--leak-check=full", "--show-leak-kinds=definite"]
    command += ["--num-callers=40", "--xml=yes", f"--xml-file={report}", str(build / program)]
    out = run([*command, str(ort_library(RELEASES[-1])), str(library)])
    assert out.splitlines()[-1] == RUNS[program]
    errors = ElementTree.parse(report).getroot().findall("error")
    ours = [e for e in errors if any(library.name in (o.text or "") for o in e.iter("obj"))]
    assert not ours, "\n".join(ElementTree.tostring(e, encoding="unicode") for e in ours)


def test_old_host(plain: tuple[Path, Path], ort_library: Ort) -> None:
    """Below the floor: a status with both versions, and nothing on stderr."""
    library, build = plain
    done = subprocess.run(
        [str(build / "old_host"), str(ort_library(OLD_RELEASE)), str(library)],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    assert "needs ONNX Runtime 1.24 or newer, but this one is 1.23.2" in done.stdout
    assert done.stderr == ""


@pytest.mark.parametrize("header", ["1.24.1", "1.29.0"])
def test_built_with_real_headers(
    tree: Tree,
    plain: tuple[Path, Path],
    headers_dir: Path,
    ort_library: Ort,
    tmp_path: Path,
    header: str,
) -> None:
    """An EP of the oldest, or the newest, real header runs in the oldest and the newest host."""
    library = tree.make(tmp_path, "CC=gcc", f"ORT_INCLUDE_DIR={headers_dir / header}")
    for release in (RELEASES[0], RELEASES[-1]):
        out = run([str(plain[1] / "host_run"), str(ort_library(release)), str(library)])
        assert out.splitlines()[-1] == RUNS["host_run"]
