"""Formatting reports the file at fault, and nothing unreadable gets through."""

from __future__ import annotations

from pathlib import Path

import pytest
from ort_interop_gen.render.errors import RenderErrors
from ort_interop_gen.render.format import c_structure_fault, format_all, parse
from ort_interop_gen.render.target import Output
from support import ROOT

STYLE = ROOT / "templates" / ".clang-format"


def test_c_and_python_are_formatted_and_copies_are_not() -> None:
    ugly_c, ugly_py = "int  f( void ){return 1;}\n", "x = { 'a':1 }\n"
    texts = format_all(
        [
            Output("a.h", ugly_c, "c"),
            Output("b.py", ugly_py, "python"),
            Output("c.c", ugly_c, "c", verbatim=True),
            Output("d.pyi", "def f(x:int)->int: ...\n", "python"),
            Output("e.txt", "as  it is\n", "text"),
        ],
        STYLE,
    )
    assert texts == {
        "a.h": "int f(void) {\n  return 1;\n}\n",
        "b.py": 'x = {"a": 1}\n',
        "c.c": ugly_c,
        "d.pyi": "def f(x: int) -> int: ...\n",
        "e.txt": "as  it is\n",
    }


def test_all_faults_are_told_with_file_and_line() -> None:
    outputs = [
        Output("bad.py", "def f(:\n", "python"),
        Output("copied.py", "x = 1\ny = (\n", "python", verbatim=True),
        Output("open.c", "int f(void) {\n", "c"),
        Output("bad.json", "{,}\n", "json"),
        Output("no_newline.txt", "x", "text"),
        Output("good.py", "x = 1\n", "python"),
    ]
    with pytest.raises(RenderErrors) as caught:
        format_all(outputs, STYLE)
    problems = caught.value.problems
    assert {p.loc.file for p in problems} == {o.path for o in outputs} - {"good.py"}
    assert all(p.hint for p in problems)
    assert next(p for p in problems if p.loc.file == "copied.py").loc.line == 2


def test_a_broken_style_names_the_file_and_the_style(tmp_path: Path) -> None:
    style = tmp_path / "style"
    style.write_text("BasedOnStyle: NoSuchStyle\n")
    with pytest.raises(RenderErrors) as caught:
        format_all([Output("a.h", "int x;\n", "c")], style)
    assert "a.h" in str(caught.value) and str(style) in str(caught.value)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("/* never", 1),
        ('x\n"never\n', 2),
        ("int a[2;\n", 1),
        ("f(\n{)\n", 2),
        ("}\n", 1),
        ("int f(void) {\n\n", 1),
    ],
)
def test_unclosed_c_is_found(text: str, line: int) -> None:
    fault = c_structure_fault(text)
    assert fault is not None and fault[0] == line


def test_brackets_in_comments_and_literals_do_not_count() -> None:
    text = '/* ( */ // {\nchar a = \'(\', *s = "[\\"(";\n'
    assert c_structure_fault(text) is None
    assert parse("x.c", text, "c") == []
