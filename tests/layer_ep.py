"""Other builds of the host EP: for an older release, and with changes that make it misbehave."""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from ep_build import ROOT, Tree
from narrow import narrow_folder
from ort_interop_gen.render.pipeline import render
from ort_interop_gen.render.targets.c_header import CHeader
from ort_interop_gen.spec import load_spec


def build_for(release: int, folder: Path) -> Path:
    """The library, built against a header that knows nothing newer than the release.

    The header takes the place of ONNX Runtime's own, which cannot travel with the project.
    """
    narrow_folder(ROOT / "spec", folder / "spec", release)
    outputs = render(load_spec(folder / "spec"), [CHeader()], ROOT / "templates")
    (header,) = [o.text for o in outputs if o.path.endswith("/ort_interop_abi.h")]
    include = folder / "include"
    include.mkdir(parents=True)
    # It is the header that the generated one includes, so its own macros need other names.
    (include / "onnxruntime_c_api.h").write_text(header.replace("ORT_INTEROP_", "NARROWED_"))
    tree = Tree(ROOT / "generated")
    return tree.make(folder / "build", f"ORT_INCLUDE_DIR={include}")


@contextmanager
def build_folder(factory: pytest.TempPathFactory, name: str) -> Iterator[Path]:
    """The folder to build a library in, for a block: new, or what ``LAYER_BUILDS`` has of the name.

    What stands there was built by other runs of the tests, of the same sources; ``make`` then has
    nothing to do.  Only one run is in the block at a time.
    """
    shared = os.environ.get("LAYER_BUILDS")
    if not shared:
        yield factory.mktemp(name)
        return
    folder = Path(shared) / name
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield folder


def variant(folder: Path, *changes: tuple[str, str, str]) -> str:
    """The library with changes (file, old text, new text), each of which must apply once."""
    tree = folder / "tree"
    if not tree.is_dir():
        copy = folder / "copy"
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(
            ROOT / "generated", copy, ignore=shutil.ignore_patterns("__pycache__", "python")
        )
        for name, old, new in changes:
            text = (copy / name).read_text()
            assert text.count(old) == 1, (name, old)
            (copy / name).write_text(text.replace(old, new))
        copy.rename(tree)
    return str(Tree(tree).make(folder / "build"))
