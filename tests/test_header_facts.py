"""What is read from a header equals what libclang recorded of it, element by element."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from header_synth import differences, documented, elements, synthesise
from ort_interop_gen.drift.compare import compare
from ort_interop_gen.header.reader import read_header
from ort_interop_gen.spec import load_spec
from ort_interop_gen.spec.abi import Abi
from ort_interop_gen.spec.facts import FactsError, dump_facts, load_all, load_facts
from ort_interop_gen.spec.layout import compute

ROOT = Path(__file__).resolve().parent.parent
FACTS = ROOT / "spec" / "facts"
RELEASES = ("1.23.2", "1.24.1", "1.25.0", "1.26.0", "1.28.0", "1.29.0")
COUNTS = {
    "1.23.2": 833,
    "1.24.1": 1006,
    "1.25.0": 1080,
    "1.26.0": 1100,
    "1.28.0": 1112,
    "1.29.0": 1120,
}

# The recorder wanted the word "Version" and took a trailing line comment for the documentation.
SILENT_RECORDS = {
    ("OrtAllocator", "Reserve"),
    ("OrtAllocator", "GetStats"),
    ("OrtAllocator", "AllocOnStream"),
    ("OrtAllocator", "Shrink"),
    ("OrtApi", "RunOptionsSetSyncStream"),
    ("OrtEpFactory", "GetVendor"),
}


def facts(release: str) -> Abi:
    return load_facts(FACTS / f"ort-{release}.json")


@pytest.mark.parametrize("preprocessor", ["cc", "python"])
@pytest.mark.parametrize("view", ["linux", "windows"])
@pytest.mark.parametrize("release", ["1.23.2", "1.26.0", "1.29.0"])
def test_a_header_made_of_the_facts_reads_back_as_the_facts(
    release: str, view: str, preprocessor: str, tmp_path: Path
) -> None:
    wanted = facts(release)
    result = read_header(synthesise(wanted, tmp_path), view=view, preprocessor=preprocessor)
    assert result.unreadable == ()
    assert differences(wanted, result.abi) == []
    assert documented(wanted) == documented(result.abi)
    assert compare(wanted, result.abi) == []


@pytest.mark.parametrize("release", range(24, 31))
def test_a_header_made_of_the_spec_agrees_with_the_spec(release: int, tmp_path: Path) -> None:
    spec = load_spec(ROOT / "spec").at(release)
    result = read_header(synthesise(spec, tmp_path))
    assert result.unreadable == ()
    assert differences(spec, result.abi) == []
    assert compare(spec, result.abi, result.unreadable) == []


@pytest.mark.parametrize("release", RELEASES)
def test_a_real_header_equals_its_facts(release: str, headers_dir: Path) -> None:
    if not (headers_dir / release).is_dir():
        pytest.skip(f"no headers of {release} in ORT_HEADERS_DIR")
    wanted = facts(release)
    assert len(elements(wanted)) == COUNTS[release]
    for view in ("linux", "windows"):
        for preprocessor in ("cc", "python"):
            result = read_header(headers_dir / release, view=view, preprocessor=preprocessor)
            assert result.unreadable == ()
            assert differences(wanted, result.abi) == []
            assert compare(wanted, result.abi) == []
            stated, recorded = documented(result.abi), documented(wanted)
            assert {k: v for k, v in stated.items() if k not in SILENT_RECORDS} == recorded


def test_both_preprocessors_place_every_element_on_the_same_line(headers_dir: Path) -> None:
    one = read_header(headers_dir / "1.29.0", preprocessor="cc").abi
    other = read_header(headers_dir / "1.29.0", preprocessor="python").abi
    assert one == other
    for a, b in zip(one.structs.values(), other.structs.values(), strict=True):
        assert (a.loc, a.doc) == (b.loc, b.doc)
        for x, y in zip(a.fields, b.fields, strict=True):
            assert (x.loc, x.doc) == (y.loc, y.doc)


@pytest.mark.parametrize("release", RELEASES)
def test_the_layout_engine_finds_the_recorded_offsets(release: str) -> None:
    wanted, computed = facts(release), facts(release)
    for struct in computed.structs.values():
        struct.size = struct.size_win64 = None
        for field in struct.fields:
            field.offset = field.offset_win64 = None
    assert compute(computed) == []
    assert computed == wanted


@pytest.mark.parametrize("path", sorted(FACTS.glob("*.json")), ids=lambda p: p.stem)
def test_facts_are_written_as_they_were_read(path: Path) -> None:
    assert dump_facts(load_facts(path)) == path.read_text()


def test_the_delta_of_1_30_is_known_to_be_partial() -> None:
    known = load_all(FACTS)
    assert list(known) == [23, 24, 25, 26, 28, 29, 30]
    assert [v for v, abi in known.items() if abi.partial] == [30]
    assert known[30].structs["OrtApi"].fields[0].offset == 3400


def test_a_header_is_recorded_whole(tmp_path: Path) -> None:
    """Unlike libclang's records: path characters, conventions, must-use, arguments of SAL."""
    abi = read_header(synthesise(load_spec(ROOT / "spec").at(29), tmp_path)).abi
    record = tmp_path / "ort-1.29.json"
    record.write_text(dump_facts(abi))
    again = load_facts(record)
    assert again == abi and again.lacks == frozenset()
    assert compare(load_spec(ROOT / "spec").at(29), again) == []


def test_a_real_header_is_recorded_whole(headers_dir: Path, tmp_path: Path) -> None:
    abi = read_header(headers_dir / "1.29.0").abi
    record = tmp_path / "ort-1.29.json"
    record.write_text(dump_facts(abi))
    assert load_facts(record) == abi


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (None, "cannot be read"),
        ("{", "not JSON"),
        ("[]", "not a facts file of schema 1"),
        ('{"schema": 2}', "not a facts file of schema 1"),
        ('{"schema": 1}', "damaged"),
        ('{"schema": 1, "lacks": ["everything"]}', "unknown aspects in 'lacks': everything"),
        (
            '{"schema": 1, "release": "1.29.0", "api_version": 29, "headers": ["a.h"],'
            ' "typedefs": {"FxA": {"header": 0, "type": "int ("}}}',
            "typedef FxA",
        ),
        (
            '{"schema": 1, "release": "1.29.0", "api_version": 29, "headers": ["a.h"],'
            ' "structs": {"FxA": {"header": 0, "offsets": [0, 4], "fields": ["int a"]}}}',
            "as many offsets as fields",
        ),
    ],
)
def test_a_facts_file_that_is_none(text: str | None, words: str, tmp_path: Path) -> None:
    path = tmp_path / "ort-1.29.0.json"
    if text is not None:
        path.write_text(text)
    with pytest.raises(FactsError, match=re.escape(words)) as caught:
        load_facts(path)
    assert str(caught.value).startswith(str(path))
