"""``ort-interop-gen scaffold``."""

from __future__ import annotations

from pathlib import Path

import click

from ..render.data import data_folder
from ..render.errors import render_error
from ..render.scaffold import check_vendor, names_for, scaffold, write_project
from ..spec import load_spec

BACKENDS = ("cuda", "hip", "vulkan", "host")


@click.command("scaffold")
@click.argument("name")
@click.option(
    "--backend",
    type=click.Choice(BACKENDS),
    required=True,
    help="The driver that the EP works with.",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    required=True,
    help="The project's folder; a new or empty one.",
)
@click.option("--vendor", help="Who makes the EP (default: its name).")
@click.option("--force", is_flag=True, help="Overwrite files in a folder that is not empty.")
def command(name: str, backend: str, out: Path, vendor: str | None, force: bool) -> int:
    """Start the project of a plugin EP called NAME: sources, builds, a unit test and a README.

    The EP imports memory and semaphores, has streams, copies and an allocator, and computes Identity;
    its author replaces the compute part.
    """
    names = names_for(name)
    vendor = name if vendor is None else vendor
    check_vendor(vendor)
    model = load_spec(data_folder("spec"))
    if backend not in model.backends:
        raise render_error(f"the spec has no backend '{backend}'", "see spec/backends")
    files = scaffold(model, data_folder("templates"), backend, names, vendor)
    write_project(out, files, force)
    click.echo(f"{out}: {len(files)} files; README.md says what is yours to write")
    return 0
