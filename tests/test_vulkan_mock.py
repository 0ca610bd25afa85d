"""The vulkan EP on a recording mock of Vulkan: sequences, every call failing once, bad input, threads."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from ep_build import PROGRAMS, ROOT, SANITIZE, WARNINGS, Tree, fault_flags, render_tree, run
from ort_interop_gen.render.format import format_all
from ort_interop_gen.render.pipeline import render
from ort_interop_gen.render.targets.mock_driver import MockDriver
from ort_interop_gen.spec import load_spec

RELEASES = ("1.24.1", "1.32.0")
MOCK = "libvulkan.so.1"
SHARED = ("client", "direct", "gpu_mock", "exporter_gpu")
DEFINITIONS = {
    "EP_NAME_UNDER_TEST": "VulkanInteropExecutionProvider",
    "MOCK_FILE": MOCK,
    "EXPORTER_REFUSED_MEMORY": "vkAllocateMemory failed: VK_ERROR_INVALID_EXTERNAL_HANDLE",
    "EXPORTER_REFUSED_SIZE": "vkAllocateMemory failed: VK_ERROR_INVALID_EXTERNAL_HANDLE",
    "EXPORTER_REFUSED_SEMAPHORE": "vkImportSemaphoreFdKHR failed",
}
SOAK_CYCLES = int(os.environ.get("SOAK_CYCLES", "4000"))
"""Imports and releases of the soak test; `make soak` does 100,000."""
ONE_QUEUE = "queues=1,queues_wait=0"
"""A device whose only queue all streams share, and where it is an offence if the queue waits."""
QUERIES = {"vkGetSemaphoreCounterValue"}
"""Calls that change nothing, and that the spec's sequences leave out."""

Need = Callable[[str], str]
Ort = Callable[[str], Path]


class Bench:
    """The EP, the mock of its driver and the test programs, built with the same flags."""

    def __init__(self, tree: Tree, build: Path, flags: str, ep_link: str = "") -> None:
        self.tree, self.build, self.flags = tree, build, flags
        for name in ("vulkan", "mock_vulkan"):
            folder = build / name
            options = [f"BUILD={folder}", "CC=gcc", f"EXTRA_CFLAGS={flags}"]
            options += [f"LDFLAGS={ep_link}"] if name == "vulkan" else []
            run(["make", "--silent", "-j2", *options], cwd=tree.root / "c" / name)
        (self.library,) = (build / "vulkan").glob("*.so")

    def program(self, name: str) -> Path:
        """Compile a test program on first use."""
        out = self.build / name
        if not out.exists():
            sources = [str(PROGRAMS / f"{source}.c") for source in (name, *SHARED)]
            command = ["gcc", *WARNINGS, "-g", "-O1", *self.flags.split()]
            command += [f'-D{key}="{value}"' for key, value in DEFINITIONS.items()]
            command += [f"-I{self.tree.root / 'include'}", f"-I{self.tree.host}", "-o", str(out)]
            run([*command, *sources, "-ldl", "-pthread"])
        return out

    def run(self, name: str, ort: Path, *arguments: str, **environ: str) -> str:
        """Run a test program; what it printed."""
        command = [str(self.program(name)), str(ort), str(self.library), *arguments]
        return run(command, LD_LIBRARY_PATH=str(self.build / "mock_vulkan"), **environ)


@pytest.fixture(scope="session")
def tree(tmp_path_factory: pytest.TempPathFactory, need_tool: Need) -> Tree:
    """The generated sources, the mock included."""
    need_tool("make")
    need_tool("gcc")
    tree = render_tree(tmp_path_factory.mktemp("tree"))
    outputs = render(load_spec(ROOT / "spec"), [MockDriver()], ROOT / "templates")
    for path, text in format_all(outputs, ROOT / "templates" / ".clang-format").items():
        file = tree.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    return tree


@pytest.fixture(scope="session")
def sanitized(tree: Tree, tmp_path_factory: pytest.TempPathFactory) -> Bench:
    """Everything under ASan and UBSan."""
    return Bench(tree, tmp_path_factory.mktemp("sanitized"), SANITIZE)


@pytest.fixture(scope="session")
def raced(tree: Tree, tmp_path_factory: pytest.TempPathFactory) -> Bench:
    """Everything under TSan."""
    return Bench(tree, tmp_path_factory.mktemp("raced"), "-fsanitize=thread")


def methods(out: str) -> Iterator[tuple[str, list[str]]]:
    """The names of the functions that each method of the importer called."""
    for block in out.split("== ")[1:]:
        name, *records = block.splitlines()
        yield name, [re.match(r"\w+", record)[0] for record in records]  # type: ignore[index]


def test_sequences(sanitized: Bench, ort_library: Ort) -> None:
    """Each method calls what the spec says, in that order; a handle outlives nothing of its tensor."""
    found = dict(methods(sanitized.run("gpu_sequences", ort_library(RELEASES[-1]))))
    spec = load_spec(ROOT / "spec").backends["vulkan"].spec
    for sequence in spec.methods:
        called = [name for name in found[sequence.method] if name not in QUERIES]
        assert called == sequence.calls, sequence.method
    assert found["CreateTensorFromMemory"] == []
    assert found["ReleaseValueLeavesMapping"] == []


def test_arguments(sanitized: Bench, ort_library: Ort) -> None:
    """What decides an import: sizes, handle types, and descriptors that are the EP's own."""
    out = sanitized.run("gpu_sequences", ort_library(RELEASES[-1]))
    create = re.search(r"vkCreateBuffer\(.*size=0x(\w+), usage=(\d+)", out)
    assert create is not None
    assert int(create[1], 16) == 8192
    # Transfers both ways, storage, and a device address.
    assert int(create[2]) == 1 | 2 | 32 | 131072
    allocate = re.search(r"vkAllocateMemory\(.*allocationSize=0x(\w+), memoryTypeIndex=(\d+)", out)
    assert allocate is not None
    assert (int(allocate[1], 16), allocate[2]) == (8192, "0")
    assert re.search(r"vkImportSemaphoreFdKHR\(.*handleType=1, fd=\d+", out)
    assert "vkQueueSubmit(" in out and "submitCount=2" in out


@pytest.mark.parametrize(
    ("result", "status"), [(-1, 11), (-2, 11), (-1000072003, 2)], ids=["host", "device", "handle"]
)
@pytest.mark.parametrize("options", ["", ONE_QUEUE], ids=["queues", "one-queue"])
def test_every_call_fails_once(
    sanitized: Bench, ort_library: Ort, result: int, status: int, options: str
) -> None:
    """The right status, out-parameters null, every object released once, descriptors balanced."""
    ort = ort_library(RELEASES[-1])
    fault = f"{result}:{status}"
    out = sanitized.run("gpu_faults", ort, fault, MOCK_DRIVER_OPTIONS=options)
    counts = re.fullmatch(r"places (\d+) refused (\d+) absorbed (\d+)", out.splitlines()[-1])
    assert counts is not None, out
    places, refused, absorbed = map(int, counts.groups())
    assert places == refused + absorbed
    assert places >= 60 and refused >= 40
    # A machine whose Vulkan does not start has no devices; the rest of it is waiting and looking.
    names = {line.split()[1] for line in out.splitlines()[:-1]}
    # What a stream submits once its wait is over has no caller; it is tried again.
    tried_again = {"vkQueueSubmit"} if options else set()
    assert names <= tried_again | {
        "vkEnumerateInstanceVersion",
        "vkCreateInstance",
        "vkEnumeratePhysicalDevices",
        "vkEnumerateDeviceExtensionProperties",
        "vkGetSemaphoreCounterValue",
        "vkWaitSemaphores",
        "vkSignalSemaphore",
        # An allocator has no status, its answer is null.
        "vkCreateBuffer",
        "vkAllocateMemory",
        "vkBindBufferMemory",
    }


def test_every_system_call_fails_once(tree: Tree, ort_library: Ort, tmp_path: Path) -> None:
    """Without memory, descriptors or threads: a status, null out-parameters, nothing left over."""
    flags = f"{SANITIZE} -rdynamic"
    bench = Bench(tree, tmp_path, flags, ep_link=fault_flags(tmp_path))
    for options in ("", ONE_QUEUE):
        ort = ort_library(RELEASES[-1])
        words = bench.run("importer_faults", ort, MOCK_DRIVER_OPTIONS=options).split()
        assert words[:2] == ["failed", "at"] and int(words[2]) >= 30, words


@pytest.mark.parametrize("release", ["1.24.1", "1.28.0", "1.32.0"])
def test_sessions(sanitized: Bench, ort_library: Ort, release: str) -> None:
    """Sessions that wait, run and signal on a stream, a producer in another process, IoBinding."""
    out = sanitized.run("host_run", ort_library(release))
    assert out.splitlines()[-1] == "passed 9"


@pytest.mark.parametrize("release", RELEASES)
def test_sessions_on_one_queue(sanitized: Bench, ort_library: Ort, release: str) -> None:
    """The same where all streams share a queue: one that waits holds up no other."""
    out = sanitized.run("host_run", ort_library(release), MOCK_DRIVER_OPTIONS=ONE_QUEUE)
    assert out.splitlines()[-1] == "passed 9"


@pytest.mark.parametrize("options", [ONE_QUEUE, "queues=2,queues_wait=0", "queues=3", "queues=4"])
def test_queues(sanitized: Bench, ort_library: Ort, options: str) -> None:
    """Waits, events, releases, refused work and lost devices, whichever streams share a queue."""
    ort = ort_library(RELEASES[-1])
    out = sanitized.run("vulkan_queues", ort, MOCK_DRIVER_OPTIONS=options)
    assert out.splitlines()[-1] == "passed 10"


def test_sessions_without_addresses(sanitized: Bench, ort_library: Ort) -> None:
    """The same where tensors' memory is mapped, because the device has no addresses."""
    ort = ort_library(RELEASES[-1])
    out = sanitized.run("host_run", ort, MOCK_DRIVER_OPTIONS="device_address=0")
    assert out.splitlines()[-1] == "passed 9"


@pytest.mark.parametrize("options", ["", ONE_QUEUE], ids=["queues", "one-queue"])
def test_exit_with_everything_open(sanitized: Bench, ort_library: Ort, options: str) -> None:
    """A process may end while a stream waits."""
    environ = {"ASAN_OPTIONS": "detect_leaks=0", "MOCK_DRIVER_OPTIONS": options}
    out = sanitized.run("host_run", ort_library(RELEASES[-1]), "--leave", **environ)
    assert out.splitlines()[-1] == "left"


@pytest.mark.parametrize("release", RELEASES)
def test_hostile_descriptors(sanitized: Bench, ort_library: Ort, release: str) -> None:
    """At least 80 bad inputs: a status that names the field, no driver call, nothing leaked."""
    last = sanitized.run("importer_hostile", ort_library(release)).splitlines()[-1]
    assert int(last.removeprefix("refused ")) >= 80


@pytest.mark.parametrize("release", RELEASES)
def test_accepts(sanitized: Bench, ort_library: Ort, release: str) -> None:
    """Good input, in every order of release, with waits that end after everything is gone."""
    last = sanitized.run("importer_accepts", ort_library(release)).splitlines()[-1]
    assert last.startswith("passed ")


@pytest.mark.parametrize(
    "options",
    ["device_address=0", "queues=1", "dedicated_only=1", "device_type=4", "queues=2"],
)
def test_other_devices(sanitized: Bench, ort_library: Ort, options: str) -> None:
    """Devices without addresses, with one queue, with dedicated allocations only, and CPUs."""
    ort = ort_library(RELEASES[-1])
    sanitized.run("gpu_sequences", ort, MOCK_DRIVER_OPTIONS=options)


def test_soak(tree: Tree, ort_library: Ort, tmp_path: Path) -> None:
    """Descriptors and memory stay flat over thousands of imports on eight threads."""
    rounds = SOAK_CYCLES // 8
    bench = Bench(tree, tmp_path, "-O2")
    out = bench.run("importer_threads", ort_library(RELEASES[-1]), "8", str(rounds))
    print(out)
    words = out.split()
    assert words[:2] == ["passed", str(8 * rounds)]
    assert int(words[-3]) < 1000


@pytest.mark.parametrize("options", ["", ONE_QUEUE], ids=["queues", "one-queue"])
def test_threads_under_tsan(raced: Bench, ort_library: Ort, options: str) -> None:
    """No data race in the EP or the mock, whose every access TSan sees."""
    environ = {"TSAN_OPTIONS": "exitcode=66", "MOCK_DRIVER_OPTIONS": options}
    out = raced.run("importer_threads", ort_library(RELEASES[-1]), "8", "50", **environ)
    assert out.startswith("passed 400 ")


@pytest.mark.parametrize("options", [ONE_QUEUE, "queues=3"])
def test_queues_under_tsan(raced: Bench, ort_library: Ort, options: str) -> None:
    """The same for work that is put off, and for what is released behind it."""
    environ = {"TSAN_OPTIONS": "exitcode=66", "MOCK_DRIVER_OPTIONS": options}
    out = raced.run("vulkan_queues", ort_library(RELEASES[-1]), **environ)
    assert out.splitlines()[-1] == "passed 10"
