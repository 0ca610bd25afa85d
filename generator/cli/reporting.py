"""What ``check``, ``diff`` and ``lint-docs`` share: their report options and how a run ends."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from ..drift.finding import Finding

FORMATS = ("text", "json", "sarif", "github", "gcc", "markdown", "junit", "html")
FAIL_ON = ("breaking", "source", "contract", "additive", "any")
_F = TypeVar("_F", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class Wanted:
    """The report options of a command line."""

    format: str | None
    output: tuple[Path, ...]
    color: bool | None
    fail_on: str | None
    config: Path | None
    baseline: Path | None
    write_baseline: Path | None
    reason: str | None


_OPTIONS = (
    click.option(
        "--format",
        "format_",
        type=click.Choice(FORMATS),
        help="What to print, or with --output what to write (default: text).",
    ),
    click.option(
        "--output",
        type=click.Path(path_type=Path, dir_okay=False),
        multiple=True,
        help="Write the report to this file and print it as text.  The format is that of --format, "
        "else the one that the file's ending means.  May be repeated.",
    ),
    click.option(
        "--color/--no-color",
        default=None,
        help="Colour the text (default: on a terminal, unless NO_COLOR is set).",
    ),
    click.option(
        "--fail-on",
        type=click.Choice(FAIL_ON),
        help="The mildest severity that makes the exit code 1 (default: any, or the configured).",
    ),
    click.option(
        "--config",
        type=click.Path(path_type=Path, dir_okay=False),
        help="A TOML file with severities by rule (default: ort-interop-gen.toml or pyproject.toml "
        "here or above).",
    ),
    click.option(
        "--baseline",
        type=click.Path(path_type=Path, dir_okay=False),
        help="A file of accepted findings (default: the configured).",
    ),
    click.option(
        "--write-baseline",
        type=click.Path(path_type=Path, dir_okay=False),
        help="Accept everything found now: write it to this file, and exit with 0.",
    ),
    click.option("--reason", help="Why --write-baseline accepts the findings."),
)


def report_options(function: _F) -> _F:
    """Add the options; the command gets them as one ``wanted`` argument."""

    def wrapped(**given: Any) -> Any:
        wanted = Wanted(
            **{
                key: given.pop("format_" if key == "format" else key)
                for key in Wanted.__dataclass_fields__
            }
        )
        return function(wanted=wanted, **given)

    wrapped.__name__, wrapped.__doc__ = function.__name__, function.__doc__
    wrapped.__dict__.update(function.__dict__)
    for option in reversed(_OPTIONS):
        option(wrapped)
    return wrapped  # type: ignore[return-value]


def finish(
    wanted: Wanted,
    command: str,
    expected: str,
    actual: str,
    findings: Iterable[Finding],
    notes: tuple[str, ...] = (),
    *,
    drift: bool = True,
    docs: bool = False,
) -> int:
    """Apply configuration and baseline, write and print the reports, and return the exit code.

    ``drift`` and ``docs`` say what was looked for: the baseline's entries of the other kind are not
    what this run can call outdated.
    """
    from ..drift.config import (
        Config,
        baseline_text,
        find_config,
        load_baseline,
        load_config,
        settle,
    )
    from ..drift.report import Report, render

    targets = _targets(wanted)
    path = wanted.config or find_config(Path.cwd())
    config = load_config(path) if path else Config()
    baseline = wanted.baseline or config.baseline
    entries = []
    if wanted.write_baseline is not None:
        reason = (wanted.reason or "").strip()
        if not reason:
            raise click.UsageError("--write-baseline needs --reason: why the findings are accepted")
        if targets or wanted.format:
            raise click.UsageError(
                "--write-baseline makes no report: leave --output and --format out"
            )
        kept = load_baseline(wanted.write_baseline) if wanted.write_baseline.exists() else []
        others = [e for e in kept if not (docs if e.documentation else drift)]
        write_text(wanted.write_baseline, baseline_text(findings, reason, kept, others))
        count = len(load_baseline(wanted.write_baseline))
        click.echo(f"{wanted.write_baseline}: {count} finding{'' if count == 1 else 's'} accepted")
        return 0
    if baseline is not None:
        entries = [e for e in load_baseline(baseline) if (docs if e.documentation else drift)]
    # What is configured is meant for drift: it would let every fault of documentation pass.
    configured = None if command == "lint-docs" else config.fail_on
    settled = settle(findings, config, entries, str(baseline or ""))
    report = Report(
        command,
        expected,
        actual,
        settled.findings,
        settled.accepted,
        settled.overrides,
        settled.stale,
        notes,
        wanted.fail_on or configured or "any",
    )
    for target, name in targets:
        write_text(target, render(report, name))
    if isinstance(sys.stdout, io.TextIOWrapper):
        # What the output's encoding lacks, as in Windows pipes, must not end the run.
        sys.stdout.reconfigure(errors="replace")
    shown = "text" if targets else wanted.format or "text"
    color = _color(wanted) if shown == "text" else False
    click.echo(render(report, shown, color=color), nl=False, color=color)
    return report.exit_code


def _targets(wanted: Wanted) -> list[tuple[Path, str]]:
    from ..drift.report import format_of

    if wanted.format and len(wanted.output) > 1:
        raise click.UsageError(
            "--format goes with one --output; several take their formats from their endings"
        )
    targets = []
    for path in wanted.output:
        name = wanted.format or format_of(path)
        if name is None:
            raise click.UsageError(
                f"--output {path}: its ending means no format; give --format as well"
            )
        if path.is_dir():
            raise click.UsageError(f"--output {path}: is a folder")
        targets.append((path, name))
    return targets


def _color(wanted: Wanted) -> bool:
    if wanted.color is not None:
        return wanted.color
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR")


def write_text(path: Path, text: str) -> None:
    """Write a file whole or not at all; its folder is made where it is missing."""
    import tempfile

    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="\n") as stream:
            stream.write(text)
        os.chmod(name, 0o666 & ~_umask())
        os.replace(name, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(name)
        raise


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
