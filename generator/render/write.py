"""Bring a folder to what was rendered: all of it or nothing, and only what the generator owns.

``manifest.json`` in the output folder names every file that the generator wrote, with its SHA-256.
A file that no manifest names belongs to someone else: it is reported, never deleted.
"""

from __future__ import annotations

import difflib
import hashlib
import json
import os
import signal
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from types import FrameType

from ..spec.abi import Location
from .errors import render_error

MANIFEST = "manifest.json"
STATE = ".generate-state.json"
"""What the last run saw, kept beside its results so that a run with nothing to do is quick."""

_IGNORED_FOLDERS = frozenset(
    {"__pycache__", ".mypy_cache", ".pytest_cache", ".ruff_cache", ".hypothesis", "build"}
)
_IGNORED_SUFFIXES = (".pyc", ".o", ".so", ".dll", ".obj", ".pyd")


def digest(data: bytes) -> str:
    """The SHA-256 of some bytes, in hex."""
    return hashlib.sha256(data).hexdigest()


@dataclass(slots=True)
class Plan:
    """How a folder differs from what was rendered; paths are POSIX, relative to it."""

    missing: list[str] = field(default_factory=list)
    stale: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    """Written by an earlier run, rendered no more."""
    foreign: list[str] = field(default_factory=list)
    """In the folder, but neither rendered nor named by the manifest."""
    old: dict[str, bytes] = field(default_factory=dict)
    """The present content of stale and removed files."""

    @property
    def clean(self) -> bool:
        return not (self.missing or self.stale or self.removed or self.foreign)


def read_manifest(out: Path) -> dict[str, str]:
    """The files that the generator owns in a folder, with their digests; empty if none yet."""
    path = out / MANIFEST
    try:
        data = json.loads(path.read_bytes())
        files = data["files"]
        if not all(isinstance(v, str) and _inside(k) for k, v in files.items()):
            raise ValueError("a path leads out of the folder")
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise render_error(
            f"not a readable manifest: {error}",
            "restore it from version control, or delete it and look through what --check reports",
            Location(str(path)),
        ) from None
    return dict(files)


def manifest_text(texts: Mapping[str, str]) -> str:
    """The manifest of a set of files."""
    files = {path: digest(texts[path].encode()) for path in sorted(texts)}
    return json.dumps({"owner": "ort-interop-gen", "files": files}, indent=1) + "\n"


def _inside(path: str) -> bool:
    pure = PurePosixPath(path)
    return bool(path) and not pure.is_absolute() and not {"..", ""} & set(path.split("/"))


def files_in(out: Path) -> Iterator[str]:
    """Every file of a folder that could be somebody's work; build products and caches are not."""
    stack = [""]
    while stack:
        folder = stack.pop()
        with suppress(FileNotFoundError), os.scandir(out / folder) as entries:
            for entry in entries:
                path = f"{folder}{entry.name}"
                if entry.is_dir(follow_symlinks=False):
                    if entry.name not in _IGNORED_FOLDERS and not entry.name.endswith(".egg-info"):
                        stack.append(path + "/")
                elif not entry.name.endswith(_IGNORED_SUFFIXES) and path not in (MANIFEST, STATE):
                    yield path


def plan(out: Path, texts: Mapping[str, str]) -> Plan:
    """Compare a folder with what was rendered (manifest included)."""
    if out.exists() and not out.is_dir():
        raise render_error("is not a folder", "give another --out", Location(str(out)))
    owned = read_manifest(out)
    found = Plan()
    for path in sorted(texts):
        if not _inside(path):
            raise render_error(
                f"the target writes outside the folder: {path}", "correct the target"
            )
        try:
            data = (out / path).read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            found.missing.append(path)
            continue
        except OSError as error:
            raise _os_error(out / path, error) from None
        if data != texts[path].encode():
            found.stale.append(path)
            found.old[path] = data
    for path in sorted(files_in(out)):
        if path in texts:
            continue
        if path in owned:
            found.removed.append(path)
            found.old[path] = (out / path).read_bytes() if (out / path).is_file() else b""
        else:
            found.foreign.append(path)
    return found


def apply(out: Path, texts: Mapping[str, str], changes: Plan) -> None:
    """Write what is missing or stale and delete what is no more; on any failure, undo it all.

    New content goes to temporary files first; only when all are complete are they renamed.
    An interrupt that arrives during the renames takes effect after them.
    """
    staged: list[tuple[Path, Path]] = []
    made: list[Path] = []
    ready: set[Path] = set()
    # The manifest goes last: until it is there, the folder still names what it really holds.
    paths = sorted(changes.missing + changes.stale, key=lambda p: (p == MANIFEST, p))
    try:
        for path in paths:
            final = out / path
            if final.parent not in ready:
                _refuse_escape(out, final)
                made.extend(_make_folders(final.parent))
                ready.add(final.parent)
            temporary = final.with_name(f".{final.name}.{os.getpid()}.new")
            staged.append((temporary, final))
            temporary.write_bytes(texts[path].encode())
        with _interrupts_held():
            _swap(out, staged, changes)
    except OSError as error:
        _clean(staged, made)
        raise _os_error(Path(error.filename or out), error) from None
    except BaseException:
        _clean(staged, made)
        raise


def _swap(out: Path, staged: list[tuple[Path, Path]], changes: Plan) -> None:
    done: list[str] = []
    try:
        for temporary, final in staged:
            if final.is_dir():
                raise IsADirectoryError(21, "a folder stands where a file goes", str(final))
            os.replace(temporary, final)
            done.append(final.relative_to(out).as_posix())
        for path in changes.removed:
            (out / path).unlink()
            done.append(path)
    except OSError:
        for path in done:
            if path in changes.old:
                (out / path).write_bytes(changes.old[path])
            else:
                (out / path).unlink(missing_ok=True)
        raise
    for path in changes.removed:
        for parent in (out / path).relative_to(out).parents:
            if parent == Path("."):
                break
            with suppress(OSError):
                (out / parent).rmdir()


def _make_folders(folder: Path) -> list[Path]:
    made = []
    for parent in [*reversed(folder.parents), folder]:
        if not parent.exists():
            parent.mkdir()
            made.append(parent)
    return made


def _refuse_escape(out: Path, final: Path) -> None:
    if not final.parent.resolve().is_relative_to(out.resolve()):
        raise render_error(
            "a link leads out of the output folder",
            "remove the link: files are only written below the output folder",
            Location(str(final.parent)),
        )


def _clean(staged: list[tuple[Path, Path]], made: list[Path]) -> None:
    for temporary, _ in staged:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
    for folder in reversed(made):
        with suppress(OSError):
            folder.rmdir()


@contextmanager
def _interrupts_held() -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    held: list[tuple[int, FrameType | None]] = []
    numbers: tuple[int, ...] = (signal.SIGINT, signal.SIGTERM)
    before = {n: signal.signal(n, lambda n, frame: held.append((n, frame))) for n in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        for number, _ in held:
            signal.raise_signal(number)


def _os_error(path: Path, error: OSError) -> Exception:
    return render_error(
        f"cannot be written or read: {error.strerror or error}",
        "check its permissions and the free space; nothing was changed",
        Location(str(path)),
    )


def diff(out: Path, texts: Mapping[str, str], changes: Plan, limit: int = 200) -> Iterator[str]:
    """A unified diff from what is there to what was rendered, at most ``limit`` lines a file."""
    for path in changes.stale + changes.removed:
        if path == MANIFEST:
            continue
        old = changes.old[path].decode("utf-8", "replace").splitlines(keepends=True)
        new = texts.get(path, "").splitlines(keepends=True)
        to = f"{path} (rendered)" if path in texts else "/dev/null"
        lines = list(difflib.unified_diff(old, new, f"{out / path}", to))
        yield from (line if line.endswith("\n") else line + "\n" for line in lines[:limit])
        if len(lines) > limit:
            yield f"... {len(lines) - limit} more lines of {path}\n"
