"""The generated ctypes package agrees with the recorded ABI, and gets right what peers get wrong."""

from __future__ import annotations

import _ctypes
import ctypes
import gc
import json
import pickle
import pydoc
import shutil
import subprocess
import sys
import weakref
from ctypes import POINTER, c_void_p
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from ort_interop_gen.render.env import TargetEnv
from ort_interop_gen.render.errors import RenderErrors
from ort_interop_gen.render.targets.python import Description, Python, error_class
from ort_interop_gen.spec import Model, load_spec
from ort_interop_gen.spec.ctype import FIXED, Named, parse_type
from ort_interop_gen.spec.facts import load_all
from support import GENERATED, ROOT, missing, need_tool

PACKAGE = GENERATED / "python"
sys.path.insert(0, str(PACKAGE))
sys.path.insert(0, str(GENERATED / "tests"))

import ort_interop as ort  # noqa: E402
import ort_interop_fake_host as fake  # noqa: E402
from ort_interop import _abi, _types  # noqa: E402

FACTS = load_all(ROOT / "spec" / "facts")
COMPLETE = [release for release, abi in FACTS.items() if not abi.partial]
SAMPLE = ROOT / "tests" / "python_bindings_sample.py"
WINDOWS_WORDS = {
    "long": ctypes.c_int32,
    "unsigned long": ctypes.c_uint32,
    "wchar_t": ctypes.c_uint16,
    "path_char": ctypes.c_uint16,
}
C_NAMES = {"ORTCHAR_T": "path_char"}


@pytest.fixture(scope="module")
def model() -> Model:
    return load_spec(ROOT / "spec")


def all_slots() -> tuple[fake.SlotFact, ...]:
    """Every slot of every table, as the newest spec has it."""
    found = []
    for name in _abi.STRUCTS:
        kind = getattr(ort, name)
        if issubclass(kind, ort.Table):
            for at, (field, since) in enumerate(kind._field_since_.items()):
                found.append(fake.SlotFact(name, field, at, since))
    return tuple(found)


@pytest.fixture
def host() -> fake.FakeHost:
    return fake.FakeHost(ort.NEWEST_VERSION, all_slots())


def python(code: str, *args: str, **env: str) -> subprocess.CompletedProcess[str]:
    """Run code in a fresh interpreter that finds the package."""
    return subprocess.run(
        [sys.executable, "-c", code, *args],
        capture_output=True,
        text=True,
        env={"PYTHONPATH": str(PACKAGE), "PATH": "/usr/bin:/bin", **env},
        timeout=60,
    )


def handle(kind: Any, address: int = 0x1000) -> Any:
    """A handle to nothing, for hosts that do not look."""
    return kind.from_address(address)


# Layout


@pytest.mark.parametrize("release", COMPLETE)
def test_structs_have_the_offsets_that_were_recorded(release: int) -> None:
    checked = 0
    for struct in FACTS[release].structs.values():
        kind = getattr(ort, struct.name)
        for field in struct.fields:
            assert getattr(kind, field.name).offset == field.offset, f"{struct.name}.{field.name}"
            checked += 1
        grown = len(kind._fields_) > len(struct.fields)
        assert struct.size is not None
        assert (ctypes.sizeof(kind) > struct.size) == grown, struct.name
    assert checked > 500


def offsets(words: dict[str, Any]) -> dict[str, Any]:
    """The layout of every struct with some words having other widths, from a fresh interpreter."""
    code = (
        "import ctypes, json, sys\n"
        "from ort_interop import _abi, _types\n"
        "for word, name in json.loads(sys.argv[1]).items():\n"
        "    _types._WORDS[word] = getattr(ctypes, name)\n"
        "found = {}\n"
        "for name in _abi.STRUCTS:\n"
        "    kind = _types.get(name)\n"
        "    found[name] = [ctypes.sizeof(kind), [getattr(kind, f[0]).offset for f in kind._fields_]]\n"
        "print(json.dumps(found))\n"
    )
    done = python(code, json.dumps({word: kind.__name__ for word, kind in words.items()}))
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_structs_have_the_offsets_of_64_bit_windows() -> None:
    newest = FACTS[max(COMPLETE)]
    windows = offsets(WINDOWS_WORDS)
    for struct in newest.structs.values():
        size, places = windows[struct.name]
        expected = [field.offset_win64 for field in struct.fields]
        assert places[: len(expected)] == expected, struct.name
        if len(places) == len(expected):
            assert size == struct.size_win64, struct.name


def test_every_width_is_that_of_the_c_type() -> None:
    windows = sys.platform == "win32"
    for name, width in FIXED.items():
        word = C_NAMES.get(name, name)
        size = ctypes.sizeof(_types._WORDS[word])
        assert size == (width.llp64 if windows else width.lp64), name
        if word in WINDOWS_WORDS:
            assert ctypes.sizeof(WINDOWS_WORDS[word]) == width.llp64, name
        else:
            assert width.lp64 == width.llp64, name


def test_signedness_of_every_integer_is_that_of_the_c_type() -> None:
    for name, width in FIXED.items():
        kind = _types._WORDS[C_NAMES.get(name, name)]
        if width.signed is None or name in {"char", "bool"}:
            continue
        assert (kind(-1).value < 0) == width.signed, name


def test_opaque_types_structs_and_callbacks_are_all_there(model: Model) -> None:
    for release in COMPLETE:
        abi = FACTS[release]
        for name in [*abi.opaque, *abi.structs, *abi.enums]:
            assert hasattr(ort, name), name
        for typedef in abi.typedefs.values():
            if typedef.function is not None:
                assert issubclass(getattr(ort, typedef.name), ctypes._CFuncPtr)  # type: ignore[attr-defined]
    assert set(_abi.EXPORTS) == set(FACTS[max(COMPLETE)].functions)


# Signatures against the facts: an independent reading of the same declarations


def test_every_signature_has_as_many_parameters_as_was_recorded() -> None:
    counted = 0
    for release in COMPLETE:
        for struct in FACTS[release].structs.values():
            for field in struct.fields:
                if field.function is not None and not isinstance(field.type, Named):
                    signature = getattr(getattr(ort, struct.name), field.name).signature
                    assert len(signature.params) == len(field.function.params)
                    counted += 1
    assert counted > 3000


def test_every_void_result_is_none_and_every_pointer_result_has_its_type() -> None:
    abi = FACTS[max(COMPLETE)]
    seen = set()
    for struct in abi.structs.values():
        for field in struct.fields:
            if field.function is None or isinstance(field.type, Named):
                continue
            slot = getattr(getattr(ort, struct.name), field.name)
            returns = str(field.function.returns)
            found = (
                _types.result_type(slot.signature.result)
                if slot.signature.result != "status"
                else "status"
            )
            if slot.signature.result == "void":
                assert found is None
            elif slot.signature.result[0] == "*":
                pointed = slot.signature.result[1:]
                assert found is POINTER(getattr(ort, pointed)) and f"'{pointed}'" in returns
                seen.add(pointed)
            elif slot.signature.result == "text":
                assert found is ctypes.c_char_p and "'char'" in returns
    assert {"OrtApi", "OrtEpApi", "OrtInteropApi", "OrtKeyValuePairs", "OrtStatus"} <= seen


# What other generators get wrong


def test_an_enumerator_with_the_sign_bit_is_negative() -> None:
    reason = ort.OrtDeviceEpIncompatibilityReason.OrtDeviceEpIncompatibility_UNKNOWN
    assert int(reason) == -2147483648
    assert ort.OrtDeviceEpIncompatibilityReason(0x80000000) is reason
    both = (
        reason | ort.OrtDeviceEpIncompatibilityReason.OrtDeviceEpIncompatibility_DRIVER_INCOMPATIBLE
    )
    assert int(both) == -2147483647 and reason in both and both & reason == reason
    assert type(both) is type(reason) and int(~both) == 2147483646


@pytest.mark.parametrize("release", COMPLETE)
def test_enumerators_have_the_recorded_values(release: int) -> None:
    for enum in FACTS[release].enums.values():
        members = getattr(ort, enum.name).__members__
        for constant in enum.constants:
            assert int(members[constant.name]) == constant.value, constant.name


def test_error_codes_are_whole_and_each_has_its_exception() -> None:
    codes = FACTS[max(COMPLETE)].enums["OrtErrorCode"].constants
    assert len(codes) == len(ort.OrtErrorCode) == 16
    for code in codes[1:]:
        error = getattr(ort, error_class(code.name))
        assert issubclass(error, ort.OrtError) and error.code is ort.OrtErrorCode[code.name]
    assert not hasattr(ort, "OrtOkError")


def test_ort_ep_and_its_api_are_whole() -> None:
    newest = FACTS[max(COMPLETE)]
    for name in ("OrtEp", "OrtEpApi", "OrtEpFactory"):
        assert len(getattr(ort, name)._fields_) == len(newest.structs[name].fields)


def test_texts_to_be_freed_stay_addresses_and_borrowed_ones_are_bytes() -> None:
    owned = ort.OrtApi.SessionGetInputName.signature
    assert owned.params[-1] == "**char"
    assert _types.parameter_type("**char") is POINTER(POINTER(ctypes.c_char))
    assert ort.OrtApi.KernelInfo_GetInputName.signature.params[-2] == "*char"
    assert ort.OrtApi.GetErrorMessage.signature.result == "text"
    variable = POINTER(ctypes.c_char)()
    assert not isinstance(variable, bytes) and not variable


def test_a_union_is_a_union() -> None:
    kind = ort.OrtResourceCount_value
    assert (
        issubclass(kind, ctypes.Union)
        and kind.total_bytes.offset == kind.reserved_words.offset == 0
    )
    count = ort.OrtResourceCount()
    count.value.total_bytes = 1 << 40
    assert count.value.reserved_words[0] == 1 << 40
    assert ctypes.sizeof(count) == 56


def test_results_above_four_gigabytes_are_whole(host: fake.FakeHost) -> None:
    library = host.load()
    address = 0x7FFF_1234_5678_9ABC
    kept = ort.OrtApi.SyncStream_GetHandle.callback(lambda *_: address)
    place = ctypes.addressof(host.tables["OrtApi"]) + ort.OrtApi.SyncStream_GetHandle.offset
    c_void_p.from_address(place).value = ctypes.cast(kept, c_void_p).value
    assert library.api.SyncStream_GetHandle(handle(ort.OrtSyncStream)) == address
    pointer = ort.OrtApi.EpDevice_Device.callback(lambda *_: address)
    place = ctypes.addressof(host.tables["OrtApi"]) + ort.OrtApi.EpDevice_Device.offset
    c_void_p.from_address(place).value = ctypes.cast(pointer, c_void_p).value
    found = library.api.EpDevice_Device(handle(ort.OrtEpDevice))
    assert isinstance(found, POINTER(ort.OrtHardwareDevice))
    assert found.contents.address == address and isinstance(found.contents, ort.OrtHardwareDevice)


# Types that cannot be mixed up


def test_a_handle_of_another_type_is_refused_before_the_call(host: fake.FakeHost) -> None:
    interop = host.load().interop_api
    memory = POINTER(ort.OrtExternalMemoryHandle)()
    semaphore = POINTER(ort.OrtExternalSemaphoreHandle)()
    host.called.clear()
    for wrong in (semaphore, ort.OrtExternalSemaphoreHandle(), c_void_p(4096), 4096, b"x"):
        with pytest.raises(ctypes.ArgumentError, match="OrtExternalMemoryHandle"):
            interop.ReleaseExternalMemoryHandle(wrong)
    with pytest.raises(ctypes.ArgumentError, match="OrtExternalSemaphoreHandle"):
        interop.ReleaseExternalSemaphoreHandle(memory)
    assert host.called == []
    interop.ReleaseExternalMemoryHandle(memory)
    interop.ReleaseExternalMemoryHandle(None)
    assert host.called == ["OrtInteropApi.ReleaseExternalMemoryHandle"] * 2


def test_too_many_arguments_are_refused_before_the_call(host: fake.FakeHost) -> None:
    """For functions of the C convention ctypes would take them, as for variadic ones."""
    release = host.load().interop_api.ReleaseExternalResourceImporter
    importer = handle(ort.OrtExternalResourceImporter)
    host.called.clear()
    for wrong in ((), (importer, None), (importer, 1, 2)):
        with pytest.raises(TypeError, match="takes 1 argument"):
            release(*wrong)
    assert host.called == []


def test_an_enumerator_of_another_type_is_refused_before_the_call(host: fake.FakeHost) -> None:
    interop = host.load().interop_api
    importer, answer = handle(ort.OrtExternalResourceImporter), ctypes.c_bool()
    memory = ort.OrtExternalMemoryHandleType.ORT_EXTERNAL_MEMORY_HANDLE_TYPE_D3D12_HEAP
    semaphore = ort.OrtExternalSemaphoreType.ORT_EXTERNAL_SEMAPHORE_VK_TIMELINE_SEMAPHORE_WIN32
    assert int(memory) == int(semaphore)
    host.called.clear()
    for wrong in (semaphore, 1, True, None, 1.0, "1"):
        with pytest.raises(ctypes.ArgumentError, match="OrtExternalMemoryHandleType"):
            interop.CanImportMemory(importer, wrong, answer)
    with pytest.raises(ctypes.ArgumentError, match="OrtExternalSemaphoreType"):
        interop.CanImportSemaphore(importer, memory, answer)
    assert host.called == []
    interop.CanImportMemory(importer, memory, answer)
    interop.CanImportMemory(importer, ort.OrtExternalMemoryHandleType(99), answer)
    assert host.called == ["OrtInteropApi.CanImportMemory"] * 2


def test_a_field_takes_only_its_own_enumeration() -> None:
    descriptor = ort.OrtExternalSemaphoreDescriptor()
    descriptor.type = (
        ort.OrtExternalSemaphoreType.ORT_EXTERNAL_SEMAPHORE_VK_TIMELINE_SEMAPHORE_OPAQUE_FD
    )
    assert descriptor.type is ort.OrtExternalSemaphoreType(2)
    for wrong in (ort.OrtExternalMemoryHandleType(2), 2):
        with pytest.raises(TypeError, match="OrtExternalSemaphoreType"):
            descriptor.type = wrong
        with pytest.raises(TypeError, match="OrtExternalSemaphoreType"):
            ort.OrtExternalSemaphoreDescriptor(type=wrong)
    memory = ort.OrtExternalMemoryHandle()
    with pytest.raises(TypeError):
        memory.ep_device = POINTER(ort.OrtMemoryInfo)()


def test_a_handle_cannot_be_made_and_compares_by_what_it_stands_for() -> None:
    with pytest.raises(TypeError, match="made by ONNX Runtime"):
        ort.OrtEnv()
    first, same, other = (handle(ort.OrtEnv, at) for at in (64, 64, 128))
    assert first == same and first != other and len({first, same, other}) == 2
    assert first != handle(ort.OrtSession, 64)
    with pytest.raises(ValueError):
        POINTER(ort.OrtEnv)().contents  # noqa: B018


def test_an_unknown_value_makes_a_nameless_member() -> None:
    member = ort.OrtErrorCode(77)
    assert member == 77 and isinstance(member, ort.OrtErrorCode) and member is ort.OrtErrorCode(77)
    assert member not in list(ort.OrtErrorCode)
    with pytest.raises(ValueError):
        ort.OrtErrorCode(1 << 31)


def test_old_names_of_constants_are_aliases() -> None:
    kinds = ort.OrtExternalMemoryHandleType
    old = kinds["ORT_EXTERNAL_MEMORY_HANDLE_TYPE_VK_MEMORY_OPAQUE_FD"]
    assert old is kinds.ORT_EXTERNAL_MEMORY_HANDLE_TYPE_MEMORY_OPAQUE_FD
    assert len(kinds) == 5


# Slots


def test_a_call_that_succeeds_runs_no_python(host: fake.FakeHost) -> None:
    """The status check, the handles and the enumeration are handled in C."""
    library = host.load()
    slot = ort.OrtApi.SetSessionGraphOptimizationLevel
    # In place of a function of ONNX Runtime stands abs(), in C, which makes a null status of zero.
    place = ctypes.addressof(host.tables["OrtApi"]) + slot.offset
    c_void_p.from_address(place).value = ctypes.cast(ctypes.CDLL(None).abs, c_void_p).value
    options, level = handle(ort.OrtSessionOptions, 1 << 40), ort.GraphOptimizationLevel(0)
    api = library.api
    api.SetSessionGraphOptimizationLevel(options, level)
    events: list[str] = []
    sys.setprofile(lambda frame, event, arg: events.append(event))
    try:
        api.SetSessionGraphOptimizationLevel(options, level)
    finally:
        sys.setprofile(None)
    assert "call" not in events


def test_tables_are_read_only_and_tell_about_their_slots(host: fake.FakeHost) -> None:
    library = host.load()
    with pytest.raises(AttributeError, match="read-only"):
        library.api.CreateEnv = None
    with pytest.raises(AttributeError):
        library.api.NoSuchSlot  # noqa: B018
    slot = ort.OrtInteropApi.ImportMemory
    assert (slot.name, slot.since, slot.offset) == ("ImportMemory", 24, 24)
    text = library.interop_api.ImportMemory.__doc__
    assert text == slot.documentation
    for part in ("Since ONNX Runtime 1.24", "out_handle", "OrtNotImplementedError"):
        assert part in text


def test_a_table_that_is_not_bound_says_so() -> None:
    allocator = ort.OrtAllocator()
    with pytest.raises(TypeError, match="bind"):
        allocator.Alloc  # noqa: B018


def test_a_slot_newer_than_the_struct_that_someone_filled_is_not_read(host: fake.FakeHost) -> None:
    library = host.load()
    allocator = library.bind(ort.OrtAllocator())
    newest = max(ort.OrtAllocator._field_since_, key=ort.OrtAllocator._field_since_.__getitem__)
    since = ort.OrtAllocator._field_since_[newest]
    allocator.version = since - 1
    ctypes.memset(ctypes.addressof(allocator) + 8, 0xFF, ctypes.sizeof(allocator) - 8)
    with pytest.raises(ort.NotSupportedByHost, match=f"filled for API version {since - 1}"):
        getattr(allocator, newest)
    allocator.version = since
    assert getattr(allocator, newest)


def test_an_empty_slot_is_an_error_and_not_a_crash(host: fake.FakeHost) -> None:
    library = host.load()
    allocator = library.bind(ort.OrtAllocator(version=1))
    with pytest.raises(ort.NotSupportedByHost, match=r"OrtAllocator\.Alloc .*empty"):
        allocator.Alloc  # noqa: B018


def test_functions_tell_their_names(host: fake.FakeHost) -> None:
    assert host.load().api.CreateEnv.__name__ == "OrtApi.CreateEnv"
    shown = pydoc.plain(pydoc.render_doc(host.load().interop_api.CanImportMemory))
    assert "Since ONNX Runtime 1.24." in shown and "OrtInvalidArgumentError" in shown


def test_types_are_made_once_even_by_many_threads() -> None:
    done = python(
        "import sys, threading\nimport ort_interop\nfrom ort_interop import _abi\n"
        "sys.setswitchinterval(1e-6)\nfound = [[] for _ in range(8)]\n"
        "start = threading.Barrier(8)\n"
        "def work(mine):\n"
        "    start.wait()\n"
        "    for name in (*_abi.STRUCTS, *_abi.ENUMS, *_abi.OPAQUE):\n"
        "        mine.append(getattr(ort_interop, name))\n"
        "threads = [threading.Thread(target=work, args=(mine,)) for mine in found]\n"
        "[t.start() for t in threads]\n[t.join() for t in threads]\n"
        "print(all(mine == found[0] for mine in found), len(found[0]))\n"
    )
    expected = len(_abi.STRUCTS) + len(_abi.ENUMS) + len(_abi.OPAQUE)
    assert done.stdout == f"True {expected}\n" and done.stderr == ""


@pytest.mark.parametrize(
    "error",
    [
        ort.OrtFailError("broken", "OrtApi.Run"),
        ort.OrtError("broken", "OrtApi.Run", ort.OrtErrorCode(77)),
        ort.NotSupportedByHost("OrtApi.X", 30, 24, "1.24.1", "/lib", "why"),
        ort.UnsupportedVersion(24, "1.23.2", "/lib", "which is older"),
        ort.LibraryNotFound("none", ("/a", "/b")),
    ],
    ids=lambda error: type(error).__name__,
)
def test_errors_survive_pickling(error: Exception) -> None:
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error) and str(again) == str(error)
    assert vars(again) == vars(error)


# Structs and callbacks made in Python


def test_an_allocator_made_in_python_is_called_with_types(host: fake.FakeHost) -> None:
    library = host.load()
    seen: list[Any] = []
    buffer = ctypes.create_string_buffer(64)
    made = library.make(
        ort.OrtAllocator,
        Alloc=lambda this, size: seen.append((this, size)) or buffer,
        Free=lambda this, p: seen.append((this, p)),
    )
    assert made.version == ort.EP_STRUCTS_VERSION
    address = made.Alloc(made, 48)
    assert address == ctypes.addressof(buffer)
    made.Free(made, address)
    assert seen[0][1] == 48 and seen[1][1] == address
    assert seen[0][0].contents.version == made.version


def test_callbacks_live_until_they_are_forgotten(host: fake.FakeHost) -> None:
    library = host.load()

    class Probe:
        def __call__(self, *_: object) -> None: ...

    probe = Probe()
    gone = weakref.ref(probe)
    logger = library.callback(ort.OrtLoggingFunction, probe)
    del probe
    gc.collect()
    assert gone() is not None
    again = ort.OrtLoggingFunction(ctypes.cast(logger, c_void_p).value)
    again(None, 2, b"", b"", b"", b"")
    library.forget(logger)
    del logger
    gc.collect()
    assert gone() is None


def test_enumerations_reach_callbacks_as_members(host: fake.FakeHost) -> None:
    seen: list[Any] = []
    logger = host.load().callback(ort.OrtLoggingFunction, lambda *args: seen.append(args[1]))
    logger(None, 2, b"", b"", b"", b"")
    assert seen == [ort.OrtLoggingLevel(2)] and isinstance(seen[0], ort.OrtLoggingLevel)


def test_an_exception_where_no_status_is_returned_is_reported(
    host: fake.FakeHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    reports: list[Any] = []
    monkeypatch.setattr(sys, "unraisablehook", reports.append)

    def fail(*_: object) -> None:
        raise RuntimeError("no memory today")

    made = host.load().make(ort.OrtAllocator, Alloc=fail)
    assert made.Alloc(made, 1) is None
    (report,) = reports
    assert str(report.exc_value) == "no memory today"
    assert "OrtAllocator.Alloc" in f"{report.object!r} {report.err_msg}"


def test_texts_that_callbacks_return_stay_valid(host: fake.FakeHost) -> None:
    factory = host.load().make(ort.OrtEpFactory, GetName=lambda this: "na" + "me")
    first = factory.GetName(factory)
    gc.collect()
    assert first == factory.GetName(factory) == b"name"


def test_a_struct_is_not_stamped_above_what_is_known(host: fake.FakeHost) -> None:
    library = host.load()
    assert library.make(ort.OrtEpFactory).ort_version_supported == ort.EP_STRUCTS_VERSION
    assert library.make(ort.OrtExternalMemoryDescriptor).version == ort.NEWEST_VERSION
    with pytest.raises(TypeError, match="no field"):
        library.make(ort.OrtEpFactory, NoSuchSlot=None)
    with pytest.raises(TypeError, match="function was expected"):
        library.make(ort.OrtEpFactory, GetName=b"name")
    with pytest.raises(TypeError, match="callback"):
        ort.OrtEpFactory().GetName = print


def test_a_struct_that_the_host_does_not_know_is_refused() -> None:
    library = fake.FakeHost(24, all_slots()).load()
    with pytest.raises(
        ort.NotSupportedByHost, match=r"OrtGraphicsInteropConfig needs ONNX Runtime 1\.25"
    ):
        library.make(ort.OrtGraphicsInteropConfig)


# Import, loading


def test_importing_brings_in_no_other_module() -> None:
    done = python(
        "import sys, ctypes\nold = set(sys.modules)\nimport ort_interop\n"
        "print(sorted(set(sys.modules) - old))"
    )
    assert done.stdout.strip() == "['ort_interop']", done.stderr


def test_every_public_name_can_be_had() -> None:
    for name in ort.__all__:  # type: ignore[attr-defined]
        assert getattr(ort, name) is getattr(ort, name), name
    assert set(ort.__all__) <= set(dir(ort))  # type: ignore[attr-defined]
    assert not hasattr(ort, "NoSuchThing") and not hasattr(ort, "_nothing")


def test_the_wheel_is_found_without_importing_it(tmp_path: Path) -> None:
    capi = tmp_path / "onnxruntime" / "capi"
    capi.mkdir(parents=True)
    (tmp_path / "onnxruntime" / "__init__.py").write_text("raise RuntimeError('imported')\n")
    for name in ("libonnxruntime.so.1.9.0", "libonnxruntime.so.1.31.1", "libonnxruntime_x.so"):
        (capi / name).touch()
    code = "import ort_interop\nprint(ort_interop.find_library())"
    done = python(code, PYTHONPATH=f"{PACKAGE}:{tmp_path}")
    assert done.stdout.strip() == str(capi / "libonnxruntime.so.1.31.1"), done.stderr
    for given in (tmp_path, tmp_path / "onnxruntime", capi):
        done = python(code, ORT_INTEROP_LIBRARY=str(given), PYTHONPATH=str(PACKAGE))
        assert done.stdout.strip() == str(capi / "libonnxruntime.so.1.31.1"), done.stderr
    other = tmp_path / "other" / "libonnxruntime.so"
    other.parent.mkdir()
    other.touch()
    for given in (other, other.parent):
        done = python(code, PYTHONPATH=f"{PACKAGE}:{tmp_path}", ORT_INTEROP_LIBRARY=str(given))
        assert done.stdout.strip() == str(other), done.stderr


def test_what_cannot_be_loaded_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ORT_INTEROP_LIBRARY", raising=False)
    with pytest.raises(ort.LibraryNotFound, match="nowhere") as found:
        ort.load(tmp_path / "nowhere")
    assert found.value.searched == (str(tmp_path / "nowhere"),)
    (tmp_path / "libonnxruntime.so").write_bytes(b"not a library")
    with pytest.raises(ort.LibraryNotFound, match="cannot be loaded"):
        ort.load(tmp_path)
    monkeypatch.setenv("ORT_INTEROP_LIBRARY", str(tmp_path / "gone"))
    with pytest.raises(ort.LibraryNotFound, match="from ORT_INTEROP_LIBRARY"):
        ort.load()
    with pytest.raises(ort.LibraryNotFound, match="OrtGetApiBase"):
        ort.load(_ctypes.__file__)


@pytest.mark.parametrize("bits", [32, 64])
def test_on_windows_paths_are_wide_and_functions_stdcall(bits: int) -> None:
    done = python(
        "import ctypes, os\n"
        f"size, ctypes.sizeof = ctypes.sizeof, lambda kind: {bits // 8}\n"
        "os.name = 'nt'\nctypes._FUNCFLAG_STDCALL = 0\n"
        "from ort_interop import _types, _loading\n"
        "ctypes.sizeof = size\n"
        "assert _types.parameter_type('path') is ctypes.c_wchar_p\n"
        "assert _types._WORDS['path_char'] is ctypes.c_wchar\n"
        "assert _types.get('OrtLoggingFunction')._flags_ == 0\n"
        "worker = _types.get('OrtThreadWorkerFn')\n"
        "print(_loading.ortchar('a'), worker._flags_ == ctypes._FUNCFLAG_CDECL)"
    )
    # The two conventions differ on 32-bit Windows alone.
    assert done.stdout.split() == ["a", str(bits == 32)], done.stderr


# The rendered text


def test_the_package_in_the_tree_is_what_the_spec_renders(model: Model) -> None:
    for output in Python().render(model, TargetEnv(ROOT / "templates" / "python")):
        assert (GENERATED / output.path).read_text() == output.text, output.path


def test_the_rendered_text_needs_no_formatting_and_no_linting() -> None:
    folders = [str(PACKAGE / "ort_interop"), str(GENERATED / "tests")]
    config = ["--config", str(ROOT / "pyproject.toml")]
    for command in (
        [need_tool("black"), "--check", "--diff", *config],
        [need_tool("ruff"), "check", "--no-cache", *config, "--config", "extend-exclude=[]"],
    ):
        done = subprocess.run([*command, *folders], capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr


def mypy(cache: Path, *files: Path) -> subprocess.CompletedProcess[str]:
    """A strict run that sees the package as a user's would."""
    command = [need_tool("mypy"), "--strict", "--config-file=", f"--cache-dir={cache}"]
    return subprocess.run(
        [*command, *map(str, files)],
        capture_output=True,
        text=True,
        env={"MYPYPATH": f"{PACKAGE}:{GENERATED / 'tests'}", "PATH": "/usr/bin:/bin"},
    )


@pytest.fixture(scope="module")
def mypy_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("mypy")


def test_the_package_and_a_users_program_pass_strict_type_checks(mypy_cache: Path) -> None:
    done = mypy(mypy_cache, SAMPLE, PACKAGE / "ort_interop", *(GENERATED / "tests").glob("*.py"))
    assert done.returncode == 0, done.stdout + done.stderr


def test_type_checkers_see_a_mix_up(tmp_path: Path, mypy_cache: Path) -> None:
    program = tmp_path / "mixed.py"
    program.write_text(
        "import ctypes\nimport ort_interop as ort\n"
        "lib = ort.load()\nanswer = ctypes.c_bool()\n"
        "importer = ctypes.POINTER(ort.OrtExternalResourceImporter)()\n"
        "fence = ort.OrtExternalSemaphoreType.ORT_EXTERNAL_SEMAPHORE_D3D12_FENCE\n"
        "lib.interop_api.CanImportMemory(importer, fence, answer)\n"
        "lib.interop_api.ReleaseExternalMemoryHandle(ctypes.POINTER(ort.OrtExternalSemaphoreHandle)())\n"
    )
    done = mypy(mypy_cache, program)
    assert done.returncode == 1
    assert [line.split(":")[1] for line in done.stdout.splitlines() if ": error:" in line] == [
        "7",
        "8",
    ]


def test_pyright_finds_nothing_but_what_is_wrong(tmp_path: Path) -> None:
    pyright = need_tool("pyright")
    shutil.copytree(PACKAGE / "ort_interop", tmp_path / "ort_interop")
    shutil.copy(SAMPLE, tmp_path / "sample.py")
    (tmp_path / "wrong.py").write_text(
        "import ctypes\n\nimport ort_interop as ort\n\n"
        "ort.load().api.ReleaseEnv(ctypes.POINTER(ort.OrtSession)())\n"
    )
    config = {"include": ["."], "strict": ["sample.py"], "pythonVersion": "3.10"}
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(config))
    command = [pyright, "--outputjson", "-p", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True)
    if not done.stdout.startswith("{"):
        missing(f"pyright does not run: {(done.stdout + done.stderr).strip()[-200:]}")
    found = json.loads(done.stdout)
    assert found["summary"]["filesAnalyzed"] > 10
    errors = [(Path(e["file"]).name, e["message"]) for e in found["generalDiagnostics"]]
    assert [file for file, _ in errors] == ["wrong.py"], errors


def test_text_of_the_spec_cannot_break_the_python(model: Model, tmp_path: Path) -> None:
    nasty = 'ends """ and \\ and \\" and {{ x }} \N{SNOWMAN} \x07 */ '
    name = "OrtInteropApi.ImportMemory"
    meaning = model.semantics[name]
    kept = dict(model.docs)
    model.semantics[name] = replace(meaning, doc=nasty)
    model.docs["OrtEnv"] = nasty
    try:
        outputs = list(Python().render(model, TargetEnv(ROOT / "templates" / "python")))
        texts = {o.path.rpartition("/")[2]: o.text for o in outputs}
        for file in ("_docs.py", "__init__.pyi"):
            compile(texts[file], file, "exec")
        space: dict[str, Any] = {}
        exec(texts["_docs.py"], space)
        assert 'ends """ and \\ and \\" and {{ x }} \N{SNOWMAN} \x07 */' in space["DOCS"][name]
    finally:
        model.semantics[name] = meaning
        model.docs.clear()
        model.docs.update(kept)


def test_a_type_without_a_ctypes_form_is_an_error(model: Model) -> None:
    described = Description(model)
    with pytest.raises(RenderErrors, match="ctypes form"):
        described.word(parse_type("int ()"), "OrtApi.Broken")
