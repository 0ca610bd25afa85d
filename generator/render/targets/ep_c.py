"""Plugin EPs in C: shared sources, and for each backend a driver, its tables and its builds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ... import __version__
from ...spec.abi import Location
from ..driver_api import driver_api
from ..errors import render_error
from ..output import Output

if TYPE_CHECKING:
    from ...spec import Model
    from ...spec.backend import BackendSpec, HandleType
    from ...spec.model import Backend
    from ..env import TargetEnv

EXPORTS = ("CreateEpFactories", "ReleaseEpFactory")
"""The only symbols that ONNX Runtime looks up in an EP library."""

NATIVE_KINDS = {
    "ORT_EXTERNAL_MEMORY_HANDLE_TYPE_D3D12_RESOURCE": "EP_NATIVE_WIN32",
    "ORT_EXTERNAL_MEMORY_HANDLE_TYPE_D3D12_HEAP": "EP_NATIVE_WIN32",
    "ORT_EXTERNAL_MEMORY_HANDLE_TYPE_MEMORY_WIN32": "EP_NATIVE_WIN32",
    "ORT_EXTERNAL_MEMORY_HANDLE_TYPE_MEMORY_OPAQUE_FD": "EP_NATIVE_FD",
    "ORT_EXTERNAL_MEMORY_HANDLE_TYPE_HOST_ALLOCATION": "EP_NATIVE_POINTER",
    "ORT_EXTERNAL_SEMAPHORE_D3D12_FENCE": "EP_NATIVE_WIN32",
    "ORT_EXTERNAL_SEMAPHORE_VK_TIMELINE_SEMAPHORE_WIN32": "EP_NATIVE_WIN32",
    "ORT_EXTERNAL_SEMAPHORE_VK_TIMELINE_SEMAPHORE_OPAQUE_FD": "EP_NATIVE_FD",
}
"""What the native handle of each handle type is: ``EpNativeKind`` of ``ep_driver.h``."""

PLATFORMS = {"linux": "EP_ON_LINUX", "windows": "EP_ON_WINDOWS"}


@dataclass(frozen=True, slots=True)
class Row:
    """A handle type in a table of ``ep_config.c``, as C expressions."""

    type: str
    doc: str
    since: int
    platforms: str
    kind: str
    driver_type: str
    dedicated: str


@dataclass(frozen=True, slots=True)
class Table:
    """The table ``ep_<name>_types``."""

    name: str
    rows: tuple[Row, ...]


class EpC:
    """Target ``ep_c``: ``c/common/`` and ``c/<backend>/`` for every backend of the spec."""

    name = "ep_c"

    def render(self, model: Model, env: TargetEnv) -> Iterable[Output]:
        """The shared sources, then each backend's folder."""
        common = sources_in(env.root / "common")
        yield from env.copy_tree("common", "c/common")
        for backend in model.backends.values():
            yield from _backend(model, env, backend, common)


def sources_in(folder: Path) -> list[str]:
    """The names of the C sources in a folder, sorted."""
    return sorted(path.name for path in folder.glob("*.c"))


def _backend(model: Model, env: TargetEnv, backend: Backend, common: list[str]) -> Iterator[Output]:
    spec = backend.spec
    drivers = [*spec.shares, backend.name] + (["loader"] if spec.library else [])
    sources = ["ep_config.c"]
    folder = f"c/{backend.name}"
    for name in drivers:
        driver = f"drivers/{name}"
        if not (env.root / driver).is_dir():
            raise render_error(
                (
                    f"backend '{backend.name}' has no driver"
                    if name == backend.name
                    else f"backend '{backend.name}' shares a driver that does not exist: '{name}'"
                ),
                f"add the folder {env.root / driver}, or remove it from the backend's spec",
                Location(str(env.root / driver)),
            )
        yield from env.copy_tree(driver, folder)
        sources += sources_in(env.root / driver)
    context = {
        "backend": spec,
        "library": f"ort_interop_{backend.name}",
        "version": __version__,
        "floor": model.floor,
        "newest": model.newest,
        "exports": EXPORTS,
        "tables": list(_tables(spec)),
        "common_sources": common,
        "backend_sources": sources,
    }
    if spec.library:
        api = context["api"] = driver_api(spec)
        unused = ("" if api.options else "graphics_options", "" if api.values else "ep_graphics")
        for template in sorted((env.root / "driver_api").glob("*.j2")):
            if template.name.partition(".")[0] in unused:
                continue
            sources += [template.stem] if template.stem.endswith(".c") else []
            yield env.output(f"driver_api/{template.name}", f"{folder}/{template.stem}", **context)
    sources.sort()
    for template in sorted((env.root / "backend").glob("*.j2")):
        yield env.output(f"backend/{template.name}", f"{folder}/{template.stem}", **context)


def _tables(spec: BackendSpec) -> Iterator[Table]:
    for name, handles in (("memory", spec.memory), ("semaphore", spec.semaphores)):
        yield Table(name, tuple(_row(handle) for handle in handles))


def _row(handle: HandleType) -> Row:
    kind = NATIVE_KINDS.get(handle.type)
    if kind is None:
        raise render_error(
            f"'{handle.type}' has no known kind of native handle",
            "add it to NATIVE_KINDS, and to EpNativeKind if its handles are of a new kind",
        )
    return Row(
        type=handle.type,
        doc=handle.doc,
        since=handle.since,
        platforms=" | ".join(PLATFORMS[platform] for platform in handle.platforms),
        kind=kind,
        driver_type=str(handle.driver.value) if handle.driver else "0",
        dedicated="true" if handle.dedicated else "false",
    )
