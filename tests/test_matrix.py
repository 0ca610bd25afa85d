"""The runner of ``make test-matrix``: whatever goes wrong in a suite shows as failed."""

from __future__ import annotations

from pathlib import Path

import matrix.__main__ as runner
import pytest
from matrix.__main__ import SUITES, Outcome, Suite, run, table
from support import ROOT, missing

PROGRAM = """
import os
import time

import pytest


def test_passes():
    assert os.environ["LAYER_RELEASE"] == "1.32.0"
    assert os.environ["LAYER_EP"] == "ep.so"


def test_fails():
    assert os.environ["LAYER_RELEASE"] == "1.24.1"


def test_is_skipped():
    pytest.skip("why")


def test_crashes():
    os.abort()


def test_hangs():
    time.sleep(60)


@pytest.fixture
def broken():
    raise OSError


def test_has_no_fixture(broken):
    pass
"""


def outcome(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *names: str) -> Outcome:
    """What the runner says of some of the tests above."""
    monkeypatch.setattr(runner, "ort_library_path", lambda release: Path(f"{release}.so"))
    file = tmp_path / "test_program.py"
    file.write_text(PROGRAM)
    suite = Suite("suite", tuple(f"{file}::test_{name}" for name in names))
    return run(suite, "1.32.0", {"host": "ep.so"}, tmp_path)


@pytest.mark.parametrize(
    ("names", "cell"),
    [
        (["passes"], "1"),
        (["passes", "is_skipped"], "1 (1 skipped)"),
        (["is_skipped"], "**none passed**"),
        (["passes", "fails"], "**1 failed**"),
        (["passes", "has_no_fixture"], "**1 failed**"),
        (["passes", "crashes"], "**1 failed**"),
        (["there_is_none"], "**none passed**"),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, list) else "",
)
def test_outcomes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, names: list[str], cell: str
) -> None:
    told = outcome(tmp_path, monkeypatch, *names)
    assert told.cell == cell
    assert told.good == ("**" not in cell)
    assert "test_program.py" in told.output or not told.failed


def test_a_suite_that_hangs_has_failed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "LIMIT", 3)
    told = outcome(tmp_path, monkeypatch, "hangs")
    assert told.cell == "**1 failed**" and "timed out" in told.output


@pytest.mark.parametrize("promised", ["", "1"])
def test_a_release_that_cannot_be_had_has_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, promised: str
) -> None:
    def absent(release: str) -> Path:
        missing(f"{release} cannot be downloaded")

    monkeypatch.setenv("REQUIRE_ALL", promised)
    monkeypatch.setattr(runner, "ort_library_path", absent)
    told = run(SUITES[0], "1.99.0", {"host": "ep.so"}, tmp_path)
    assert not told.good and "1.99.0 cannot be downloaded" in told.output


def test_the_table_has_a_column_for_each_release() -> None:
    good, bad = Outcome(3, 0, 0, 1, ""), Outcome(2, 1, 0, 1, "")
    lines = table({("a", "1.24.1"): good, ("b", "1.32.0"): bad}, ["1.24.1", "1.32.0"]).splitlines()
    assert lines == [
        "|  | 1.24.1 | 1.32.0 |",
        "| --- | --- | --- |",
        "| a | 3 |  |",
        "| b |  | **1 failed** |",
    ]


def test_ci_runs_it_with_nothing_skipped() -> None:
    lines = (ROOT / ".ci" / "run").read_text().splitlines()
    assert "REQUIRE_ALL=1 make test-matrix" in lines
