"""What tests share: tools and releases of ONNX Runtime that may be missing."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import NoReturn

import pytest

ROOT = Path(__file__).resolve().parent.parent
GENERATED = ROOT / "generated"


def missing(reason: str) -> NoReturn:
    """Skip for want of something; where REQUIRE_ALL=1 promises that it is there, fail."""
    if os.environ.get("REQUIRE_ALL") == "1":
        pytest.fail(f"REQUIRE_ALL=1, but {reason}", pytrace=False)
    pytest.skip(reason)


def need_tool(name: str) -> str:
    """The path of a program; the test is skipped, or fails with REQUIRE_ALL=1, if it is missing."""
    beside = Path(sys.executable).with_name(name)
    found = str(beside) if beside.is_file() else shutil.which(name)
    return found or missing(f"the program '{name}' is not installed")


def _cache() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "ort-interop-gen" / "ort"


def _library_in(folder: Path, version: str) -> Path | None:
    path = folder / "onnxruntime" / "capi" / f"libonnxruntime.so.{version}"
    return path if path.is_file() else None


def fetch_ort(version: str) -> Path:
    """The folder of an unpacked onnxruntime wheel, downloaded on first use and kept in the cache.

    ``ORT_WHEELS_DIR`` may name a folder that has some of them in ``<version>/`` already.
    """
    given = os.environ.get("ORT_WHEELS_DIR")
    if given and _library_in(Path(given) / version, version):
        return Path(given) / version
    cache = _cache()
    cache.mkdir(parents=True, exist_ok=True)
    folder = cache / version
    with open(cache / f"{version}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if _library_in(folder, version):
            return folder
        with tempfile.TemporaryDirectory(dir=cache) as temporary:
            command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
            command += ["--disable-pip-version-check", "--only-binary=:all:", "-d", temporary]
            done = subprocess.run(
                [*command, f"onnxruntime=={version}"], capture_output=True, text=True
            )
            if done.returncode != 0:
                last = (done.stderr.strip().splitlines() or ["no message"])[-1]
                missing(f"onnxruntime {version} cannot be downloaded: {last}")
            (wheel,) = Path(temporary).glob("*.whl")
            unpacked = Path(temporary) / "unpacked"
            with zipfile.ZipFile(wheel) as archive:
                archive.extractall(
                    unpacked,
                    [n for n in archive.namelist() if n.startswith("onnxruntime/capi/lib")],
                )
            assert _library_in(unpacked, version), f"no library in {wheel.name}"
            shutil.rmtree(folder, ignore_errors=True)
            unpacked.rename(folder)
    return folder


def ort_library_path(version: str) -> Path:
    """The shared library of a release, downloaded on first use."""
    if not sys.platform.startswith("linux"):
        missing("the released libraries are tested on Linux")
    found = _library_in(fetch_ort(version), version)
    assert found is not None
    return found
