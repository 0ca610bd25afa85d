"""Run a model on memory that another part of the program owns, without copying it (Linux).

Uses only the generated bindings, the generated host EP and the ``onnxruntime`` wheel's library::

    python examples/host_zero_copy.py path/to/the/host/ep.so

A memfd holds the input and the output.  A producer thread writes the input late and signals a
timeline semaphore; the EP's stream waits for it, runs, and signals the semaphore in turn.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import re
import struct
import sys
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path[:0] = [str(Path(__file__).resolve().parent.parent / "generated" / "python")]

import ort_interop as ort
from host_exports import SharedMemory, SharedSemaphore
from identity_model import identity_model

EP_NAME = b"HostInteropExecutionProvider"
SHAPE = (4, 16)
COUNT = SHAPE[0] * SHAPE[1]
BYTES = 4 * COUNT
OUTPUT_OFFSET = 4096
PRODUCER_DELAY = 0.15


COPY = re.compile(rb"\w+: (\w+): \d+ bytes from 0x(\w+) \(\w+\) to 0x(\w+)")


@dataclass(frozen=True)
class Copy:
    """A copy that the EP logged: by which kernel, or by the data transfer; from where to where."""

    what: str
    source: int
    destination: int


@dataclass
class Report:
    """What one run showed."""

    version: str
    api_version: int
    ways: list[str] = field(default_factory=list)
    run_returned_early: dict[str, bool] = field(default_factory=dict)
    """By way: ``Run`` had returned before the producer signalled."""
    output_right: dict[str, bool] = field(default_factory=dict)
    """By way: the other mapping shows the produced input in the output region."""
    kernel_in_place: dict[str, bool] = field(default_factory=dict)
    """By way: the kernel read the input tensor's own bytes and wrote the output tensor's own."""
    tensors_in_region: bool = False
    """Both tensors' addresses lie in the EP's mapping of the memfd, at the offsets asked for."""
    transfers: int = 0
    """Copies that ONNX Runtime asked the EP's data transfer for: none with zero copy."""


class Program:
    """Everything that the example makes, released in the reverse order."""

    def __init__(self, library: str | None, ep_library: str, stack: ExitStack) -> None:
        self.stack = stack
        self.lib = lib = ort.load(library)
        self.api = api = lib.api
        self.interop = lib.interop_api

        # At the verbose level the EP logs every copy that it makes; ctypes needs the callback kept.
        self.copies: list[Copy] = []
        self.logger = ort.OrtLoggingFunction(self.log)
        self.env = self.make(
            ort.OrtEnv,
            api.ReleaseEnv,
            api.CreateEnvWithCustomLogger,
            self.logger,
            None,
            ort.OrtLoggingLevel.ORT_LOGGING_LEVEL_VERBOSE,
            b"host_zero_copy",
        )
        name = b"host_zero_copy"
        path = ort.ortchar(os.path.abspath(ep_library))
        api.RegisterExecutionProviderLibrary(self.env, name, path)
        stack.callback(api.UnregisterExecutionProviderLibrary, self.env, name)
        self.device = self.find_device()

        self.importer = self.make(
            ort.OrtExternalResourceImporter,
            self.interop.ReleaseExternalResourceImporter,
            self.interop.CreateExternalResourceImporterForDevice,
            self.device,
        )
        self.stream = self.make(
            ort.OrtSyncStream,
            api.ReleaseSyncStream,
            api.CreateSyncStreamForEpDevice,
            self.device,
            None,
        )

    def log(self, _param: Any, _level: int, *texts: bytes) -> None:
        """Keep what the log says of copies; the message is the last of the texts."""
        found = COPY.match(texts[-1])
        if found:
            what, source, destination = found.groups()
            self.copies.append(Copy(what.decode(), int(source, 16), int(destination, 16)))

    def make(self, kind: Any, release: Any, create: Callable[..., Any], *args: Any) -> Any:
        """Create an object through its out-parameter and release it when the program ends."""
        pointer = ctypes.POINTER(kind)()
        create(*args, pointer)
        if not pointer:
            raise RuntimeError(f"{create.__name__} succeeded without an object")
        self.stack.callback(release, pointer.contents)
        return pointer.contents

    def find_device(self) -> ort.OrtEpDevice:
        """The EP device that the registered library offers."""
        devices = ctypes.POINTER(ctypes.POINTER(ort.OrtEpDevice))()
        count = ctypes.c_size_t()
        self.api.GetEpDevices(self.env, devices, count)
        for at in range(count.value):
            device = devices[at].contents
            if self.api.EpDevice_EpName(device) == EP_NAME:
                return device
        raise LookupError("ONNX Runtime lists no device of the host EP")

    def import_memory(self, fd: int, size: int) -> ort.OrtExternalMemoryHandle:
        """Import a whole memfd; the descriptor stays the caller's."""
        kind = ort.OrtExternalMemoryHandleType.ORT_EXTERNAL_MEMORY_HANDLE_TYPE_MEMORY_OPAQUE_FD
        supported = ctypes.c_bool()
        self.interop.CanImportMemory(self.importer, kind, supported)
        if not supported:
            raise RuntimeError("the EP does not import memory by file descriptor")
        descriptor = ort.OrtExternalMemoryDescriptor(
            version=self.lib.api_version, native_handle=fd, size_bytes=size, offset_bytes=0
        )
        descriptor.handle_type = kind
        return self.make(
            ort.OrtExternalMemoryHandle,
            self.interop.ReleaseExternalMemoryHandle,
            self.interop.ImportMemory,
            self.importer,
            descriptor,
        )

    def import_semaphore(self, fd: int) -> ort.OrtExternalSemaphoreHandle:
        """Import a timeline semaphore; the descriptor stays the caller's."""
        kind = ort.OrtExternalSemaphoreType.ORT_EXTERNAL_SEMAPHORE_VK_TIMELINE_SEMAPHORE_OPAQUE_FD
        supported = ctypes.c_bool()
        self.interop.CanImportSemaphore(self.importer, kind, supported)
        if not supported:
            raise RuntimeError("the EP does not import semaphores by file descriptor")
        descriptor = ort.OrtExternalSemaphoreDescriptor(
            version=self.lib.api_version, native_handle=fd
        )
        descriptor.type = kind
        return self.make(
            ort.OrtExternalSemaphoreHandle,
            self.interop.ReleaseExternalSemaphoreHandle,
            self.interop.ImportSemaphore,
            self.importer,
            descriptor,
        )

    def tensor(self, memory: ort.OrtExternalMemoryHandle, offset: int) -> ort.OrtValue:
        """A float tensor that views the imported memory."""
        shape = (ctypes.c_int64 * len(SHAPE))(*SHAPE)
        descriptor = ort.OrtExternalTensorDescriptor(
            version=self.lib.api_version, shape=shape, rank=len(SHAPE), offset_bytes=offset
        )
        descriptor.element_type = ort.ONNXTensorElementDataType.ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT
        return self.make(
            ort.OrtValue,
            self.api.ReleaseValue,
            self.interop.CreateTensorFromMemory,
            self.importer,
            memory,
            descriptor,
        )

    def address(self, tensor: ort.OrtValue) -> int:
        """Where a tensor's elements are."""
        data = ctypes.c_void_p()
        self.api.GetTensorMutableData(tensor, data)
        return data.value or 0

    def session(self) -> ort.OrtSession:
        """A session of an ``Identity`` model on the host EP."""
        options = self.make(
            ort.OrtSessionOptions, self.api.ReleaseSessionOptions, self.api.CreateSessionOptions
        )
        devices = (ctypes.POINTER(ort.OrtEpDevice) * 1)(ctypes.pointer(self.device))
        self.api.SessionOptionsAppendExecutionProvider_V2(
            options, self.env, devices, 1, None, None, 0
        )
        # Without a fallback to ONNX Runtime's own kernels, a session is proof that the EP runs it.
        self.api.AddSessionConfigEntry(options, b"session.disable_cpu_ep_fallback", b"1")
        model = identity_model(SHAPE)
        return self.make(
            ort.OrtSession,
            self.api.ReleaseSession,
            self.api.CreateSessionFromArray,
            self.env,
            model,
            len(model),
            options,
        )

    def run_options(self) -> ort.OrtRunOptions:
        """Options that put a run on the stream and let it return once its work is queued."""
        options = self.make(
            ort.OrtRunOptions, self.api.ReleaseRunOptions, self.api.CreateRunOptions
        )
        self.api.RunOptionsSetSyncStream(options, self.stream)
        key = b"disable_synchronize_execution_providers"
        self.api.AddRunConfigEntry(options, key, b"1")
        return options


def mapping_of(address: int) -> tuple[int, int, str]:
    """Start, end and name of the mapping of this process that an address lies in."""
    with open("/proc/self/maps", encoding="utf-8") as lines:
        for line in lines:
            fields = line.split(maxsplit=5)
            start, end = (int(part, 16) for part in fields[0].split("-"))
            if start <= address < end:
                return start, end, fields[5].strip() if len(fields) > 5 else ""
    raise LookupError(f"nothing is mapped at {address:#x}")


def run_once(
    run: Callable[[], None],
    program: Program,
    memory: SharedMemory,
    semaphore: SharedSemaphore,
    imported: ort.OrtExternalSemaphoreHandle,
    first: float,
) -> tuple[bool, bool]:
    """Queue wait, run and signal; produce the input late; return (returned early, output right)."""
    values = struct.pack(f"{COUNT}f", *(first + at for at in range(COUNT)))
    base = semaphore.value
    memory.view[OUTPUT_OFFSET : OUTPUT_OFFSET + BYTES] = bytes(BYTES)
    signalled = threading.Event()

    def produce() -> None:
        time.sleep(PRODUCER_DELAY)
        memory.view[:BYTES] = values
        signalled.set()
        semaphore.signal(base + 1)

    producer = threading.Thread(target=produce)
    producer.start()
    program.interop.WaitSemaphore(program.importer, imported, program.stream, base + 1)
    run()
    early = not signalled.is_set()
    program.interop.SignalSemaphore(program.importer, imported, program.stream, base + 2)
    semaphore.wait(base + 2)
    producer.join()
    return early, memory.view[OUTPUT_OFFSET : OUTPUT_OFFSET + BYTES] == values


def main(library: str | None, ep_library: str) -> Report:
    """Run the example on an ONNX Runtime library (the installed wheel's without a path)."""
    with ExitStack() as stack:
        memory = stack.enter_context(SharedMemory(2 * OUTPUT_OFFSET))
        semaphore = stack.enter_context(SharedSemaphore())
        program = Program(library, ep_library, stack)
        api = program.api
        report = Report(program.lib.version, program.lib.api_version)

        imported = program.import_semaphore(semaphore.fd)
        session = program.session()
        options = program.run_options()
        region = program.import_memory(memory.fd, 2 * OUTPUT_OFFSET)
        input_tensor = program.tensor(region, 0)
        output_tensor = program.tensor(region, OUTPUT_OFFSET)

        address = program.address(input_tensor)
        start, end, name = mapping_of(address)
        report.tensors_in_region = (
            "ort-interop-memory" in name
            and address == start
            and program.address(output_tensor) == start + OUTPUT_OFFSET
            and end - start == 2 * OUTPUT_OFFSET
        )

        names = (ctypes.c_char_p * 1)(b"input"), (ctypes.c_char_p * 1)(b"output")
        pointer = ctypes.POINTER(ort.OrtValue)
        inputs = (pointer * 1)(ctypes.pointer(input_tensor))
        outputs = (pointer * 1)(ctypes.pointer(output_tensor))

        binding = program.make(ort.OrtIoBinding, api.ReleaseIoBinding, api.CreateIoBinding, session)
        api.BindInput(binding, b"input", input_tensor)
        api.BindOutput(binding, b"output", output_tensor)

        ways: dict[str, Callable[[], None]] = {
            "Run": lambda: api.Run(session, options, names[0], inputs, 1, names[1], 1, outputs),
            "IoBinding": lambda: api.RunWithBinding(session, options, binding),
        }
        for at, (way, run) in enumerate(ways.items()):
            program.copies.clear()
            early, right = run_once(run, program, memory, semaphore, imported, 100.0 * (at + 1))
            made = Copy("Identity", address, address + OUTPUT_OFFSET)
            report.kernel_in_place[way] = program.copies == [made]
            report.transfers += sum(copy.what == "transfer" for copy in program.copies)
            report.ways.append(way)
            report.run_returned_early[way] = early
            report.output_right[way] = right
        return report


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("ep_library", help="the built host EP")
    parser.add_argument(
        "--library", help="ONNX Runtime's library; the installed wheel's if left out"
    )
    arguments = parser.parse_args()
    try:
        print(main(arguments.library, arguments.ep_library))
    except ort.OrtInteropError as error:
        sys.exit(f"error: {error}")
