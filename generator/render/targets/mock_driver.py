"""Mock drivers in C: the entry points of a backend's driver, recorded and simulated for tests."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ...spec.abi import Abi, Export, Param
from ...spec.backend import BackendSpec, DriverFunction
from ...spec.ctype import Array, CType, FunctionType, Named, Pointer, Record, declare, names_in
from ...spec.driver import driver_abi
from ..driver_api import parameters
from ..escape import c_string
from ..output import Output
from .ep_c import sources_in

if TYPE_CHECKING:
    from ...spec import Model
    from ..env import TargetEnv


@dataclass(frozen=True, slots=True)
class MockFunction:
    """An exported function of a mock, as C."""

    name: str
    prototype: str
    simulation: str
    """The prototype of the function that simulates it."""
    call: str
    returns: str
    arguments: tuple[str, ...]
    """The statements that record the arguments."""
    can_fail: bool
    releases: bool


@dataclass(frozen=True, slots=True)
class MockRecord:
    """How a struct that a call points to is recorded."""

    name: str
    fields: tuple[str, ...]


class MockDriver:
    """Target ``mock_driver``: ``c/mock_<backend>/`` for every backend that has a simulation."""

    name = "mock_driver"

    def render(self, model: Model, env: TargetEnv) -> Iterable[Output]:
        """A mock of each driver: what all share, the simulation and the generated entry points."""
        for backend in model.backends.values():
            spec = backend.spec
            if spec.library is not None and (env.root / backend.name).is_dir():
                yield from _mock(spec, env)


def _mock(spec: BackendSpec, env: TargetEnv) -> Iterator[Output]:
    assert spec.library is not None
    folder = f"c/mock_{spec.backend}"
    shared = [name for name in spec.shares if (env.root / name).is_dir()]
    sources = ["mock_driver.c"]
    for name in ["mock", *shared, spec.backend]:
        yield from env.copy_tree(name, folder)
        sources += sources_in(env.root / name)
    abi = driver_abi(spec)
    context = {
        "backend": spec,
        "functions": [_function(spec, abi, f) for f in spec.functions],
        "records": list(_records(spec, abi)),
        "sources": sorted(sources),
        "linux_name": spec.library.linux[0],
        "windows_name": spec.library.windows[0],
    }
    for template in ("mock_driver.c", "mock_sim.h", "Makefile"):
        yield env.output(f"{template}.j2", f"{folder}/{template}", **context)


def _function(spec: BackendSpec, abi: Abi, function: DriverFunction) -> MockFunction:
    export: Export = abi.functions[function.name]
    found = export.function
    returns = declare(found.returns)
    slot = function.role or function.name
    names = ", ".join(p.name for p in found.params)
    symbol = function.symbol or function.name
    return MockFunction(
        name=function.name,
        prototype=f"{returns} DRIVER_CALL {symbol}({parameters(found)})",
        simulation=f"{returns} sim_{slot}({parameters(found)})",
        call=f"sim_{slot}({names})",
        returns=returns,
        arguments=tuple(_argument(abi, p) for p in found.params),
        can_fail=returns == spec.result,
        releases=function.releases is not None,
    )


def _argument(abi: Abi, param: Param) -> str:
    struct = _pointed_struct(abi, param.type)
    if struct is not None:
        return f"mock_record_{struct}(&call, {c_string(param.name)}, {param.name});"
    return _scalar(abi, "&call", param.name, param.name, param.type)


def _pointed_struct(abi: Abi, ctype: CType) -> str | None:
    """The struct that a parameter passes in by a pointer to const."""
    match ctype:
        case Pointer(Named(name, True)) if name in abi.structs:
            return name
    return None


def _scalar(abi: Abi, call: str, label: str, place: str, ctype: CType) -> str:
    ctype = _plain(abi, ctype)
    text = c_string(label)
    match ctype:
        case Pointer(FunctionType()):
            # A pointer to a function has no portable conversion to a number; its presence tells.
            return f"mock_argument_signed({call}, {text}, {place} != NULL);"
        case Pointer():
            return f"mock_argument_address({call}, {text}, (uint64_t)(uintptr_t){place});"
        case Named("unsigned long long" | "uint64_t"):
            return f"mock_argument_address({call}, {text}, (uint64_t){place});"
    return f"mock_argument_signed({call}, {text}, (long long){place});"


def _plain(abi: Abi, ctype: CType) -> CType:
    while isinstance(ctype, Named) and ctype.name in abi.typedefs:
        ctype = abi.typedefs[ctype.name].type
    return ctype


def _records(spec: BackendSpec, abi: Abi) -> Iterator[MockRecord]:
    used = {
        name
        for function in abi.functions.values()
        for param in function.function.params
        for name in names_in(param.type)
        if _pointed_struct(abi, param.type) == name
    }
    for struct in abi.structs.values():
        if struct.name in used:
            lines = [
                line
                for field in struct.fields
                for line in _field(abi, field.name, f"value->{field.name}", field.type)
            ]
            yield MockRecord(struct.name, tuple(lines))


def _field(abi: Abi, label: str, place: str, ctype: CType) -> Iterator[str]:
    """The statements that record a field: what is inside of it, and no reserved room."""
    match _plain(abi, ctype):
        case Record(_, members):
            for name, inner in members:
                yield from _field(abi, f"{label}.{name}", f"{place}.{name}", inner)
        case Named(name) if name in abi.structs:
            for field in abi.structs[name].fields:
                yield from _field(abi, f"{label}.{field.name}", f"{place}.{field.name}", field.type)
        case Array():
            return
        case plain:
            yield _scalar(abi, "call", label, place, plain)
