"""The C ABI header compiles everywhere, has the right layout, and its check can fail."""

from __future__ import annotations

import re
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from ort_interop_gen.drift.check import report_lines, run_check
from ort_interop_gen.header.reader import read_header
from ort_interop_gen.render.env import TargetEnv
from ort_interop_gen.render.output import Output
from ort_interop_gen.render.targets.c_header import CHeader, sal_macros
from ort_interop_gen.spec import Model, load_spec
from ort_interop_gen.spec.abi import Abi
from support import GENERATED, ROOT, missing, need_tool

INCLUDE = GENERATED / "include"
TEMPLATES = TargetEnv(ROOT / "templates" / "c_header")
FLAGS = ("-Wall", "-Wextra", "-Wpedantic", "-Werror", "-fsyntax-only")
RELEASES = ("1.24.1", "1.25.0", "1.26.0", "1.28.0", "1.29.0")
LANGUAGES = [
    ("gcc", "c11"),
    ("gcc", "gnu17"),
    ("clang", "c11"),
    ("clang", "gnu17"),
    ("g++", "c++17"),
    ("g++", "c++20"),
    ("clang++", "c++17"),
    ("clang++", "c++20"),
]
WINDOWS = [
    ("x86_64-w64-mingw32-gcc", "c11", ()),
    ("x86_64-w64-mingw32-g++", "c++17", ()),
    ("clang", "c11", ("--target=x86_64-pc-windows-msvc", "-ffreestanding")),
    ("clang", "c11", ("--target=x86_64-pc-windows-gnu", "-ffreestanding")),
]
SOURCE = '#include "ort_interop_abi_check.h"\nextern int unit;\nint unit = 1;\n'


@pytest.fixture(scope="module")
def model() -> Model:
    return load_spec(ROOT / "spec")


def compile_text(
    folder: Path,
    compiler: str,
    standard: str,
    *options: str,
    source: str = SOURCE,
    include: Path = INCLUDE,
) -> subprocess.CompletedProcess[str]:
    suffix = "cpp" if standard.startswith(("c++", "gnu++")) else "c"
    file = folder / f"unit.{suffix}"
    file.write_text(source, encoding="utf-8")
    command = [need_tool(compiler), f"-std={standard}", *FLAGS, f"-I{include}", *options]
    return subprocess.run([*command, str(file)], capture_output=True, text=True)


@pytest.mark.parametrize(("compiler", "standard"), LANGUAGES)
def test_the_header_has_the_layout_of_the_abi(tmp_path: Path, compiler: str, standard: str) -> None:
    done = compile_text(tmp_path, compiler, standard)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(("compiler", "standard", "options"), WINDOWS)
def test_the_header_has_the_layout_of_the_abi_on_windows(
    tmp_path: Path, compiler: str, standard: str, options: tuple[str, ...]
) -> None:
    done = compile_text(tmp_path, compiler, standard, *options)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("first", ["windows.h", "ort_interop_abi.h"])
def test_the_header_lives_beside_windows_own(tmp_path: Path, first: str) -> None:
    """Windows' headers define the same SAL annotations, before or after."""
    names = sorted(["windows.h", "ort_interop_abi.h"], key=lambda n: n != first)
    source = "".join(f"#include <{n}>\n" for n in [*names, "sal.h"]) + SOURCE
    done = compile_text(tmp_path, "x86_64-w64-mingw32-gcc", "c11", source=source)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize(
    ("compiler", "standard"),
    [("gcc", "c11"), ("clang", "c11"), ("g++", "c++17"), ("clang++", "c++17")],
)
def test_real_headers_pass_the_check(
    tmp_path: Path, headers_dir: Path, release: str, compiler: str, standard: str
) -> None:
    real = headers_dir / release
    if not real.is_dir():
        missing(f"ORT_HEADERS_DIR has no folder {release}")
    options = ("-DORT_INTEROP_USE_ORT_HEADERS", f"-isystem{real}")
    done = compile_text(tmp_path, compiler, standard, *options)
    assert done.returncode == 0, done.stderr


USES_EVERY_COMPAT_NAME = """
#include "ort_interop_abi.h"
int main(void) {
  OrtExternalMemoryHandleType memory[] = {
      ORT_EXTERNAL_MEMORY_HANDLE_TYPE_MEMORY_WIN32, ORT_EXTERNAL_MEMORY_HANDLE_TYPE_VK_MEMORY_WIN32,
      ORT_EXTERNAL_MEMORY_HANDLE_TYPE_MEMORY_OPAQUE_FD,
      ORT_EXTERNAL_MEMORY_HANDLE_TYPE_VK_MEMORY_OPAQUE_FD,
      ORT_EXTERNAL_MEMORY_HANDLE_TYPE_HOST_ALLOCATION};
  OrtExternalSemaphoreType semaphore[] = {
      ORT_EXTERNAL_SEMAPHORE_VK_TIMELINE_SEMAPHORE_WIN32,
      ORT_EXTERNAL_SEMAPHORE_VK_TIMELINE_SEMAPHORE_OPAQUE_FD};
  int expected[] = {2, 2, 3, 3, 4, 1, 2};
  for (int i = 0; i < 5; ++i)
    if ((int)memory[i] != expected[i]) return 1 + i;
  for (int i = 0; i < 2; ++i)
    if ((int)semaphore[i] != expected[5 + i]) return 6 + i;
  if (ORT_INTEROP_EP_API_VERSION > 29 || ORT_API_VERSION > ORT_INTEROP_API_VERSION) return 8;
  return 0;
}
"""


def build_and_run(folder: Path, compiler: str, source: str, *options: str) -> int:
    file = folder / ("unit.cpp" if compiler.endswith("++") else "unit.c")
    file.write_text(source, encoding="utf-8")
    flags = [f for f in FLAGS if f != "-fsyntax-only"]
    flags.append("-std=c++17" if compiler.endswith("++") else "-std=c11")
    command = [need_tool(compiler), *flags, f"-I{INCLUDE}", *options, str(file)]
    subprocess.run([*command, "-o", str(folder / "unit")], check=True)
    return subprocess.run([str(folder / "unit")]).returncode


@pytest.mark.parametrize("compiler", ["gcc", "clang", "g++", "clang++"])
def test_newer_enumerators_are_there_with_the_own_declarations(
    tmp_path: Path, compiler: str
) -> None:
    assert build_and_run(tmp_path, compiler, USES_EVERY_COMPAT_NAME) == 0


@pytest.mark.parametrize("compiler", ["gcc", "clang++"])
@pytest.mark.parametrize("release", RELEASES)
def test_newer_enumerators_are_there_with_older_headers(
    tmp_path: Path, headers_dir: Path, release: str, compiler: str
) -> None:
    options = ("-DORT_INTEROP_USE_ORT_HEADERS", f"-isystem{headers_dir / release}")
    assert build_and_run(tmp_path, compiler, USES_EVERY_COMPAT_NAME, *options) == 0


def test_headers_before_the_floor_are_refused(tmp_path: Path) -> None:
    real = tmp_path / "old"
    real.mkdir()
    (real / "onnxruntime_c_api.h").write_text("#define ORT_API_VERSION 23\n")
    done = compile_text(tmp_path, "gcc", "c11", "-DORT_INTEROP_USE_ORT_HEADERS", f"-I{real}")
    assert done.returncode != 0 and "starts with ONNX Runtime 1.24" in done.stderr


def test_both_headers_at_once_are_refused(tmp_path: Path) -> None:
    done = compile_text(tmp_path, "gcc", "c11", source="#define ORT_API_VERSION 29\n" + SOURCE)
    assert done.returncode != 0 and "ORT_INTEROP_USE_ORT_HEADERS" in done.stderr


def test_32_bit_targets_are_refused_by_the_check(tmp_path: Path) -> None:
    done = compile_text(tmp_path, "clang", "c11", "-m32", "-ffreestanding")
    assert done.returncode != 0 and "64-bit targets only" in done.stderr


@pytest.mark.parametrize(
    ("pattern", "replacement", "named"),
    [
        # Two slots swapped.
        (r"(\(ORT_API_CALL\* )CanImportMemory(.*?)CanImportSemaphore", r"\1CanImportSemaphore\2CanImportMemory", "CanImportMemory"),
        # A field widened, so that what follows moves.
        (r"uint32_t reserved;", "uint64_t reserved;", "OrtResourceCount.value"),
        # A field appended.
        (r"(  size_t offset_bytes;\n)", r"\1  size_t more;\n", "OrtExternalMemoryDescriptor"),
        # An enumerator renumbered.
        (r"ORT_NOT_IMPLEMENTED = 9", "ORT_NOT_IMPLEMENTED = 90", "ORT_NOT_IMPLEMENTED"),
        # 1 << 31 as a positive number would not be an int.
        (r"\(-2147483647 - 1\)", "0x7fffffff", "OrtDeviceEpIncompatibility_UNKNOWN"),
    ],
)  # fmt: skip
def test_a_changed_layout_fails_the_check_by_name(
    tmp_path: Path, pattern: str, replacement: str, named: str
) -> None:
    for name in ("ort_interop_abi.h", "ort_interop_abi_check.h"):
        text = (INCLUDE / name).read_text(encoding="utf-8")
        if name == "ort_interop_abi.h":
            text, count = re.subn(pattern, replacement, text, count=1, flags=re.S)
            assert count == 1, "the mutation no longer fits the header"
        (tmp_path / name).write_text(text, encoding="utf-8")
    for compiler in ("gcc", "clang"):
        done = compile_text(tmp_path, compiler, "c11", include=tmp_path)
        assert done.returncode != 0
        assert named in done.stderr


def test_every_slot_field_and_constant_is_asserted(model: Model) -> None:
    text = (INCLUDE / "ort_interop_abi_check.h").read_text(encoding="utf-8")
    flat = re.sub(r"\s+", " ", text)
    abi = model.abi
    for struct in abi.structs.values():
        assert f"ORT_INTEROP_ASSERT_SIZE({struct.kind} {struct.name}, " in flat
        for field in struct.fields:
            assert f"({struct.kind} {struct.name}, {field.name}, {field.offset}, " in flat
    for enum in abi.enums.values():
        for constant in enum.constants:
            assert f"ORT_INTEROP_ASSERT_VALUE({constant.name}, " in flat


def test_versions_follow_the_policy() -> None:
    """Stamping with ORT_API_VERSION is safe: it never names a release with unknown EP structs."""
    text = (INCLUDE / "ort_interop_abi.h").read_text(encoding="utf-8")
    assert "\n#define ORT_API_VERSION 29\n" in text
    assert "\n#define ORT_INTEROP_API_VERSION 30\n" in text
    assert "\n#define ORT_INTEROP_EP_API_VERSION 29\n" in text


def test_documentation_of_the_spec_is_in_the_header(model: Model) -> None:
    text = (INCLUDE / "ort_interop_abi.h").read_text(encoding="utf-8")
    flat = " ".join(text.replace(" * ", " ").split())
    documented = [
        meaning.doc
        for name, meaning in model.semantics.items()
        if meaning.doc and name.partition(".")[0] in model.abi.structs
    ] + [doc for name, doc in model.docs.items() if name in model.abi.structs]
    assert len(documented) > 40
    for doc in documented:
        assert " ".join(doc.split()) in flat


def bare(abi: Abi) -> dict[str, object]:
    """All facts of an ABI but where each was declared, and since when: comments tell that."""
    functions = {n: e.function for n, e in abi.functions.items()}
    typedefs = {n: (t.type, t.function) for n, t in abi.typedefs.items()}
    enums = {n: [(c.name, c.value) for c in e.constants] for n, e in abi.enums.items()}
    structs = {
        n: (s.kind, s.size, s.size_win64, [replace(f, since=None) for f in s.fields])
        for n, s in abi.structs.items()
    }
    own = {"ORT_API_VERSION", "ORT_INTEROP_API_VERSION", "ORT_INTEROP_EP_API_VERSION"}
    macros = {n: m.value for n, m in abi.macros.items() if n not in own}
    return {
        "enums": enums,
        "structs": structs,
        "opaque": list(abi.opaque),
        "typedefs": typedefs,
        "functions": functions,
        "macros": macros,
    }


@pytest.mark.parametrize("view", ["linux", "windows"])
@pytest.mark.parametrize("preprocessor", ["cc", "python"])
def test_the_header_reads_back_as_the_very_same_abi(
    model: Model, view: str, preprocessor: str
) -> None:
    if preprocessor == "cc":
        need_tool("gcc")
    path = INCLUDE / "ort_interop_abi.h"
    result = read_header(path, view=view, preprocessor=preprocessor)
    assert not result.unreadable
    read, written = bare(result.abi), bare(model.abi)
    for kind in written:
        assert read[kind] == written[kind]
    assert result.abi.api_version == model.ep_structs


def test_the_release_of_every_slot_and_type_is_told(model: Model) -> None:
    read = read_header(INCLUDE / "ort_interop_abi.h").abi
    for name, struct in model.abi.structs.items():
        told = read.structs[name]
        assert told.doc is not None and told.doc.since == struct.since, name
        for field, told_field in zip(struct.fields, told.fields, strict=True):
            if field.function is not None or field.since != struct.since:
                assert told_field.doc is not None, f"{name}.{field.name}"
                assert told_field.doc.since == field.since, f"{name}.{field.name}"
    for name, enum in model.abi.enums.items():
        told_enum = read.enums[name]
        assert told_enum.doc is not None and told_enum.doc.since == enum.since, name
        for constant, told_constant in zip(enum.constants, told_enum.constants, strict=True):
            if constant.since != enum.since:
                assert told_constant.doc is not None, constant.name
                assert told_constant.doc.since == constant.since, constant.name


@pytest.mark.parametrize("release", range(24, 30))
def test_a_header_of_each_release_passes_its_own_check_and_the_drift_check(
    model: Model, tmp_path: Path, release: int
) -> None:
    for output in CHeader().render_release(model, TEMPLATES, release):
        path = tmp_path / Path(output.path).name
        path.write_text(output.text, encoding="utf-8")
    done = compile_text(tmp_path, "gcc", "c11", include=tmp_path)
    assert done.returncode == 0, done.stderr
    result = run_check(model, tmp_path / "ort_interop_abi.h")
    assert result.release == result.compared_with == release
    # ORT's own comments name a wrong release at a few slots; this header names the right one.
    corrected = {
        f"{struct.name}.{field.name}"
        for struct in model.at(release).structs.values()
        for field in struct.fields
        if field.doc is not None and field.doc.since != field.since
    }
    own = {"ORT_INTEROP_API_VERSION", "ORT_INTEROP_EP_API_VERSION"}
    assert {f.symbol for f in result.findings} <= corrected | own, report_lines(result.findings)


def test_annotations_that_take_a_size_are_macros_with_arguments(model: Model) -> None:
    heads = sal_macros(model.abi)
    assert "_In_reads_(...)" in heads and "_In_" in heads


def test_output_paths_are_stable(model: Model) -> None:
    outputs = list(CHeader().render(model, TEMPLATES))
    assert all(isinstance(o, Output) and o.language == "c" for o in outputs)
    assert [o.path for o in outputs] == [
        "include/ort_interop_abi.h",
        "include/ort_interop_abi_check.h",
    ]
