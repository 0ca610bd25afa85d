"""Text of the spec, made harmless for the language that it lands in.

Documentation is written by people: it may hold comment ends, quotes, backslashes, control
characters and any Unicode.  What these functions return can stand inside the construct that each
names and cannot leave it.
"""

from __future__ import annotations

import re
import textwrap
import unicodedata
from collections.abc import Callable

_ASCII_FOR = str.maketrans(
    {
        "\u2018": "'",
        "\u2019": "'",
        "\u201c": '"',
        "\u201d": '"',
        "\u2013": "-",
        "\u2014": "--",
        "\u2026": "...",
        "\u2264": "<=",
        "\u2265": ">=",
        "\u2192": "->",
        "\u00a0": " ",
        "\u00d7": "x",
    }
)

_PLAIN = re.compile(r"[ -~\n]*")
_C_ESCAPES = {"\n": "\\n", "\t": "\\t", "\r": "\\r", '"': '\\"', "\\": "\\\\", "?": "\\?"}


def _plain_ascii(text: str) -> str:
    """Printable ASCII and newlines only; what has no plain form is spelled as its code point."""
    if _PLAIN.fullmatch(text):
        return text
    out = []
    for char in text.translate(_ASCII_FOR).replace("\r\n", "\n").replace("\t", " "):
        if char == "\n" or " " <= char <= "~":
            out.append(char)
        else:
            base = unicodedata.normalize("NFKD", char).encode("ascii", "ignore").decode()
            printable = base.isprintable() and base.strip() and unicodedata.category(char)[0] == "L"
            out.append(base if printable else f"<U+{ord(char):04X}>")
    return "".join(out)


def c_comment(text: str) -> str:
    """Text for the inside of a block comment in C: no comment mark, trigraph or line splice."""
    plain = _plain_ascii(text)
    while "??" in plain:
        plain = plain.replace("??", "? ?")
    for mark, apart in (("*/", "* /"), ("/*", "/ *")):
        while mark in plain:
            plain = plain.replace(mark, apart)
    lines = (line.rstrip() for line in plain.split("\n"))
    return "\n".join(line + " ." if line.endswith("\\") else line for line in lines)


def c_string(text: str) -> str:
    """A C string literal, quotes included, of the text's UTF-8 bytes; no trigraph can arise."""
    out = []
    for char in text:
        if char in _C_ESCAPES:
            out.append(_C_ESCAPES[char])
        elif " " <= char <= "~":
            out.append(char)
        else:
            # Three octal digits end by themselves, where a hex escape would swallow what follows.
            out.extend(f"\\{byte:03o}" for byte in char.encode("utf-8", "surrogatepass"))
    return '"' + "".join(out) + '"'


def c_doc(text: str, indent: str = "", width: int = 100) -> str:
    """A documentation comment ``/** ... */`` around the text, wrapped; empty for no text."""
    if not text.strip():
        return ""
    lines = wrap(c_comment(text), width - len(indent) - 3)
    if len(lines) == 1 and len(indent) + len(lines[0]) + 7 <= width:
        return f"{indent}/** {lines[0]} */"
    body = "\n".join(f"{indent} * {line}".rstrip() for line in lines)
    return f"{indent}/**\n{body}\n{indent} */"


def _python_safe(text: str) -> str:
    out = []
    for char in text:
        if char == "\\":
            out.append("\\\\")
        elif char == "\n" or char.isprintable():
            out.append(char)
        elif ord(char) <= 0xFF:
            out.append(f"\\x{ord(char):02x}")
        elif ord(char) <= 0xFFFF:
            out.append(f"\\u{ord(char):04x}")
        else:
            out.append(f"\\U{ord(char):08x}")
    return "".join(out)


def py_string(text: str) -> str:
    """A Python string literal, double quotes included, whose value is exactly the text."""
    return '"' + _python_safe(text).replace('"', '\\"').replace("\n", "\\n") + '"'


def py_docstring(text: str, indent: str = "", width: int = 100) -> str:
    """A Python docstring, quotes included, wrapped and ready to stand at the indent given."""
    lines = wrap(text, width - len(indent) - 3)
    escaped = [_python_safe(line).replace('"""', '\\"\\"\\"') for line in lines]
    if not escaped:
        return '""""""'
    if len(escaped) == 1 and len(indent) + len(escaped[0]) + 6 <= width:
        line = escaped[0]
        if line.endswith('"'):
            backslashes = len(line) - 1 - len(line[:-1].rstrip("\\"))
            line = line if backslashes % 2 else line[:-1] + '\\"'
        return f'"""{line}"""'
    body = "\n".join((indent + line).rstrip() for line in escaped[1:])
    return f'"""{escaped[0]}' + (f"\n{body}" if body else "") + f'\n{indent}"""'


def py_comment(text: str) -> str:
    """Text for one ``#`` comment: a single line of printable characters."""
    return _python_safe(" ".join(text.split())).replace("\\\\", "\\")


def cmake_string(text: str) -> str:
    """A quoted CMake argument, quotes included."""
    plain = "".join(c if c.isprintable() else " " for c in text)
    for char in ("\\", '"', "$"):
        plain = plain.replace(char, "\\" + char)
    return f'"{plain}"'


def wrap(text: str, width: int) -> list[str]:
    """Paragraphs, list items and Doxygen commands, each filled to the width; no trailing blanks."""
    lines: list[str] = []
    for paragraph in text.strip().split("\n\n"):
        if lines:
            lines.append("")
        item: list[str] = []
        for line in [*paragraph.strip("\n").split("\n"), None]:
            if line is None or line.lstrip().startswith(("- ", "\\")):
                if item:
                    lines.extend(_fill(item, width))
                item = []
            if line is not None:
                item.append(line)
    return lines


def _fill(item: list[str], width: int) -> list[str]:
    text = " ".join(line.strip() for line in item)
    if len(text) <= width and _PLAIN.fullmatch(text):
        return [text] if text else []
    hang = "  " if text.startswith(("- ", "\\")) else ""
    return textwrap.wrap(
        text,
        max(width, 20),
        subsequent_indent=hang,
        break_long_words=False,
        break_on_hyphens=False,
    )


FILTERS: dict[str, Callable[..., str]] = {
    "c_comment": c_comment,
    "c_doc": c_doc,
    "c_string": c_string,
    "cmake_string": cmake_string,
    "py_comment": py_comment,
    "py_docstring": py_docstring,
    "py_string": py_string,
}
"""The filters that every template has, by the name it has there."""
