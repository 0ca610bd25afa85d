"""The host EP's DLL inside the real onnxruntime.dll, under Wine."""

from __future__ import annotations

import fcntl
import importlib.util
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from ep_build import PROGRAMS, ROOT, WARNINGS, render_tree, run
from support import cache_folder, download_wheel

pytestmark = pytest.mark.long

RELEASE = "1.32.0"
MINGW = "x86_64-w64-mingw32-gcc"


def windows_ort(version: str) -> Path:
    """onnxruntime.dll of a release, downloaded on first use and kept in the cache."""
    cache = cache_folder("ort-windows") / version
    library = cache / "onnxruntime" / "capi" / "onnxruntime.dll"
    with open(cache.with_suffix(f"{cache.suffix}.lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if library.is_file():
            return library
        with tempfile.TemporaryDirectory(dir=cache.parent) as temporary:
            folder = Path(temporary)
            wheel = download_wheel("onnxruntime", version, folder, "--platform", "win_amd64")
            with zipfile.ZipFile(wheel) as archive:
                archive.extractall(folder, [n for n in archive.namelist() if n.endswith(".dll")])
            library.parent.parent.mkdir(parents=True, exist_ok=True)
            (folder / "onnxruntime" / "capi").rename(library.parent)
    return library


def identity_model() -> bytes:
    """The example's model of one Identity on 16 floats."""
    path = ROOT / "examples" / "identity_model.py"
    spec = importlib.util.spec_from_file_location("identity_model", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    model: bytes = module.identity_model([16])
    return model


def test_host_allocation_in_place(tmp_path: Path, need_tool: Callable[[str], str]) -> None:
    """What Windows has no descriptors for is declined; a host allocation is used where it is."""
    wine, compiler = need_tool("wine"), need_tool(MINGW)
    tree = render_tree(tmp_path / "tree")
    library = tree.make(tmp_path / "ep", f"CC={compiler}")
    program = tmp_path / "windows_host.exe"
    command = [compiler, *WARNINGS, "-municode", f"-I{tree.root / 'include'}", "-o", str(program)]
    run([*command, str(PROGRAMS / "windows_host.c")])
    model = tmp_path / "identity.onnx"
    model.write_bytes(identity_model())
    arguments = [f"Z:{path}" for path in (windows_ort(RELEASE), library, model)]
    environ = {"WINEPREFIX": str(tmp_path / "wine"), "WINEDEBUG": "-all", "LC_ALL": "C.UTF-8"}
    out = run([wine, str(program), *arguments], **environ)
    assert out.split() == ["passed"]
