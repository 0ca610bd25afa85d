"""Options that several commands share, so that they read the same everywhere."""

from __future__ import annotations

from pathlib import Path

import click

spec_dir = click.option(
    "--spec-dir", type=click.Path(path_type=Path), help="The spec (default: the package's own)."
)
facts = click.option(
    "--facts",
    type=click.Path(path_type=Path, file_okay=False),
    help="The folder of recorded releases (default: the package's own).",
)
header = click.option(
    "--header",
    type=click.Path(path_type=Path),
    help="An onnxruntime_c_api.h, or the folder it is in (default: ORT_INCLUDE_DIR, or an installed one).",
)
include_dirs = click.option(
    "-I",
    "--include",
    "include_dirs",
    type=click.Path(path_type=Path),
    multiple=True,
    help="A further folder of included headers.",
)
view = click.option(
    "--view",
    type=click.Choice(["both", "linux", "windows"]),
    default="both",
    show_default=True,
    help="As which platform's compiler to read headers.",
)
preprocessor = click.option(
    "--preprocessor",
    type=click.Choice(["auto", "cc", "python"]),
    default="auto",
    show_default=True,
    help="The system's C compiler, pure Python, or the first where there is one.",
)
