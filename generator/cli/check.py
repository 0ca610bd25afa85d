"""``ort-interop-gen check``."""

from __future__ import annotations

from pathlib import Path

import click

from ..render.data import data_folder
from ..render.find_header import find_header


@click.command("check")
@click.option(
    "--spec-dir", type=click.Path(path_type=Path), help="The spec (default: the package's own)."
)
@click.option(
    "--header",
    type=click.Path(path_type=Path),
    required=True,
    help="An onnxruntime_c_api.h, or the folder it is in.",
)
@click.option(
    "--preprocessor",
    type=click.Choice(["auto", "cc", "python"]),
    default="auto",
    show_default=True,
    help="The system's C compiler, pure Python, or the first where there is one.",
)
def command(spec_dir: Path | None, header: Path, preprocessor: str) -> int:
    """Compare the spec with an ONNX Runtime header, for the release that the header declares.

    Exits with 0 if they agree, 1 if they differ, 2 if they could not be compared.
    """
    found = find_header(header, {})
    assert found is not None
    from ..drift.check import NOT_CHECKED, report_lines, run_check
    from ..spec import load_spec

    model = load_spec(spec_dir or data_folder("spec"))
    result = run_check(model, found.path, preprocessor=preprocessor)
    for line in report_lines(result.findings):
        click.echo(line)
    not_checked = result.exit_code == NOT_CHECKED
    click.echo(f"error: {result.message}" if not_checked else result.message, err=not_checked)
    if result.hint:
        click.echo(f"    hint: {result.hint}", err=not_checked)
    return result.exit_code
