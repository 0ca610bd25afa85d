"""The command line: commands are imported only when they are run.

Exit codes: 0 done, 1 differences were found, 2 the input or the command line is at fault.
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Sequence
from importlib import import_module

import click

from .. import __version__

_COMMANDS = {
    "check": "Compare the spec with an ONNX Runtime header.",
    "diff": "Show what changed between two headers or recorded releases.",
    "generate": "Render the spec into bindings, headers, plugin EPs and tests.",
    "lint-docs": "Find faults in the documentation comments of a header.",
    "record": "Keep the facts of a header as a recorded release.",
    "rules": "List or explain the rules of the findings.",
    "scaffold": "Start the project of a plugin EP of your own.",
    "schema": "Print the JSON schema of the spec files.",
    "update": "Write into the spec what a newer header has beyond it.",
}
# Windows has no quota error.
_FULL = {errno.ENOSPC, errno.EFBIG, errno.EIO, getattr(errno, "EDQUOT", errno.ENOSPC)}


class _LazyGroup(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(_COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in _COMMANDS:
            return None
        found: click.Command = import_module(f"{__package__}.{name.replace('-', '_')}").command
        return found

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(sorted(_COMMANDS.items()))


@click.command(cls=_LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="ort-interop-gen")
def cli() -> None:
    """Generate code from the spec of ONNX Runtime's interop API, and check it against headers."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    try:
        code = cli.main(argv, prog_name="ort-interop-gen", standalone_mode=False)
        sys.stdout.flush()
        return code if isinstance(code, int) else 0
    except click.exceptions.Exit as stop:
        return stop.exit_code
    except click.ClickException as error:
        error.show()
        return 2
    except (KeyboardInterrupt, click.Abort):
        click.echo("interrupted; nothing was half-written", err=True)
        return 130
    except BrokenPipeError:
        _drop_output()
        return 1
    except Exception as error:
        if isinstance(error, OSError) and error.errno in _FULL and not error.filename:
            _drop_output()
            click.echo(f"error: the output cannot be written: {error.strerror}", err=True)
            return 2
        problems = _input_problems(error)
        if problems is None:
            raise
        click.echo("\n".join(problems), err=True)
        click.echo(f"{len(problems)} error{'s' if len(problems) > 1 else ''}", err=True)
        return 2


def _drop_output() -> None:
    """Keep the interpreter from writing once more, at exit, to what takes no more."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _input_problems(error: Exception) -> list[str] | None:
    """The messages of an error that the input caused; None for a fault of this program."""
    from ..spec.facts import FactsError
    from ..spec.problems import SpecErrors

    if isinstance(error, SpecErrors):
        return [str(problem) for problem in error.problems]
    if isinstance(error, FactsError):
        return [f"error: {error}"]
    if isinstance(error, OSError) and error.filename:
        hint = "check the path and its permissions"
        return [f"{error.filename}: error: {error.strerror}\n    hint: {hint}"]
    return None
