"""Expand macros and conditionals, with the system's C compiler or in pure Python.

Both give the same tokens on the same lines.  The compiler is asked for nothing but
preprocessing: no system headers, none of its own macros.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..spec.abi import NOWHERE, Location
from .errors import HeaderError
from .sources import KEPT, MISSING, SHADOW, SourceSet

VIEWS: dict[str, dict[str, str]] = {
    "linux": {
        "__linux__": "1",
        "__unix__": "1",
        "__x86_64__": "1",
        "__LP64__": "1",
        "__GNUC__": "12",
        "__GNUC_MINOR__": "0",
    },
    "windows": {
        "_WIN32": "1",
        "_WIN64": "1",
        "_MSC_VER": "1939",
        "_M_X64": "100",
        "_M_AMD64": "100",
    },
}
"""What the compilers of each platform predefine, as far as headers ask for it."""

COMPILERS = ("cc", "gcc", "clang")
TIMEOUT_SECONDS = 60
PROLOGUE = "typedef char ORTCHAR_T;"
"""What the parser must know before the first line; the builder takes no part of it."""

_MARKER = re.compile(r'(?:line\s+)?(\d+)\s+"((?:[^"\\]|\\.)*)"')
_DEFINE = re.compile(r"define\s+([A-Za-z_]\w*)(\()?")
_MISSING = re.compile(MISSING + r'\s*\(\s*"([^"]*)"\s*\)')
STRAY_HASH = "\x01"
"""Stands for a '#' that begins no directive."""
_HASH = re.compile(r"""#|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'""")
_PRAGMA_PACK = re.compile(r"pragma\s+pack\b")
_COPY = re.compile(r"(?:^|[/\\])f(\d+)\.h$")
_OPEN_CALL = re.compile(r'unterminated argument list invoking macro "(\w+)"')
_CALL_PAREN = re.compile(r"[()]")
_FAULT = re.compile(r"(?:^|/|\\)f(\d+)\.h:(\d+)(?::\d+)?:?\s*(?:fatal )?(?:error: )?(.*)", re.M)


@dataclass(slots=True)
class Preprocessed:
    """The expanded text; ``lines[i]`` is the source number and line that output line ``i`` is from."""

    text: str
    lines: list[tuple[int, int]]
    macros: dict[str, tuple[str, int, int]] = field(default_factory=dict)
    """Object-like macros: replacement text, source number, line."""
    packed: list[tuple[int, int]] = field(default_factory=list)
    """Where ``#pragma pack`` stands: it changes layouts in a way that is not modelled."""
    tool: str = ""


def find_compiler() -> str | None:
    """The first C compiler on the search path."""
    return next((found for found in map(shutil.which, COMPILERS) if found), None)


@contextmanager
def preprocess(
    sources: SourceSet, views: Sequence[str], tool: str = "auto"
) -> Iterator[Iterator[Preprocessed]]:
    """Expand the first source of a set once a view; ``tool`` is ``auto``, ``cc`` or ``python``.

    With a compiler all views are under way from entry on, so that what the caller does before it
    asks for one, and then with it, overlaps with the rest.
    """
    compiler = find_compiler() if tool in ("auto", "cc") else None
    if tool == "cc" and compiler is None:
        raise HeaderError(
            f"no C compiler found (looked for {', '.join(COMPILERS)})",
            hint="install one, or use the Python preprocessor",
        )
    marks = {name: word for name, word in KEPT.items() if name != word}
    defines = [VIEWS[view] | marks for view in views]
    if compiler is None:
        yield _checked((_with_python(sources, given) for given in defines), sources)
    else:
        with _with_compiler(sources, compiler, defines) as results:
            yield _checked(results, sources)


def _checked(results: Iterator[Preprocessed], sources: SourceSet) -> Iterator[Preprocessed]:
    for found in results:
        _refuse_missing(found, sources)
        yield found


def _fault(message: str, sources: SourceSet) -> HeaderError:
    what = "the header cannot be preprocessed"
    match, open_call = _FAULT.search(message), _OPEN_CALL.search(message)
    if open_call is not None:
        loc = _unclosed(open_call[1], sources)
        if loc != NOWHERE:
            return HeaderError(f"{what}: {open_call[0]}", loc)
    if match is None:
        first = message.strip().splitlines()
        return HeaderError(f"{what}: {first[0] if first else 'no reason given'}")
    number = min(int(match[1]), len(sources.sources) - 1)
    loc = Location(sources.sources[number].label, int(match[2]))
    return HeaderError(f"{what}: {match[3]}", loc)


def _unclosed(macro: str, sources: SourceSet) -> Location:
    """The first call of a macro whose parenthesis never closes; GCC names the end of a file, if any place."""
    call = re.compile(rf"(?<![\w#])(?<!define )(?<!undef ){re.escape(macro)}\s*\(")
    for source in sources.sources:
        for match in call.finditer(source.text):
            depth = 1
            for paren in _CALL_PAREN.finditer(source.text, match.end()):
                depth += 1 if paren[0] == "(" else -1
                if depth == 0:
                    break
            else:
                return Location(source.label, source.text.count("\n", 0, match.start()) + 1)
    return NOWHERE


@contextmanager
def _with_compiler(
    sources: SourceSet, compiler: str, views: Sequence[dict[str, str]]
) -> Iterator[Iterator[Preprocessed]]:
    with tempfile.TemporaryDirectory(prefix="ort-interop-gen-") as name, ExitStack() as stack:
        folder = Path(name)
        for number, source in enumerate(sources.sources):
            copy = folder / f"f{number}.h"
            copy.write_text(source.text, encoding="utf-8", errors="replace", newline="\n")
        running = []
        for at, defines in enumerate(views):
            command = [compiler, "-E", "-dD", "-undef", "-nostdinc", "-w", "-std=c11", "-x", "c"]
            command += [f"-D{key}={value}" for key, value in defines.items()]
            out = folder / f"view{at}"
            with open(out, "wb") as stdout:
                try:
                    process = subprocess.Popen(
                        [*command, "f0.h"], cwd=folder, stdout=stdout, stderr=subprocess.PIPE
                    )
                except OSError as error:
                    raise HeaderError(f"{compiler} cannot be run: {error.strerror}") from None
            stack.callback(_stop, stack.enter_context(process))
            running.append((process, out))
        yield (_output(compiler, *each, sources) for each in running)


def _output(
    compiler: str, process: subprocess.Popen[bytes], out: Path, sources: SourceSet
) -> Preprocessed:
    try:
        # Unlike wait(), this learns of the end at once: the error stream ends with the process.
        _, errors = process.communicate(timeout=TIMEOUT_SECONDS)
    except subprocess.TimeoutExpired:
        raise HeaderError(
            f"{compiler} did not finish preprocessing in {TIMEOUT_SECONDS} s"
        ) from None
    if process.returncode != 0:
        raise _fault(errors.decode("utf-8", "replace"), sources)
    found = _digest(out.read_bytes().decode("utf-8", "replace"), sources)
    found.tool = Path(compiler).name
    return found


def _stop(process: subprocess.Popen[bytes]) -> None:
    """End a process that nobody waits for any more."""
    if process.poll() is None:
        process.kill()


def _with_python(sources: SourceSet, defines: dict[str, str]) -> Preprocessed:
    import io

    from pcpp import OutputDirective, Preprocessor

    class Quiet(Preprocessor):  # type: ignore[misc]
        """pcpp over the copies in memory, with its complaints collected instead of printed."""

        def __init__(self) -> None:
            super().__init__()
            self.faults: list[str] = []

        def on_file_open(self, is_system_include: bool, includepath: str) -> io.StringIO:
            number = _number(includepath, len(sources.sources))
            if number < 0:
                raise OSError(f"{includepath} is not among the sources")
            return io.StringIO(sources.sources[number].text)

        def on_error(self, file: str, line: int, msg: str) -> None:
            self.faults.append(f"{file}:{line}: {msg}")

        def on_include_not_found(
            self, is_malformed: bool, is_system_include: bool, curdir: str, includepath: str
        ) -> None:
            self.faults.append(f"{self.source}:0: '{includepath}' cannot be found")
            raise OutputDirective(0)

        def on_directive_unknown(
            self, directive: Any, toks: list[Any], ifpassthru: bool, precedingtoks: list[Any]
        ) -> Any:
            # Unlike on_directive_handle, this is called only where no #if hides the directive.
            if directive.value == "error":
                text = "".join(tok.value for tok in toks).strip()
                self.faults.append(f"{directive.source}:{directive.lineno}: #error {text}")
                return True
            return super().on_directive_unknown(directive, toks, ifpassthru, precedingtoks)

    tool = Quiet()
    for name, value in {"__STDC__": "1", "__STDC_VERSION__": "201112L", **defines}.items():
        tool.define(f"{name} {value}")
    tool.parse(sources.sources[0].text, "f0.h")
    rows: list[list[str]] = []
    lines: list[tuple[int, int]] = []
    names: dict[str, int] = {}

    def take() -> Any:
        try:
            return tool.token()
        except Exception as error:
            # pcpp trips over directives that no compiler takes, such as an #undef of nothing.
            number, line = lines[-1] if lines else (0, 0)
            raise HeaderError(
                f"pcpp fails on a directive after this line: {type(error).__name__}: {error}",
                Location(sources.sources[max(number, 0)].label, line),
                "a C compiler names the line that is at fault",
            ) from None

    while (tok := take()) is not None:
        if tok.type in tool.t_LINECONT:
            continue
        if tok.type in tool.t_WS:
            if rows:
                rows[-1].append(" ")
            continue
        source = tok.source or ""
        if source not in names:
            names[source] = _number(source, len(sources.sources))
        place = names[source], tok.lineno
        if not lines or lines[-1] != place:
            rows.append([])
            lines.append(place)
        # pcpp leaves spliced lines in literals, but a row is one line.
        rows[-1].append(tok.value.replace("\\\n", "").replace("\n", " "))
    if tool.faults:
        raise _fault(tool.faults[0], sources)
    packed: list[tuple[int, int]] = []
    for row, (number, line) in zip(rows, lines, strict=True):
        if row[0] == "#":
            directive = "".join(row)[1:].lstrip()
            if _PRAGMA_PACK.match(directive) and number >= 0 and sources.sources[number].own:
                packed.append((number, line))
            row.clear()
    macros: dict[str, tuple[str, int, int]] = {}
    for name, macro in tool.macros.items():
        number = _number(getattr(macro, "source", None) or "", len(sources.sources))
        if macro.arglist is None and number >= 0:
            text = " ".join("".join(tok.value for tok in macro.value).split())
            macros[name.removeprefix(SHADOW)] = (text, number, macro.lineno)
    return Preprocessed(
        _unhashed("\n".join([PROLOGUE, *("".join(row) for row in rows)])),
        [(-1, 0), *lines],
        macros,
        packed,
        "pcpp",
    )


def _unhashed(text: str) -> str:
    """The text with every '#' outside literals made a character that C does not have.

    What is left of them stands in the middle of a line, where no directive may; the parser would take
    it for one all the same, and lose count of its lines.
    """
    if "#" not in text:
        return text
    return _HASH.sub(lambda found: STRAY_HASH if found[0] == "#" else found[0], text)


def _digest(raw: str, sources: SourceSet) -> Preprocessed:
    """Take line markers, definitions and pragmas out of a preprocessor's output."""
    out: list[str] = [PROLOGUE]
    lines: list[tuple[int, int]] = [(-1, 0)]
    macros: dict[str, tuple[str, int, int]] = {}
    packed: list[tuple[int, int]] = []
    number, line = -1, 0
    for row in raw.split("\n"):
        if row[:1] == "#" or row.lstrip()[:1] == "#":
            body = row.lstrip()[1:].lstrip()
            marker = _MARKER.match(body)
            if marker is not None:
                line = int(marker[1])
                number = _number(marker[2], len(sources.sources))
                continue
            if number >= 0:
                if body.startswith("define"):
                    _define(body, macros, number, line)
                elif body.startswith("undef"):
                    macros.pop(body[5:].strip(), None)
                elif _PRAGMA_PACK.match(body) and sources.sources[number].own:
                    packed.append((number, line))
            line += 1
            continue
        if row and number >= 0 and not row.isspace():
            out.append(row)
            lines.append((number, line))
        line += 1
    return Preprocessed(_unhashed("\n".join(out)), lines, macros, packed)


def _refuse_missing(found: Preprocessed, sources: SourceSet) -> None:
    """Includes that were not found have left a word in the text, if a compiler would come by them."""
    match = _MISSING.search(found.text) if MISSING in found.text else None
    if match is not None:
        number, line = found.lines[found.text.count("\n", 0, match.start())]
        raise HeaderError(
            f"'{match[1]}' is included here but cannot be found",
            Location(sources.sources[number].label, line),
            "put it beside the header, or name its folder as an include directory",
        )


def _number(name: str, count: int) -> int:
    match = _COPY.search(name)
    return int(match[1]) if match and int(match[1]) < count else -1


def _define(body: str, macros: dict[str, tuple[str, int, int]], number: int, line: int) -> None:
    match = _DEFINE.match(body)
    if match is None:
        return
    name = match[1]
    if match[2]:
        macros.pop(name, None)
        return
    value = body[match.end() :].strip()
    macros[name.removeprefix(SHADOW)] = (value, number, line)
