"""``ort-interop-gen record``."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import click

from ..render.data import data_folder
from . import options


@click.command("record")
@click.option(
    "--header",
    required=True,
    type=click.Path(path_type=Path),
    help="An onnxruntime_c_api.h, or the folder it is in.",
)
@click.option(
    "--release", help="The release's full number, such as 1.29.1 (default: the header's, with .0)."
)
@options.facts
@click.option("--force", is_flag=True, help="Replace a record that says something else.")
@options.include_dirs
@options.preprocessor
def command(
    header: Path,
    release: str | None,
    facts: Path | None,
    force: bool,
    include_dirs: tuple[Path, ...],
    preprocessor: str,
) -> int:
    """Keep the facts of a header as a recorded release, which `diff`, `generate` and `update` use.

    Exits with 0 if the record is there afterwards, 2 if it cannot be made or would replace another.
    """
    import re

    from ..drift.sides import load_side
    from ..render.write import Plan, apply
    from ..spec.facts import dump_facts, load_all

    folder = facts or data_folder("spec") / "facts"
    if not header.exists():
        raise click.UsageError(f"'{header}' does not exist; give the path of onnxruntime_c_api.h")
    side = load_side(
        str(header), folder, ("linux",), preprocessor=preprocessor, include_dirs=include_dirs
    )
    source = side.view("linux")
    if source.unreadable:
        for item in source.unreadable:
            click.echo(f"{item.loc}: error: {item.message}", err=True)
        click.echo("nothing was recorded: a record must tell everything of a release", err=True)
        return 2
    minor = source.abi.api_version
    name = release or f"1.{minor}.0"
    if not re.fullmatch(rf"1\.{minor}\.\d+", name):
        raise click.UsageError(
            f"--release {name} does not fit the header, whose ORT_API_VERSION is {minor}"
        )
    path = folder / f"ort-{name}.json"
    text = dump_facts(replace(source.abi, release=name))
    old = path.read_text(encoding="utf-8") if path.is_file() else None
    if old == text:
        click.echo(f"{path}: up to date")
        return 0
    other = load_all(folder).get(minor) if folder.is_dir() else None
    if other is not None and not force:
        click.echo(
            f"error: 1.{minor} is recorded already as {other.release}, and this header says something else",
            err=True,
        )
        click.echo("    hint: `diff` shows what; give --force to replace the record", err=True)
        return 2
    replaced = [] if other is None or other.release == name else [f"ort-{other.release}.json"]
    before = {
        p: (folder / p).read_bytes() for p in (path.name, *replaced) if (folder / p).is_file()
    }
    changes = Plan(missing=[path.name], removed=replaced, old=before)
    apply(folder, {path.name: text}, changes)
    click.echo(f"{path}: {len(text.encode())} bytes, {'replaced' if other else 'new'}")
    return 0
