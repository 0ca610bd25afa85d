"""The cuda and hip EPs on mocks of their drivers, inside real ONNX Runtimes."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from ep_build import SANITIZE, WARNINGS
from gpu_build import BACKENDS, GpuEp, compiles, make, render_gpu_tree, spec_of
from support import missing

RELEASES = ("1.24.1", "1.32.0")
PROGRAMS = {
    "gpu_rules": "passed 15",
    "importer_accepts": "passed 9",
    "importer_hostile": "refused 96",
    "host_run": "passed 9",
}
"""Each program, and the last line that it prints when all of it went well."""

FAULTS = {999: 11, 801: 9, 2: 1, 1: 2}
"""Results that calls are made to fail with, and the ``OrtErrorCode`` that each becomes."""

SOAK_CYCLES = int(os.environ.get("SOAK_CYCLES", "10000"))
"""Imports and releases of the soak test; `make soak` does 100,000."""

VENDOR_INCLUDES = {
    "cuda": ("/usr/local/cuda/include", "/usr/include"),
    "hip": ("/usr/include", "/opt/rocm/include"),
}

Need = Callable[[str], str]
Ort = Callable[[str], Path]


@pytest.fixture(scope="session")
def tree(tmp_path_factory: pytest.TempPathFactory, need_tool: Need) -> Path:
    """The generated sources."""
    need_tool("make")
    need_tool("gcc")
    return render_gpu_tree(tmp_path_factory.mktemp("gpu-tree"))


@pytest.fixture(scope="session")
def sanitized(tree: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, GpuEp]:
    """Both EPs, with their mocks, under ASan and UBSan."""
    build = tmp_path_factory.mktemp("gpu-sanitized")
    return {name: GpuEp(tree, name, build / name, SANITIZE).make() for name in BACKENDS}


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("backend", BACKENDS)
def test_under_sanitizers(
    sanitized: dict[str, GpuEp], ort_library: Ort, backend: str, program: str, release: str
) -> None:
    """No report of a sanitizer, no offence against the driver, and every check holds."""
    out = sanitized[backend].run(program, ort_library(release))
    assert out.splitlines()[-1] == PROGRAMS[program]


@pytest.mark.parametrize("pools", ["pools", "no pools"])
@pytest.mark.parametrize("backend", BACKENDS)
def test_every_call_fails_once(
    sanitized: dict[str, GpuEp], ort_library: Ort, backend: str, pools: str
) -> None:
    """Each call of the driver fails at each place: right status, nothing left over."""
    plans = [f"{result}:{status}" for result, status in FAULTS.items()]
    options = {"MOCK_DRIVER_OPTIONS": f"pools={int(pools == 'pools')}"}
    out = sanitized[backend].run("gpu_faults", ort_library(RELEASES[-1]), *plans, **options)
    *absorbed, last = out.splitlines()
    places, refused = (int(n) for n in re.findall(r"(?:places|refused) (\d+)", last))
    assert places >= 100 * len(FAULTS) and refused >= 40 * len(FAULTS)
    # A call that imports or makes what was asked for is never absorbed; HIP's probe asks by one, and
    # the driver has streams of its own.
    names = {line.split()[1] for line in absorbed} - {"hipImportExternalSemaphore"}
    assert not [n for n in names if re.search(r"Import|GetMapped|Signal|Memcpy", n)]


def _sequences(text: str) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for line in text.splitlines():
        if line.startswith("== "):
            found[line[3:]] = []
        elif found:
            found[list(found)[-1]].append(line)
    return found


@pytest.mark.parametrize("backend", BACKENDS)
def test_sequences(sanitized: dict[str, GpuEp], ort_library: Ort, backend: str) -> None:
    """The driver's calls behind each method are those of the spec, with the right arguments."""
    out = sanitized[backend].run("gpu_sequences", ort_library(RELEASES[-1]))
    records = _sequences(out)
    spec = spec_of(backend)
    for sequence in spec.methods:
        calls = [line.partition("(")[0] for line in records[sequence.method]]
        assert calls == sequence.calls, sequence.method
    assert records["CreateTensorFromMemory"] == [] == records["ReleaseValueLeavesMapping"]
    text = {method: "\n".join(lines) for method, lines in records.items()}
    assert re.search(r"type=1, handle\.fd=\d+.*size=0x2000, flags=0\b", text["ImportMemory"])
    assert re.search(r"offset=0x0, size=0x2000, flags=0\b", text["ImportMemory"])
    assert re.search(r"type=9, handle\.fd=\d+.*flags=0\b", text["ImportSemaphore"])
    assert "params.fence.value=0x7," in text["WaitSemaphore"]
    assert "params.fence.value=0x7," in text["SignalSemaphore"]
    assert all(line.endswith(" = 0") for lines in records.values() for line in lines)
    # The application's descriptors stay its own.
    own = re.search(r"memory fd (\d+), semaphore fd (\d+)", out)
    assert own is not None
    assert f"handle.fd={own[1]}," not in text["ImportMemory"]
    assert f"handle.fd={own[2]}," not in text["ImportSemaphore"]


@pytest.mark.parametrize("backend", BACKENDS)
def test_threads_under_tsan(tree: Path, ort_library: Ort, tmp_path: Path, backend: str) -> None:
    """Eight threads on one importer, and the driver's own; no data race."""
    ep = GpuEp(tree, backend, tmp_path, "-fsanitize=thread").make()
    ort = ort_library(RELEASES[-1])
    # The C library frees a finished thread's variables on any thread, under a lock that is its own.
    suppressions = tmp_path / "suppressions"
    suppressions.write_text("race:_dl_deallocate_tls\n")
    options = {"TSAN_OPTIONS": f"exitcode=66:suppressions={suppressions}"}
    out = ep.run("importer_threads", ort, "8", "60", **options)
    assert out.startswith("passed 480 ")
    assert ep.run("gpu_rules", ort, **options).splitlines()[-1] == PROGRAMS["gpu_rules"]


@pytest.mark.parametrize("backend", BACKENDS)
def test_soak(tree: Path, ort_library: Ort, tmp_path: Path, backend: str) -> None:
    """Descriptors and memory stay flat over many imports and releases."""
    ep = GpuEp(tree, backend, tmp_path).make()
    out = ep.run("gpu_soak", ort_library(RELEASES[-1]), str(SOAK_CYCLES))
    print(f"{backend}: {out}", end="")
    assert out.startswith(f"{SOAK_CYCLES} cycles, "), out


@pytest.mark.parametrize("backend", BACKENDS)
def test_exit_with_everything_open(
    sanitized: dict[str, GpuEp], ort_library: Ort, backend: str
) -> None:
    """A process may end while a stream waits."""
    environ = {"ASAN_OPTIONS": "detect_leaks=0"}
    out = sanitized[backend].run("host_run", ort_library(RELEASES[-1]), "--leave", **environ)
    assert out.splitlines()[-1] == "left"


@pytest.mark.parametrize("backend", BACKENDS)
def test_no_driver(sanitized: dict[str, GpuEp], ort_library: Ort, backend: str) -> None:
    """A machine without the driver, or with one but no GPU, gets an EP without devices."""
    node = {"cuda": "/dev/nvidiactl", "hip": "/dev/kfd"}[backend]
    if Path(node).exists():
        pytest.skip(f"{node} is there: this machine has a GPU")
    ep = sanitized[backend]
    out = ep.run(
        "gpu_absent", ort_library(RELEASES[-1]), LD_LIBRARY_PATH="", ASAN_OPTIONS="detect_leaks=0"
    )
    assert out.splitlines()[-1] == "no devices"


@pytest.mark.parametrize("compiler", ["clang", "x86_64-w64-mingw32-gcc"])
@pytest.mark.parametrize("backend", BACKENDS)
def test_builds(tree: Path, need_tool: Need, tmp_path: Path, backend: str, compiler: str) -> None:
    """Without a warning, for Linux and Windows, the mock as well."""
    need_tool(compiler)
    for folder in (backend, f"mock_{backend}"):
        make(tree / "c" / folder, tmp_path / folder, f"CC={compiler}")


def _check_command(tree: Path, backend: str, compiler: str, out: Path) -> list[str]:
    folder = tree / "c" / backend
    includes = [f"-I{folder}", f"-I{tree / 'c' / 'common'}", f"-I{tree / 'include'}"]
    return [compiler, *WARNINGS, *includes, "-c", "-o", str(out)]


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
@pytest.mark.parametrize("backend", BACKENDS)
def test_vendor_header(
    tree: Path, need_tool: Need, tmp_path: Path, backend: str, compiler: str
) -> None:
    """Every declared value, offset, size and signature is the vendor's."""
    need_tool(compiler)
    vendor = spec_of(backend).vendor_header
    assert vendor is not None
    found = [d for d in VENDOR_INCLUDES[backend] if (Path(d) / vendor.name).is_file()]
    if not found and backend == "cuda":
        pytest.skip("cuda.h is not installed: it comes with NVIDIA's toolkit only")
    if not found:
        missing(f"{vendor.name} is not installed (Debian: libamdhip64-dev)")
    command = _check_command(tree, backend, compiler, tmp_path / "check.o")
    command += ["-DDRIVER_VENDOR_HEADER", "-isystem", found[0]]
    assert compiles([*command, str(tree / "c" / backend / "driver_check.c")])
    # The check can fail: CUDA has 16 reserved words more than HIP in a handle's description.
    text = (tree / "c" / backend / "driver_check.c").read_text()
    size = {
        "cuda": "MEMORY_HANDLE_DESC) == DRIVER_BY_MODEL(104,",
        "hip": "MemoryHandleDesc) == DRIVER_BY_MODEL(40,",
    }
    assert size[backend] in text
    other = {"cuda": "40,", "hip": "104,"}[backend]
    broken = tmp_path / "broken.c"
    broken.write_text(text.replace(size[backend], size[backend].rpartition("(")[0] + "(" + other))
    assert not compiles([*command, str(broken)])


@pytest.mark.parametrize("backend", BACKENDS)
def test_driver_share(tree: Path, backend: str) -> None:
    """A driver is less than a quarter of its EP, assertions about the vendor's header aside."""
    folder = tree / "c" / backend
    driver = [*folder.glob("gpu_*.[ch]"), folder / f"{backend}_backend.c"]
    rest = [*(tree / "c" / "common").glob("*.[ch]"), *folder.glob("*.[ch]")]
    rest = [f for f in rest if f not in driver and f.name != "driver_check.c"]
    lines = [sum(len(f.read_text().splitlines()) for f in files) for files in (driver, rest)]
    assert 0 < lines[0] < 0.25 * sum(lines), lines
