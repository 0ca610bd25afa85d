"""``ort-interop-gen rules``."""

from __future__ import annotations

import click


@click.command("rules")
@click.argument("rule", required=False)
@click.option("--markdown", is_flag=True, help="Print all rules as a Markdown page.")
def command(rule: str | None, markdown: bool) -> int:
    """Explain RULE, or list all rules of the findings."""
    from ..drift.rules import RULES, page

    if markdown:
        click.echo(page(), nl=False)
        return 0
    if rule is None:
        width = max(map(len, RULES))
        for known in RULES.values():
            click.echo(f"{known.id:<{width}}  {known.severity.value:<13}  {known.title}")
        return 0
    found = RULES.get(rule)
    if found is None:
        raise click.UsageError(f"unknown rule '{rule}'; run it without one to see all")
    click.echo(f"{found.id} ({found.severity.value}): {found.title}\n")
    click.echo(found.description)
    click.echo(f"hint: {found.hint}")
    return 0
