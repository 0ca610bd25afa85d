"""The releases that the spec speaks of."""

from __future__ import annotations

from .work import Work


def write_versions(work: Work) -> None:
    """``versions`` as of this header; the EP structs only where all of them are as they were."""
    file = next(f for f in work.files if f.source.file.versions is not None)
    wanted = {"newest": work.release}
    if not work.header.partial and _ep_structs_agree(work):
        wanted["ep_structs"] = work.release
    for key, value in wanted.items():
        old = getattr(work.model.versions, key)
        if old != value:
            line, column = file.place(("versions", key))
            file.edits.replace(line, column, column + len(str(old)), str(value))
            work.note(file, f"versions.{key}", f"1.{old} is now 1.{value}")


def _ep_structs_agree(work: Work) -> bool:
    """Whether no struct of the EP header differs otherwise than by growing."""
    for name, old in work.old.structs.items():
        new = work.header.structs.get(name)
        if old.header.startswith("onnxruntime_ep"):
            same = new is not None and all(
                (a.name, a.type, a.offset, a.offset_win64)
                == (b.name, b.type, b.offset, b.offset_win64)
                for a, b in zip(old.fields, new.fields, strict=False)
            )
            if not same or new is None or len(new.fields) < len(old.fields):
                return "path_char" in work.header.lacks and new is not None
    return True
