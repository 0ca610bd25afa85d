"""Bring the spec up to a newer header: write what is certain, name what a person must decide.

The spec files are edited by line, with the places that the YAML reader kept.  A round trip through
a YAML library would wrap long texts again and re-indent flow mappings, so that the few new lines
would drown in the diff; inserted lines leave every other byte as its author wrote it.

What is written: new slots and fields at the end of what may grow, new enumerators, types, exported
functions and macros, each with the release it came in; renamed enumerators; parameters whose name
or annotation changed, with their earlier form under ``before``; elements that moved to another
header.  All of it carries a comment that asks for review.  Whatever is left is what a comparison
of the updated spec with the header still finds.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from ...header.errors import Unreadable
from ...spec.abi import NOWHERE, Abi, Location
from ...spec.facts import merge
from ...spec.load import load_texts, spec_files
from ...spec.model import Model
from ...spec.problems import Problem, SpecErrors
from ...spec.yamlfile import read_source
from ..compare import compare
from ..finding import Finding, Severity
from .elements import write_new_elements
from .enums import write_constants
from .members import write_members
from .moves import write_moves
from .params import write_params
from .versions import write_versions
from .work import REVIEW, Change, Work


@dataclass(slots=True)
class Update:
    """New texts by path (only of files that change), what was written, and what is left to decide."""

    release: int
    texts: dict[Path, str]
    originals: dict[Path, str]
    changes: list[Change]
    decide: list[Finding]


def update_spec(
    spec_dir: Path,
    header: Abi,
    *,
    records: Mapping[int, Abi] | None = None,
    unreadable: tuple[Unreadable, ...] = (),
) -> Update:
    """Edit the spec in ``spec_dir``, in memory, for the release that ``header`` declares.

    ``records`` are recorded releases: they tell in which release between the spec's newest and the
    header's an element came; a partial record is completed with the one before it.  Raises
    :class:`SpecErrors` for a header older than the spec, and for a spec that is at fault before.
    """
    paths = {str(p): p for p in spec_files(spec_dir)}
    files = {name: read_source(path, name) for name, path in paths.items()}
    originals = {name: _plain(text) for name, text in files.items()}
    model = load_texts(originals)
    if header.api_version < model.newest:
        version = header.macros.get("ORT_API_VERSION")
        problem = Problem(
            version.loc if version else NOWHERE,
            f"the header is of 1.{header.api_version}, but the spec knows releases up to "
            f"1.{model.newest} already",
            "use `check` to compare it with the spec of its release",
        )
        raise SpecErrors([problem])
    known = records or {}
    if header.partial:
        older = [n for n, a in known.items() if n < header.api_version and not a.partial]
        header = merge(known[max(older)], header) if older else header
    work = Work(model, originals, header, known)
    texts = _written(work)
    try:
        try:
            updated = load_texts(texts)
        except SpecErrors:
            # The spec may say more of a parameter than its declaration, which the new one contradicts.
            left = {s for s in work.reworded if not _stands(model, originals, header, s)}
            if not left:
                raise
            work = Work(model, originals, header, known, lambda symbol: symbol not in left)
            texts = _written(work)
            updated = load_texts(texts)
    except SpecErrors as error:
        problem = Problem(
            Location(str(spec_dir)),
            "the header has what no spec may say, so nothing was written",
            "write by hand what it has beside that; the lines below are those of the text as it would be",
        )
        raise SpecErrors([problem, *error.problems]) from None
    decide = [
        _for_people(finding, work)
        for finding in compare(updated.at(header.api_version), header, unreadable)
    ]
    return Update(
        header.api_version,
        {
            paths[name]: _like(files[name], text)
            for name, text in texts.items()
            if text != originals[name]
        },
        {paths[name]: text for name, text in files.items()},
        work.changes,
        decide,
    )


def _plain(text: str) -> str:
    """A file's text with LF at line ends and without a mark in front."""
    return text.removeprefix("\ufeff").replace("\r\n", "\n")


def _like(file: str, text: str) -> str:
    """Text with the line ends of a file, and with its mark."""
    mark = "\ufeff" if file.startswith("\ufeff") else ""
    return mark + (text.replace("\n", "\r\n") if "\r\n" in file else text)


def _for_people(finding: Finding, work: Work) -> Finding:
    """A finding that stays, without the advice to let ``update`` write it."""
    if finding.severity is not Severity.ADDITIVE:
        return finding
    hint = "this could not be written: write it by hand"
    if finding.symbol.partition(".")[0] in work.embedded:
        hint = "others hold this struct by value, and growing it moves what follows: see who is affected"
    return replace(finding, hint=hint)


def _stands(model: Model, texts: Mapping[str, str], header: Abi, symbol: str) -> bool:
    """Whether the spec is sound with just the parameters of one function as the header has them."""
    work = Work(model, texts, header, {}, lambda other: other == symbol)
    for file in work.files:
        write_params(work, file)
    write_versions(work)
    try:
        load_texts({**texts, **{file.name: file.edits.text() for file in work.files}})
    except SpecErrors:
        return False
    return True


def _written(work: Work) -> dict[str, str]:
    for file in work.files:
        # In this order, because a table's last slot may change and be followed by new ones.
        write_params(work, file)
        write_constants(work, file)
        write_members(work, file)
        write_moves(work, file)
    write_new_elements(work)
    write_versions(work)
    edited = {f.name: f.edits.text() for f in work.files}
    edited |= {name: edits.text() for name, edits in work.backends.items()}
    return {name: edited.get(name, text) for name, text in work.texts.items()}


def patch(update: Update) -> Iterator[str]:
    """The changes as a unified diff, line by line, to be applied in the working directory."""
    from difflib import unified_diff

    for path, text in update.texts.items():
        old = update.originals[path].splitlines(keepends=True)
        full, here = path.resolve(), Path.cwd()
        name = full.relative_to(here if full.is_relative_to(here) else full.anchor).as_posix()
        yield from unified_diff(old, text.splitlines(keepends=True), f"a/{name}", f"b/{name}")


__all__ = ["REVIEW", "Change", "Update", "patch", "update_spec"]
