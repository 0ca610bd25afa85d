"""What a backend's YAML may say: identity, handle types and driver calls.

One schema serves every backend: ``host`` needs no driver library, the GPU backends name theirs.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from .schema import (
    INT32_MAX,
    INT32_MIN,
    Declaration,
    Identifier,
    Node,
    Release,
    Text,
    TypeText,
)

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


Role = Identifier
"""The name that a driver shared by several backends knows a type, constant or function by."""
Condition = Annotated[
    str, StringConstraints(pattern=r"^[A-Z_][A-Z0-9_]* (>=|<=|>|<|==) [0-9]+$", max_length=80)
]
"""When a vendor's header has an element, such as ``HIP_VERSION >= 60000000``."""


class DriverOpaque(Node):
    """A handle of the driver: a pointer to a struct that is never defined, or a bare address."""

    name: Identifier
    tag: Identifier | None = None
    """The struct that the handle points to; None for ``void*``."""
    role: Role | None = None


class DriverTypedef(Node):
    declares: Declaration
    """The type around its name: ``int CUdevice``."""
    role: Role | None = None


class DriverValue(Node):
    """A value of a driver's enum, or a macro of its header."""

    name: Identifier
    value: Annotated[int, Field(ge=INT32_MIN, le=INT32_MAX)]
    role: Role | None = None
    status: Identifier | None = None
    """The ``OrtErrorCode`` that this result of a call becomes; ``ORT_EP_FAIL`` where none is given."""
    when: Condition | None = None


class DriverEnum(Node):
    name: Identifier
    constants: Annotated[list[DriverValue], Field(min_length=1)]
    role: Role | None = None


class DriverStruct(Node):
    name: Identifier
    fields: Annotated[list[Declaration], Field(min_length=1)]
    room: Annotated[int, Field(ge=1, le=1 << 20)] | None = None
    """Bytes behind the fields, where they are only the beginning; the size is not compared then."""
    kind: Identifier | None = None
    """The constant that its first field always has, which tells the struct from others."""
    role: Role | None = None
    when: Condition | None = None


class DriverFunction(Node):
    """An entry point that is looked up in the driver's library at run time."""

    name: Identifier
    symbol: Identifier | None = None
    """The exported name where it differs (versioned entry points)."""
    returns: TypeText
    params: list[Declaration] = []
    optional: bool = False
    """The driver works without it; a missing one is null in the table."""
    releases: Identifier | None = None
    """The parameter whose life the call ends, even if it reports an error."""
    role: Role | None = None
    when: Condition | None = None


class DriverExtension(Node):
    """A part of the driver's API that devices may lack, and that the driver knows by its role."""

    role: Identifier
    name: Text
    platforms: Annotated[list[Platform], Field(min_length=1)] = ["linux", "windows"]
    call: Identifier | None = None
    """A call that only devices with it have; None where it is only asked about."""


class DriverLibrary(Node):
    """The file names of the driver's library, the newest first."""

    linux: list[Text] = []
    windows: list[Text] = []


class VendorHeader(Node):
    """The vendor's own header, which generated assertions compare with the spec."""

    name: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_./]+\.h$")]
    defines: list[Identifier] = []
    """Macros to define before it is included."""


class GraphicsOption(Node):
    """A key of ``OrtGraphicsInteropConfig::additional_options``."""

    key: Identifier
    kind: Literal["handle", "index", "flag", "text"]
    """A pointer's value that is not null, a 32-bit number, 0 or 1, or any text."""
    doc: Text


class Graphics(Node):
    """How an application says on what the EP is to work beside a graphics API."""

    doc: Text
    """Paragraphs for the application's author."""
    options: Annotated[list[GraphicsOption], Field(min_length=1)]


class BackendSpec(Node):
    backend: Identifier
    title: Text
    ep: EpIdentity
    library: DriverLibrary | None = None
    vendor_header: VendorHeader | None = None
    shares: list[Identifier] = []
    """Folders of driver sources that the backend has in common with others."""
    result: Identifier | None = None
    """The enum that calls answer with; its constant of value 0 is success."""
    memory: list[HandleType] = []
    semaphores: list[HandleType] = []
    methods: list[Sequence] = []
    graphics: Graphics | None = None
    opaque: list[DriverOpaque] = []
    typedefs: list[DriverTypedef] = []
    enums: list[DriverEnum] = []
    macros: list[DriverValue] = []
    structs: list[DriverStruct] = []
    functions: list[DriverFunction] = []
    extensions: list[DriverExtension] = []
