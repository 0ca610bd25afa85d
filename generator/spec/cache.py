"""The spec's releases without reading its YAML again: checking a header needs no more than them.

What a spec says of a release is kept in the user's cache folder under a digest of the spec files
and of this stage's own code, so an entry is never out of date, and losing it costs only time.
"""

from __future__ import annotations

import hashlib
import os
import pickle
import shutil
import stat
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from .abi import Abi

if TYPE_CHECKING:
    from .model import Model

APPLICATION = "ort-interop-gen"
NO_CACHE = "ORT_INTEROP_GEN_NO_CACHE"
"""Set this environment variable to anything to neither read nor write the cache."""


_KEPT = 8


class Releases(Protocol):
    """What a spec says of each release; a :class:`~.model.Model` is one."""

    @property
    def floor(self) -> int: ...

    @property
    def newest(self) -> int: ...

    def at(self, release: int) -> Abi: ...


class CachedReleases:
    """A spec folder's releases: read from the cache, or from the spec where the cache lacks them."""

    def __init__(self, spec_dir: Path) -> None:
        self.spec_dir = spec_dir
        self._model: Model | None = None
        self._folder = _folder(spec_dir)
        self._range: tuple[int, int] | None = None

    @property
    def model(self) -> Model:
        """The whole spec; reading it checks it, and raises ``SpecErrors`` if it is not valid."""
        if self._model is None:
            from .load import load_spec

            self._model = load_spec(self.spec_dir)
        return self._model

    @property
    def floor(self) -> int:
        return self._versions()[0]

    @property
    def newest(self) -> int:
        return self._versions()[1]

    def at(self, release: int) -> Abi:
        """What a release has, exactly as :meth:`Model.at` says it."""
        known = self._read(f"{release}")
        if isinstance(known, Abi):
            return known
        abi = self.model.at(release)
        self._write(f"{release}", abi)
        return abi

    def _versions(self) -> tuple[int, int]:
        if self._range is None:
            known = self._read("versions")
            if isinstance(known, tuple):
                self._range = known
            else:
                self._range = (self.model.floor, self.model.newest)
                self._write("versions", self._range)
        return self._range

    def _read(self, name: str) -> Any:
        if self._folder is None:
            return None
        try:
            with open(self._folder / f"{name}.pickle", "rb") as file:
                if not _trusted(os.fstat(file.fileno())):
                    return None
                return pickle.load(file)
        except Exception:  # A damaged entry is no entry; every kind of damage raises its own error.
            return None

    def _write(self, name: str, value: object) -> None:
        if self._folder is None:
            return
        try:
            if not self._folder.is_dir():
                self._folder.mkdir(parents=True, mode=0o700)
                _prune(self._folder.parent)
            temporary = self._folder / f".{name}.{os.getpid()}"
            temporary.write_bytes(pickle.dumps(value, pickle.HIGHEST_PROTOCOL))
            temporary.replace(self._folder / f"{name}.pickle")
        except OSError:
            self._folder = None


def _prune(folder: Path) -> None:
    """Forget all but the newest entries: each change of the spec makes a new one."""
    entries = sorted(folder.iterdir(), key=lambda entry: entry.stat().st_mtime, reverse=True)
    for entry in entries[_KEPT:]:
        shutil.rmtree(entry, ignore_errors=True)


def _trusted(found: os.stat_result) -> bool:
    """Whether only this user (or root) can have written a file: unpickling runs what it says."""
    if not hasattr(os, "getuid"):
        return True
    writable = stat.S_IWGRP | stat.S_IWOTH
    return found.st_uid in (0, os.getuid()) and not found.st_mode & writable


def _folder(spec_dir: Path) -> Path | None:
    """Where entries for this spec, this code and this Python are; None without a cache."""
    if os.environ.get(NO_CACHE):
        return None
    try:
        # Locations are shown relative to the working folder, so it is a part of the key.
        where = f"{sys.implementation.cache_tag}\0{spec_dir.resolve()}\0{Path.cwd()}\0"
        digest = hashlib.sha256(where.encode())
        here = Path(__file__).parent
        for path in (*sorted(spec_dir.rglob("*.yaml")), *sorted(here.glob("*.py"))):
            digest.update(f"{path.name}\0".encode())
            digest.update(path.read_bytes())
    except OSError:
        return None
    from platformdirs import user_cache_path

    folder: Path = user_cache_path(APPLICATION, appauthor=False) / "spec" / digest.hexdigest()[:32]
    return folder
