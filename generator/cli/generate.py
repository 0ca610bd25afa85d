"""``ort-interop-gen generate``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from ..render.data import data_folder
from ..render.pipeline import Request, Result, check, generate
from ..render.write import MANIFEST, diff
from . import options


class _Folder(click.Path):
    """A folder to write to; an empty text, as from an unset variable, is not the present one."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if value == "":
            self.fail("is empty; write '.' for the present folder", param, ctx)
        return super().convert(value, param, ctx)


@click.command("generate")
@options.spec_dir
@click.option(
    "--templates",
    type=click.Path(path_type=Path),
    help="The templates (default: the package's own).",
)
@click.option(
    "--out",
    type=_Folder(path_type=Path),
    default="generated",
    show_default=True,
    help="The output folder.",
)
@click.option(
    "--header",
    type=click.Path(path_type=Path),
    help="An onnxruntime_c_api.h to hold the spec against first.",
)
@click.option(
    "--check",
    "check_only",
    is_flag=True,
    help="Write nothing; exit 1 and show how if files are out of date.",
)
def command(
    spec_dir: Path | None, templates: Path | None, out: Path, header: Path | None, check_only: bool
) -> int:
    """Render the spec into OUT, all of it or nothing.

    The spec is first held against the recorded facts of each release, and against a real header if
    one is given, named by ORT_INCLUDE_DIR, or found through pkg-config, CMAKE_PREFIX_PATH or
    CONDA_PREFIX.
    """
    request = Request(
        spec_dir or data_folder("spec"), templates or data_folder("templates"), out, header
    )
    result = check(request) if check_only else generate(request)
    for line in result.report:
        click.echo(line)
    for line in result.findings:
        click.echo(line, err=True)
    if result.stopped:
        click.echo("nothing was rendered: correct the spec, or the record that is wrong", err=True)
        return 1
    return _report_check(request, result) if check_only else _report(request, result)


def _report(request: Request, result: Result) -> int:
    if result.skipped:
        click.echo(f"{request.out}: up to date; nothing has changed since the last run")
        return 0
    changes = result.changes
    for verb, paths in (
        ("new", changes.missing),
        ("changed", changes.stale),
        ("removed", changes.removed),
        ("not ours, left alone", changes.foreign),
    ):
        for path in paths:
            if path != MANIFEST:
                click.echo(f"  {verb}: {path}")
    written = len([p for p in changes.missing + changes.stale if p != MANIFEST])
    click.echo(f"{request.out}: {len(result.texts)} files, {written} written")
    return 0


def _report_check(request: Request, result: Result) -> int:
    changes = result.changes
    if changes.clean:
        click.echo(f"{request.out}: {len(result.texts)} files, all up to date")
        return 0
    for what, paths in (
        ("missing", changes.missing),
        ("stale", changes.stale),
        ("orphan (no longer rendered)", changes.removed),
        ("orphan (not written by this tool)", changes.foreign),
    ):
        for path in paths:
            click.echo(f"{what}: {path}")
    click.echo("".join(diff(request.out, result.texts, changes)), nl=False)
    if changes.missing or changes.stale or changes.removed:
        click.echo(f"run: ort-interop-gen generate --out {request.out}", err=True)
    if changes.foreign:
        click.echo(
            f"move what this tool did not write out of {request.out}, or delete it", err=True
        )
    return 1
