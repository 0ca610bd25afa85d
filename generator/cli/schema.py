"""``ort-interop-gen schema``."""

from __future__ import annotations

import json

import click


@click.command("schema")
@click.option(
    "--kind",
    type=click.Choice(["spec", "backend"]),
    default="spec",
    show_default=True,
    help="The files of spec/, or those of spec/backends/.",
)
def command(kind: str) -> None:
    """Print the JSON schema of the spec files, from which editors complete and check the YAML."""
    from ..spec.backend import BackendSpec
    from ..spec.schema import SpecFile

    model = SpecFile if kind == "spec" else BackendSpec
    schema = model.model_json_schema()
    schema["$schema"] = "https://json-schema.org/draft/2020-12/schema"
    click.echo(json.dumps(schema, indent=2))
