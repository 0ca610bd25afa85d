"""ONNX Runtime's external resource interop as Python objects.

::

    from ort_interop.runtime import Runtime

    with Runtime.load() as runtime, runtime.register_library("/path/to/ep.so") as library:
        (device,) = library.devices
        importer = device.importer()  # None where the EP imports nothing
        with (
            importer,
            importer.import_memory(memory_fd, 8192) as memory,  # the descriptor stays yours
            importer.import_semaphore(fence_fd) as semaphore,
            memory.tensor((4, 16), "float32") as x,
            memory.tensor((4, 16), "float32", offset=4096) as y,
            device.stream() as stream,
            runtime.session("model.onnx", device) as session,
        ):
            semaphore.wait(stream, 1)
            session.run({"input": x}, {"output": y}, stream=stream, synchronize=False)
            semaphore.signal(stream, 2)
            semaphore.wait_on_host(2)  # or: await semaphore.reached(2)

Objects keep alive what they depend on, and are released in an order that ONNX Runtime survives,
whoever closes or collects them first.  What ONNX Runtime would crash on, block in or ignore raises
a :class:`MisuseError` instead.  The rules come from the spec (``_semantics``).
"""

from ._allocator import Allocator, MemorySource
from ._device import Device, GraphicsInterop, HostAccess, MemoryInfo, TransferPath
from ._errors import (
    AllocationError,
    ClosedError,
    DescriptorError,
    InUseError,
    MisuseError,
    NoHostAccessError,
    StreamError,
    WouldBlockError,
    WrongDeviceError,
)
from ._interop import Importer, Memory, Semaphore, Stream, StreamSemaphore
from ._observer import Observer
from ._runtime import EpLibrary, Logger, Runtime
from ._session import BoundRun, Frame, IoBinding, NodeInfo, PreparedRun, Session, ValueInfo
from ._tensor import Tensor

__all__ = [
    "AllocationError",
    "Allocator",
    "BoundRun",
    "ClosedError",
    "DescriptorError",
    "Device",
    "EpLibrary",
    "Frame",
    "GraphicsInterop",
    "HostAccess",
    "Importer",
    "InUseError",
    "IoBinding",
    "Logger",
    "Memory",
    "MemoryInfo",
    "MemorySource",
    "MisuseError",
    "NoHostAccessError",
    "NodeInfo",
    "Observer",
    "PreparedRun",
    "Runtime",
    "Semaphore",
    "Session",
    "Stream",
    "StreamError",
    "StreamSemaphore",
    "Tensor",
    "TransferPath",
    "ValueInfo",
    "WouldBlockError",
    "WrongDeviceError",
]
