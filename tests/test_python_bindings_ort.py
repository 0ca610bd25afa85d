"""The generated ctypes package on released ONNX Runtime libraries."""

from __future__ import annotations

import ctypes
import gc
import subprocess
import sys
from collections.abc import Callable
from ctypes import POINTER, c_void_p, pointer
from pathlib import Path
from typing import Any

import pytest
from support import GENERATED

PACKAGE = GENERATED / "python"
sys.path.insert(0, str(PACKAGE))

import ort_interop as ort  # noqa: E402
from ort_interop import _abi  # noqa: E402

VERSIONS = ("1.24.1", "1.28.0", "1.32.0")
TOO_OLD = "1.23.2"


@pytest.fixture(scope="module", params=VERSIONS)
def library(request: pytest.FixtureRequest, ort_library: Callable[[str], Path]) -> ort.Library:
    return ort.load(ort_library(request.param))


def minor(library: ort.Library) -> int:
    return int(library.version.split(".")[1])


def make(library: ort.Library, kind: Any, slot: str, *arguments: Any) -> Any:
    """An object from a creating function whose last parameter receives it."""
    made = POINTER(kind)()
    getattr(library.api, slot)(*arguments, made)
    assert made
    return made


@pytest.fixture
def options(library: ort.Library) -> Any:
    made = make(library, ort.OrtSessionOptions, "CreateSessionOptions")
    yield made
    library.api.ReleaseSessionOptions(made)


@pytest.fixture
def environment(library: ort.Library) -> Any:
    level = ort.OrtLoggingLevel.ORT_LOGGING_LEVEL_FATAL
    made = make(library, ort.OrtEnv, "CreateEnv", level, b"test")
    yield made
    library.api.ReleaseEnv(made)


def test_the_newest_version_that_both_know_is_used(library: ort.Library) -> None:
    assert library.api_version == min(minor(library), ort.NEWEST_VERSION)
    assert library.path.endswith(f"libonnxruntime.so.{library.version}")
    assert library.version in repr(library)
    assert isinstance(library.base.GetApi(24), POINTER(ort.OrtApi))
    assert library.base.GetVersionString() == library.version.encode()


@pytest.mark.parametrize("version", [*VERSIONS, TOO_OLD])
def test_loading_prints_nothing(version: str, ort_library: Callable[[str], Path]) -> None:
    code = (
        "import sys, ort_interop\n"
        "try:\n"
        "    print(ort_interop.load(sys.argv[1]).version)\n"
        "except ort_interop.UnsupportedVersion as error:\n"
        "    print(f'refused: {error.wanted} {error.host} {error.path}')\n"
    )
    path = str(ort_library(version))
    done = subprocess.run(
        [sys.executable, "-c", code, path],
        capture_output=True,
        text=True,
        env={"PYTHONPATH": str(PACKAGE)},
    )
    assert done.stderr == "" and done.returncode == 0
    expected = f"refused: 24 {TOO_OLD} {path}" if version == TOO_OLD else version
    assert done.stdout.strip() == expected


def test_a_library_that_is_too_old_is_refused_by_name(ort_library: Callable[[str], Path]) -> None:
    path = ort_library(TOO_OLD)
    with pytest.raises(ort.UnsupportedVersion) as refused:
        ort.load(path)
    for part in ("1.24", TOO_OLD, str(path)):
        assert part in str(refused.value)
    with pytest.raises(ort.UnsupportedVersion):
        ort.load(path, api_version=24)


def test_an_api_version_can_be_pinned(ort_library: Callable[[str], Path]) -> None:
    path = ort_library(VERSIONS[-1])
    library = ort.load(path, api_version=24)
    assert library.api_version == 24
    with pytest.raises(ort.NotSupportedByHost) as refused:
        library.interop_api.InitGraphicsInteropForEpDevice  # noqa: B018
    error = refused.value
    assert (error.needs, error.api_version, error.host) == (25, 24, VERSIONS[-1])
    assert "OrtInteropApi.InitGraphicsInteropForEpDevice needs ONNX Runtime 1.25" in str(error)
    for wanted in (23, ort.NEWEST_VERSION + 1, 99):
        with pytest.raises(ort.UnsupportedVersion):
            ort.load(path, api_version=wanted)


def test_every_table_is_there_and_whole(library: ort.Library) -> None:
    for table in (
        library.api,
        library.ep_api,
        library.interop_api,
        library.compile_api,
        library.model_editor_api,
    ):
        kind: Any = type(table)
        resolved = 0
        for name, since in kind._field_since_.items():
            if since <= library.api_version:
                assert getattr(table, name), name
                resolved += 1
            else:
                with pytest.raises(ort.NotSupportedByHost, match=f"{name} needs"):
                    getattr(table, name)
        assert resolved >= 11


def test_the_generated_tests_pass_on_the_library(library: ort.Library) -> None:
    tests = str(GENERATED / "tests" / "test_version_gates.py")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", "installed", tests],
        capture_output=True,
        text=True,
        env={"ORT_INTEROP_LIBRARY": library.path, "PATH": "/usr/bin:/bin"},
    )
    assert done.returncode == 0 and "1 passed" in done.stdout, done.stdout + done.stderr


def test_a_status_becomes_the_exception_of_its_code(
    library: ort.Library, environment: Any, options: Any
) -> None:
    session = POINTER(ort.OrtSession)()
    with pytest.raises(ort.OrtNoSuchfileError) as raised:
        library.api.CreateSession(environment, b"/no/such/model.onnx", options, session)
    error = raised.value
    assert error.code is ort.OrtErrorCode.ORT_NO_SUCHFILE
    assert error.function == "OrtApi.CreateSession" and "/no/such/model.onnx" in error.message
    assert not session
    with pytest.raises(ort.OrtInvalidArgumentError):
        library.interop_api.CreateExternalResourceImporterForDevice(
            None, POINTER(ort.OrtExternalResourceImporter)()
        )


def test_a_status_that_was_asked_for_is_returned(library: ort.Library) -> None:
    status = library.api.CreateStatus(ort.OrtErrorCode.ORT_EP_FAIL, "ünïcode".encode())
    assert isinstance(status, POINTER(ort.OrtStatus)) and status
    assert library.api.GetErrorCode(status) is ort.OrtErrorCode.ORT_EP_FAIL
    assert library.api.GetErrorMessage(status) == "ünïcode".encode()
    error = library.error_of(status.contents.address, "f")
    assert isinstance(error, ort.OrtEpFailError) and str(error) == "f: ünïcode"


def test_as_many_statuses_are_released_as_created(
    library: ort.Library, environment: Any, options: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every status that reaches an exception goes to ReleaseStatus, once."""
    released: list[int] = []
    release = library.api.ReleaseStatus

    def count(status: Any) -> None:
        released.append(status.address)
        release(status)

    monkeypatch.setitem(vars(library.api), "ReleaseStatus", count)
    for _ in range(20):
        with pytest.raises(ort.OrtNoSuchfileError):
            library.api.CreateSession(environment, b"/no", options, POINTER(ort.OrtSession)())
    assert len(released) == 20


def test_results_have_their_types(library: ort.Library, environment: Any) -> None:
    api = library.api
    assert isinstance(api.GetBuildInfoString(), bytes)
    pairs = POINTER(ort.OrtKeyValuePairs)()
    api.CreateKeyValuePairs(pairs)
    assert api.AddKeyValuePair(pairs, b"key", b"value") is None
    assert api.GetKeyValue(pairs, b"key") == b"value"
    assert api.GetKeyValue(pairs, b"other") is None
    keys, values = POINTER(ctypes.c_char_p)(), POINTER(ctypes.c_char_p)()
    count = ctypes.c_size_t()
    assert api.GetKeyValuePairs(pairs, keys, values, count) is None
    assert (count.value, keys[0], values[0]) == (1, b"key", b"value")
    api.ReleaseKeyValuePairs(pairs)
    devices, number = POINTER(POINTER(ort.OrtEpDevice))(), ctypes.c_size_t()
    api.GetEpDevices(environment, devices, number)
    assert number.value >= 1
    device = api.EpDevice_Device(devices[0])
    assert isinstance(device, POINTER(ort.OrtHardwareDevice))
    assert api.HardwareDevice_Type(device) is ort.OrtHardwareDeviceType.OrtHardwareDeviceType_CPU
    assert api.EpDevice_EpName(devices[0]) == b"CPUExecutionProvider"


def test_a_text_to_be_freed_keeps_its_address(library: ort.Library) -> None:
    """Names of providers are an array of texts that its own function frees."""
    api = library.api
    names, length = POINTER(POINTER(ctypes.c_char))(), ctypes.c_int()
    api.GetAvailableProviders(names, length)
    found = [ctypes.string_at(names[at]) for at in range(length.value)]
    assert found[-1] == b"CPUExecutionProvider"
    assert api.ReleaseAvailableProviders(names, length.value) is None


def test_the_cpu_device_has_no_importer(library: ort.Library, environment: Any) -> None:
    devices, number = POINTER(POINTER(ort.OrtEpDevice))(), ctypes.c_size_t()
    library.api.GetEpDevices(environment, devices, number)
    importer = POINTER(ort.OrtExternalResourceImporter)()
    library.interop_api.CreateExternalResourceImporterForDevice(devices[0], importer)
    assert not importer
    assert library.interop_api.ReleaseExternalResourceImporter(None) is None


def test_functions_that_the_library_does_not_export_are_known(library: ort.Library) -> None:
    absent = library.exports.absent
    assert "OrtSessionOptionsAppendExecutionProvider_CUDA" in absent
    assert "OrtGetApiBase" in library.exports and "OrtGetApiBase" not in absent
    assert set(absent) < set(_abi.EXPORTS) and "nothing" not in library.exports
    for name in absent:
        assert name not in library.exports
        with pytest.raises(ort.NotSupportedByHost, match="does not export"):
            getattr(library.exports, name)
    base = library.exports.OrtGetApiBase()
    assert isinstance(base, POINTER(ort.OrtApiBase))
    assert ctypes.addressof(base.contents) == ctypes.addressof(library.base)
    with pytest.raises(AttributeError):
        library.exports.nothing  # noqa: B018


class PythonAllocator:
    """An allocator in Python: what ONNX Runtime asks of it, it writes down."""

    def __init__(self, library: ort.Library, info: Any) -> None:
        self.live: dict[int, Any] = {}
        self.fail: BaseException | None = None
        self.info = info
        self.struct = library.make(
            ort.OrtAllocator, Alloc=self.alloc, Free=self.free, Info=self.tell, GetStats=self.stats
        )

    def alloc(self, this: Any, size: int) -> Any:
        buffer = ctypes.create_string_buffer(size or 1)
        self.live[ctypes.addressof(buffer)] = buffer
        return buffer

    def free(self, this: Any, address: int) -> None:
        del self.live[address]

    def tell(self, this: Any) -> Any:
        return self.info

    def stats(self, this: Any, out: Any) -> None:
        if self.fail is not None:
            raise self.fail


@pytest.fixture
def allocator(library: ort.Library) -> Any:
    info = POINTER(ort.OrtMemoryInfo)()
    library.api.CreateCpuMemoryInfo(
        ort.OrtAllocatorType.OrtDeviceAllocator, ort.OrtMemType.OrtMemTypeDefault, info
    )
    made = PythonAllocator(library, info)
    yield made
    library.forget(made.struct)
    library.api.ReleaseMemoryInfo(info)


def test_onnxruntime_uses_an_allocator_made_in_python(
    library: ort.Library, allocator: PythonAllocator
) -> None:
    gc.collect()
    shape = (ctypes.c_int64 * 2)(4, 8)
    kind = ort.ONNXTensorElementDataType.ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT
    value = POINTER(ort.OrtValue)()
    library.api.CreateTensorAsOrtValue(allocator.struct, shape, 2, kind, value)
    (buffer,) = allocator.live.values()
    assert len(buffer) >= 128
    data = c_void_p()
    library.api.GetTensorMutableData(value, data)
    start = ctypes.addressof(buffer)
    assert data.value is not None and start <= data.value < start + len(buffer)
    library.api.ReleaseValue(value)
    assert allocator.live == {}


@pytest.mark.parametrize(
    ("error", "expected", "text"),
    [
        (ValueError("odd size"), "ORT_FAIL", "OrtAllocator.GetStats: ValueError: odd size"),
        (NotImplementedError("none"), "ORT_NOT_IMPLEMENTED", "none"),
        (None, "ORT_EP_FAIL", "device lost"),
    ],
)
def test_an_exception_in_a_callback_becomes_a_status(
    library: ort.Library,
    allocator: PythonAllocator,
    error: BaseException | None,
    expected: str,
    text: str,
) -> None:
    stats = POINTER(ort.OrtKeyValuePairs)()
    library.api.AllocatorGetStats(allocator.struct, stats)
    allocator.fail = error or ort.OrtEpFailError("device lost")
    with pytest.raises(ort.OrtError) as raised:
        library.api.AllocatorGetStats(allocator.struct, stats)
    assert raised.value.code.name == expected and text in raised.value.message


def test_a_logger_in_python_is_called(library: ort.Library) -> None:
    lines: list[tuple[Any, ...]] = []
    logger = library.callback(ort.OrtLoggingFunction, lambda *told: lines.append(told))
    environment = POINTER(ort.OrtEnv)()
    library.api.CreateEnvWithCustomLogger(
        logger, None, ort.OrtLoggingLevel.ORT_LOGGING_LEVEL_VERBOSE, b"me", environment
    )
    options, session = POINTER(ort.OrtSessionOptions)(), POINTER(ort.OrtSession)()
    library.api.CreateSessionOptions(options)
    gc.collect()
    model = ctypes.create_string_buffer(b"not a model")
    with pytest.raises(ort.OrtError):
        library.api.CreateSessionFromArray(environment, model, len(model), options, session)
    library.api.ReleaseSessionOptions(options)
    library.api.ReleaseEnv(environment)
    assert lines and isinstance(lines[0][1], ort.OrtLoggingLevel) and isinstance(lines[0][5], bytes)


def test_pointers_and_what_they_point_to_are_both_taken(library: ort.Library, options: Any) -> None:
    library.api.SetIntraOpNumThreads(options, 1)
    library.api.SetIntraOpNumThreads(options.contents, 1)
    library.api.SetIntraOpNumThreads(pointer(options.contents), 1)
    level = ort.GraphOptimizationLevel.ORT_ENABLE_BASIC
    library.api.SetSessionGraphOptimizationLevel(options, level)
    library.api.SetSessionExecutionMode(options, ort.ExecutionMode.ORT_PARALLEL)


def test_a_variable_of_an_enumeration_receives_a_member(library: ort.Library) -> None:
    info, kind = POINTER(ort.OrtMemoryInfo)(), ort.c_OrtMemType()
    library.api.CreateCpuMemoryInfo(
        ort.OrtAllocatorType.OrtArenaAllocator, ort.OrtMemType.OrtMemTypeCPUInput, info
    )
    library.api.MemoryInfoGetMemType(info, kind)
    assert kind.member is ort.OrtMemType.OrtMemTypeCPUInput
    with pytest.raises(ctypes.ArgumentError):
        library.api.MemoryInfoGetMemType(info, ort.c_OrtAllocatorType())
    library.api.ReleaseMemoryInfo(info)
