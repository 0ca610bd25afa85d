"""Where the spec and the templates are: inside the installed package, or beside its checkout."""

from __future__ import annotations

from pathlib import Path

from ..spec.abi import Location
from .errors import render_error

PACKAGE = Path(__file__).resolve().parent.parent


def data_folder(kind: str) -> Path:
    """The folder of the project's own ``spec`` or ``templates``."""
    for root in (PACKAGE / "_data", PACKAGE.parent):
        if (root / kind).is_dir():
            return root / kind
    raise render_error(
        f"the package has no '{kind}' data",
        "install it again, or name the folder with an option",
        Location(str(PACKAGE)),
    )
