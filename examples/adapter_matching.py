"""Find the EP device that is the adapter of a graphics API, and say what it can import.

    python examples/adapter_matching.py path/to/ep.so --uuid 01234567-89ab-cdef-0123-456789abcdef
    python examples/adapter_matching.py path/to/ep.so --luid 54321

A device's place in a list says nothing: with two GPUs the graphics API may use the other one.  Vulkan
tells the UUID in ``VkPhysicalDeviceIDProperties``, Direct3D 12 the LUID in ``GetAdapterLuid()``.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from uuid import UUID

sys.path[:0] = [str(Path(__file__).resolve().parent.parent / "generated" / "python")]

import ort_interop as ort
from ort_interop.runtime import Device, Runtime


def describe(device: Device) -> str:
    """A device, its identities, its transfer path and what it imports, in a line."""
    kinds: list[str] = []
    with_importer = device.importer()
    if with_importer is not None:
        with with_importer as importer:
            kinds += (
                kind.name.removeprefix("ORT_EXTERNAL_MEMORY_HANDLE_TYPE_")
                for kind in ort.OrtExternalMemoryHandleType
                if importer.can_import_memory(kind)
            )
            kinds += (
                kind.name.removeprefix("ORT_EXTERNAL_SEMAPHORE_")
                for kind in ort.OrtExternalSemaphoreType
                if importer.can_import_semaphore(kind)
            )
    imports = ", ".join(dict.fromkeys(kinds)) or "nothing"
    return (
        f"{device.ep_name} (LUID {device.luid}, UUID {device.uuid}): the host reads it by "
        f"'{device.transfer_path().path.value}'; imports {imports}"
    )


def main(library: str | None, ep_library: str, luid: int | None, uuid: UUID | None) -> list[str]:
    """Describe the matching device, or every device if nothing is asked for."""
    with Runtime.load(library) as runtime, runtime.register_library(ep_library, "ep"):
        if luid is None and uuid is None:
            return [describe(device) for device in runtime.devices()]
        return [describe(runtime.device(luid=luid, uuid=uuid))]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("ep_library", help="an EP library")
    parser.add_argument(
        "--library", help="ONNX Runtime's library; the installed wheel's if left out"
    )
    parser.add_argument("--luid", type=int, help="the adapter's LUID")
    parser.add_argument("--uuid", type=UUID, help="the adapter's UUID")
    given = parser.parse_args()
    try:
        print("\n".join(main(given.library, given.ep_library, given.luid, given.uuid)))
    except LookupError as error:
        sys.exit(f"error: {error}")
