"""What a target is: a name, and a function from the model to the texts of files.

A target is one module ``targets/<name>.py`` with a class that fits :class:`Target`, and one
folder ``templates/<name>/``: files that end in ``.j2`` are templates, the others are copied as
they are.  A new target is added to :data:`TARGETS`; nothing else has to know of it.
"""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from typing import TYPE_CHECKING, Protocol

from .env import TargetEnv
from .output import Output

if TYPE_CHECKING:
    from ..spec import Model


class Target(Protocol):
    """A renderer of one kind of output; it reads the model and returns texts, and does no I/O."""

    @property
    def name(self) -> str:
        """The target's name, which is also its folder below ``templates/``."""

    def render(self, model: Model, env: TargetEnv) -> Iterable[Output]:
        """Every file of this target, in a stable order."""


TARGETS: tuple[tuple[str, str], ...] = (
    ("c_header", "CHeader"),
    ("python", "Python"),
    ("ep_c", "EpC"),
    ("mock_driver", "MockDriver"),
    ("gating_tests", "GatingTests"),
)
"""Every target: the module below ``targets`` (which is its name) and the class in it."""


def load_targets() -> tuple[Target, ...]:
    """Import and create every registered target."""
    found: list[Target] = []
    for module, cls in TARGETS:
        found.append(getattr(import_module(f"{__package__}.targets.{module}"), cls)())
    return tuple(found)
