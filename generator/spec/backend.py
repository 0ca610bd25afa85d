"""What a backend's YAML may say: identity, handle types and driver calls.

One schema serves every backend: ``host`` needs no driver library, the GPU backends name theirs.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from .schema import Declaration, Identifier, Node, Release, Text, TypeText

Platform = Literal["linux", "windows"]


class EpIdentity(Node):
    """How the EP introduces itself to ORT."""

    name: Identifier
    vendor: Text
    vendor_id: Annotated[int, Field(ge=0, le=0xFFFFFFFF)]
    device_type: Literal["CPU", "GPU", "NPU"]
    """The ``OrtHardwareDeviceType`` of the device that the EP offers."""
    memory_device: Literal["CPU", "GPU", "NPU", "FPGA"]
    """The ``OrtMemoryInfoDeviceType`` of its default memory."""


class DriverConstant(Node):
    """A named value of the driver's API."""

    name: Identifier
    value: int


class HandleType(Node):
    """How one ORT handle type reaches the driver."""

    type: Identifier
    """The enumerator of ``OrtExternalMemoryHandleType`` or ``OrtExternalSemaphoreType``."""
    platforms: Annotated[list[Platform], Field(min_length=1)]
    since: Release
    """The API version that must be negotiated before the type is offered.

    It may be below the release that named the constant, for ORT passes every value through."""
    driver: DriverConstant | None = None
    ownership: Literal["consumed", "duplicated", "borrowed"]
    """What happens to the application's handle: ``consumed`` by the driver (so the EP passes a duplicate),
    ``duplicated`` by the EP itself, or ``borrowed`` for the life of the import."""
    dedicated: bool = False
    """The driver must be told that the allocation is a single dedicated resource."""
    doc: Text


class Sequence(Node):
    """The driver calls behind one importer method, in order."""

    method: Identifier
    calls: Annotated[list[Text], Field(min_length=1)]


class DriverFunction(Node):
    """An entry point that is looked up in the driver's library at run time."""

    name: Identifier
    symbol: Identifier | None = None
    """The exported name where it differs (versioned entry points)."""
    returns: TypeText
    params: list[Declaration] = []
    optional: bool = False


class DriverLibrary(Node):
    linux: list[Text] = []
    windows: list[Text] = []


class BackendSpec(Node):
    backend: Identifier
    title: Text
    ep: EpIdentity
    library: DriverLibrary | None = None
    memory: list[HandleType] = []
    semaphores: list[HandleType] = []
    methods: list[Sequence] = []
    functions: list[DriverFunction] = []
