"""Run the suites on every release, with EP binaries that are built once, and show a table.

``python tests/matrix [--releases 1.24.1,1.32.0] [--jobs 2] [--out docs/matrix.md]``;
``make test-matrix`` does the same.  The exit code is 1 if anything failed.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ElementTree
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parent.parent
ROOT = TESTS.parent
sys.path[:0] = [str(TESTS), str(ROOT / "generator")]

from ep_build import Tree  # noqa: E402
from layer_ep import build_for  # noqa: E402
from support import GENERATED, ort_library_path  # noqa: E402

TOO_OLD = "1.23.2"
RELEASES = (
    TOO_OLD,
    "1.24.1",
    "1.24.4",
    "1.25.0",
    "1.26.0",
    "1.27.0",
    "1.28.0",
    "1.29.0",
    "1.30.0",
    "1.31.1",
    "1.32.0",
)


LIMIT = 600
"""The seconds after which a suite has failed; on an idle machine each takes less than 15."""


@dataclass(frozen=True)
class Suite:
    """Tests that run on one release: a title, pytest's arguments and the EP that they load."""

    title: str
    arguments: tuple[str, ...]
    ep: str = "host"


SUITES = (
    Suite("version gates", ("generated/tests/test_version_gates.py", "-k", "installed")),
    Suite("layer", ("tests/test_layer.py",)),
    Suite("layer, EP built for 1.24", ("tests/test_layer.py",), "host24"),
    Suite("lifetimes", ("tests/test_layer_lifetimes.py",)),
    Suite("allocators in Python", ("tests/test_layer_allocator.py",)),
    Suite("guards", ("tests/test_layer_guards.py",)),
    Suite("DLPack", ("tests/test_layer_dlpack.py",)),
    Suite("host access", ("tests/test_layer_access.py",)),
    Suite("GPU EPs on mocked drivers", ("tests/test_layer_gpu.py",)),
    Suite("official package, EPs of PyPI", ("tests/test_layer_beside.py",)),
    Suite("examples", ("tests/test_layer_examples.py",)),
)
REFUSAL = Suite("refusal", ("tests/test_layer_refusal.py",))


@dataclass(frozen=True)
class Outcome:
    """How a suite ended on a release."""

    passed: int
    failed: int
    skipped: int
    seconds: float
    output: str

    @property
    def cell(self) -> str:
        """The text for the table."""
        if self.failed:
            return f"**{self.failed} failed**"
        if not self.passed:
            return "**none passed**"
        return f"{self.passed}" + (f" ({self.skipped} skipped)" if self.skipped else "")

    @property
    def good(self) -> bool:
        """Whether something passed and nothing failed."""
        return self.passed > 0 and not self.failed


def run(suite: Suite, release: str, eps: dict[str, str], builds: Path) -> Outcome:
    """One suite on one release, in a process of its own; ``builds`` has what suites build once."""
    start = time.monotonic()
    try:
        library = ort_library_path(release)
    except (pytest.fail.Exception, pytest.skip.Exception) as error:
        return Outcome(0, 1, 0, time.monotonic() - start, str(error))
    with tempfile.TemporaryDirectory() as temporary:
        report = Path(temporary) / "report.xml"
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
        command += [f"--junit-xml={report}", *suite.arguments]
        environment = {
            **os.environ,
            "LAYER_RELEASE": release,
            "LAYER_EP": eps[suite.ep],
            "LAYER_BUILDS": str(builds),
            "ORT_INTEROP_LIBRARY": str(library),
        }
        try:
            done = subprocess.run(
                command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=LIMIT
            )
        except subprocess.TimeoutExpired as error:
            printed = (error.stdout or b"").decode(errors="replace")[-6000:]
            return Outcome(0, 1, 0, time.monotonic() - start, f"{printed}\n{error}")
        # A crash ends pytest before it reports; the stack begins with the test.
        output = done.stdout[-6000:] + done.stderr[:3000]
        if not report.is_file():
            return Outcome(0, 1, 0, time.monotonic() - start, output)
        total = failed = skipped = 0
        for part in ElementTree.parse(report).getroot().iter("testsuite"):
            total += int(part.get("tests", "0"))
            failed += int(part.get("failures", "0")) + int(part.get("errors", "0"))
            skipped += int(part.get("skipped", "0"))
    return Outcome(total - failed - skipped, failed, skipped, time.monotonic() - start, output)


def table(results: dict[tuple[str, str], Outcome], releases: list[str]) -> str:
    """The results as a table: a suite a row, a release a column."""
    rows = [["", *releases]]
    rows += [["---"] * len(rows[0])]
    for title in dict.fromkeys(title for title, _ in results):
        cells = [results.get((title, release)) for release in releases]
        rows.append([title, *(c.cell if c is not None else "" for c in cells)])
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


DOCUMENT = """\
# Every release

Tests that passed, by suite and release of ONNX Runtime, as `make test-matrix` last found them; `.ci/run` runs it too,
where a skipped test counts as failed. One binary of the host EP, built once, serves every column; the row that says so
uses one that was built for 1.24. So do the other EPs: those on mocked drivers, and those that misbehave on purpose.
1.23.2, which has no interop API, must be refused: by the layer, and by the EP with a status that names both releases.

{table}
"""


def main() -> int:
    """Run everything, some suites at once; print as results come in."""
    parser = argparse.ArgumentParser(prog="matrix", description=__doc__)
    parser.add_argument("--releases", default=",".join(RELEASES))
    parser.add_argument("--jobs", type=int, default=1, help="how many suites run at once")
    parser.add_argument("--out", type=Path, help="write the table to this Markdown file")
    arguments = parser.parse_args()
    releases = arguments.releases.split(",")
    start = time.monotonic()
    results: dict[tuple[str, str], Outcome] = {}
    with tempfile.TemporaryDirectory() as temporary, ThreadPoolExecutor(arguments.jobs) as pool:
        folder = Path(temporary)
        eps = {
            "host": str(Tree(GENERATED).make(folder / "host")),
            "host24": str(build_for(24, folder / "host24")),
        }
        planned = {
            (suite.title, release): pool.submit(run, suite, release, eps, folder / "builds")
            for release in releases
            for suite in ((REFUSAL,) if release == TOO_OLD else SUITES)
        }
        for (title, release), future in planned.items():
            outcome = results[title, release] = future.result()
            print(f"{release:8} {title:32} {outcome.cell} in {outcome.seconds:.0f} s")
            if not outcome.good:
                print(outcome.output)
            sys.stdout.flush()
    shown = table(results, releases)
    print(f"{shown}\n{len(results)} suites in {time.monotonic() - start:.0f} s")
    if arguments.out is not None:
        arguments.out.write_text(DOCUMENT.format(table=shown), encoding="utf-8")
    return 0 if all(outcome.good for outcome in results.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
