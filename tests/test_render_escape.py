"""Hostile documentation stays where it is put, in every language."""

from __future__ import annotations

import ast
import subprocess
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from ort_interop_gen.render import escape
from support import need_tool

HOSTILE = [
    "*/ int broken; /*",
    "**//",
    "/*/**/*/",
    "ends with a backslash \\",
    "splice *\\\n/ int broken;",
    "trigraph ??/\n and ???/ and ??)",
    'quotes """ and " and \\" and \'\'\'',
    '"',
    '"""',
    '\\"""',
    'a\\"',
    "control \x00 \x07 \x1b[31m \r\n \x0b \x85 \u2028",
    "bidirectional \u202e txet \u2066",
    "caf\u00e9 \u65e5\u672c \U0001f600 \u2264 \u2019",
    "%s %n {0} {{ x }} {% raw %} #define",
    "\ud800 lone surrogate",
    "",
    "   \n  ",
]
texts = st.text(st.characters(), max_size=60) | st.text('*/\\"?\n ab', max_size=60)


def _examples(test):  # type: ignore[no-untyped-def]
    for text in HOSTILE:
        test = example(text=text)(test)
    return test


@_examples
@given(text=texts)
def test_a_c_comment_ends_only_at_its_end(text: str) -> None:
    inside = escape.c_comment(text)
    assert "*/" not in inside and "/*" not in inside and "??" not in inside
    assert inside.isascii() and not any(line.endswith("\\") for line in inside.split("\n"))
    assert all(c == "\n" or c.isprintable() for c in inside)


@_examples
@given(text=texts)
def test_a_c_doc_comment_is_one_comment(text: str) -> None:
    doc = escape.c_doc(text, indent="  ")
    if doc:
        assert doc.startswith("  /**") and doc.endswith("*/")
        assert doc.count("*/") == 1 and doc.count("/*") == 1


@_examples
@given(text=texts)
def test_python_reads_back_the_very_string(text: str) -> None:
    source = escape.py_string(text)
    assert ast.literal_eval(source) == text
    assert "\n" not in source


@_examples
@given(text=texts)
def test_a_python_docstring_holds_the_words_and_nothing_follows(text: str) -> None:
    source = f"def f():\n    {escape.py_docstring(text, '    ')}\n"
    tree = ast.parse(source)
    (function,) = tree.body
    assert isinstance(function, ast.FunctionDef) and len(function.body) == 1
    assert (ast.get_docstring(function) or "").split() == text.split()


@_examples
@given(text=texts)
def test_a_python_comment_is_one_line(text: str) -> None:
    comment = escape.py_comment(text)
    assert len(f"# {comment}".splitlines()) == 1
    compile(f"# {comment}\n", "x", "exec")


def test_a_c_compiler_reads_back_the_very_bytes(tmp_path: Path) -> None:
    """In C11 mode, where trigraphs are alive, and with all warnings as errors."""
    lines = ["#include <stdio.h>", "int main(void) {"]
    for text in HOSTILE:
        doc = escape.c_doc(text, "  ")
        lines += [doc] if doc else []
        size = len(text.encode("utf-8", "surrogatepass"))
        lines.append(f"  fwrite({escape.c_string(text)}, 1, {size}, stdout);")
        lines.append("  fputc(1, stdout);")
    lines += ["  return 0;", "}"]
    source = tmp_path / "hostile.c"
    source.write_text("\n".join(lines) + "\n", encoding="utf-8")
    program = tmp_path / "hostile"
    flags = ["-std=c11", "-Wall", "-Wextra", "-Wpedantic", "-Werror"]
    subprocess.run([need_tool("gcc"), *flags, str(source), "-o", str(program)], check=True)
    out = subprocess.run([str(program)], check=True, capture_output=True).stdout
    assert out == b"".join(t.encode("utf-8", "surrogatepass") + b"\x01" for t in HOSTILE)


def test_cmake_arguments_are_literal(tmp_path: Path) -> None:
    cmake = need_tool("cmake")
    text = 'a "quoted" ${HOME} back\\slash; semicolon'
    script = tmp_path / "script.cmake"
    script.write_text(f"file(WRITE out.txt {escape.cmake_string(text)})\n", encoding="utf-8")
    subprocess.run([cmake, "-P", str(script)], check=True, cwd=tmp_path)
    assert (tmp_path / "out.txt").read_text() == text


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("one two\nthree", ["one two three"]),
        ("a\n\nb", ["a", "", "b"]),
        ("- first\n- second\n  goes on", ["- first", "- second goes on"]),
        ("intro\n\\param[in] x The x.", ["intro", "\\param[in] x The x."]),
    ],
)
def test_wrapping_keeps_paragraphs_and_items(text: str, lines: list[str]) -> None:
    assert escape.wrap(text, 80) == lines


@given(text=texts, width=st.integers(10, 60))
def test_wrapping_loses_no_word(text: str, width: int) -> None:
    assert " ".join(escape.wrap(text, width)).split() == text.split()
