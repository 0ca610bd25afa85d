"""Load the spec folder: YAML files to a checked :class:`~.model.Model`, or every problem at once."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from .abi import Location
from .backend import BackendSpec
from .model import Backend, Model, Source
from .problems import Problem, SpecErrors
from .resolve import Resolver
from .schema import INT32_MAX, SpecFile
from .yamlfile import Document, Path_, parse_yaml, read_yaml

MAIN_FILE = "interop_api.yaml"
_M = TypeVar("_M", bound=BaseModel)


def spec_files(spec_dir: Path) -> list[Path]:
    """The YAML files of a spec folder: the curated one first, then the rest, then the backends."""
    if not (spec_dir / MAIN_FILE).is_file():
        problem = Problem(
            Location(str(spec_dir)),
            f"there is no {MAIN_FILE} in this folder",
            "name the spec's folder with --spec-dir",
        )
        raise SpecErrors([problem])
    top = sorted(spec_dir.glob("*.yaml"), key=lambda p: (p.name != MAIN_FILE, p.name))
    return [*top, *sorted((spec_dir / "backends").glob("*.yaml"))]


def load_spec(spec_dir: Path) -> Model:
    """Read and check a whole spec folder; raise :class:`SpecErrors` with everything that is wrong."""
    documents: list[Document] = []
    problems: list[Problem] = []
    for path in spec_files(spec_dir):
        try:
            documents.append(read_yaml(path, _shown(path)))
        except SpecErrors as error:
            problems += error.problems
    return _build(documents, spec_dir, problems)


def load_texts(files: dict[str, str]) -> Model:
    """Like :func:`load_spec` for texts by file name (``backends/x.yaml`` for a backend)."""
    documents: list[Document] = []
    problems: list[Problem] = []
    for name, text in files.items():
        try:
            documents.append(parse_yaml(text, name))
        except SpecErrors as error:
            problems += error.problems
    return _build(documents, Path("."), problems)


def _shown(path: Path) -> str:
    """The path as the user would type it: relative where that is shorter."""
    try:
        return str(path.resolve().relative_to(Path.cwd()))
    except ValueError:
        return str(path)


def _build(documents: list[Document], spec_dir: Path, problems: list[Problem]) -> Model:
    sources: list[Source] = []
    backends: dict[str, Backend] = {}
    whole = not problems
    lost: set[str] = set()
    for document in documents:
        path = Path(document.file)
        problems += document.problems
        try:
            if path.parent.name == "backends":
                spec = validate(document, BackendSpec)
                backends[path.stem] = Backend(path.stem, spec, document)
            else:
                sources.append(Source(document, validate(document, SpecFile)))
        except SpecErrors as error:
            problems += error.problems
            if path.parent.name != "backends":
                left = _sound_part(document, lost)
                whole = whole and left is not None
                sources += [left] if left is not None else []
    if problems and (not whole or not any(s.file.versions for s in sources)):
        raise SpecErrors(problems)
    with_versions = [s for s in sources if s.file.versions is not None]
    if len(with_versions) != 1:
        where = (
            with_versions[1].document.where(("versions",))
            if with_versions
            else Location(str(spec_dir))
        )
        raise SpecErrors(
            [Problem(where, "exactly one spec file must have 'versions:'", "see interop_api.yaml")]
        )
    versions = with_versions[0].file.versions
    assert versions is not None
    problems += Resolver(tuple(sources), backends.values(), versions, lost).run()
    if problems:
        raise SpecErrors(problems)
    return Model(tuple(sources), versions, backends)


def _sound_part(document: Document, lost: set[str]) -> Source | None:
    """A file without the elements that its schema refuses, so that the rest can be checked too.

    The names that go with them are added to ``lost``.  None where the fault is not in an element.
    """
    try:
        SpecFile.model_validate(document.value)
    except ValidationError as error:
        places = [e["loc"] for e in error.errors(include_url=False)]
    dropped = {place[:2] for place in places}
    for path in dropped:
        if len(path) == 2 and not isinstance(path[1], int):
            return None
        item: Any = document.value
        for step in path:
            item = item[step]
        lost.update(_names_in(item))
    left = document.without(dropped)
    try:
        return Source(left, SpecFile.model_validate(left.value))
    except ValidationError:
        return None


def _names_in(value: Any) -> Iterator[str]:
    """What a part of a file may have declared."""
    if isinstance(value, dict):
        yield from (value[key] for key in ("name", "slot") if isinstance(value.get(key), str))
        value = list(value.values())
    if isinstance(value, list):
        for item in value:
            yield from _names_in(item)


def validate(document: Document, model: type[_M]) -> _M:
    """Check one file's values against its schema and turn each fault into a placed problem."""
    try:
        return model.model_validate(document.value)
    except ValidationError as error:
        problems = {_problem(document, dict(e), model) for e in error.errors(include_url=False)}
        raise SpecErrors(list(problems)) from None


def _problem(document: Document, error: dict[str, Any], model: type[BaseModel]) -> Problem:
    path = _path(document, error["loc"])
    key = str(error["loc"][-1]) if error["loc"] else ""
    value = error.get("input")
    match error["type"]:
        case "extra_forbidden":
            known = _known_keys(model, path)
            close = difflib.get_close_matches(key, known, 1)
            hint = (
                f"did you mean '{close[0]}'?"
                if close
                else f"known keys: {', '.join(known)}" if known else ""
            )
            return Problem(
                document.keys.get(path, document.where(path)), f"unknown key '{key}'", hint
            )
        case "missing":
            return Problem(document.where(path), f"the key '{key}' is missing", f"add '{key}:'")
        case "string_pattern_mismatch" if isinstance(value, str):
            return Problem(
                document.where(path),
                f"'{value}' is not valid here",
                _pattern_hint(error["ctx"]["pattern"]),
            )
        case "value_error":
            fault = error["ctx"]["error"]
            return Problem(document.where(path), str(fault), getattr(fault, "hint", ""))
        case kind:
            message = error["msg"][0].lower() + error["msg"][1:]
            shown = f" (found {value!r})" if isinstance(value, (str, int, float, bool)) else ""
            return Problem(
                document.where(path),
                f"{key}: {message}{shown}" if key else message,
                _type_hint(kind, value, error.get("ctx", {})),
            )


def _type_hint(kind: str, value: Any, context: dict[str, Any]) -> str:
    """What to write in place of a value of the wrong type or range."""
    if kind == "string_type" and not isinstance(value, (dict, list)):
        return "quote it if it is meant as text"
    if kind == "literal_error":
        return f"write one of {context['expected']}"
    bounds = {"less_than_equal": "le", "greater_than_equal": "ge"}
    if kind in bounds:
        return (
            "32-bit values of C enums go from -2147483648 to 2147483647"
            if abs(context[bounds[kind]]) >= INT32_MAX
            else "releases are minor numbers: 24 is 1.24"
        )
    return _WRITE.get(kind, "see `ort-interop-gen schema` for what may stand here")


_WRITE = {
    "string_type": "write text",
    "string_too_short": "write something, or leave the key out",
    "int_type": "write a whole number, without quotes",
    "bool_type": "write true or false",
    "list_type": "write a list of '- ' items, or leave the key out",
    "dict_type": "write 'key: value' lines",
    "model_type": "write 'key: value' lines",
    "too_short": "write at least one item",
}


def _pattern_hint(pattern: str) -> str:
    if "\\." in pattern and "h$" not in pattern:
        return "write 'Table.Slot'"
    if pattern.endswith(r"\.h$"):
        return "write a header's file name, such as onnxruntime_c_api.h"
    if pattern.startswith("^_[A-Z]"):
        return "write a SAL annotation, such as _In_opt_ or _In_reads_(count)"
    return "a C identifier has letters, digits and '_', and no digit first"


def _path(document: Document, loc: tuple[int | str, ...]) -> Path_:
    """Pydantic's location without the union tags that it adds, kept where the document has such a node."""
    path: Path_ = ()
    for at, step in enumerate(loc):
        if (*path, step) in document.marks or at == len(loc) - 1:
            path = (*path, step)
    return path


def _known_keys(model: type[BaseModel], path: Path_) -> list[str]:
    """The keys that a node at a path may have, found by walking the models' annotations."""
    found: set[type[BaseModel]] = {model}
    for step in path[:-1]:
        if isinstance(step, str):
            found = {
                inner
                for outer in found
                if step in outer.model_fields
                for inner in _models_in(outer.model_fields[step].annotation)
            }
    return sorted({name for m in found for name in m.model_fields})


def _models_in(annotation: Any) -> set[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return {annotation}
    found: set[type[BaseModel]] = set()
    for argument in getattr(annotation, "__args__", ()):
        found |= _models_in(argument)
    return found
