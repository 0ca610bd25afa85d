"""Type checkers on the layer, on a program of its user, and on a program with mistakes."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from support import GENERATED, ROOT, missing, need_tool

PACKAGE = GENERATED / "python"
SAMPLE = ROOT / "tests" / "layer_sample.py"
WRONG = """\
import ort_interop as ort
from ort_interop.runtime import Importer, Memory, Session, Stream, Tensor


def program(session: Session, importer: Importer, memory: Memory, x: Tensor) -> None:
    importer.can_import_memory(ort.OrtExternalSemaphoreType.ORT_EXTERNAL_SEMAPHORE_D3D12_FENCE)
    session.run({"input": x}, stream=memory)
    importer.import_semaphore(3).wait(1)
    first: int = session.run({"input": x})["output"]
"""


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("mypy")


def mypy(cache: Path, *paths: Path) -> list[str]:
    """The lines of mypy's errors."""
    command = [sys.executable, "-m", "mypy", "--strict", "--python-version", "3.10"]
    command += ["--cache-dir", str(cache), "--config-file", "", *map(str, paths)]
    done = subprocess.run(
        command, capture_output=True, text=True, env={"MYPYPATH": str(PACKAGE), "PATH": ""}
    )
    return [line for line in done.stdout.splitlines() if ": error:" in line] + (
        [done.stderr] if done.stderr else []
    )


def test_mypy_accepts_the_layer_and_its_user(cache: Path) -> None:
    assert mypy(cache, SAMPLE, PACKAGE / "ort_interop") == []


def test_mypy_sees_mistakes(tmp_path: Path, cache: Path) -> None:
    wrong = tmp_path / "wrong.py"
    wrong.write_text(WRONG)
    found = {int(line.split(":")[1]) for line in mypy(cache, wrong)}
    assert found == {6, 7, 8, 9}


def test_pyright_agrees(tmp_path: Path) -> None:
    pyright = need_tool("pyright")
    shutil.copytree(PACKAGE / "ort_interop", tmp_path / "ort_interop")
    shutil.copy(SAMPLE, tmp_path / "sample.py")
    (tmp_path / "wrong.py").write_text(WRONG)
    config = {"include": ["."], "strict": ["sample.py"], "pythonVersion": "3.10"}
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(config))
    command = [pyright, "--outputjson", "--pythonpath", sys.executable, "-p", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True)
    if not done.stdout.startswith("{"):
        missing(f"pyright does not run: {(done.stdout + done.stderr).strip()[-200:]}")
    errors = [
        (Path(e["file"]).name, e["range"]["start"]["line"] + 1)
        for e in json.loads(done.stdout)["generalDiagnostics"]
        if e["severity"] == "error"
    ]
    assert {name for name, _ in errors} == {"wrong.py"}, errors
    assert {line for _, line in errors} == {6, 7, 8, 9}
