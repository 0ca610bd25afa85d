"""Read ONNX Runtime's C API headers into the model of :mod:`..spec.abi`."""

from __future__ import annotations

import gc
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from ..spec.abi import Abi, Location
from ..spec.layout import INT_MAX, INT_MIN
from .errors import HeaderError, Unreadable
from .markers import is_platform_word, lift
from .preprocess import VIEWS, Preprocessed, preprocess
from .sources import KEPT, SourceSet, locate

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
    (result,) = read_views(path, (view,), preprocessor=preprocessor, include_dirs=include_dirs)
    return result


def read_views(
    path: Path | str,
    views: Sequence[str] = ("linux", "windows"),
    *,
    preprocessor: str = "auto",
    include_dirs: Sequence[Path | str] = (),
) -> list[HeaderResult]:
    """Read a header as several platforms see it.

    A view in which the compiler sees the same declarations as in the first one is not parsed
    again; its result then shares the first one's elements and has its own platform macros.
    """
    for view in views:
        if view not in VIEWS:
            raise ValueError(f"view must be one of {', '.join(VIEWS)}")
    if preprocessor not in PREPROCESSORS:
        raise ValueError(f"preprocessor must be one of {', '.join(PREPROCESSORS)}")
    main = locate(Path(path))
    results: list[HeaderResult] = []
    with _no_collection():
        sources = SourceSet(main, [Path(folder) for folder in include_dirs])
        files = tuple(source.path for source in sources.sources if source.own)
        first: Preprocessed | None = None
        with preprocess(sources, views, preprocessor) as expanded:
            # The parser takes as long to import as the compiler takes to start.
            from .build import Builder
            from .parse import parse

            for view, pre in zip(views, expanded, strict=True):
                if first is not None and _same_view(sources, results[0].abi, first, pre):
                    kept = {name: pre.macros[name] for name in KEPT if name in pre.macros}
                    abi = replace(
                        results[0].abi,
                        platform={"view": view, **{name: kept[name][0] for name in kept}},
                        platform_locs={
                            name: Location(sources.sources[number].label, line)
                            for name, (_, number, line) in kept.items()
                            if number >= 0
                        },
                    )
                    unreadable = results[0].unreadable
                else:
                    marks = lift(pre.text)
                    builder = Builder(sources, pre, marks, parse(marks.text), view)
                    abi = builder.run()
                    unreadable = tuple(builder.unreadable)
                first = first or pre
                results.append(HeaderResult(abi, unreadable, files, view, pre.tool))
    return results


def _same_view(sources: SourceSet, abi: Abi, one: Preprocessed, other: Preprocessed) -> bool:
    """Whether a compiler of the other platform sees the same declarations.

    What differs by platform and is recorded apart does not count.  Only lines that differ are
    looked at closely: there are few.
    """
    own = [source.own for source in sources.sources]
    rows, others = _own_rows(one, own), _own_rows(other, own)
    if len(rows) != len(others) or one.packed != other.packed:
        return False
    differing = [pair for pair in zip(rows, others, strict=True) if pair[0] != pair[1]]
    left, right = (
        _seen("\n".join(side)) for side in ([p[0] for p in differing], [p[1] for p in differing])
    )
    # MSVC gives an enumerator beyond the range of int another value.
    in_range = all(
        INT_MIN <= constant.value <= INT_MAX
        for enum in abi.enums.values()
        for constant in enum.constants
    )
    return in_range and left == right and _values(one, own) == _values(other, own)


def _own_rows(pre: Preprocessed, own: list[bool]) -> list[str]:
    rows = zip(pre.text.split("\n"), pre.lines, strict=True)
    return [row for row, (number, _) in rows if number >= 0 and own[number]]


def _seen(text: str) -> tuple[list[str], list[str]]:
    marks = lift(text)
    return marks.text.split(), [word for word in marks.words if not is_platform_word(word)]


def _values(pre: Preprocessed, own: list[bool]) -> dict[str, str]:
    """The macros that may be values of the ABI, and are not there to differ by platform."""
    return {
        name: value
        for name, (value, number, _) in pre.macros.items()
        if number >= 0 and own[number] and name not in KEPT and value and "__" not in value
    }


__all__ = ["HeaderError", "HeaderResult", "Unreadable", "read_header", "read_views"]
