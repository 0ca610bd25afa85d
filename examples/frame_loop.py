"""Process frames that a producer writes into shared memory, without copying them (Linux).

Uses the Python layer, the generated host EP and the ``onnxruntime`` wheel's library::

    python examples/frame_loop.py path/to/the/host/ep.so --frames 1000

The producer fills one of two slots and raises a timeline semaphore; the stream waits for it, runs
the model on the slot, and raises the semaphore again, upon which the consumer reads the result.
Nothing blocks in between, so that a slot is filled while the other is processed.
"""

from __future__ import annotations

import argparse
import asyncio
import struct
import sys
import time
from dataclasses import dataclass
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parent.parent / "generated" / "python")]

from host_exports import SharedMemory, SharedSemaphore
from identity_model import identity_model
from ort_interop.runtime import MisuseError, Runtime

SHAPE = (3, 32, 32)
BYTES = 4 * 3 * 32 * 32
SLOTS = 2


@dataclass
class Report:
    """What the loop did."""

    version: str
    frames: int
    wrong: int
    seconds: float


def offset(slot: int, part: int) -> int:
    """Where the input (part 0) or the output (part 1) of a slot starts."""
    return (2 * slot + part) * 16384


async def loop(library: str | None, ep_library: str, frames: int) -> Report:
    """Process that many frames; frame ``n`` holds the number ``n`` in every element."""
    size = offset(SLOTS, 0)
    with (
        SharedMemory(size) as exported,
        SharedSemaphore() as ready,
        SharedSemaphore() as done,
        Runtime.load(library) as runtime,
        runtime.register_library(ep_library, "host") as ep,
    ):
        (device,) = ep.devices
        importer = device.importer()
        assert importer is not None, "this EP imports nothing"
        with (
            importer,
            importer.import_memory(exported.fd, size) as memory,
            importer.import_semaphore(ready.fd) as produced,
            importer.import_semaphore(done.fd) as processed,
            device.stream() as stream,
            runtime.session(identity_model(SHAPE), device) as session,
        ):
            slots = [
                session.frame(
                    {"input": memory.tensor(SHAPE, "float32", offset(slot, 0))},
                    {"output": memory.tensor(SHAPE, "float32", offset(slot, 1))},
                    stream=stream,
                    wait=produced,
                    signal=processed,
                )
                for slot in range(SLOTS)
            ]
            wrong = 0
            start = time.perf_counter()
            for number in range(1, frames + SLOTS + 1):
                slot = number % SLOTS
                if number > SLOTS:
                    earlier = number - SLOTS
                    await processed.reached(earlier)
                    at = offset(slot, 1)
                    expected = struct.pack("f", earlier)
                    wrong += exported.view[at : at + BYTES] != expected * (BYTES // 4)
                if number <= frames:
                    slots[slot](number, number)
                    at = offset(slot, 0)
                    exported.view[at : at + BYTES] = struct.pack("f", number) * (BYTES // 4)
                    ready.signal(number)
            seconds = time.perf_counter() - start
            for frame in slots:
                frame.close()
            # The tensors live in the frames' dictionaries; they must go before their memory.
            del slots, frame
        return Report(runtime.version, frames, wrong, seconds)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("ep_library", help="the built host EP")
    parser.add_argument(
        "--library", help="ONNX Runtime's library; the installed wheel's if left out"
    )
    parser.add_argument("--frames", type=int, default=1000)
    arguments = parser.parse_args()
    try:
        print(asyncio.run(loop(arguments.library, arguments.ep_library, arguments.frames)))
    except MisuseError as error:
        sys.exit(f"error: {error}")
