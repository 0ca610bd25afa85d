"""``ort-interop-gen lint-docs``."""

from __future__ import annotations

import os
from pathlib import Path

import click

from ..render.data import data_folder
from ..render.find_header import find_header
from . import options
from .reporting import Wanted, finish, report_options


@click.command("lint-docs")
@options.spec_dir
@options.header
@options.include_dirs
@options.preprocessor
@report_options
def command(
    wanted: Wanted,
    spec_dir: Path | None,
    header: Path | None,
    include_dirs: tuple[Path, ...],
    preprocessor: str,
) -> int:
    """Find faults in the documentation comments of a header and what it includes.

    Exits with 0 if there are none, 1 if there are some, 2 if the header could not be read.
    """
    found = find_header(header, os.environ)
    if found is None:
        raise click.UsageError("no header found: give --header, or set ORT_INCLUDE_DIR")
    from ..drift.lint_docs import lint_docs
    from ..header.errors import HeaderError
    from ..header.reader import read_header
    from ..spec import Problem, SpecErrors
    from ..spec.cache import CachedReleases

    model = CachedReleases(spec_dir or data_folder("spec"))
    try:
        result = read_header(found.path, preprocessor=preprocessor, include_dirs=include_dirs)
    except HeaderError as error:
        raise SpecErrors([Problem(error.loc, error.message, error.hint)]) from None
    findings = lint_docs(result, found.path, include_dirs, model)
    label = f"{result.files[0]} (1.{result.abi.api_version})"
    return finish(wanted, "lint-docs", label, label, findings, drift=False, docs=True)
