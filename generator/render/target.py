"""What a target is: a name, and a function from the model to the texts of files.

A target is one module ``targets/<name>.py`` with a class that fits :class:`Target`, and one
folder ``templates/<name>/``: files that end in ``.j2`` are templates, the others are copied as
they are.  A new target is added to :data:`TARGETS`; nothing else has to know of it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from importlib import import_module
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from ..spec import Model
    from .env import TargetEnv

LANGUAGES = {
    ".c": "c",
    ".h": "c",
    ".py": "python",
    ".pyi": "python",
    ".json": "json",
    ".md": "text",
    ".txt": "text",
    ".typed": "text",
}
"""The language of a file by its suffix; any other file is ``text``."""


@dataclass(frozen=True, slots=True)
class Output:
    """One file to write: its POSIX path below the output folder, its text and its language.

    ``language`` is ``c``, ``python``, ``json`` or ``text``; it says how the text is formatted and
    parsed before anything is written.  A ``verbatim`` text is parsed but not formatted.
    """

    path: str
    text: str
    language: str
    verbatim: bool = False


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


def language_of(path: str) -> str:
    """The language of a file by its name."""
    return LANGUAGES.get(PurePosixPath(path).suffix, "text")
