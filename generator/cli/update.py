"""``ort-interop-gen update``."""

from __future__ import annotations

from pathlib import Path

import click

from ..render.data import data_folder
from . import options


@click.command("update")
@click.option(
    "--header",
    required=True,
    help="An onnxruntime_c_api.h, the folder it is in, a facts file, or a recorded release such as 1.29.0.",
)
@options.spec_dir
@click.option("--write", is_flag=True, help="Change the spec files; without it a patch is printed.")
@options.include_dirs
@options.preprocessor
def command(
    header: str,
    spec_dir: Path | None,
    write: bool,
    include_dirs: tuple[Path, ...],
    preprocessor: str,
) -> int:
    """Write into the spec what a newer header has beyond it, marked for review.

    What would break users is not written but listed: it needs a decision.  Exits with 0 if nothing
    is left to do, 1 if a patch was printed or a decision is needed, 2 if there was no answer.
    """
    from ..drift.check import report_lines
    from ..drift.sides import load_side
    from ..drift.update import REVIEW, patch, update_spec
    from ..render.write import Plan, apply
    from ..spec.facts import load_all

    folder = spec_dir or data_folder("spec")
    side = load_side(
        header, folder / "facts", ("linux",), preprocessor=preprocessor, include_dirs=include_dirs
    )
    view = side.view("linux")
    update = update_spec(
        folder, view.abi, records=load_all(folder / "facts"), unreadable=view.unreadable
    )
    if write:
        names = {path.relative_to(folder).as_posix(): text for path, text in update.texts.items()}
        before = {
            path.relative_to(folder).as_posix(): update.originals[path].encode()
            for path in update.texts
        }
        apply(folder, names, Plan(stale=sorted(names), old=before))
    else:
        for line in patch(update):
            click.echo(line, nl=False)
    verb = "written" if write else "to write"
    for change in update.changes:
        click.echo(f"{verb}: {change}", err=not write)
    for line in report_lines(update.decide):
        click.echo(line, err=not write)
    count, left = len(update.changes), len(update.decide)
    click.echo(
        f"{side.label}: {count} change{'' if count == 1 else 's'} {verb}"
        + (f", marked with '{REVIEW.strip()}'" if count else "")
        + f"; {left or 'nothing'} left to decide",
        err=not write,
    )
    return 1 if left or (count and not write) else 0
