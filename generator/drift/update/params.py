"""Parameters that read otherwise than before: another name, other annotations."""

from __future__ import annotations

import json
from collections.abc import Callable

from ...spec.abi import Abi, Function, Param
from ...spec.ctype import decay, parse_declaration
from ...spec.model import param_text
from ...spec.schema import FunctionSpec, ParamSpec, SlotSpec
from ...spec.yamlfile import Path_
from ..compare.spelling import sal_words
from .edits import File, at_column, flow, scalar
from .members import parameter_text
from .work import REVIEW, Work


def write_params(work: Work, file: File) -> None:
    """The parameters of every function of one file, but for those that are to stay."""
    for index, struct in enumerate(file.source.file.structs):
        new = work.header.structs.get(struct.name)
        for at, member in enumerate(struct.fields):
            if new is None or not isinstance(member, SlotSpec):
                continue
            found = new.field(member.slot)
            if found is not None and found.function is not None:

                def slot(
                    abi: Abi, owner: str = struct.name, name: str = member.slot
                ) -> Function | None:
                    fields = abi.structs.get(owner)
                    item = fields.field(name) if fields else None
                    return item.function if item else None

                symbol = f"{struct.name}.{member.slot}"
                path: Path_ = ("structs", index, "fields", at, "params")
                _params(work, file, symbol, path, member, found.function, slot)
    for index, typedef in enumerate(file.source.file.typedefs):
        callback = work.header.typedefs.get(typedef.name)
        if typedef.function is not None and callback is not None and callback.function:

            def of_typedef(abi: Abi, name: str = typedef.name) -> Function | None:
                item = abi.typedefs.get(name)
                return item.function if item else None

            path = ("typedefs", index, "function", "params")
            _params(work, file, typedef.name, path, typedef.function, callback.function, of_typedef)
    for index, export in enumerate(file.source.file.functions):
        other = work.header.functions.get(export.name)
        if other is not None:

            def of_export(abi: Abi, name: str = export.name) -> Function | None:
                item = abi.functions.get(name)
                return item.function if item else None

            path = ("functions", index, "function", "params")
            _params(work, file, export.name, path, export.function, other.function, of_export)


def _params(
    work: Work,
    file: File,
    symbol: str,
    path: Path_,
    spec: FunctionSpec,
    new: Function,
    find: Callable[[Abi], Function | None],
) -> None:
    if len(spec.params) != len(new.params) or not work.rewords(symbol):
        return
    for at, (item, param) in enumerate(zip(spec.params, new.params, strict=True)):
        before = param_text(item, work.model.newest)
        old = _parsed(before)
        param = _with_arguments(work, old, param)
        if (old.name, _sal(work, old)) == (param.name or old.name, _sal(work, param)):
            continue
        if decay(old.type) != decay(param.type) or file.dash((*path, at)) < 0:
            continue

        def has(abi: Abi, at: int = at, param: Param = param) -> bool:
            function = find(abi)
            if function is None or at >= len(function.params):
                return False
            other = function.params[at]
            return other.name == param.name and _sal(work, other, abi) == _sal(work, param, abi)

        release, _ = work.since(has)
        if _param(work, file, (*path, at), item, before, parameter_text(param), release):
            work.note(file, symbol, f"parameter {at + 1} reads otherwise from 1.{release} on")
            work.reworded.add(symbol)


def _sal(work: Work, param: Param, other: Abi | None = None) -> tuple[str, ...]:
    """Annotations as far as the header's record, and another one, tell them."""
    lacks = work.header.lacks | (other.lacks if other else frozenset())
    return sal_words(param.sal, arguments="sal_arguments" not in lacks)


def _with_arguments(work: Work, old: Param, new: Param) -> Param:
    """The new annotations, with the old ones' arguments where the record leaves them out."""
    if "sal_arguments" not in work.header.lacks:
        return new
    known = {word.partition("(")[0]: word for word in old.sal}
    return Param(new.name, new.type, tuple(known.get(word, word) for word in new.sal), new.loc)


def _param(
    work: Work, file: File, path: Path_, item: str | ParamSpec, old: str, new: str, release: int
) -> bool:
    line, column = file.place(path)
    dash, last = file.dash(path), file.last_line(path)
    review = f"{REVIEW}changed in 1.{release}"
    earlier = f"{{release: {release}, decl: {json.dumps(old)}}}"
    if isinstance(item, str):
        file.edits.drop(line, last)
        rows = [review, f"- decl: {scalar(new)}", "  before:", f"    - {earlier}"]
        file.edits.put_after(last, at_column(dash, rows))
        return True
    decl_line, decl_column = file.place((*path, "decl"))
    text = file.lines[decl_line]
    if item.before:
        return False
    if file.lines[line][column : column + 1] == "{":
        if decl_line != last or line != last:
            return False
        quoted = text[decl_column] in "\"'"
        end = decl_column + (len(item.decl) + 2 if quoted else len(item.decl))
        file.edits.replace(decl_line, decl_column, end, flow(new))
        close = text.rstrip().rfind("}")
        file.edits.replace(last, close, close, f", before: [{earlier}]")
    else:
        file.edits.replace(decl_line, decl_column, len(text), scalar(new))
        file.edits.put_after(last, at_column(dash + 2, ["before:", f"  - {earlier}"]))
    file.edits.put_before(line, at_column(dash, [review]))
    return True


def _parsed(text: str) -> Param:
    found = parse_declaration(text)
    return Param(found.name, found.type, found.sal)
