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


def cache_folder(name: str) -> Path:
    """A folder for what tests download, kept from run to run."""
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    folder = Path(base) / "ort-interop-gen" / name
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def download_wheel(project: str, version: str, into: Path, *options: str) -> Path:
    """The file of a wheel from PyPI; the test is skipped, or fails with REQUIRE_ALL=1, without."""
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
    command += ["--disable-pip-version-check", "--only-binary=:all:", "-d", str(into), *options]
    done = subprocess.run([*command, f"{project}=={version}"], capture_output=True, text=True)
    if done.returncode != 0:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        missing(f"{project} {version} cannot be downloaded: {last}")
    (wheel,) = into.glob("*.whl")
    return wheel


def fetch_wheel(project: str, version: str) -> Path:
    """The folder of an unpacked wheel for this Python, downloaded on first use.

    ``ORT_WHEELS_DIR`` may name a folder that has some of them already, in
    ``<project>-<version>/`` or, for ``onnxruntime`` itself, in ``<version>/``.
    """
    package = project.replace("-", "_")
    given = os.environ.get("ORT_WHEELS_DIR")
    for name in (f"{project}-{version}", version if project == "onnxruntime" else ""):
        if given and name and (Path(given) / name / package / "__init__.py").is_file():
            return Path(given) / name
    cache = cache_folder("wheels")
    folder = cache / f"{project}-{version}-cp{sys.version_info.major}{sys.version_info.minor}"
    with open(cache / f"{folder.name}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if folder.is_dir():
            return folder
        with tempfile.TemporaryDirectory(dir=cache) as temporary:
            wheel = download_wheel(project, version, Path(temporary))
            unpacked = Path(temporary) / "unpacked"
            with zipfile.ZipFile(wheel) as archive:
                archive.extractall(unpacked)
            unpacked.rename(folder)
    return folder


def ort_library_path(version: str) -> Path:
    """The shared library of a release, downloaded on first use."""
    if not sys.platform.startswith("linux"):
        missing("the released libraries are tested on Linux")
    capi = fetch_wheel("onnxruntime", version) / "onnxruntime" / "capi"
    library = capi / f"libonnxruntime.so.{version}"
    assert library.is_file(), f"no {library.name} in {capi}"
    return library
