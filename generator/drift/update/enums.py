"""New enumerators, and enumerators that have another name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ...spec.abi import Abi, Constant
from ...spec.yamlfile import Path_
from ..compare.enums import renamed_constant, stored_as
from .edits import Edits, File, at_column
from .work import REVIEW, Change, Work


def write_constants(work: Work, file: File) -> None:
    """The enumerators of the enums of one file."""
    for index, enum in enumerate(file.source.file.enums):
        new = work.header.enums.get(enum.name)
        old = work.old.enums.get(enum.name)
        if new is None or old is None:
            continue
        path: Path_ = ("enums", index, "constants")
        known = {c.name: at for at, c in enumerate(enum.constants)}
        gone = [c for c in old.constants if all(c.name != n.name for n in new.constants)]
        come = [c for c in new.constants if c.name not in known]
        for constant in gone:
            match = renamed_constant(constant, come)
            if match is not None and _rename(work, file, enum.name, path, known, constant, match):
                come.remove(match)
                known[match.name] = known[constant.name]
        if stored_as(new) != stored_as(replace(new, constants=old.constants)):
            # They would change how the enum is stored.
            continue
        kept = {c.name: c.value for c in new.constants if c.name in known}
        elsewhere = work.enumerators - known.keys()
        written: dict[int, tuple[str, int]] = {}
        place = -1
        for constant in new.constants:
            value = constant.value
            if constant.name in known:
                place = known[constant.name]
            if constant not in come or constant.name in elsewhere:
                continue
            twins = [n for n, at in known.items() if enum.constants[at].value == value]
            same = [n for n in twins if kept.get(n) == value]
            if twins and not same:
                # The value is another enumerator's in the spec: which is right, a person decides.
                continue
            # An alias stands behind what it is an alias of, wherever the header has it.
            alias_of, at = (same[0], known[same[0]]) if same else written.get(value, ("", place))
            at = max(place, at)
            if _constant(work, file, enum.name, path, at, constant, alias_of):
                written.setdefault(value, (constant.name, at))


def _constant(
    work: Work, file: File, owner: str, path: Path_, place: int, constant: Constant, alias_of: str
) -> bool:
    anchor = (*path, max(place, 0))
    dash = file.dash(anchor)
    if dash < 0:
        return False

    def has(abi: Abi) -> bool:
        found = abi.enums.get(owner)
        return found is not None and any(c.name == constant.name for c in found.constants)

    since, _ = work.since(has, constant.since)
    parts = [f"name: {constant.name}", f"value: {constant.value}", f"since: {since}"]
    parts += [f"alias_of: {alias_of}"] if alias_of else []
    row = f"- {{{', '.join(parts)}}}"
    rows = at_column(dash, [f"{REVIEW}new in 1.{since}", row])
    if place >= 0:
        file.edits.put_after(file.last_line(anchor), rows)
    else:
        file.edits.put_before(file.place(anchor)[0], rows)
    what = f", an alias of {alias_of}" if alias_of else ""
    work.note(file, f"{owner}.{constant.name}", f"new enumerator of 1.{since}{what}")
    return True


def _rename(
    work: Work,
    file: File,
    owner: str,
    path: Path_,
    known: Mapping[str, int],
    old: Constant,
    new: Constant,
) -> bool:
    """Write another name for an enumerator with the same value."""
    if old.name not in known:
        return False
    item = (*path, known[old.name])
    dash = file.dash(item)
    keys = file.source.document.keys
    if dash < 0 or (*item, "renamed") in keys:
        return False

    def has(abi: Abi) -> bool:
        found = abi.enums.get(owner)
        return found is not None and any(c.name == new.name for c in found.constants)

    release, _ = work.since(has)
    macro = work.header.macros.get(old.name)
    alias = ", alias: true" if macro is not None and macro.value.strip("() ") == new.name else ""
    renamed = f"renamed: {{name: {old.name}, release: {release}{alias}}}"
    line, column = file.place((*item, "name"))
    first, start = file.place(item)
    if file.lines[first][start : start + 1] == "{":
        file.edits.replace(line, column, column + len(old.name), new.name)
        last = file.last_line(item)
        close = file.lines[last].rstrip().rfind("}")
        file.edits.replace(last, close, close, f", {renamed}")
    else:
        file.edits.replace(line, column, column + len(old.name), new.name)
        last = file.last_line(item)
        file.edits.put_after(last, at_column(dash + 2, [renamed]))
    file.edits.put_before(first, at_column(dash, [f"{REVIEW}renamed in 1.{release}"]))
    work.note(file, f"{owner}.{new.name}", f"was {old.name} before 1.{release}")
    _rename_in_backends(work, old.name, new.name)
    return True


def _rename_in_backends(work: Work, old: str, new: str) -> None:
    """Backends name the handle types that they import."""
    for backend in work.model.backends.values():
        for section in ("memory", "semaphores"):
            for at, handle in enumerate(getattr(backend.spec, section)):
                if handle.type != old:
                    continue
                name, mark = backend.document.file, backend.document.marks[section, at, "type"]
                edits = work.backends.setdefault(name, Edits(work.texts[name].split("\n")))
                start = mark.column - 1
                edits.replace(mark.line - 1, start, start + len(old), new)
                work.changes.append(Change(name, f"{section}.{new}", f"was {old}"))
