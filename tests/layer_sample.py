"""What a user of the Python layer writes, for type checkers."""

from __future__ import annotations

import ort_interop as ort
from ort_interop.runtime import (
    AllocationError,
    Allocator,
    Device,
    HostAccess,
    InUseError,
    Runtime,
    Session,
    Stream,
    Tensor,
    TransferPath,
)


def pick(runtime: Runtime, luid: int) -> Device | None:
    for device in runtime.devices():
        if device.luid == luid and device.importer() is not None:
            return device
    return None


class Pool:
    def allocate(self, size: int, alignment: int) -> bytearray:
        return bytearray(size + alignment)

    def free(self, block: bytearray) -> None:
        block.clear()


def shared(runtime: Runtime, device: Device) -> Session:
    allocator: Allocator = runtime.allocator(Pool(), alignment=128)
    allocator.register()
    sizes: list[int] = list(allocator.blocks.values())
    tensor: Tensor = allocator.adopt(bytearray(4096), (4,), "float32")
    print(sizes, tensor.shape, runtime.allocator(Pool(), device).tensor((4,), "int8").nbytes)
    try:
        return runtime.session("model.onnx", env_allocators=True)
    except AllocationError as error:
        raise error.failures[0] from None


def process(session: Session, stream: Stream, x: Tensor, y: Tensor) -> dict[str, Tensor]:
    access: HostAccess = y.host_access()
    if access.path is TransferPath.NONE:
        print(access.reason, access.facts)
    return session.run({"input": x}, {"output": y}, stream=stream, synchronize=False)


async def main(fd: int, fence: int, size: int) -> None:
    with Runtime.load(api_version=24) as runtime, runtime.register_library("ep.so") as library:
        device = library.devices[0]
        importer = device.importer()
        if importer is None:
            return
        kind = ort.OrtExternalMemoryHandleType.ORT_EXTERNAL_MEMORY_HANDLE_TYPE_MEMORY_OPAQUE_FD
        supported: bool = importer.can_import_memory(kind)
        memory = importer.import_memory(fd, size, kind, offset=0)
        semaphore = importer.import_semaphore(fence)
        x = memory.tensor((4, 16), "float32")
        y = memory.tensor((4, 16), "float32", 4096)
        stream = device.stream()
        session = runtime.session("model.onnx", device, config={"key": "value"}, threads=1)
        semaphore.wait(stream, 1)
        outputs = process(session, stream, x, y)
        semaphore.signal(stream, 2)
        await semaphore.reached(2)
        print(supported, outputs["output"].shape, device.uuid, runtime.api_version)
        with session.frame(
            {"input": x}, {"output": y}, stream=stream, wait=semaphore, signal=semaphore
        ) as frame:
            frame(2, 3)
        paired = semaphore.on(stream)
        paired.wait(3)
        paired.signal(4)
        binding = session.io_binding()
        binding.bind_input("input", x)
        binding.bind_output("output", device)
        binding.run(stream=stream)
        try:
            library.unregister()
        except InUseError as error:
            users: tuple[str, ...] = error.users
            print(users)
