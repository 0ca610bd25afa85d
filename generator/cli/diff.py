"""``ort-interop-gen diff``."""

from __future__ import annotations

from pathlib import Path

import click

from ..render.data import data_folder
from . import options
from .reporting import Wanted, finish, report_options


@click.command("diff")
@click.argument("old")
@click.argument("new")
@options.facts
@options.include_dirs
@options.view
@options.preprocessor
@report_options
def command(
    wanted: Wanted,
    old: str,
    new: str,
    facts: Path | None,
    include_dirs: tuple[Path, ...],
    view: str,
    preprocessor: str,
) -> int:
    """Show what changed from OLD to NEW.

    Each is a header, the folder that it is in, a facts file, or a recorded release such as 1.24.1.
    Exits with 0 if nothing changed, 1 if something did, 2 if they could not be compared.
    """
    from ..drift.check import VIEWS
    from ..drift.sides import compare_sides, load_side

    views = VIEWS if view == "both" else (view,)
    folder = facts or data_folder("spec") / "facts"
    sides = [
        load_side(name, folder, views, preprocessor=preprocessor, include_dirs=include_dirs)
        for name in (old, new)
    ]
    findings = compare_sides(sides[0], sides[1], views)
    return finish(wanted, "diff", sides[0].label, sides[1].label, findings)
