"""One digest over everything that decides what is generated, and the record of the last run.

The record makes a run with nothing to do quick, and lets the next run reuse the formatted text of
files that render as before.  It only ever saves work: ``generate --check`` does not look at it.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from .data import PACKAGE
from .write import MANIFEST, STATE, digest

_FORMATTERS = ("black-", "clang_format-", "jinja2-", "pydantic-")


@dataclass(slots=True)
class State:
    """What the last run saw and made."""

    inputs: str = ""
    style: str = ""
    files: dict[str, str] = field(default_factory=dict)
    """Digest of each written file, the manifest included."""
    rendered: dict[str, str] = field(default_factory=dict)
    """Digest of each file's text before it was formatted."""
    report: list[str] = field(default_factory=list)
    """What was cross-checked, in words."""


def read_state(out: Path) -> State:
    """The record of the last run in a folder; an empty one if there is none to be read."""
    try:
        data = json.loads((out / STATE).read_bytes())
        return State(**data)
    except (OSError, ValueError, TypeError):
        return State()


def write_state(out: Path, state: State) -> None:
    """Keep the record; a folder that cannot take it only makes the next run slower."""
    values = {name: getattr(state, name) for name in State.__slots__}
    temporary = out / f".{STATE}.{os.getpid()}.new"
    with suppress(OSError):
        temporary.write_text(json.dumps(values), encoding="utf-8")
        os.replace(temporary, out / STATE)


def unchanged(out: Path, state: State, inputs: str) -> bool:
    """Whether a run would change nothing: same inputs, and every output still as it was written."""
    if state.inputs != inputs or MANIFEST not in state.files:
        return False
    try:
        return all(digest((out / p).read_bytes()) == d for p, d in state.files.items())
    except OSError:
        return False


def input_digest(folders: Iterable[Path], files: Iterable[Path]) -> str:
    """A digest of the generator itself, of the folders' files, and of single files."""
    total = hashlib.sha256()
    for folder in (PACKAGE, *folders):
        for path in sorted(_walk(str(folder))):
            total.update(f"{os.path.relpath(path, folder)}\0".encode())
            total.update(_content(path))
    for file in files:
        total.update(f"{file}\0".encode())
        total.update(_content(str(file)))
    total.update("\n".join(formatter_versions()).encode())
    return total.hexdigest()


def _content(path: str) -> bytes:
    with open(path, "rb") as stream:
        return hashlib.sha256(stream.read()).digest()


def _walk(folder: str) -> Iterator[str]:
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir():
                if entry.name not in {"__pycache__", "_data"}:
                    yield from _walk(entry.path)
            elif not entry.name.endswith(".pyc"):
                yield entry.path


def formatter_versions() -> list[str]:
    """The installed distributions that shape the output, read from the names of their metadata."""
    found = {f"python-{sys.version_info[0]}.{sys.version_info[1]}"}
    for folder in sys.path:
        with suppress(OSError), os.scandir(folder or ".") as entries:
            for entry in entries:
                if entry.name.lower().startswith(_FORMATTERS):
                    found.add(entry.name)
    return sorted(found)


def style_digest(style: Path) -> str:
    """A digest of everything that formatting depends on besides the text."""
    return digest("\n".join([*formatter_versions(), style.read_text(encoding="utf-8")]).encode())


def reusable(out: Path, state: State, style: str, rendered: Mapping[str, str]) -> dict[str, str]:
    """Formatted texts that still hold: rendered as last time, and unchanged on disk since."""
    if state.style != style:
        return {}
    found = {}
    for path, text_digest in rendered.items():
        if state.rendered.get(path) == text_digest:
            with suppress(OSError, UnicodeDecodeError):
                data = (out / path).read_bytes()
                if digest(data) == state.files.get(path):
                    found[path] = data.decode("utf-8")
    return found
