"""Real headers are found where a build would find them, and asked-for ones must be there."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from ort_interop_gen.header.sources import locate
from ort_interop_gen.render.errors import RenderErrors
from ort_interop_gen.render.find_header import HEADER, find_header


def header_in(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / HEADER).write_text("/* a header */\n")
    return folder / HEADER


def test_none_is_found_where_there_is_none(tmp_path: Path) -> None:
    assert find_header(None, {"PATH": str(tmp_path)}) is None


@pytest.mark.parametrize("as_folder", [True, False])
def test_the_given_header_comes_first(tmp_path: Path, as_folder: bool) -> None:
    given, named = header_in(tmp_path / "given"), header_in(tmp_path / "named")
    environ = {"ORT_INCLUDE_DIR": str(named.parent), "PATH": ""}
    found = find_header(given.parent if as_folder else given, environ)
    assert found is not None and found.path == given and found.required


@pytest.mark.parametrize("below", ["", "onnxruntime", "onnxruntime/core/session", "core/session"])
def test_the_named_folder_may_be_laid_out_in_any_usual_way(tmp_path: Path, below: str) -> None:
    header = header_in(tmp_path / below)
    found = find_header(None, {"ORT_INCLUDE_DIR": str(tmp_path), "PATH": ""})
    assert found is not None and found.path == header
    assert found.by == "ORT_INCLUDE_DIR" and found.required


def test_pkg_config_is_asked(tmp_path: Path) -> None:
    header = header_in(tmp_path / "include" / "onnxruntime")
    program = tmp_path / "bin" / "pkg-config"
    program.parent.mkdir()
    program.write_text(
        f'#!/bin/sh\n[ "$2" = libonnxruntime ] && echo "-I{header.parent} -I/elsewhere"\n'
    )
    program.chmod(0o755)
    found = find_header(None, {"PATH": str(program.parent)})
    assert found is not None and found.path == header
    assert found.by == "pkg-config" and not found.required


def test_a_pkg_config_that_knows_nothing_is_no_error(tmp_path: Path) -> None:
    program = tmp_path / "pkg-config"
    program.write_text("#!/bin/sh\nexit 1\n")
    program.chmod(0o755)
    assert find_header(None, {"PATH": str(tmp_path)}) is None


@pytest.mark.parametrize("variable", ["CMAKE_PREFIX_PATH", "CONDA_PREFIX"])
def test_prefixes_are_searched(tmp_path: Path, variable: str) -> None:
    header = header_in(tmp_path / "p" / "include" / "onnxruntime")
    value = str(tmp_path / "p")
    if variable == "CMAKE_PREFIX_PATH":
        value = f"{tmp_path / 'none'}{os.pathsep}{value}"
    found = find_header(None, {variable: value, "PATH": ""})
    assert found is not None and found.path == header and found.by == variable


@pytest.mark.parametrize(
    "below", ["", "include", "onnxruntime/core/session", "include/onnxruntime/core/session"]
)
def test_a_folder_is_searched_at_the_usual_places(tmp_path: Path, below: str) -> None:
    """A checkout of ONNX Runtime, an unpacked release, the folder itself: as ``diff`` takes them."""
    header = header_in(tmp_path / below)
    found = find_header(tmp_path, {})
    assert found is not None and found.path == header and found.required
    assert locate(tmp_path) == header


def test_an_asked_for_header_that_is_missing_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(RenderErrors, match="no such header"):
        find_header(tmp_path / "none.h", {})
    with pytest.raises(RenderErrors, match=r"no such header: there is no onnxruntime_c_api\.h in"):
        find_header(tmp_path, {})
    with pytest.raises(RenderErrors, match="ORT_INCLUDE_DIR"):
        find_header(None, {"ORT_INCLUDE_DIR": str(tmp_path), "PATH": ""})
