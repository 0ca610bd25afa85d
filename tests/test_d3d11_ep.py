"""The d3d11 EP: one YAML and one driver, on mock COM objects in the real onnxruntime.dll under Wine."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from ep_build import PROGRAMS, ROOT, WARNINGS, Tree, driver_share, render_tree, run
from ort_interop_gen.render.format import format_all
from ort_interop_gen.render.pipeline import render
from ort_interop_gen.render.targets.mock_driver import MockDriver
from ort_interop_gen.spec import load_spec
from test_host_ep_windows import MINGW, identity_model, windows_ort

RELEASES = ("1.26.0", "1.32.0")
LUID = "7"

Need = Callable[[str], str]


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Tree:
    """The generated sources, and the recording part of the mock drivers."""
    tree = render_tree(tmp_path_factory.mktemp("tree"))
    outputs = render(load_spec(ROOT / "spec"), [MockDriver()], ROOT / "templates")
    for path, text in format_all(outputs, ROOT / "templates" / ".clang-format").items():
        file = tree.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    return tree


@pytest.fixture(scope="module")
def folder(tree: Tree, tmp_path_factory: pytest.TempPathFactory, need_tool: Need) -> Path:
    """The EP, a mock d3d11.dll and the Direct3D 12 application, in one folder."""
    out = tmp_path_factory.mktemp("d3d11")
    compiler = need_tool(MINGW)
    need_tool("make")
    options = [f"BUILD={out / 'ep'}", f"CC={compiler}"]
    run(["make", "--silent", "-j2", *options], cwd=tree.root / "c" / "d3d11")
    shutil.copy(out / "ep" / "ort_interop_d3d11.dll", out)
    mock, common, include = (tree.root / "c" / "mock_vulkan", tree.root / "c" / "common", "include")
    includes = [f"-I{mock}", f"-I{common}", f"-I{tree.root / include}"]
    sources = [PROGRAMS / "mock_d3d11.c", mock / "mock_record.c", mock / "mock_share.c"]
    sources.append(common / "ep_platform.c")
    command = [compiler, *WARNINGS, *includes, "-shared", "-o", str(out / "d3d11.dll")]
    run([*command, *map(str, sources)])
    program = [compiler, *WARNINGS, *includes, "-municode", "-o", str(out / "windows_d3d12.exe")]
    run([*program, str(PROGRAMS / "windows_d3d12.c")])
    return out


@pytest.mark.parametrize("release", RELEASES)
def test_client_sequence(folder: Path, tmp_path: Path, need_tool: Need, release: str) -> None:
    """Setup, device check, wait, Run, IOBinding, signal, cleanup: 20 frames, none before its fence.

    The mock counts every object, so what was opened is released exactly once.
    """
    model = tmp_path / "identity.onnx"
    model.write_bytes(identity_model())
    spec = load_spec(ROOT / "spec").backends["d3d11"].spec
    library = folder / "ort_interop_d3d11.dll"
    arguments = [f"Z:{windows_ort(release)}", f"Z:{library}", spec.ep.name, "d3d11.dll", LUID]
    out = run(
        [need_tool("wine"), "windows_d3d12.exe", *arguments, f"Z:{model}", "--no-heaps"],
        cwd=folder,
        WINEPREFIX=str(tmp_path / "wine"),
        WINEDEBUG="-all",
        WINEDLLOVERRIDES="d3d11=n",
        LC_ALL="C.UTF-8",
        MOCK_DRIVER_OPTIONS=f"luid={LUID}",
    )
    assert out.splitlines()[-1].strip() == "passed 20 frames"


def test_windows_only(tree: Tree, need_tool: Need, tmp_path: Path) -> None:
    """Elsewhere the build says why it cannot be."""
    done = subprocess.run(
        [need_tool("make"), "--silent", f"BUILD={tmp_path}", f"CC={need_tool('gcc')}"],
        cwd=tree.root / "c" / "d3d11",
        capture_output=True,
        text=True,
    )
    assert done.returncode != 0
    assert "Direct3D 11 exists on Windows only" in done.stderr


def test_one_yaml_and_one_driver(tree: Tree) -> None:
    """Nothing else of the project names the backend, and the driver is less than a quarter."""
    places = [*(ROOT / "generator").rglob("*.py"), *(ROOT / "templates").rglob("*.*")]
    named = {
        path.relative_to(ROOT).parts[:4]
        for path in places
        if path.is_file() and re.search("d3d11", path.read_text(errors="replace"), re.IGNORECASE)
    }
    assert named == {
        ("templates", "ep_c", "drivers", "d3d11"),
    }
    assert driver_share(tree.root / "c" / "d3d11", "d3d11_*") < 0.25
