"""Reports: one module a format, each with ``render(report, color) -> str``, loaded when asked for."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Protocol, cast

from .model import FAIL_ON, ORDER, Accepted, Override, Report, fingerprint, ordered

FORMATS: dict[str, tuple[str, ...]] = {
    "text": (".txt",),
    "json": (".json",),
    "sarif": (".sarif", ".sarif.json"),
    "github": (),
    "gcc": (),
    "markdown": (".md",),
    "junit": (".xml",),
    "html": (".html", ".htm"),
}
"""Every format with the file endings that mean it."""


class _Module(Protocol):
    def render(self, report: Report, color: bool = False) -> str: ...


def render(report: Report, name: str, *, color: bool = False) -> str:
    """The report in one of :data:`FORMATS`; ``color`` matters to ``text`` only."""
    if name not in FORMATS:
        raise ValueError(f"no report format '{name}'; there are {', '.join(FORMATS)}")
    module = cast(_Module, import_module(f".{name}", __name__))
    return module.render(report, color)


def format_of(path: Path) -> str | None:
    """The format that a file's ending means; the longest ending counts."""
    endings = sorted(
        ((ending, name) for name, known in FORMATS.items() for ending in known),
        key=lambda pair: -len(pair[0]),
    )
    return next((name for ending, name in endings if path.name.lower().endswith(ending)), None)


__all__ = [
    "FAIL_ON",
    "FORMATS",
    "ORDER",
    "Accepted",
    "Override",
    "Report",
    "fingerprint",
    "format_of",
    "ordered",
    "render",
]
