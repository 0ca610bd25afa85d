"""Format rendered texts, and prove that what comes out can be read.

C goes through one clang-format process for each lot of files, which runs while the next lot is
rendered; Python goes through black in this process.  Every text, formatted or copied, is then
parsed: a template that renders nonsense fails here, before anything is written.
"""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import tempfile
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from importlib.util import find_spec
from pathlib import Path

from ..spec.abi import Location
from ..spec.problems import Problem
from .errors import RenderErrors, render_error
from .output import Output

LINE_LENGTH = 100
_TIMEOUT_SECONDS = 120


def format_all(outputs: Sequence[Output], style: Path) -> dict[str, str]:
    """The final text of every output by path; ``style`` is the clang-format configuration.

    Raises :class:`RenderErrors` with a problem for each file that cannot be formatted or parsed.
    """
    with Formatter(style) as formatter:
        formatter.add(outputs)
        return formatter.result()


class Formatter:
    """Formats lots of outputs; the C of one is under way from :meth:`add` on."""

    def __init__(self, style: Path) -> None:
        self.style = style
        self._outputs: list[Output] = []
        self._running: list[_ClangFormat] = []
        self._stack = ExitStack()

    def __enter__(self) -> Formatter:
        return self

    def add(self, outputs: Sequence[Output]) -> None:
        """Take more outputs."""
        self._outputs += outputs
        in_clang = [o for o in outputs if _for_clang(o)]
        if in_clang:
            self._running.append(self._stack.enter_context(_ClangFormat(in_clang, self.style)))

    def result(self) -> dict[str, str]:
        """The final texts by path; raises as :func:`format_all` does."""
        texts = {o.path: o.text for o in self._outputs}
        problems: list[Problem] = []
        for output in self._outputs:
            if _for_clang(output):
                continue
            if output.language == "python" and not output.verbatim:
                try:
                    texts[output.path] = _black(output)
                except RenderErrors as error:
                    problems.extend(error.problems)
                    continue
            problems.extend(parse(output.path, texts[output.path], output.language))
        for clang in self._running:
            try:
                formatted = clang.result()
            except RenderErrors as error:
                problems.extend(error.problems)
                continue
            texts.update(formatted)
            for path, text in formatted.items():
                problems.extend(parse(path, text, "c"))
        if problems:
            raise RenderErrors(problems)
        return texts

    def __exit__(self, *_: object) -> None:
        self._stack.close()


def _for_clang(output: Output) -> bool:
    return output.language == "c" and not output.verbatim


def parse(path: str, text: str, language: str) -> list[Problem]:
    """What is wrong with a text as a file of its language; empty when it can be read."""
    hint = "correct the template that renders this file"
    if text and not text.endswith("\n"):
        return [Problem(Location(path, text.count("\n") + 1), "no newline at the end", hint)]
    if language == "python":
        try:
            ast.parse(text, path)
        except (SyntaxError, ValueError) as error:
            line = getattr(error, "lineno", None) or 0
            return [Problem(Location(path, line), f"not valid Python: {error}", hint)]
    elif language == "json":
        try:
            json.loads(text)
        except ValueError as error:
            return [Problem(Location(path), f"not valid JSON: {error}", hint)]
    elif language == "c":
        fault = c_structure_fault(text)
        if fault is not None:
            return [Problem(Location(path, fault[0]), f"not valid C: {fault[1]}", hint)]
    return []


_CLOSED_TEXT = r"""/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'"""
_C_TOKEN = re.compile(
    rf"""(?P<skip>{_CLOSED_TEXT})""" r"""|(?P<open>[(\[{])|(?P<close>[)\]}])|(?P<bad>/\*|"|')""",
    re.S,
)
_CLOSED = re.compile(_CLOSED_TEXT, re.S)
_QUOTED = re.compile(r"""["']|/\*""")
_OTHER = re.compile(r"[^()\[\]{}]+")
_PAIR = re.compile(r"\(\)|\[\]|\{\}")
_PAIRS = {")": "(", "]": "[", "}": "{"}


def c_structure_fault(text: str) -> tuple[int, str] | None:
    """The line and nature of the first unclosed comment, literal or bracket; None if all close.

    Brackets within an ``#if`` and its ``#else`` are both counted, so they must balance in each.
    """
    left = _CLOSED.sub(" ", text)
    if not _QUOTED.search(left):
        brackets = _OTHER.sub("", left)
        while (inner := _PAIR.sub("", brackets)) != brackets:
            brackets = inner
        if not brackets:
            return None
    return _first_fault(text)


def _first_fault(text: str) -> tuple[int, str] | None:
    stack: list[tuple[str, int]] = []
    for match in _C_TOKEN.finditer(text):
        if match["skip"]:
            continue
        if match["bad"]:
            what = "comment" if match["bad"] == "/*" else "literal"
            return _line(text, match.start()), f"a {what} that never ends"
        if match["open"]:
            stack.append((match["open"], match.start()))
        elif not stack or stack.pop()[0] != _PAIRS[match["close"]]:
            return _line(text, match.start()), f"'{match['close']}' closes nothing"
    if stack:
        return _line(text, stack[-1][1]), f"'{stack[-1][0]}' is never closed"
    return None


def _line(text: str, offset: int) -> int:
    return text.count("\n", 0, offset) + 1


def _black(output: Output) -> str:
    import black.mode
    import black.parsing

    mode = black.Mode(
        target_versions={black.mode.TargetVersion.PY310},
        line_length=LINE_LENGTH,
        is_pyi=output.path.endswith(".pyi"),
    )
    try:
        return black.format_str(output.text, mode=mode)
    except (black.parsing.InvalidInput, ValueError) as error:
        raise render_error(
            f"black cannot format this file: {error}",
            "correct the template that renders this file",
            Location(output.path),
        ) from error


def clang_format_path() -> str:
    """The clang-format program of the ``clang-format`` distribution this tool depends on."""
    found = find_spec("clang_format")
    for folder in (found.submodule_search_locations or ()) if found else ():
        for name in ("clang-format", "clang-format.exe"):
            path = os.path.join(folder, "data", "bin", name)
            if os.path.isfile(path):
                return path
    raise render_error("clang-format is not installed", "run: python -m pip install clang-format")


class _ClangFormat:
    """One clang-format process over copies of the files in a temporary folder."""

    process: subprocess.Popen[str]

    def __init__(self, outputs: Iterable[Output], style: Path) -> None:
        self.outputs = list(outputs)
        self.style = style

    def __enter__(self) -> _ClangFormat:
        self.folder = tempfile.TemporaryDirectory(prefix="ort-interop-gen-")
        self.files = {}
        for index, output in enumerate(self.outputs):
            suffix = Path(output.path).suffix
            file = Path(self.folder.name, f"{index}{suffix}")
            file.write_text(output.text, encoding="utf-8", newline="\n")
            self.files[output.path] = file
        command = [clang_format_path(), f"--style=file:{self.style}", "-i"]
        self.process = subprocess.Popen(
            command + [str(f) for f in self.files.values()],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        return self

    def result(self) -> dict[str, str]:
        """Wait, and return the formatted text of each file."""
        _, errors = self.process.communicate(timeout=_TIMEOUT_SECONDS)
        if self.process.returncode or errors.strip():
            for path, file in self.files.items():
                errors = errors.replace(str(file), path)
            files = [p for p in self.files if p in errors]
            loc = Location(files[0] if len(files) == 1 else ", ".join(files or self.files))
            raise render_error(
                f"clang-format failed: {errors.strip() or self.process.returncode}",
                f"correct the template that renders this file, or {self.style}",
                loc,
            )
        return {path: file.read_text(encoding="utf-8") for path, file in self.files.items()}

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate()
        self.folder.cleanup()
