"""Render the C outputs, build EP libraries and the test programs of ``tests/c`` on them."""

from __future__ import annotations

import os
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

from ort_interop_gen.render.format import format_all
from ort_interop_gen.render.pipeline import render
from ort_interop_gen.render.targets.c_header import CHeader
from ort_interop_gen.render.targets.ep_c import EpC
from ort_interop_gen.spec import load_spec
from support import missing

ROOT = Path(__file__).resolve().parent.parent
PROGRAMS = ROOT / "tests" / "c"
WARNINGS = ["-std=c11", "-Wall", "-Wextra", "-Wpedantic", "-Werror"]
LAVAPIPE = Path("/usr/share/vulkan/icd.d/lvp_icd.x86_64.json")
SANITIZE = "-fsanitize=address,undefined -fno-sanitize-recover=all"


@dataclass(frozen=True)
class Tree:
    """A folder with the generated header and EP sources."""

    root: Path

    @property
    def host(self) -> Path:
        """The folder of the host EP."""
        return self.root / "c" / "host"

    def make(self, build: Path, *variables: str) -> Path:
        """Build the host EP's library with its Makefile; the library's path."""
        command = ["make", "--silent", "-j2", f"BUILD={build}", *variables]
        run(command, cwd=self.host)
        (library,) = [*build.glob("*.so"), *build.glob("*.dll")]
        return library

    def program(self, name: str, build: Path, compiler: str = "gcc", flags: str = "") -> Path:
        """Compile a test program, with the files that they share."""
        build.mkdir(parents=True, exist_ok=True)
        out = build / name
        shared = ("client", "direct", "exporter_host")
        sources = [PROGRAMS / f"{file}.c" for file in (name, *shared)]
        sources.append(self.host / "host_interop.c")
        command = [compiler, *WARNINGS, "-g", "-O1", *flags.split()]
        command += [f"-I{self.root / 'include'}", f"-I{self.host}", "-o", str(out)]
        run([*command, *map(str, sources), "-ldl", "-pthread"])
        return out


def render_tree(out: Path) -> Tree:
    """Render the header and the EPs from the project's own spec and templates."""
    model = load_spec(ROOT / "spec")
    outputs = render(model, [CHeader(), EpC()], ROOT / "templates")
    for path, text in format_all(outputs, ROOT / "templates" / ".clang-format").items():
        file = out / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    return Tree(out)


def run(command: list[str], cwd: Path | None = None, **environ: str) -> str:
    """Run a command that must succeed, and return what it printed on stdout."""
    done = subprocess.run(
        command,
        cwd=cwd,
        env={**os.environ, **environ},
        capture_output=True,
        text=True,
        timeout=300,
    )
    shown = f"{' '.join(command)}\n{done.stdout[-4000:]}\n{done.stderr[-6000:]}"
    assert done.returncode == 0, f"exit {done.returncode}: {shown}"
    return done.stdout


def lavapipe() -> dict[str, str]:
    """The environment in which the Vulkan loader finds Mesa's CPU driver and nothing else."""
    if not LAVAPIPE.is_file():
        missing("lavapipe (mesa-vulkan-drivers) is not installed")
    return {"VK_ICD_FILENAMES": str(LAVAPIPE), "VK_DRIVER_FILES": str(LAVAPIPE)}


def fault_flags(build: Path) -> str:
    """What links ``tests/c/fault_wrap.c`` into an EP, so that calls to the system can fail."""
    wrap = build / "fault_wrap.o"
    source = PROGRAMS / "fault_wrap.c"
    run(["gcc", *WARNINGS, "-fPIC", "-c", str(source), "-o", str(wrap)])
    names = dict.fromkeys(re.findall(r"__wrap_(\w+)", source.read_text()))
    return f"-Wl{''.join(f',--wrap={name}' for name in names)} {wrap} -ldl"


def driver_share(folder: Path, *own: str) -> float:
    """Which part of an EP's lines is its driver: the sources in its folder whose names are like ``own``.

    Not counted are the assertions about a vendor's header, and what applications compile too.
    """
    sources = [*folder.glob("*.[ch]"), *(folder.parent / "common").glob("*.[ch]")]
    lines = {
        file: len(file.read_text().splitlines())
        for file in sources
        if file.stem not in {"driver_check", "host_interop"}
    }
    driver = [file for file in lines if any(file.match(f"{folder.name}/{name}") for name in own)]
    assert driver, own
    return sum(lines[file] for file in driver) / sum(lines.values())
