"""The layer beside others in one process: the official package, and EPs from PyPI."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from layer_fixtures import host_ep_fixture, library_fixture  # noqa: F401
from layer_rig import NEWEST, RELEASE, child, minor
from support import GENERATED, ROOT, fetch_wheel, need_tool

OTHER_EPS = {
    "openvino": ("onnxruntime-ep-openvino", "1.8.1"),
    "webgpu": ("onnxruntime-ep-webgpu", "0.4.0"),
    "ggml": ("onnxruntime-ggml", "0.2.0"),
}


@pytest.fixture(scope="module")
def official() -> str:
    """The folder of the official package of the release that is tested."""
    return str(fetch_wheel("onnxruntime", RELEASE))


@pytest.fixture(scope="module")
def probe(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A library that remembers the OrtApiBase of whoever registers it."""
    out = tmp_path_factory.mktemp("probe") / "probe.so"
    command = [need_tool("gcc"), "-std=c11", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC"]
    command += [f"-I{GENERATED / 'include'}", str(ROOT / "tests" / "c" / "api_base_probe.c")]
    subprocess.run([*command, "-o", str(out)], check=True)
    return str(out)


OWN_COPIES = """
from layer_rig import *
import json, numpy
sys.path.insert(0, sys.argv[3])
import onnxruntime
made = Rig(sys.argv[1], sys.argv[2])
onnxruntime.register_execution_provider_library("theirs", sys.argv[2])
device = [d for d in onnxruntime.get_ep_devices() if d.ep_name == made.device.ep_name]
options = onnxruntime.SessionOptions()
options.add_provider_for_devices(device, {})
session = onnxruntime.InferenceSession(identity_model(SHAPE), options)
ones = numpy.ones(SHAPE, numpy.float32)
theirs = session.run(None, {"input": ones})[0]
ours = made.session.run({"input": ones})["output"].to_host()
report = {
    "right": bool((theirs == ones).all() and (ours == ones).all()),
    "our devices": len(made.runtime.devices(made.device.ep_name)),
    "their devices": len(device),
}
del session, options, device
import gc
gc.collect()
made.close()
onnxruntime.unregister_execution_provider_library("theirs")
print(json.dumps(report))
"""


def test_the_official_package_works_in_the_same_process(
    library: str, host_ep: str, official: str
) -> None:
    """Its Linux wheel has a copy of ONNX Runtime of its own, with an environment of its own."""
    done = child(OWN_COPIES, library, host_ep, official)
    assert (done.returncode, done.stderr) == (0, "")
    report = json.loads(done.stdout)
    assert report == {"right": True, "our devices": 1, "their devices": 1}


SHARED = """
from layer_rig import *
import ctypes, gc, json, numpy
sys.path.insert(0, sys.argv[3])
import onnxruntime
onnxruntime.register_execution_provider_library("probe", sys.argv[4])
base = ctypes.c_void_p.in_dll(ctypes.CDLL(sys.argv[4]), "api_base_probe_seen").value
name = "HostInteropExecutionProvider"
def theirs():
    return sum(d.ep_name == name for d in onnxruntime.get_ep_devices())
with Runtime.from_api_base(base, onnxruntime.capi.__path__[0]) as runtime:
    counts = [theirs(), len(runtime.devices(name))]
    with runtime.register_library(sys.argv[2], "ours") as ep:
        counts += [theirs(), len(ep.devices)]
        options = onnxruntime.SessionOptions()
        device = [d for d in onnxruntime.get_ep_devices() if d.ep_name == name]
        options.add_provider_for_devices(device, {})
        session = onnxruntime.InferenceSession(identity_model(SHAPE), options)
        session.run(None, {"input": numpy.ones(SHAPE, numpy.float32)})
        del session, options, device
        gc.collect()
    counts += [theirs(), len(runtime.devices(name))]
    onnxruntime.register_execution_provider_library("theirs", sys.argv[2])
    (device,) = runtime.devices(name)
    counts += [theirs(), device.library]
    with device.importer():
        pass
    onnxruntime.unregister_execution_provider_library("theirs")
    counts += [theirs(), len(runtime.devices(name))]
print(json.dumps(counts))
"""


def test_the_official_packages_environment_can_be_shared(
    library: str, host_ep: str, official: str, probe: str
) -> None:
    """A library that is registered on either side is seen by the other."""
    done = child(SHARED, library, host_ep, official, probe)
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout) == [0, 0, 1, 1, 0, 0, 1, None, 0, 0]


EPS = """
from layer_rig import *
import json, gc
report = {}
with Runtime.load(sys.argv[1]) as runtime:
    def visit(name, path):
        try:
            library = runtime.register_library(path, name)
        except ort.OrtError as error:
            report[name] = str(error)[:200]
            return None
        found = []
        for device in library.devices:
            device.hardware_metadata, device.vendor_id, repr(device.uuid), device.luid
            importer = device.importer()
            path = device.transfer_path().path.value
            found.append([device.ep_name, importer is None, path])
            if importer is not None:
                importer.close()
        report[name] = found
        return library
    arguments = dict(a.split("=", 1) for a in sys.argv[2:])
    for name, path in arguments.items():
        library = visit(name, path)
        if library is not None:
            library.unregister()
    together = [visit(name, path) for name, path in arguments.items()]
    for library in together:
        if library is not None:
            library.unregister()
    gc.collect()
print(json.dumps(report))
"""


def ep_library(name: str) -> str:
    """The EP library inside an unpacked wheel."""
    project, version = OTHER_EPS[name]
    folder = fetch_wheel(project, version)
    found = [p for p in folder.rglob("*.so*") if is_ep(p)]
    assert found, f"{project} {version} has no EP library"
    return str(found[0])


def is_ep(path: Path) -> bool:
    """Whether a library exports the entry point of EP libraries."""
    return b"CreateEpFactories\0" in path.read_bytes()


@pytest.mark.parametrize("name", [*OTHER_EPS, "all"])
def test_eps_from_pypi_register_and_go(library: str, host_ep: str, name: str) -> None:
    """Without a crash, alone and with the others: devices, an importer that is null, and an end."""
    names = [*OTHER_EPS] if name == "all" else [name]
    eps = [f"{n}={ep_library(n)}" for n in names]
    done = child(EPS, library, f"host={host_ep}", *eps, timeout=300)
    assert done.returncode == 0, done.stderr[-2000:]
    report: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    assert report["host"] == [["HostInteropExecutionProvider", False, "map"]]
    for n in names:
        told = report[n]
        if RELEASE == NEWEST or isinstance(told, list):
            assert isinstance(told, list), told
        else:
            # Built for a newer release: refused with a status.
            assert minor() < 32 and told
        for _, no_importer, _ in told if isinstance(told, list) else ():
            assert no_importer
