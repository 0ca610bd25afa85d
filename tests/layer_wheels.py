"""Whole wheels from PyPI, unpacked once into the tests' cache."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from support import missing


def fetch_wheel(project: str, version: str) -> Path:
    """The folder of an unpacked wheel for this Python; downloaded on first use.

    ``ORT_WHEELS_DIR`` may have it already, in ``<project>-<version>/`` or, for ``onnxruntime``
    itself, in ``<version>/``.
    """
    package = project.replace("-", "_")
    given = os.environ.get("ORT_WHEELS_DIR")
    for name in (f"{project}-{version}", version if project == "onnxruntime" else ""):
        if given and name and (Path(given) / name / package / "__init__.py").is_file():
            return Path(given) / name
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    cache = Path(base) / "ort-interop-gen" / "wheels"
    cache.mkdir(parents=True, exist_ok=True)
    tag = f"cp{sys.version_info.major}{sys.version_info.minor}"
    folder = cache / f"{project}-{version}-{tag}"
    with open(cache / f"{folder.name}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if folder.is_dir():
            return folder
        with tempfile.TemporaryDirectory(dir=cache) as temporary:
            command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
            command += ["--disable-pip-version-check", "--only-binary=:all:", "-d", temporary]
            done = subprocess.run(
                [*command, f"{project}=={version}"], capture_output=True, text=True
            )
            if done.returncode != 0:
                last = (done.stderr.strip().splitlines() or ["no message"])[-1]
                missing(f"{project} {version} cannot be downloaded: {last}")
            (wheel,) = Path(temporary).glob("*.whl")
            unpacked = Path(temporary) / "unpacked"
            with zipfile.ZipFile(wheel) as archive:
                archive.extractall(unpacked)
            shutil.rmtree(folder, ignore_errors=True)
            unpacked.rename(folder)
    return folder
