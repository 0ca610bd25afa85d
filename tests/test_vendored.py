"""A binding that keeps its own copy of the headers, of which one was invented (case 29)."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from header_synth import synthesise
from ort_interop_gen.spec import load_spec
from ort_interop_gen.spec.facts import load_facts
from support import ROOT

INVENTED = ROOT / "tests" / "data" / "vendored" / "onnxruntime_error_code.h"
COMMAND = [sys.executable, "-m", "ort_interop_gen", "check", "--format", "json", "--header"]


def findings(header: Path) -> list[dict[str, Any]]:
    done = subprocess.run([*COMMAND, str(header)], capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 1, done.stderr
    found: list[dict[str, Any]] = json.loads(done.stdout)["findings"]
    return found


def expect_one_for_each_constant(found: list[dict[str, Any]]) -> None:
    release = load_facts(ROOT / "spec" / "facts" / "ort-1.28.0.json").enums["OrtErrorCode"]
    wrong = [c.name for c in release.constants if c.name != "ORT_OK"]
    assert {f["severity"] for f in found} == {"breaking"}
    assert Counter(f["symbol"] for f in found) == Counter(f"OrtErrorCode.{n}" for n in wrong)
    assert Counter(f["rule"] for f in found) == {"enum-value": 14, "enumerator-removed": 1}
    lines = INVENTED.read_text().splitlines()
    for finding in found:
        if finding["rule"] == "enum-value":
            name, value = finding["symbol"].partition(".")[2], finding["actual"]
            assert lines[finding["header"]["line"] - 1] == f"  {name} = {value},"


def test_breaking_once_for_each_constant(tmp_path: Path) -> None:
    header = synthesise(load_spec(ROOT / "spec").at(28), tmp_path)
    shutil.copy(INVENTED, tmp_path)
    expect_one_for_each_constant(findings(header))


def test_beside_the_real_headers(tmp_path: Path, headers_dir: Path) -> None:
    for path in (headers_dir / "1.28.0").glob("*.h"):
        shutil.copy(path, tmp_path)
    shutil.copy(INVENTED, tmp_path)
    expect_one_for_each_constant(findings(tmp_path))


@pytest.mark.parametrize("release", ["1.24.1", "1.25.0", "1.26.0", "1.28.0", "1.29.0"])
def test_what_was_released_is_clean(headers_dir: Path, release: str) -> None:
    command = [*COMMAND, str(headers_dir / release)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    assert (done.returncode, json.loads(done.stdout)["findings"]) == (0, [])
