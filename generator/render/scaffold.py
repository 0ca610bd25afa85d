"""A project of an EP author's own: a backend's sources under the author's names, builds and tests."""

from __future__ import annotations

import re
import shutil
import tempfile
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from ..spec.abi import Location
from .env import BANNER, TargetEnv
from .errors import render_error
from .format import format_all
from .output import Output, language_of
from .pipeline import STYLE, render
from .targets.c_header import CHeader
from .targets.ep_c import EpC
from .targets.mock_driver import MockDriver

if TYPE_CHECKING:
    from ..spec import Model

NAME = re.compile(r"[A-Za-z][A-Za-z0-9]*(?:_[A-Za-z0-9]+)*")
NAME_LENGTH = 40
VENDOR_LENGTH = 64
OWN_BANNER = "Scaffolded by ort-interop-gen; yours to edit."
COMPUTE = ("identity", "compute")
"""The part that an author replaces: what it is called in the shared sources, and here."""

_WORDS = """
    alignas alignof and and_eq asm auto bitand bitor bool break case catch char char8_t char16_t
    char32_t class co_await co_return co_yield compl concept const const_cast consteval constexpr
    constinit continue decltype default delete do double dynamic_cast else enum explicit export
    extern false float for friend goto if import inline int long module mutable namespace new
    noexcept not not_eq nullptr operator or or_eq private protected public register reinterpret_cast
    requires restrict return short signed sizeof static static_assert static_cast struct switch
    template this thread_local throw true try typedef typeid typename typeof union unsigned using
    virtual void volatile wchar_t while xor xor_eq
"""
RESERVED = frozenset(_WORDS.split())
"""Words of C and C++ that cannot be names."""

WINDOWS_DEVICES = frozenset(
    ["con", "prn", "aux", "nul", *(f"{d}{n}" for d in ("com", "lpt") for n in range(1, 10))]
)
"""File names that Windows keeps to itself, whatever their suffix."""

_TARGETS = """
    all clean depend driver_test edit_cache help install list_install_components load_test
    mock_driver package package_source preinstall rebuild_cache test
"""
BUILD_TARGETS = frozenset(_TARGETS.split())
"""Targets of the project's builds, CMake's own among them."""

_IDENTIFIER = re.compile(r"\b[A-Za-z_]\w*\b")
_FILE = re.compile(r'"(ep_\w+)(?=\.[ch]")')
_OURS = re.compile(r"\b(?:ep_[a-z0-9_]\w*|Ep[A-Z]\w*|EP_[A-Z0-9]\w*)\b")


@dataclass(frozen=True, slots=True)
class Names:
    """Everything that is named after the author's EP."""

    name: str
    """In ONNX Runtime, and before types: ``MyEp``."""
    prefix: str
    """Of functions and files: ``my_ep``."""

    @property
    def macro(self) -> str:
        """Before macros: ``MY_EP``."""
        return self.prefix.upper()

    def of(self, identifier: str) -> str:
        """The author's name for one of the shared sources' identifiers."""
        old, new = COMPUTE
        for start, own in (
            ("ep_", f"{self.prefix}_"),
            ("Ep", self.name),
            ("EP_", f"{self.macro}_"),
        ):
            if identifier.startswith(start):
                rest = identifier[len(start) :]
                for a, b in ((old, new), (old.capitalize(), new.capitalize())):
                    rest = b + rest[len(a) :] if rest.startswith(a) else rest
                return own + rest
        return identifier


def names_for(name: str) -> Names:
    """The names of an EP called ``name``; an error says what is wrong with it."""
    if not NAME.fullmatch(name) or len(name) > NAME_LENGTH:
        raise render_error(
            f"'{name}' cannot name an EP",
            f"use letters, digits and single underscores, at most {NAME_LENGTH}, a letter first: MyEp",
        )
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name)
    prefix = words.lower()
    for word in {name, name.lower(), prefix}:
        if word in RESERVED:
            raise render_error(f"'{name}': '{word}' is a word of C or C++", "choose another name")
        if word in WINDOWS_DEVICES:
            raise render_error(
                f"'{name}': Windows cannot have a file '{word}'", "choose another name"
            )
        if word in BUILD_TARGETS:
            raise render_error(
                f"'{name}': the project's build has another target '{word}'", "choose another name"
            )
    return Names(name, prefix)


def check_vendor(vendor: str) -> None:
    """A vendor's name is one line of printable characters."""
    if not vendor.strip() or not vendor.isprintable() or len(vendor) > VENDOR_LENGTH:
        raise render_error(
            f"{vendor!r} cannot name a vendor",
            f"use printable characters, at most {VENDOR_LENGTH}",
        )


def scaffold(
    model: Model, templates: Path, backend: str, names: Names, vendor: str
) -> dict[str, str]:
    """The text of every file of the project, by its path."""
    own = _with_identity(model, backend, names, vendor)
    outputs = render(own, [CHeader(), EpC(), MockDriver()], templates)
    placed = [o for o in (_place(output, backend) for output in outputs) if o is not None]
    abi = next(o for o in placed if o.path.startswith("include/"))
    rename = _renaming(placed, names, set(_IDENTIFIER.findall(abi.text)))
    sources = [o if o is abi else _renamed(o, names, rename) for o in placed]
    context = {
        "names": names,
        "backend": own.backends[backend].spec,
        "vendor": vendor,
        "floor": model.floor,
        "newest": model.newest,
        "sources": _sources(sources, "src"),
        "mock_sources": _sources(sources, "mock"),
    }
    env = TargetEnv(templates / "scaffold")
    files = [*sources, *_templates(env, context)]
    return format_all([replace(o, verbatim=False) for o in files], templates / STYLE)


def _with_identity(model: Model, backend: str, names: Names, vendor: str) -> Model:
    """The model with one backend, which introduces itself under the author's names."""
    found = model.backends[backend]
    # GPU vendors' ids tell which hardware the EP is for. The others need one that is nobody's: PCI's
    # have 16 bits.
    vendor_id = found.spec.ep.vendor_id
    if vendor_id > 0xFFFF:
        vendor_id = zlib.crc32(names.name.encode()) | 0x10000
    identity = found.spec.ep.model_copy(
        update={"name": names.name, "vendor": vendor, "vendor_id": vendor_id}
    )
    spec = found.spec.model_copy(update={"ep": identity})
    return replace(model, backends={backend: replace(found, spec=spec)})


def _place(output: Output, backend: str) -> Output | None:
    """The output where the project has it; None for what it has in another form."""
    path = PurePosixPath(output.path)
    if path.name in {"Makefile", "CMakeLists.txt", "ort_interop_abi_check.h"}:
        return None
    folders = {
        "include": "include",
        "c/common": "src",
        f"c/{backend}": "src",
        f"c/mock_{backend}": "mock",
    }
    folder = folders.get(str(path.parent))
    return None if folder is None else replace(output, path=f"{folder}/{path.name}")


def _renaming(outputs: Iterable[Output], names: Names, foreign: set[str]) -> dict[str, str]:
    """The author's name for each of our identifiers; an error if one of them is taken."""
    used = set(foreign)
    for output in outputs:
        used.update(_IDENTIFIER.findall(output.text))
    ours = {word for word in used if _OURS.fullmatch(word)} - foreign
    found = {word: names.of(word) for word in sorted(ours)}
    taken = sorted(new for old, new in found.items() if new != old and new in used)
    if taken:
        raise render_error(
            f"'{names.name}' leads to '{taken[0]}', which the sources use already",
            "choose another name",
        )
    return found


def _renamed(output: Output, names: Names, rename: Mapping[str, str]) -> Output:
    # Files first: some are called like a parameter of ONNX Runtime's, which keeps its name.
    text = _FILE.sub(lambda match: f'"{names.of(match[1])}', output.text)
    text = _OURS.sub(lambda match: rename.get(match[0], match[0]), text)
    path = PurePosixPath(output.path)
    stem = names.of(path.name)
    return replace(output, path=str(path.with_name(stem)), text=text.replace(BANNER, OWN_BANNER))


def _sources(outputs: Iterable[Output], folder: str) -> list[str]:
    """The C sources of a folder, sorted."""
    return sorted(
        o.path for o in outputs if o.path.startswith(f"{folder}/") and o.path.endswith(".c")
    )


def _templates(env: TargetEnv, context: Mapping[str, object]) -> Iterator[Output]:
    for file in sorted(env.root.rglob("*")):
        if not file.is_file():
            continue
        inner = file.relative_to(env.root).as_posix()
        text = env.render(inner, **context)
        path = inner.removesuffix(".j2")
        # Packaging leaves out files whose names begin with a dot.
        path = f".{path}" if path == "gitignore" else path
        yield Output(path, text, language_of(path))


def write_project(out: Path, files: Mapping[str, str], force: bool) -> None:
    """Write the project into a new folder, or over an existing one if ``force`` says so."""
    where = Location(str(out))
    if out.is_symlink() or (out.exists() and not out.is_dir()):
        raise render_error("this is not a folder", "name another one with --out", where)
    if out.is_dir() and any(out.iterdir()) and not force:
        raise render_error(
            "the folder is not empty", "name another one, or overwrite files with --force", where
        )
    out.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=out.parent, prefix=f".{out.name}.") as temporary:
        staged = Path(temporary) / "project"
        for path, text in files.items():
            file = staged / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
        if out.is_dir():
            _refuse_folders(out, files)
            shutil.copytree(staged, out, dirs_exist_ok=True)
        else:
            staged.rename(out)


def _refuse_folders(out: Path, files: Mapping[str, str]) -> None:
    """Nothing is written where a folder is in a file's place, or the other way round."""
    for path in files:
        place = out / path
        parents = [p for p in place.parents if p.is_relative_to(out)]
        if place.is_dir() or any(p.exists() and not p.is_dir() for p in parents):
            raise render_error("is in the way of the project", "move it away", Location(str(place)))
