"""``scaffold``: names and folders that it refuses, and projects that build, pass and load."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from ep_build import run
from ort_interop_gen.cli.main import main
from ort_interop_gen.cli.scaffold import BACKENDS
from ort_interop_gen.render.scaffold import names_for
from test_host_ep_windows import MINGW, windows_ort

pytestmark = pytest.mark.long

WINDOWS_RELEASES = ("1.26.0", "1.32.0")

Need = Callable[[str], str]
Ort = Callable[[str], Path]
Capture = pytest.CaptureFixture[str]


def scaffold(out: Path, *arguments: str, name: str = "AcmeNpu", backend: str = "host") -> int:
    """Run the command; its exit code."""
    return main(["scaffold", name, "--backend", backend, "--out", str(out), *arguments])


@pytest.mark.parametrize(
    ("name", "prefix"),
    [
        ("MyEp", "my_ep"),
        ("AcmeNPU2", "acme_npu2"),
        ("acme_npu", "acme_npu"),
        ("HTTPServer", "http_server"),
        ("X", "x"),
    ],
)
def test_names(name: str, prefix: str) -> None:
    """Functions and files are called after the EP in small letters."""
    assert names_for(name).prefix == prefix


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("", "cannot name an EP"),
        ("9lives", "cannot name an EP"),
        ("_Mine", "cannot name an EP"),
        ("My__Ep", "cannot name an EP"),
        ("MyEp_", "cannot name an EP"),
        ("My-Ep", "cannot name an EP"),
        ("My Ep", "cannot name an EP"),
        ("My/Ep", "cannot name an EP"),
        ("../MyEp", "cannot name an EP"),
        ("MyEp\n", "cannot name an EP"),
        ("Größe", "cannot name an EP"),
        ("M" * 41, "cannot name an EP"),
        ("int", "is a word of C or C++"),
        ("Class", "is a word of C or C++"),
        ("CoAwait", "is a word of C or C++"),
        ("static_assert", "is a word of C or C++"),
        ("Con", "Windows cannot have a file"),
        ("LPT1", "Windows cannot have a file"),
        ("Driver", "leads to 'driver_"),
        ("Test", "the project's build has another target 'test'"),
        ("LoadTest", "the project's build has another target 'load_test'"),
    ],
)
def test_refused_names(tmp_path: Path, capsys: Capture, name: str, message: str) -> None:
    """Exit code 2, a message and what to do; nothing is written."""
    assert scaffold(tmp_path / "out", name=name) == 2
    shown = capsys.readouterr().err
    assert message in shown and "hint:" in shown
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("vendor", ["", " ", "A\nB", "tab\there", "v" * 65])
def test_refused_vendors(tmp_path: Path, capsys: Capture, vendor: str) -> None:
    """A vendor is a line of printable text."""
    assert scaffold(tmp_path / "out", "--vendor", vendor) == 2
    assert "cannot name a vendor" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_unknown_backend(tmp_path: Path, capsys: Capture) -> None:
    """The error lists the backends there are."""
    assert scaffold(tmp_path / "out", backend="metal") == 2
    assert "'vulkan'" in capsys.readouterr().err


def test_never_overwrites(tmp_path: Path, capsys: Capture) -> None:
    """A folder with anything in it is left alone without --force; with it, other files stay."""
    out = tmp_path / "out"
    out.mkdir()
    mine = out / "README.md"
    mine.write_text("mine")
    other = out / "other.txt"
    other.write_text("other")
    assert scaffold(out) == 2
    assert "--force" in capsys.readouterr().err
    assert mine.read_text() == "mine" and len(list(out.iterdir())) == 2
    assert scaffold(out, "--force") == 0
    assert mine.read_text().startswith("# AcmeNpu") and other.read_text() == "other"
    assert [p.name for p in tmp_path.iterdir()] == ["out"]


def test_takes_an_empty_folder(tmp_path: Path) -> None:
    """An empty folder is as good as none, and missing parents are made."""
    (tmp_path / "empty").mkdir()
    assert scaffold(tmp_path / "empty") == 0
    assert scaffold(tmp_path / "a" / "b") == 0


@pytest.mark.parametrize("inside", [".", "src"])
def test_file_in_the_way(tmp_path: Path, capsys: Capture, inside: str) -> None:
    """A file where a folder has to be is not deleted, even with --force."""
    out = tmp_path / "out"
    if inside == ".":
        out.write_text("file")
    else:
        out.mkdir()
        (out / inside).write_text("file")
    assert scaffold(out, "--force") == 2
    assert "error:" in capsys.readouterr().err
    assert (out / inside if inside != "." else out).read_text() == "file"


def words(root: Path, folders: tuple[str, ...]) -> set[str]:
    """Every identifier of the sources."""
    found: set[str] = set()
    for folder in folders:
        for path in (root / folder).glob("*"):
            found.update(re.findall(r"\b[A-Za-z_]\w*\b", path.read_text()))
    return found


@pytest.mark.parametrize("backend", BACKENDS)
def test_project(
    tmp_path: Path, need_tool: Need, ort_library: Ort, backend: str, capsys: Capture
) -> None:
    """A project under its author's names builds without a warning, passes its tests, and loads."""
    out = tmp_path / "project"
    assert scaffold(out, "--vendor", 'Acme "GmbH" \\ Söhne', backend=backend) == 0
    assert "README.md" in capsys.readouterr().out
    folders = ("src", "mock", "tests") if backend != "host" else ("src", "tests")
    abi = set(re.findall(r"\w+", (out / "include" / "ort_interop_abi.h").read_text()))
    ours = {w for w in words(out, folders) - abi if re.match(r"(ep_|EP_[A-Z]|Ep[A-Z])", w)}
    # What is left are words in text, such as the name of an argument of ONNX Runtime's.
    assert ours == set()
    assert not any(path.name.startswith("ep_") for path in out.rglob("*"))

    cmake, ctest = need_tool("cmake"), need_tool("ctest")
    run([cmake, "--preset", "linux", "-DACME_NPU_WARNINGS_AS_ERRORS=ON"], cwd=out)
    run([cmake, "--build", "--preset", "linux", "--parallel", "2"], cwd=out)
    for release in ("1.24.1", "1.32.0"):
        ran = run([ctest, "--preset", "linux"], cwd=out, ORT_LIBRARY=str(ort_library(release)))
        assert "100% tests passed, 0 tests failed out of 2" in ran, ran
        assert "Skipped" not in ran
    library = out / "build" / "linux" / "libacme_npu.so"
    symbols = run(["nm", "--dynamic", "--defined-only", str(library)]).split()
    assert {s for s in symbols if "Ep" in s} == {"CreateEpFactories", "ReleaseEpFactory"}


@pytest.fixture(scope="module")
def wine_prefix(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Wine's own folder; making one takes seconds."""
    return tmp_path_factory.mktemp("wine")


@pytest.mark.parametrize("backend", BACKENDS)
def test_windows_preset(tmp_path: Path, need_tool: Need, wine_prefix: Path, backend: str) -> None:
    """The cross-build makes the DLL without a warning; under Wine it passes its tests, and loads.

    The driver's mock is found before any of Wine's own, and the EP's nodes run on it.
    """
    need_tool(MINGW)
    need_tool("wine")
    cmake, ctest = need_tool("cmake"), need_tool("ctest")
    out = tmp_path / "project"
    assert scaffold(out, backend=backend) == 0
    run([cmake, "--preset", "windows-cross", "-DACME_NPU_WARNINGS_AS_ERRORS=ON"], cwd=out)
    run([cmake, "--build", "--preset", "windows-cross", "--parallel", "2"], cwd=out)
    assert (out / "build" / "windows-cross" / "acme_npu.dll").is_file()
    for release in WINDOWS_RELEASES:
        ran = run(
            [ctest, "--preset", "windows-cross", "--verbose"],
            cwd=out,
            ORT_LIBRARY=f"Z:{windows_ort(release)}",
            WINEPREFIX=str(wine_prefix),
            WINEDEBUG="-all",
            LC_ALL="C.UTF-8",
        )
        assert "100% tests passed, 0 tests failed out of 2" in ran, ran
        assert "Skipped" not in ran
        assert re.search(rf"wine\w*\W+{re.escape(str(out))}.*load_test\.exe", ran), ran
        assert len(re.findall(r"^\d+: passed\s*$", ran, re.MULTILINE)) == 2, ran


def test_load_is_skipped_without_a_library(tmp_path: Path, need_tool: Need) -> None:
    """Without ORT_LIBRARY the second test says that it was skipped; it does not pass silently."""
    out = tmp_path / "project"
    assert scaffold(out) == 0
    run([need_tool("cmake"), "--preset", "linux"], cwd=out)
    run([need_tool("cmake"), "--build", "--preset", "linux", "--parallel", "2"], cwd=out)
    ran = run([need_tool("ctest"), "--preset", "linux"], cwd=out, ORT_LIBRARY="")
    assert "Skipped" in ran
