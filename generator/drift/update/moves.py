"""Elements that another header declares now."""

from __future__ import annotations

from ...spec.abi import Abi
from ...spec.model import header_at
from ...spec.schema import Element
from ...spec.yamlfile import Path_
from .edits import File, at_column
from .work import REVIEW, Work


def write_moves(work: Work, file: File) -> None:
    """Elements that another header declares now."""
    default = file.source.file.header
    for section, found in (
        ("enums", work.header.enums),
        ("structs", work.header.structs),
        ("typedefs", work.header.typedefs),
        ("functions", work.header.functions),
        ("opaque", work.header.opaque),
    ):
        elements: list[Element] = getattr(file.source.file, section)
        for index, element in enumerate(elements):
            new = found.get(element.name)
            old = header_at(element, default, work.model.newest)
            if new is None or not new.header or new.header == old or element.moved is not None:
                continue
            _move(work, file, (section, index), element, old, new.header)


def _move(work: Work, file: File, path: Path_, element: Element, old: str, new: str) -> None:
    dash = file.dash(path)
    line, column = file.place(path)
    if dash < 0 or file.lines[line][column : column + 1] == "{":
        return

    def has(abi: Abi) -> bool:
        sections = (abi.enums, abi.structs, abi.typedefs, abi.functions, abi.opaque)
        return any(s[element.name].header == new for s in sections if element.name in s)

    release, _ = work.since(has)
    moved = f"moved: {{header: {old}, release: {release}}}"
    if element.header is not None:
        at, start = file.place((*path, "header"))
        file.edits.replace(at, start, start + len(element.header), new)
        file.edits.put_after(at, at_column(dash + 2, [moved]))
    else:
        after = file.place((*path, "since"))[0] if (*path, "since") in file.source.document.marks else line  # fmt: skip
        file.edits.put_after(after, at_column(dash + 2, [f"header: {new}", moved]))
    file.edits.put_before(line, at_column(dash, [f"{REVIEW}moved in 1.{release}"]))
    work.note(file, element.name, f"declared in {new} from 1.{release} on")
