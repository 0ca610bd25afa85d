"""Headers with random edits: an answer every time, never a traceback, never a hang."""

from __future__ import annotations

import os
import random
import tempfile
from pathlib import Path

import pytest
from header_synth import synthesise
from hypothesis import given
from hypothesis import strategies as st
from ort_interop_gen.drift.compare import compare
from ort_interop_gen.header.errors import HeaderError
from ort_interop_gen.header.reader import HeaderResult, read_header
from ort_interop_gen.spec.abi import Abi
from ort_interop_gen.spec.facts import load_facts

HEADERS = Path(__file__).parent / "data" / "headers"
FACTS = Path(__file__).resolve().parent.parent / "spec" / "facts"
COMMON = (HEADERS / "common.h").read_text()
NAMES = ("base.h", "markers.h", "nested.h", "enums.h", "docs.h")
TEXTS = {name: (HEADERS / name).read_text() for name in NAMES}
BASES = {name: read_header(HEADERS / name).abi for name in NAMES}
LONGEST_SECONDS = 5.0
"""Far above what any fixture takes, and far below a hang."""

PIECES = [
    *"(){}[];,*#\\\"'/\n",
    *("/*", "*/", "//", "##", "...", "\\\n", "->", "<<", "\0x", "\u00e9", "\ufeff"),
    *("struct", "union", "enum", "typedef", "const", "void", "int", "return", "extern", "static"),
    *(
        "#define",
        "#if 0\n",
        "#endif\n",
        "#else\n",
        "#include",
        "#undef",
        "#pragma pack(1)\n",
        "#line 7\n",
    ),
    *(
        "__attribute__((",
        "__declspec(",
        "_In_",
        "_In_reads_(",
        "_Success_(",
        "__stdcall",
        "ORT_API_CALL",
    ),
    *(
        "ORT_MUST_USE_RESULT",
        "ORT_API2_STATUS(",
        "ORT_RUNTIME_CLASS(",
        "ORT_API_VERSION",
        "ORTCHAR_T",
    ),
    *(
        "0x",
        "1 << 31",
        "-1",
        "99999999999999999999",
        "08",
        "'a",
        '"b',
        "sizeof(int)",
        "ort_missing_include",
    ),
]

edits = st.lists(
    st.tuples(
        st.sampled_from(["insert", "delete", "replace", "double", "swap", "cut"]),
        st.floats(0, 1),
        st.floats(0, 0.05),
        st.sampled_from(PIECES),
    ),
    min_size=1,
    max_size=4,
)


def mutate(text: str, todo: list[tuple[str, float, float, str]]) -> str:
    for what, where, size, piece in todo:
        start = int(where * len(text))
        end = min(len(text), start + 1 + int(size * len(text)))
        body = text[start:end]
        match what:
            case "insert":
                text = text[:start] + piece + text[start:]
            case "delete":
                text = text[:start] + text[end:]
            case "replace":
                text = text[:start] + piece + text[end:]
            case "double":
                text = text[:end] + body + text[end:]
            case "swap":
                text = text[:start] + body[::-1] + text[end:]
            case "cut":
                text = text[:start]
    return text


def cpu_seconds() -> float:
    """The processor time of this process and of the compilers that it ran."""
    return sum(os.times()[:4])


def answer(path: Path, base: Abi, preprocessor: str) -> HeaderResult | None:
    """Read and compare; everything but a HeaderError is a failure."""
    began = cpu_seconds()
    try:
        result = read_header(path, preprocessor=preprocessor)
    except HeaderError as error:
        assert str(error) and "Traceback" not in str(error)
        result = None
    else:
        for finding in compare(base, result.abi, result.unreadable):
            assert finding.message
    assert cpu_seconds() - began < LONGEST_SECONDS
    return result


@pytest.mark.fuzz
@pytest.mark.parametrize("preprocessor", ["cc", "python"])
@given(name=st.sampled_from(NAMES), todo=edits, common=st.booleans())
def test_an_edited_header_gets_an_answer(
    preprocessor: str, name: str, todo: list[tuple[str, float, float, str]], common: bool
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        path.write_text(TEXTS[name] if common else mutate(TEXTS[name], todo), errors="replace")
        (path.parent / "common.h").write_text(
            mutate(COMMON, todo) if common else COMMON, errors="replace"
        )
        answer(path, BASES[name], preprocessor)


def test_edits_of_a_whole_header_are_answered_as_fast(tmp_path: Path) -> None:
    """Where a declaration cannot be read all others are, one by one; that must not take long."""
    base = load_facts(FACTS / "ort-1.29.0.json")
    path = synthesise(base, tmp_path)
    text = path.read_text()
    chance = random.Random(20240)
    unreadable = 0
    for _ in range(12):
        todo = [("replace", chance.random(), chance.random() * 1e-4, chance.choice(PIECES[:8]))]
        path.write_text(mutate(text, todo))
        result = answer(path, base, "auto")
        unreadable += result is not None and bool(result.unreadable)
    assert unreadable >= 3, "too few of the edits came down to single declarations"


@pytest.mark.parametrize(
    "body",
    [
        "int (" * 3000 + ")" * 3000 + ";",
        "struct FxA { " * 2000 + "};" * 2000,
        "int a" + "[1]" * 1000 + ";",
        "enum FxE { FX_A = " + "(" * 3000 + "1" + ")" * 3000 + " };",
        "enum FxE { FX_A = 1" + " + 1" * 5000 + " };",
        "struct FxA { int " + "*" * 5000 + " a; };",
        "_In_reads_(" * 3000,
        "#define A B\n#define B A\nA B;",
        '#include "onnxruntime_c_api.h"',
        "struct FxA { struct FxA inner; };",
        "typedef FxA FxB; typedef FxB FxA;",
    ],
)
def test_deep_and_circular_input_ends(body: str, tmp_path: Path) -> None:
    (tmp_path / "common.h").write_text(COMMON)
    path = tmp_path / "onnxruntime_c_api.h"
    path.write_text(f'#pragma once\n#include "common.h"\n{body}\nstruct FxLast {{ int a; }};\n')
    for preprocessor in ("cc", "python"):
        answer(path, BASES["base.h"], preprocessor)


@pytest.mark.parametrize("preprocessor", ["cc", "python"])
@pytest.mark.parametrize("piece", ["#pragma pack(1)\n", "#line 7\n", "#define X\n", "#", "# 7 "])
def test_a_hash_in_the_middle_of_a_line_is_named(
    piece: str, preprocessor: str, tmp_path: Path
) -> None:
    """It begins no directive there, but the parser would take it for one and lose its place."""
    path = tmp_path / "onnxruntime_c_api.h"
    path.write_text(
        "#define ORT_API_VERSION 29\n"
        "typedef struct FxBefore { int a; } FxBefore;\n"
        f"typedef enum FxE {{ FX_A = '#', FX_B {piece} = 2 }} FxE;\n"
        "typedef struct FxAfter { int a; } FxAfter;\n"
    )
    result = read_header(path, preprocessor=preprocessor)
    (fault,) = result.unreadable
    assert "'#' in the middle of a line" in fault.message and fault.loc.line == 3
    assert list(result.abi.structs) == ["FxBefore", "FxAfter"]


def test_declarators_that_share_a_type_keep_their_place(tmp_path: Path) -> None:
    """Read on its own, a declaration is moved back to its line once, not once a declarator."""
    path = tmp_path / "onnxruntime_c_api.h"
    path.write_text(
        "#define ORT_API_VERSION 29\n"
        ") int FxBroken;\n"
        "typedef enum FxPlain { FX_A, FX_B } FxPlain, FxOther, FxThird;\n"
    )
    result = read_header(path)
    assert [c.loc.line for c in result.abi.enums["FxPlain"].constants] == [3, 3]


@pytest.mark.parametrize("preprocessor", ["cc", "python"])
def test_a_literal_may_go_over_two_lines(preprocessor: str, tmp_path: Path) -> None:
    path = tmp_path / "onnxruntime_c_api.h"
    path.write_text("#define ORT_API_VERSION 29\ntypedef enum FxE { FX_A = '\\\nn', FX_B } FxE;\n")
    result = read_header(path, preprocessor=preprocessor)
    assert [c.value for c in result.abi.enums["FxE"].constants] == [ord("n"), ord("n") + 1]
