"""The GPU EPs' DLLs in the real onnxruntime.dll, under Wine, beside a Direct3D 12 application.

The mock of the driver plays the application: its resource, heap and fence are Windows handles.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from ep_build import PROGRAMS, ROOT, WARNINGS, Tree, render_tree, run
from ort_interop_gen.render.format import format_all
from ort_interop_gen.render.pipeline import render
from ort_interop_gen.render.targets.mock_driver import MockDriver
from ort_interop_gen.spec import load_spec
from test_host_ep_windows import MINGW, identity_model, windows_ort

pytestmark = pytest.mark.long

RELEASES = ("1.26.0", "1.32.0")
MOCKS = {
    path.name
    for path in (ROOT / "templates" / "mock_driver").iterdir()
    if any(path.glob("sim_*.c"))
}
BACKENDS = sorted(MOCKS & {path.stem for path in (ROOT / "spec" / "backends").glob("*.yaml")})
LUID = "7"

Need = Callable[[str], str]


@pytest.fixture(scope="session")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Tree:
    """The generated sources, the mocks included."""
    tree = render_tree(tmp_path_factory.mktemp("tree"))
    outputs = render(load_spec(ROOT / "spec"), [MockDriver()], ROOT / "templates")
    for path, text in format_all(outputs, ROOT / "templates" / ".clang-format").items():
        file = tree.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    return tree


@pytest.fixture(scope="session")
def program(tree: Tree, tmp_path_factory: pytest.TempPathFactory, need_tool: Need) -> Path:
    """The application."""
    out = tmp_path_factory.mktemp("program") / "windows_d3d12.exe"
    command = [need_tool(MINGW), *WARNINGS, "-municode", f"-I{tree.root / 'include'}"]
    run([*command, "-o", str(out), str(PROGRAMS / "windows_d3d12.c")])
    return out


@pytest.fixture(scope="session")
def prefix(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Wine's own folder; making one takes seconds."""
    return tmp_path_factory.mktemp("wine")


@pytest.fixture(scope="session", params=BACKENDS)
def built(
    request: pytest.FixtureRequest,
    tree: Tree,
    program: Path,
    tmp_path_factory: pytest.TempPathFactory,
    need_tool: Need,
) -> tuple[str, Path]:
    """A backend's name, and the folder with its EP, its mock and the application."""
    backend: str = request.param
    folder = tmp_path_factory.mktemp(backend)
    need_tool("make")
    for name, build in ((backend, folder / "ep"), (f"mock_{backend}", folder)):
        options = [f"BUILD={build}", f"CC={need_tool(MINGW)}"]
        run(["make", "--silent", "-j2", *options], cwd=tree.root / "c" / name)
    shutil.copy(program, folder)
    return backend, folder


def test_backends() -> None:
    """The table is not empty: what is tested here are at least these two."""
    assert {"cuda", "vulkan"} <= set(BACKENDS)


@pytest.mark.parametrize("release", RELEASES)
def test_client_sequence(
    built: tuple[str, Path], prefix: Path, tmp_path: Path, need_tool: Need, release: str
) -> None:
    """Setup, device check, wait, Run, IOBinding, signal and cleanup; 20 frames without a copy.

    The session is queued before the application signals its fence, and no byte moves before that.
    The EP's path has a character outside ASCII, and the application's handles stay its own.
    """
    backend, folder = built
    wine = need_tool("wine")
    model = tmp_path / "identity.onnx"
    model.write_bytes(identity_model())
    spec = load_spec(ROOT / "spec").backends[backend].spec
    assert spec.library is not None
    mock = spec.library.windows[0]
    library = folder / "ep" / f"ort_interop_{backend}.dll"
    arguments = [f"Z:{windows_ort(release)}", f"Z:{library}", spec.ep.name, mock, LUID]
    out = run(
        [wine, str(folder / "windows_d3d12.exe"), *arguments, f"Z:{model}"],
        cwd=folder,
        WINEPREFIX=str(prefix),
        WINEDEBUG="-all",
        WINEDLLOVERRIDES=f"{re.sub('[.]dll$', '', mock)}=n",
        LC_ALL="C.UTF-8",
        MOCK_DRIVER_OPTIONS=f"luid={LUID}",
    )
    assert out.splitlines()[-1].strip() == "passed 20 frames"
