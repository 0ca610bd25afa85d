"""The host EP's sources: they compile everywhere without a warning, and export two functions."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from ep_build import Tree, driver_share, render_tree, run

EXPORTS = {"CreateEpFactories", "ReleaseEpFactory"}
MINGW = "x86_64-w64-mingw32"

Need = Callable[[str], str]


@pytest.fixture(scope="session")
def tree(tmp_path_factory: pytest.TempPathFactory, need_tool: Need) -> Tree:
    """The generated sources."""
    need_tool("make")
    return render_tree(tmp_path_factory.mktemp("tree"))


def exported(library: Path) -> set[str]:
    """The functions that an ELF library offers."""
    lines = run(["nm", "--dynamic", "--defined-only", str(library)]).splitlines()
    return {line.split()[-1] for line in lines}


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_makefile(tree: Tree, need_tool: Need, tmp_path: Path, compiler: str) -> None:
    """Strict C11 without a warning; only what ONNX Runtime looks up is visible; never unloaded."""
    library = tree.make(tmp_path, f"CC={need_tool(compiler)}")
    assert exported(library) == EXPORTS
    assert "NODELETE" in run(["readelf", "--dynamic", str(library)])


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
@pytest.mark.parametrize("header", ["1.24.1", "1.25.0", "1.26.0", "1.28.0", "1.29.0"])
def test_real_headers(
    tree: Tree, headers_dir: Path, need_tool: Need, tmp_path: Path, header: str, compiler: str
) -> None:
    """Slots that a release lacks are left out."""
    include = headers_dir / header
    if not include.is_dir():
        pytest.skip(f"ORT_HEADERS_DIR has no {header}")
    tree.make(tmp_path, f"CC={need_tool(compiler)}", f"ORT_INCLUDE_DIR={include}")


def test_cmake(tree: Tree, need_tool: Need, tmp_path: Path) -> None:
    """The CMake build makes the same library."""
    source = str(tree.host)
    cmake = need_tool("cmake")
    run([cmake, "-S", source, "-B", str(tmp_path), "-DEP_WARNINGS_AS_ERRORS=ON"])
    run([cmake, "--build", str(tmp_path), "--parallel", "2"])
    (library,) = tmp_path.glob("*.so")
    assert library.name == "libort_interop_host.so"
    assert exported(library) == EXPORTS


def test_windows(tree: Tree, need_tool: Need, tmp_path: Path) -> None:
    """A DLL that exports the two functions and needs nothing but Windows itself."""
    library = tree.make(tmp_path, f"CC={need_tool(f'{MINGW}-gcc')}")
    text = run([need_tool(f"{MINGW}-objdump"), "-p", str(library)])
    table = text[text.index("[Ordinal/Name Pointer] Table") :].split("\n\n")[0]
    assert {line.split()[-1] for line in table.splitlines()[1:]} == EXPORTS
    needed = {line.split()[-1].lower() for line in text.splitlines() if "DLL Name:" in line}
    assert needed <= {"kernel32.dll", "msvcrt.dll", "ucrtbase.dll"}


def test_windows_cmake(tree: Tree, need_tool: Need, tmp_path: Path) -> None:
    """CMake's cross build as well."""
    compiler = need_tool(f"{MINGW}-gcc")
    cmake = need_tool("cmake")
    options = ["-DCMAKE_SYSTEM_NAME=Windows", f"-DCMAKE_C_COMPILER={compiler}"]
    options.append("-DEP_WARNINGS_AS_ERRORS=ON")
    run([cmake, "-S", str(tree.host), "-B", str(tmp_path), *options])
    run([cmake, "--build", str(tmp_path), "--parallel", "2"])
    assert (tmp_path / "ort_interop_host.dll").is_file()


@pytest.mark.parametrize("language", ["c", "c++"])
def test_public_header(tree: Tree, need_tool: Need, tmp_path: Path, language: str) -> None:
    """Applications of C and C++ can include the exporter's header on its own."""
    standard, name = {"c": ("c11", "gcc"), "c++": ("c++17", "g++")}[language]
    source = tmp_path / "main.c"
    source.write_text('#include "host_interop.h"\nint main(void) { return 0; }\n')
    flags = ["-Wall", "-Wextra", "-Wpedantic", "-Werror", f"-std={standard}", "-x", language]
    run([need_tool(name), *flags, f"-I{tree.host}", "-fsyntax-only", str(source)])


def test_makefile_without_generated_header_fails(
    tree: Tree, need_tool: Need, tmp_path: Path
) -> None:
    """The build does not fall back on some other header by accident."""
    need_tool("gcc")
    copy = tmp_path / "c"
    shutil.copytree(tree.root / "c", copy)
    with pytest.raises(AssertionError, match=r"ort_interop_abi\.h"):
        Tree(tmp_path).make(tmp_path / "build", "CC=gcc")


def test_driver_share(tree: Tree) -> None:
    """A driver is less than a quarter of its EP: what backends share is not repeated in them."""
    assert driver_share(tree.host, "host*") < 0.25


def test_headers_include_in_one_direction(tree: Tree) -> None:
    """No header of an EP comes back to itself through what it includes."""
    for folder in sorted((tree.root / "c").iterdir()):
        headers = {
            h.name: h for h in [*(tree.root / "c" / "common").glob("*.h"), *folder.glob("*.h")]
        }
        includes = {
            name: set(re.findall(r'^#include "(\w+\.h)"', header.read_text(), re.MULTILINE))
            for name, header in headers.items()
        }
        done: set[str] = set()
        while ready := {
            n for n in includes if n not in done and includes[n] & headers.keys() <= done
        }:
            done |= ready
        assert done == headers.keys(), (folder.name, sorted(headers.keys() - done))
