"""Writing is all or nothing, touches only what the generator owns, and can be checked."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest
from ort_interop_gen.render import write
from ort_interop_gen.render.errors import RenderErrors
from ort_interop_gen.render.write import MANIFEST, apply, diff, files_in, manifest_text, plan


def with_manifest(texts: dict[str, str]) -> dict[str, str]:
    return texts | {MANIFEST: manifest_text(texts)}


def put(out: Path, texts: dict[str, str]) -> None:
    full = with_manifest(texts)
    apply(out, full, plan(out, full))


def snapshot(folder: Path) -> dict[str, bytes]:
    return {
        p.relative_to(folder).as_posix(): p.read_bytes() for p in folder.rglob("*") if p.is_file()
    }


def test_a_second_run_changes_nothing(tmp_path: Path) -> None:
    texts = {"a/b/c.h": "int x;\n", "d.py": "x = 1\n"}
    put(tmp_path / "out", texts)
    before = {p: p.stat().st_mtime_ns for p in (tmp_path / "out").rglob("*")}
    assert plan(tmp_path / "out", with_manifest(texts)).clean
    put(tmp_path / "out", texts)
    assert {p: p.stat().st_mtime_ns for p in (tmp_path / "out").rglob("*")} == before


def test_missing_stale_removed_and_foreign_files_are_told_apart(tmp_path: Path) -> None:
    put(tmp_path, {"keep.h": "1\n", "stale.h": "2\n", "gone/old.h": "3\n"})
    (tmp_path / "theirs.txt").write_text("mine")
    (tmp_path / "__pycache__").mkdir()
    (tmp_path / "__pycache__" / "x.pyc").write_bytes(b"")
    texts = with_manifest({"keep.h": "1\n", "stale.h": "two\n", "new.h": "4\n"})
    found = plan(tmp_path, texts)
    assert found.missing == ["new.h"]
    assert found.stale == [MANIFEST, "stale.h"]
    assert found.removed == ["gone/old.h"]
    assert found.foreign == ["theirs.txt"]
    shown = "".join(diff(tmp_path, texts, found))
    assert "-2\n+two\n" in shown and "-3\n" in shown and "mine" not in shown

    apply(tmp_path, texts, found)
    assert (tmp_path / "theirs.txt").read_text() == "mine"
    assert not (tmp_path / "gone").exists()
    assert plan(tmp_path, texts).foreign == ["theirs.txt"]


@pytest.mark.parametrize("fails_at", range(1, 5))
def test_a_failure_at_any_rename_leaves_the_folder_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fails_at: int
) -> None:
    put(tmp_path, {"a.h": "1\n", "old.h": "x\n", "sub/b.h": "2\n"})
    before = snapshot(tmp_path)
    texts = with_manifest({"a.h": "new\n", "sub/b.h": "new\n", "fresh/c.h": "new\n"})
    real, calls = os.replace, []

    def replace(source: Path, target: Path) -> None:
        calls.append(target)
        if len(calls) == fails_at:
            raise OSError(28, "No space left on device", str(target))
        real(source, target)

    monkeypatch.setattr(write.os, "replace", replace)
    with pytest.raises(RenderErrors, match="No space left"):
        apply(tmp_path, texts, plan(tmp_path, texts))
    assert snapshot(tmp_path) == before
    assert not (tmp_path / "fresh").exists()


def test_a_failed_delete_undoes_the_renames(tmp_path: Path) -> None:
    put(tmp_path, {"a.h": "1\n", "old.h": "x\n"})
    texts = with_manifest({"a.h": "new\n"})
    changes = plan(tmp_path, texts)
    (tmp_path / "old.h").unlink()
    (tmp_path / "old.h").mkdir()
    with pytest.raises(RenderErrors):
        apply(tmp_path, texts, changes)
    assert (tmp_path / "a.h").read_text() == "1\n"
    assert "old.h" in write.read_manifest(tmp_path)


def test_a_failure_while_staging_leaves_no_trace(tmp_path: Path) -> None:
    put(tmp_path, {"a.h": "1\n"})
    (tmp_path / "block").write_text("a file where a folder must go")
    before = snapshot(tmp_path)
    texts = with_manifest({"a.h": "new\n", "block/x.h": "new\n"})
    with pytest.raises(RenderErrors, match="block"):
        apply(tmp_path, texts, plan(tmp_path, texts))
    assert snapshot(tmp_path) == before


def test_a_folder_where_a_file_goes_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "a.h").mkdir()
    texts = with_manifest({"a.h": "1\n"})
    with pytest.raises(RenderErrors, match=r"a\.h"):
        apply(tmp_path, texts, plan(tmp_path, texts))
    assert snapshot(tmp_path) == {}


def test_an_interrupt_while_renaming_comes_after_the_last_rename(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.replace

    def replace(source: Path, target: Path) -> None:
        signal.raise_signal(signal.SIGINT)
        real(source, target)

    monkeypatch.setattr(write.os, "replace", replace)
    texts = with_manifest({"a.h": "1\n", "b.h": "2\n"})
    with pytest.raises(KeyboardInterrupt):
        apply(tmp_path, texts, plan(tmp_path, texts))
    monkeypatch.undo()
    assert plan(tmp_path, texts).clean
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_an_interrupt_while_staging_leaves_no_trace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = Path.write_bytes

    def write_bytes(self: Path, data: bytes) -> int:
        real(self, data[: len(data) // 2])
        raise KeyboardInterrupt

    monkeypatch.setattr(Path, "write_bytes", write_bytes)
    texts = with_manifest({"sub/a.h": "1\n"})
    with pytest.raises(KeyboardInterrupt):
        apply(tmp_path, texts, plan(tmp_path, texts))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("path", ["../evil", "/etc/evil", "a/../../evil", "", "a//b"])
def test_paths_that_lead_out_are_refused(tmp_path: Path, path: str) -> None:
    with pytest.raises(RenderErrors, match="outside"):
        plan(tmp_path, {path: "x\n"})
    (tmp_path / MANIFEST).write_text(json.dumps({"files": {path: "0"}}))
    with pytest.raises(RenderErrors, match="manifest"):
        plan(tmp_path, {"a.h": "x\n"})


@pytest.mark.parametrize("text", ["", "{", "[]", '{"files": 1}', '{"files": {"a": 1}}', "\xff"])
def test_a_damaged_manifest_is_an_error_with_its_name(tmp_path: Path, text: str) -> None:
    (tmp_path / MANIFEST).write_text(text, encoding="latin-1")
    with pytest.raises(RenderErrors, match=MANIFEST):
        plan(tmp_path, {"a.h": "x\n"})


def test_a_link_out_of_the_folder_is_not_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, elsewhere = tmp_path / "out", tmp_path / "elsewhere"
    out.mkdir()
    elsewhere.mkdir()
    (out / "sub").symlink_to(elsewhere)
    made: list[Path] = []
    real = Path.mkdir
    monkeypatch.setattr(Path, "mkdir", lambda self: (made.append(self), real(self)))
    texts = with_manifest({"sub/deep/a.h": "1\n"})
    with pytest.raises(RenderErrors, match="link"):
        apply(out, texts, plan(out, texts))
    assert list(elsewhere.iterdir()) == [] and made == []


def test_build_products_are_nobodys_orphans(tmp_path: Path) -> None:
    for name in ("build/x.c", "c/__pycache__/y.py", "c/lib.so", "c/x.o", "c/real.c"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("")
    assert list(files_in(tmp_path)) == ["c/real.c"]
