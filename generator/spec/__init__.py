"""The first stage: YAML spec files in, a checked model of the API out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .load import load_spec, load_texts
    from .model import Model
    from .problems import Problem, SpecErrors

__all__ = ["Model", "Problem", "SpecErrors", "load_spec", "load_texts"]

_HOMES = {
    "Model": "model",
    "Problem": "problems",
    "SpecErrors": "problems",
    "load_spec": "load",
    "load_texts": "load",
}


def __getattr__(name: str) -> Any:
    """Import on first use: reading facts or headers must not pay for pydantic."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f".{_HOMES[name]}", __name__), name)
