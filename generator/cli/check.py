"""``ort-interop-gen check``."""

from __future__ import annotations

import os
from pathlib import Path

import click

from ..render.data import data_folder
from ..render.find_header import find_header
from . import options
from .reporting import Wanted, finish, report_options


@click.command("check")
@options.spec_dir
@options.header
@options.include_dirs
@options.view
@options.preprocessor
@click.option("--docs", is_flag=True, help="Check the header's documentation comments as well.")
@report_options
def command(
    wanted: Wanted,
    spec_dir: Path | None,
    header: Path | None,
    include_dirs: tuple[Path, ...],
    view: str,
    preprocessor: str,
    docs: bool,
) -> int:
    """Compare the spec with an ONNX Runtime header, for the release that the header declares.

    Exits with 0 if they agree, 1 if they differ, 2 if they could not be compared.
    """
    found = find_header(header, os.environ)
    if found is None:
        raise click.UsageError("no header found: give --header, or set ORT_INCLUDE_DIR")
    from ..drift.check import NOT_CHECKED, VIEWS, run_check
    from ..spec.cache import CachedReleases
    from ..spec.problems import Problem

    model = CachedReleases(spec_dir or data_folder("spec"))
    views = VIEWS if view == "both" else (view,)
    result = run_check(
        model, found.path, views=views, preprocessor=preprocessor, include_dirs=include_dirs
    )
    if result.exit_code == NOT_CHECKED:
        click.echo(str(Problem(result.loc, result.message, result.hint)), err=True)
        return NOT_CHECKED
    findings = list(result.findings)
    if docs:
        from ..drift.lint_docs import lint_docs

        findings += lint_docs(result.headers[0], found.path, include_dirs, model)
    expected = f"the spec of 1.{result.compared_with}"
    actual = f"{result.header} (1.{result.release})"
    return finish(wanted, "check", expected, actual, findings, docs=docs)
