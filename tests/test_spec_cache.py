"""The cache of a spec's releases: the same answers, and never anything stale or foreign."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from ort_interop_gen.spec import SpecErrors, load_spec
from ort_interop_gen.spec.cache import CachedReleases

SPEC = Path(__file__).resolve().parent.parent / "spec"


@pytest.fixture(autouse=True)
def _own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def _entries(tmp_path: Path) -> list[Path]:
    return sorted((tmp_path / "cache").rglob("*.pickle"))


def test_cached_answers_equal_the_specs(tmp_path):
    model = load_spec(SPEC)
    first, second = CachedReleases(SPEC), CachedReleases(SPEC)
    for release in (24, 30):
        assert first.at(release) == model.at(release)
        assert second.at(release) == model.at(release)
    assert (second.floor, second.newest) == (model.floor, model.newest)
    assert len(_entries(tmp_path)) == 3
    # Locations are no part of equality, but the cache must keep them.
    slot = second.at(30).structs["OrtInteropApi"].fields[0]
    assert slot.loc == model.at(30).structs["OrtInteropApi"].fields[0].loc
    assert slot.loc.line > 0


def test_a_warm_cache_does_not_import_pydantic():
    program = (
        "import sys; from pathlib import Path\n"
        "from ort_interop_gen.spec.cache import CachedReleases\n"
        f"releases = CachedReleases(Path({str(SPEC)!r}))\n"
        "assert releases.at(29).api_version == 29\n"
        "print('pydantic' in sys.modules)"
    )
    shown = [
        subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
        for _ in range(2)
    ]
    assert [s.stdout.strip() for s in shown] == ["True", "False"]


def test_a_changed_spec_is_read_again(tmp_path):
    copy = tmp_path / "spec"
    shutil.copytree(SPEC, copy)
    assert CachedReleases(copy).at(26).enums["OrtGraphicsApi"].constants[1].value == 1
    path = copy / "interop_api.yaml"
    text = path.read_text()
    changed = text.replace("ORT_GRAPHICS_API_D3D12, value: 1", "ORT_GRAPHICS_API_D3D12, value: 7")
    assert changed != text
    path.write_text(changed)
    assert CachedReleases(copy).at(26).enums["OrtGraphicsApi"].constants[1].value == 7
    path.write_text(text.replace("kind: table", "kind: tabel"))
    with pytest.raises(SpecErrors):
        CachedReleases(copy).at(26)


def test_a_damaged_entry_is_ignored(tmp_path):
    CachedReleases(SPEC).at(24)
    for entry in _entries(tmp_path):
        entry.write_bytes(b"\x80\x05garbage")
    assert CachedReleases(SPEC).at(24).api_version == 24


def test_an_entry_that_others_may_write_is_not_unpickled(tmp_path):
    CachedReleases(SPEC).at(24)
    trap = tmp_path / "trapped"
    (entry,) = [e for e in _entries(tmp_path) if e.name == "24.pickle"]
    # A pickle that creates a file when it is loaded.
    entry.write_bytes(b"cbuiltins\nopen\n(V" + str(trap).encode() + b"\nVw\ntR.")
    os.chmod(entry, 0o666)
    CachedReleases(SPEC).at(24)
    assert not trap.exists()


def test_without_a_writable_folder_nothing_is_kept(tmp_path, monkeypatch):
    blocked = tmp_path / "file"
    blocked.write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(blocked))
    assert CachedReleases(SPEC).at(24).api_version == 24


def test_the_cache_can_be_turned_off(tmp_path, monkeypatch):
    monkeypatch.setenv("ORT_INTEROP_GEN_NO_CACHE", "1")
    assert CachedReleases(SPEC).at(24).api_version == 24
    assert not _entries(tmp_path)


def test_old_entries_are_forgotten(tmp_path):
    for at in range(12):
        copy = tmp_path / f"spec{at}"
        shutil.copytree(SPEC, copy)
        CachedReleases(copy).at(24)
    folders = {entry.parent for entry in _entries(tmp_path)}
    assert len(folders) == 8
