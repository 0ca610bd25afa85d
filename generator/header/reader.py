"""Read ONNX Runtime's C API headers into the model of :mod:`..spec.abi`."""

from __future__ import annotations

import gc
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from ..spec.abi import Abi
from .build import Builder
from .errors import HeaderError, Unreadable
from .markers import lift
from .parse import parse
from .preprocess import VIEWS, preprocess
from .sources import SourceSet, locate

PREPROCESSORS = ("auto", "cc", "python")


@dataclass(frozen=True, slots=True)
class HeaderResult:
    """What a header says, and what of it could not be understood."""

    abi: Abi
    unreadable: tuple[Unreadable, ...]
    files: tuple[Path, ...]
    """The headers that were read, the main one first; the stub headers are not among them."""
    view: str
    preprocessor: str
    """The program that expanded the macros: a compiler's name, or ``pcpp``."""


@contextmanager
def _no_collection() -> Iterator[None]:
    """Syntax trees hold no cycles worth looking for; looking costs a tenth of the time."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def read_header(
    path: Path | str,
    *,
    view: str = "linux",
    preprocessor: str = "auto",
    include_dirs: Sequence[Path | str] = (),
) -> HeaderResult:
    """Read a header and all that it includes, as a compiler of one platform sees it.

    ``path`` is the main header or a folder that has it in a usual place.  ``view`` is ``linux`` or
    ``windows``, on any host.  ``preprocessor`` is ``cc`` (the system's compiler), ``python``, or
    ``auto``: the compiler where there is one.  Nothing of the host's own headers is used.

    Raises :class:`HeaderError` when the header as a whole cannot be read; single declarations that
    cannot be are in the result.
    """
    if view not in VIEWS:
        raise ValueError(f"view must be one of {', '.join(VIEWS)}")
    if preprocessor not in PREPROCESSORS:
        raise ValueError(f"preprocessor must be one of {', '.join(PREPROCESSORS)}")
    main = locate(Path(path))
    with _no_collection():
        sources = SourceSet(main, [Path(folder) for folder in include_dirs])
        pre = preprocess(sources, view, preprocessor)
        marks = lift(pre.text)
        builder = Builder(sources, pre, marks, parse(marks.text), view)
        abi = builder.run()
    return HeaderResult(
        abi,
        tuple(builder.unreadable),
        tuple(source.path for source in sources.sources if source.own),
        view,
        pre.tool,
    )


__all__ = ["HeaderError", "HeaderResult", "Unreadable", "read_header"]
