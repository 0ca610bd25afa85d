"""The vulkan EP: builds, Vulkan's own header as an oracle, and Mesa's lavapipe as a real driver."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from ep_build import (
    PROGRAMS,
    ROOT,
    SANITIZE,
    WARNINGS,
    Tree,
    driver_share,
    lavapipe,
    render_tree,
    run,
)
from ort_interop_gen.spec import load_spec
from support import missing

RELEASES = ("1.24.1", "1.26.0", "1.28.0", "1.32.0")
VULKAN_HEADER = Path("/usr/include/vulkan/vulkan.h")
TESTS = "passed 9"
EP_NAME = "VulkanInteropExecutionProvider"

Need = Callable[[str], str]
Ort = Callable[[str], Path]


@pytest.fixture(scope="session")
def tree(tmp_path_factory: pytest.TempPathFactory, need_tool: Need) -> Tree:
    """The generated sources."""
    need_tool("make")
    need_tool("gcc")
    return render_tree(tmp_path_factory.mktemp("tree"))


@pytest.fixture(scope="session")
def vulkan_header() -> Path:
    """The folder that Vulkan's own header is included from."""
    if not VULKAN_HEADER.is_file():
        missing("Vulkan's header (libvulkan-dev) is not installed")
    return VULKAN_HEADER.parent.parent


def make(tree: Tree, build: Path, *variables: str) -> Path:
    """Build the vulkan EP's library; its path."""
    command = ["make", "--silent", "-j2", f"BUILD={build}", *variables]
    run(command, cwd=tree.root / "c" / "vulkan")
    (library,) = [*build.glob("*.so"), *build.glob("*.dll")]
    return library


def program(tree: Tree, build: Path, flags: str = "") -> Path:
    """The test program, which is the exporter too."""
    build.mkdir(parents=True, exist_ok=True)
    sources = [str(PROGRAMS / f"{name}.c") for name in ("vulkan_run", "vulkan_exporter", "client")]
    command = ["gcc", *WARNINGS, "-g", f'-DEP_NAME_UNDER_TEST="{EP_NAME}"', *flags.split()]
    folders = [tree.root / "include", tree.host, tree.root / "c" / "vulkan"]
    command += [*(f"-I{folder}" for folder in folders), "-o", str(build / "vulkan_run")]
    run([*command, *sources, "-ldl", "-lvulkan", "-pthread"])
    return build / "vulkan_run"


@pytest.fixture(scope="session")
def built(
    tree: Tree, vulkan_header: Path, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, Path]:
    """The EP as its users build it, and the program that drives it."""
    build = tmp_path_factory.mktemp("vulkan")
    return make(tree, build / "ep", "CC=gcc"), program(tree, build)


@pytest.mark.parametrize("compiler", ["gcc", "clang", "x86_64-w64-mingw32-gcc"])
def test_builds(tree: Tree, need_tool: Need, tmp_path: Path, compiler: str) -> None:
    """Strict C11 without a warning, and without an SDK of Vulkan's."""
    make(tree, tmp_path, f"CC={need_tool(compiler)}")


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_declarations_are_vulkans(
    tree: Tree, vulkan_header: Path, need_tool: Need, compiler: str
) -> None:
    """Every value, offset, size and signature of the spec, as Vulkan's own header has it."""
    source = str(tree.root / "c" / "vulkan" / "driver_check.c")
    flags = ["-DDRIVER_VENDOR_HEADER", f"-I{vulkan_header}", "-fsyntax-only"]
    run([need_tool(compiler), *WARNINGS, *flags, source])


def test_declarations_are_vulkans_on_windows(
    tree: Tree, vulkan_header: Path, need_tool: Need, tmp_path: Path
) -> None:
    """The same for Windows, with the structs and calls that exist there only."""
    for folder in ("vulkan", "vk_video"):
        if (vulkan_header / folder).is_dir():
            (tmp_path / folder).symlink_to(vulkan_header / folder)
    source = str(tree.root / "c" / "vulkan" / "driver_check.c")
    flags = ["-DDRIVER_VENDOR_HEADER", "-DVK_USE_PLATFORM_WIN32_KHR=1", "-isystem", str(tmp_path)]
    compiler = need_tool("x86_64-w64-mingw32-gcc")
    run([compiler, "-std=c11", "-Wall", "-Wextra", "-Werror", *flags, "-fsyntax-only", source])


@pytest.mark.parametrize("change", [("value: 1000060000", "value: 1000060001")])
def test_a_wrong_declaration_is_found(
    tree: Tree, vulkan_header: Path, tmp_path: Path, change: tuple[str, str]
) -> None:
    """The comparison can fail: a value that is off by one does not compile."""
    source = (tree.root / "c" / "vulkan" / "driver_check.c").read_text()
    number = change[0].split()[-1]
    assert number in source
    wrong = tmp_path / "driver_check.c"
    wrong.write_text(source.replace(f"== {number}", f"== {change[1].split()[-1]}"))
    with pytest.raises(AssertionError, match=r"static assertion failed"):
        run(["gcc", *WARNINGS, "-DDRIVER_VENDOR_HEADER", "-fsyntax-only", str(wrong)])


def test_kinds_are_vulkans() -> None:
    """A struct's sType is its name in capitals, as everywhere in Vulkan; no compiler knows that."""
    structs = load_spec(ROOT / "spec").backends["vulkan"].spec.structs
    kinds = {struct.name: struct.kind for struct in structs if struct.kind}
    assert len(kinds) > 40
    for name, kind in kinds.items():
        assert kind.replace("_", "") == f"VKSTRUCTURETYPE{name.removeprefix('Vk')}".upper()


@pytest.mark.parametrize("release", RELEASES)
def test_lavapipe(built: tuple[Path, Path], ort_library: Ort, release: str) -> None:
    """Another process exports memory, a session runs on it, the exporter reads the result.

    lavapipe imports no timeline semaphore by descriptor, and the probe says so.
    """
    library, exe = built
    out = run([str(exe), str(ort_library(release)), str(library)], **lavapipe())
    assert "timeline by fd: not importable" in out
    assert out.splitlines()[-1] == TESTS


@pytest.mark.parametrize("release", ["1.25.0", "1.32.0"])
def test_lent_device(built: tuple[Path, Path], ort_library: Ort, release: str) -> None:
    """The application lends its own VkDevice, takes it back, and lends it again.

    Options that are missing, null, no numbers or out of range are refused, each by its name.
    """
    library, exe = built
    out = run([str(exe), "--lend", str(ort_library(release)), str(library)], **lavapipe())
    assert out.splitlines()[-1] == "passed loan"


def test_lavapipe_under_sanitizers(
    tree: Tree, vulkan_header: Path, ort_library: Ort, tmp_path: Path
) -> None:
    """No bad address and no undefined behaviour.

    Leaks are not looked for here: the driver leaks itself, and is unloaded before the report.
    """
    library = make(tree, tmp_path / "ep", "CC=gcc", f"EXTRA_CFLAGS={SANITIZE}")
    exe = program(tree, tmp_path, SANITIZE)
    command = [str(exe), str(ort_library(RELEASES[-1])), str(library)]
    out = run(command, ASAN_OPTIONS="detect_leaks=0", **lavapipe())
    assert out.splitlines()[-1] == TESTS
    command = [str(exe), "--lend", *command[1:]]
    assert "passed loan" in run(command, ASAN_OPTIONS="detect_leaks=0", **lavapipe())


def test_driver_share(tree: Tree) -> None:
    """The driver is less than a quarter of its EP."""
    assert driver_share(tree.root / "c" / "vulkan", "vulkan_*") < 0.25


def test_no_driver(built: tuple[Path, Path], ort_library: Ort, tmp_path: Path) -> None:
    """Without any Vulkan device the EP registers and offers none; nothing crashes."""
    library, _ = built
    nothing = tmp_path / "none.json"
    exe = built[1]
    with pytest.raises(AssertionError, match="client->device != NULL"):
        run(
            [str(exe), str(ort_library(RELEASES[-1])), str(library)],
            VK_ICD_FILENAMES=str(nothing),
            VK_DRIVER_FILES=str(nothing),
        )
