"""Run a model on memory of Vulkan's own, without copying it to the EP and back (64-bit Linux).

Uses the Python layer, the generated vulkan EP and ``libvulkan.so.1``::

    python examples/vulkan_to_ep.py path/to/the/vulkan/ep.so

Vulkan allocates a buffer on the device that has the EP device's UUID and exports it by file
descriptor.  The layer imports that, and the model reads and writes the buffer, which Vulkan's own
mapping shows.  Mesa's lavapipe serves as the device where there is no GPU; it cannot import a
timeline semaphore by descriptor, so that the end of the work is a synchronous run's.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import struct
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from ctypes import POINTER, byref, c_char_p, c_int32, c_uint32, c_uint64, c_void_p
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar
from uuid import UUID

sys.path[:0] = [str(Path(__file__).resolve().parent.parent / "generated" / "python")]

import ort_interop as ort
from identity_model import identity_model
from ort_interop import OrtInteropError
from ort_interop.runtime import Runtime

SHAPE = (64, 64)
BYTES = 4 * 64 * 64
FRAMES = 4
TIMELINE = ort.OrtExternalSemaphoreType.ORT_EXTERNAL_SEMAPHORE_VK_TIMELINE_SEMAPHORE_OPAQUE_FD

API_VERSION_1_1 = 1 << 22 | 1 << 12
OPAQUE_FD = 1
TRANSFER_SRC_AND_DST = 3
VISIBLE_AND_COHERENT = 2 | 4
WHOLE_SIZE = 2**64 - 1


class VulkanError(Exception):
    """A call of Vulkan's failed, or the device lacks what the example needs."""


class _Chained(ctypes.Structure):
    """What Vulkan's extensible structs begin with."""

    s_type: ClassVar[int]
    _fields_ = [("sType", c_uint32), ("pNext", c_void_p)]

    def __init__(self, following: ctypes.Structure | None = None, **fields: Any) -> None:
        address = None if following is None else ctypes.addressof(following)
        super().__init__(self.s_type, address, **fields)
        self.keep = following


def _chained(name: str, s_type: int, *fields: tuple[str, Any]) -> type[_Chained]:
    return type(name, (_Chained,), {"s_type": s_type, "_fields_": list(fields)})


ApplicationInfo = _chained(
    "VkApplicationInfo",
    0,
    ("pApplicationName", c_char_p),
    ("applicationVersion", c_uint32),
    ("pEngineName", c_char_p),
    ("engineVersion", c_uint32),
    ("apiVersion", c_uint32),
)
InstanceCreateInfo = _chained(
    "VkInstanceCreateInfo",
    1,
    ("flags", c_uint32),
    ("pApplicationInfo", POINTER(ApplicationInfo)),
    ("enabledLayerCount", c_uint32),
    ("ppEnabledLayerNames", POINTER(c_char_p)),
    ("enabledExtensionCount", c_uint32),
    ("ppEnabledExtensionNames", POINTER(c_char_p)),
)
DeviceQueueCreateInfo = _chained(
    "VkDeviceQueueCreateInfo",
    2,
    ("flags", c_uint32),
    ("queueFamilyIndex", c_uint32),
    ("queueCount", c_uint32),
    ("pQueuePriorities", POINTER(ctypes.c_float)),
)
DeviceCreateInfo = _chained(
    "VkDeviceCreateInfo",
    3,
    ("flags", c_uint32),
    ("queueCreateInfoCount", c_uint32),
    ("pQueueCreateInfos", POINTER(DeviceQueueCreateInfo)),
    ("enabledLayerCount", c_uint32),
    ("ppEnabledLayerNames", POINTER(c_char_p)),
    ("enabledExtensionCount", c_uint32),
    ("ppEnabledExtensionNames", POINTER(c_char_p)),
    ("pEnabledFeatures", c_void_p),
)
MemoryAllocateInfo = _chained(
    "VkMemoryAllocateInfo", 5, ("allocationSize", c_uint64), ("memoryTypeIndex", c_uint32)
)
BufferCreateInfo = _chained(
    "VkBufferCreateInfo",
    12,
    ("flags", c_uint32),
    ("size", c_uint64),
    ("usage", c_uint32),
    ("sharingMode", c_uint32),
    ("queueFamilyIndexCount", c_uint32),
    ("pQueueFamilyIndices", POINTER(c_uint32)),
)
# Of VkPhysicalDeviceProperties only the name is of interest; the arrays stand for the rest.
PhysicalDeviceProperties2 = _chained(
    "VkPhysicalDeviceProperties2",
    1000059001,
    ("before", c_uint32 * 5),
    ("deviceName", ctypes.c_char * 256),
    ("after", c_uint32 * 137),
)
PhysicalDeviceIDProperties = _chained(
    "VkPhysicalDeviceIDProperties",
    1000071004,
    ("deviceUUID", ctypes.c_uint8 * 16),
    ("driverUUID", ctypes.c_uint8 * 16),
    ("deviceLUID", ctypes.c_uint8 * 8),
    ("deviceNodeMask", c_uint32),
    ("deviceLUIDValid", c_uint32),
)
ExternalMemoryBufferCreateInfo = _chained(
    "VkExternalMemoryBufferCreateInfo", 1000072000, ("handleTypes", c_uint32)
)
ExportMemoryAllocateInfo = _chained(
    "VkExportMemoryAllocateInfo", 1000072002, ("handleTypes", c_uint32)
)
MemoryGetFdInfo = _chained(
    "VkMemoryGetFdInfoKHR", 1000074002, ("memory", c_uint64), ("handleType", c_uint32)
)


class MemoryRequirements(ctypes.Structure):
    _fields_ = [
        ("size", c_uint64),
        ("alignment", c_uint64),
        ("memoryTypeBits", c_uint32),
    ]


class PhysicalDeviceMemoryProperties(ctypes.Structure):
    _fields_ = [
        ("memoryTypeCount", c_uint32),
        ("memoryTypes", c_uint32 * 2 * 32),  # propertyFlags, heapIndex
        ("memoryHeapCount", c_uint32),
        ("memoryHeaps", c_uint64 * 2 * 16),
    ]


P, U32, U64 = c_void_p, c_uint32, c_uint64
# Handles of instances and devices are pointers; those of buffers and memory are 64-bit numbers.
RESULTS: dict[str, tuple[Any, ...]] = {
    "vkCreateInstance": (P, P, P),
    "vkEnumeratePhysicalDevices": (P, P, P),
    "vkCreateDevice": (P, P, P, P),
    "vkCreateBuffer": (P, P, P, P),
    "vkAllocateMemory": (P, P, P, P),
    "vkBindBufferMemory": (P, U64, U64, U64),
    "vkMapMemory": (P, U64, U64, U64, U32, P),
}
VOIDS: dict[str, tuple[Any, ...]] = {
    "vkGetPhysicalDeviceProperties2": (P, P),
    "vkGetPhysicalDeviceMemoryProperties": (P, P),
    "vkGetBufferMemoryRequirements": (P, U64, P),
    "vkDestroyInstance": (P, P),
    "vkDestroyDevice": (P, P),
    "vkDestroyBuffer": (P, U64, P),
    "vkFreeMemory": (P, U64, P),
}


def _check(result: int, function: Any, _: Any) -> None:
    if result != 0:
        raise VulkanError(f"{function.__name__} failed with VkResult {result}")


def load_vulkan() -> ctypes.CDLL:
    """Vulkan's loader; its calls raise on a result other than ``VK_SUCCESS``."""
    try:
        vk = ctypes.CDLL("libvulkan.so.1")
    except OSError as error:
        raise VulkanError(f"Vulkan's loader is not installed: {error}") from None
    for name, arguments in RESULTS.items():
        function = getattr(vk, name)
        function.argtypes, function.restype, function.errcheck = arguments, c_int32, _check
    for name, arguments in VOIDS.items():
        function = getattr(vk, name)
        function.argtypes, function.restype = arguments, None
    vk.vkGetDeviceProcAddr.argtypes, vk.vkGetDeviceProcAddr.restype = (P, c_char_p), P
    return vk


def memory_fd(vk: ctypes.CDLL, device: c_void_p, memory: c_uint64) -> int:
    """A new descriptor of memory, which the caller closes."""
    # An extension's function, which the loader does not export.
    address = vk.vkGetDeviceProcAddr(device, b"vkGetMemoryFdKHR")
    function = ctypes.CFUNCTYPE(c_int32, P, P, P)(address)
    info = MemoryGetFdInfo(memory=memory, handleType=OPAQUE_FD)
    fd = ctypes.c_int(-1)
    result = function(device, byref(info), byref(fd))
    if result != 0:
        raise VulkanError(f"vkGetMemoryFdKHR failed with VkResult {result}")
    return fd.value


@dataclass
class Exported:
    """A buffer's memory: of which device, its descriptor, its size, and Vulkan's mapping of it."""

    device: str
    fd: int
    size: int
    view: memoryview


def _physical_device(vk: ctypes.CDLL, instance: c_void_p, uuid: UUID) -> tuple[c_void_p, str]:
    count = c_uint32()
    vk.vkEnumeratePhysicalDevices(instance, byref(count), None)
    found = (c_void_p * count.value)()
    vk.vkEnumeratePhysicalDevices(instance, byref(count), found)
    for physical in found:
        identity = PhysicalDeviceIDProperties()
        properties = PhysicalDeviceProperties2(identity)
        vk.vkGetPhysicalDeviceProperties2(physical, byref(properties))
        if bytes(identity.deviceUUID) == uuid.bytes:
            return c_void_p(physical), properties.deviceName.decode()
    raise VulkanError(f"none of {len(found)} devices has the UUID {uuid}")


def _memory_type(vk: ctypes.CDLL, physical: c_void_p, allowed: int) -> int:
    properties = PhysicalDeviceMemoryProperties()
    vk.vkGetPhysicalDeviceMemoryProperties(physical, byref(properties))
    for at in range(properties.memoryTypeCount):
        flags = properties.memoryTypes[at][0]
        if allowed >> at & 1 and flags & VISIBLE_AND_COHERENT == VISIBLE_AND_COHERENT:
            return at
    raise VulkanError("no memory for such a buffer is visible to the host")


@contextmanager
def exported_buffer(uuid: UUID, size: int) -> Iterator[Exported]:
    """A buffer on the device with that UUID, exported by descriptor and mapped by its owner."""
    vk = load_vulkan()
    with ExitStack() as stack:
        instance, device, mapped = c_void_p(), c_void_p(), c_void_p()
        buffer, memory = c_uint64(), c_uint64()
        application = ApplicationInfo(apiVersion=API_VERSION_1_1)
        create = InstanceCreateInfo(pApplicationInfo=ctypes.pointer(application))
        vk.vkCreateInstance(byref(create), None, byref(instance))
        stack.callback(vk.vkDestroyInstance, instance, None)

        physical, name = _physical_device(vk, instance, uuid)
        queue = DeviceQueueCreateInfo(
            queueCount=1, pQueuePriorities=ctypes.pointer(ctypes.c_float(1.0))
        )
        create = DeviceCreateInfo(
            queueCreateInfoCount=1,
            pQueueCreateInfos=ctypes.pointer(queue),
            enabledExtensionCount=1,
            ppEnabledExtensionNames=(c_char_p * 1)(b"VK_KHR_external_memory_fd"),
        )
        vk.vkCreateDevice(physical, byref(create), None, byref(device))
        stack.callback(vk.vkDestroyDevice, device, None)

        external = ExternalMemoryBufferCreateInfo(handleTypes=OPAQUE_FD)
        create = BufferCreateInfo(external, size=size, usage=TRANSFER_SRC_AND_DST)
        vk.vkCreateBuffer(device, byref(create), None, byref(buffer))
        stack.callback(vk.vkDestroyBuffer, device, buffer, None)
        needed = MemoryRequirements()
        vk.vkGetBufferMemoryRequirements(device, buffer, byref(needed))

        export = ExportMemoryAllocateInfo(handleTypes=OPAQUE_FD)
        kind = _memory_type(vk, physical, needed.memoryTypeBits)
        create = MemoryAllocateInfo(export, allocationSize=needed.size, memoryTypeIndex=kind)
        vk.vkAllocateMemory(device, byref(create), None, byref(memory))
        stack.callback(vk.vkFreeMemory, device, memory, None)
        vk.vkBindBufferMemory(device, buffer, memory, 0)
        vk.vkMapMemory(device, memory, 0, WHOLE_SIZE, 0, byref(mapped))
        fd = memory_fd(vk, device, memory)
        stack.callback(os.close, fd)
        assert mapped.value is not None
        view = memoryview((ctypes.c_uint8 * size).from_address(mapped.value)).cast("B")
        # Released first, so that a late reader gets an error in place of unmapped memory.
        stack.callback(view.release)
        yield Exported(name, fd, needed.size, view)


@dataclass
class Report:
    """What was done, and on what."""

    version: str
    device: str
    timeline_by_fd: bool
    frames: int
    wrong: int


def frame(number: int) -> bytes:
    """The input of a frame, in which no two elements are equal."""
    return struct.pack(f"{BYTES // 4}f", *(number * BYTES + at for at in range(BYTES // 4)))


def main(library: str | None, ep_library: str) -> Report:
    """Queue a run for each frame of a buffer, wait for the last, and compare what Vulkan sees."""
    with (
        Runtime.load(library) as runtime,
        runtime.register_library(ep_library, "vulkan") as ep,
        ExitStack() as stack,
    ):
        if not ep.devices:
            raise VulkanError("the EP found no Vulkan device")
        device = ep.devices[0]
        assert device.uuid is not None, "the vulkan EP tells the UUID of every device"
        importer = device.importer()
        assert importer is not None, "the vulkan EP imports memory"
        stack.enter_context(importer)
        exported = stack.enter_context(exported_buffer(device.uuid, 2 * FRAMES * BYTES))
        memory = stack.enter_context(importer.import_memory(exported.fd, exported.size))
        tensors = [
            stack.enter_context(memory.tensor(SHAPE, "float32", at * BYTES))
            for at in range(2 * FRAMES)
        ]
        inputs, outputs = tensors[:FRAMES], tensors[FRAMES:]
        stream = stack.enter_context(device.stream())
        session = stack.enter_context(runtime.session(identity_model(SHAPE), device))

        expected = b"".join(map(frame, range(FRAMES)))
        # The mapping is coherent, so that no flush is needed; the output starts with other bytes.
        exported.view[:] = expected + b"\xff" * len(expected)
        timeline = importer.can_import_semaphore(TIMELINE)
        for at, (x, y) in enumerate(zip(inputs, outputs, strict=True)):
            # Work on a stream runs in order: the last run, which is waited for, ends the others.
            last = at == FRAMES - 1
            session.run({"input": x}, {"output": y}, stream=stream, synchronize=last)
        assert stream.pending == ()
        wrong = sum(
            exported.view[BYTES * (FRAMES + at) : BYTES * (FRAMES + at + 1)] != frame(at)
            for at in range(FRAMES)
        )
        return Report(runtime.version, exported.device, timeline, FRAMES, wrong)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("ep_library", help="the built vulkan EP")
    parser.add_argument(
        "--library", help="ONNX Runtime's library; the installed wheel's if left out"
    )
    arguments = parser.parse_args()
    try:
        print(main(arguments.library, arguments.ep_library))
    except (VulkanError, OrtInteropError) as error:
        sys.exit(f"error: {error}")
