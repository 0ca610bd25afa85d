"""Formatting reports the file at fault, and nothing unreadable gets through."""

from __future__ import annotations

from pathlib import Path

import black
import pytest
from hypothesis import given
from hypothesis import strategies as st
from ort_interop_gen.render.env import TargetEnv
from ort_interop_gen.render.errors import RenderErrors
from ort_interop_gen.render.format import (
    LINE_LENGTH,
    _first_fault,
    c_structure_fault,
    format_all,
    parse,
)
from ort_interop_gen.render.output import Output
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


@given(st.lists(st.sampled_from(["(", ")", "[", "]", "{", "}", '"', "'", "/*", "*/", "/", "*", "//", "\\", "\n", "x"])).map("".join))  # fmt: skip
def test_the_quick_look_at_brackets_misses_nothing(text: str) -> None:
    assert c_structure_fault(text) == _first_fault(text)


@pytest.mark.parametrize("count", [0, 1, 3])
def test_what_the_layer_acts_on_is_rendered_in_blacks_layout(count: int) -> None:
    """It is not formatted any more, whatever a spec says."""
    names = ("released_by", "needs", "creates", "borrows", "unsupported")
    tables = {name: [(f"OrtKey{at}", "a b") for at in range(count)] for name in names}
    slots = [f"OrtInteropApi.Slot{at}" for at in range(count)]
    env = TargetEnv(ROOT / "templates" / "python")
    text = env.render("_semantics.py.j2", **tables, also_refused=slots)
    assert text == black.format_str(text, mode=black.Mode(line_length=LINE_LENGTH))
