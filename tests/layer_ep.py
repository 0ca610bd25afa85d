"""Other builds of the host EP: for an older release, and with changes that make it misbehave."""

from __future__ import annotations

import shutil
from pathlib import Path

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


def variant(folder: Path, *changes: tuple[str, str, str]) -> str:
    """The library with changes (file, old text, new text), each of which must apply once."""
    tree = folder / "tree"
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "generated", tree, ignore=ignored)
    for name, old, new in changes:
        text = (tree / name).read_text()
        assert text.count(old) == 1, (name, old)
        (tree / name).write_text(text.replace(old, new))
    return str(Tree(tree).make(folder / "build"))
