"""New slots and fields at the end of what may grow."""

from __future__ import annotations

import re

from ...header.errors import UNREADABLE
from ...spec.abi import Field, Function, Param
from ...spec.ctype import Record, declare
from ...spec.model import STATUS, STATUS_SAL
from ...spec.yamlfile import Path_
from ..compare.structs import may_grow
from .edits import File, at_column, flow, indented, scalar
from .work import REVIEW, Work

_SIZED = re.compile(r"_(?:reads|writes|updates|buffer)_")


def write_members(work: Work, file: File) -> None:
    """What the tables and versioned structs of one file have more in the header."""
    for index, spec in enumerate(file.source.file.structs):
        old, new = work.old.structs.get(spec.name), work.header.structs.get(spec.name)
        if old is None or new is None or not may_grow(old) or spec.name in work.embedded:
            continue
        count = len(old.fields)
        if [f.name for f in new.fields[:count]] != [f.name for f in old.fields]:
            continue
        path: Path_ = ("structs", index, "fields")
        anchor = (*path, file.count(path) - 1)
        dash = file.dash(anchor)
        if dash < 0:
            continue
        for item in new.fields[count:]:
            if item.type == UNREADABLE:
                break
            rows = member_rows(work, spec.name, item, spec.since)
            since = work.member_since(spec.name, item)[0]
            review = f"{REVIEW}new in 1.{since}{_unsized(work, item.function)}"
            file.edits.put_after(file.last_line(anchor), at_column(dash, [review, *rows]))
            kind = "slot" if item.function is not None else "field"
            work.note(file, f"{spec.name}.{item.name}", f"new {kind} of 1.{since}")


def _unsized(work: Work, function: Function | None) -> str:
    """What to add to a slot's review, where a record leaves out the sizes in annotations."""
    if function is None or "sal_arguments" not in work.header.lacks:
        return ""
    found = [
        f"{w} of {p.name}"
        for p in function.params
        for w in p.sal
        if _SIZED.search(w) and "(" not in w
    ]
    return f"; the record lacks the size in {' and '.join(found)}" if found else ""


def member_rows(work: Work, owner: str, item: Field, owner_since: int) -> list[str]:
    """The rows of a slot or field, dash included."""
    since, documented = work.member_since(owner, item)
    gate = [f"since: {since}"] if since != owner_since else []
    gate += [f"documented_since: {documented}"] if documented is not None else []
    if item.function is not None:
        return [f"- slot: {item.name}", *indented([*gate, *signature_rows(work, item.function)])]
    if isinstance(item.type, Record):
        parts = ", ".join(flow(declare(t, n)) for n, t in item.type.members)
        return [f"- field: {item.name}", *indented([*gate, f"union: [{parts}]"])]
    return [f"- field: {scalar(declare(item.type, item.name))}", *indented(gate)]


def signature_rows(work: Work, function: Function) -> list[str]:
    """The keys of a function."""
    lacks = work.header.lacks
    rows = []
    checked = function.must_use or "must_use" in lacks
    # A partial record has types only; ORT declares every status with the same annotations.
    annotated = function.return_sal == STATUS_SAL or work.header.partial
    if function.returns == STATUS and annotated and checked:
        rows.append("returns: status")
    else:
        rows.append(f"returns: {scalar(declare(function.returns))}")
        if function.return_sal:
            rows.append(f"return_sal: [{', '.join(map(flow, function.return_sal))}]")
        if function.must_use:
            rows.append("must_use: true")
    if not function.api_call:
        rows.append("call: c")
    if function.params:
        rows.append("params:")
        rows += [f"  - {scalar(parameter_text(p))}" for p in function.params]
    return rows


def parameter_text(param: Param) -> str:
    """A parameter as the spec declares it."""
    return "".join(f"{word} " for word in param.sal) + declare(param.type, param.name)
