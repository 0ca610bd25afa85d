"""Faults of the render stage, reported like those of the spec: place, message, what to do."""

from __future__ import annotations

from ..spec.abi import NOWHERE, Location
from ..spec.problems import Problem, SpecErrors


class RenderErrors(SpecErrors):
    """A template, a formatter or the output folder is at fault; ``problems`` tells all."""


def render_error(message: str, hint: str, loc: Location = NOWHERE) -> RenderErrors:
    """One fault, ready to be raised."""
    return RenderErrors([Problem(loc, message, hint)])
