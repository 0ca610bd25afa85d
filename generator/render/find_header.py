"""Find the ONNX Runtime headers that are installed here, if any, the way a build would."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from shutil import which

from ..header.sources import BELOW, find_below
from ..header.sources import MAIN_HEADER as HEADER
from ..spec.abi import Location
from .errors import render_error


@dataclass(frozen=True, slots=True)
class FoundHeader:
    """A header and what led to it; ``required`` if the user asked for this one."""

    path: Path
    by: str
    required: bool


def find_header(given: Path | None, environ: Mapping[str, str]) -> FoundHeader | None:
    """The header to cross-check with: given, named by ``ORT_INCLUDE_DIR``, or installed.

    A header that was asked for and is not there is an error; otherwise None says there is none.
    """
    if given is not None:
        path = find_below(given) if given.is_dir() else given
        if path is None:
            raise render_error(
                f"no such header: there is no {HEADER} in this folder",
                "give --header the folder that has it, or the file itself",
                Location(str(given)),
            )
        if not path.is_file():
            raise render_error("no such header", "give --header another path", Location(str(given)))
        return FoundHeader(path, "--header", True)
    named = environ.get("ORT_INCLUDE_DIR")
    if named:
        for below in BELOW:
            if (Path(named) / below / HEADER).is_file():
                return FoundHeader(Path(named) / below / HEADER, "ORT_INCLUDE_DIR", True)
        raise render_error(
            f"ORT_INCLUDE_DIR names a folder without {HEADER}",
            "correct the variable or unset it",
            Location(named),
        )
    for folder, by in _installed(environ):
        for below in BELOW:
            if (folder / below / HEADER).is_file():
                return FoundHeader(folder / below / HEADER, by, False)
    return None


def _installed(environ: Mapping[str, str]) -> Iterator[tuple[Path, str]]:
    program = which("pkg-config", path=environ.get("PATH"))
    if program:
        try:
            result = subprocess.run(
                [program, "--cflags-only-I", "libonnxruntime"],
                capture_output=True,
                text=True,
                env=dict(environ),
                timeout=20,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired):
            result = None
        if result is not None and result.returncode == 0:
            for word in result.stdout.split():
                yield Path(word.removeprefix("-I")), "pkg-config"
    for prefix in environ.get("CMAKE_PREFIX_PATH", "").replace(";", os.pathsep).split(os.pathsep):
        if prefix:
            yield Path(prefix) / "include", "CMAKE_PREFIX_PATH"
    conda = environ.get("CONDA_PREFIX")
    if conda:
        yield Path(conda) / "include", "CONDA_PREFIX"
