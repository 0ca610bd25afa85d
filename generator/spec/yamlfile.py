"""Read YAML into plain values together with the place of every node.

PyYAML's C scanner is used for its speed and its marks.  Only the part of YAML that the spec needs
is accepted: no aliases, no merge keys, no custom tags, no duplicate keys.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from .abi import Location
from .problems import Problem, SpecErrors

Path_ = tuple[str | int, ...]
_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_MAX_BYTES = 8 << 20


@dataclass
class Document:
    """A file's values and, by path (``("enums", 0, "name")``), where each stands."""

    file: str
    value: Any
    marks: dict[Path_, Location] = field(default_factory=dict)
    keys: dict[Path_, Location] = field(default_factory=dict)

    def where(self, path: Path_) -> Location:
        """The place of the node at a path, or of its nearest existing ancestor."""
        while path and path not in self.marks:
            path = path[:-1]
        return self.marks.get(path, Location(self.file, 1, 1))


def read_yaml(path: Path, shown: str | None = None) -> Document:
    """Read one file; raise :class:`SpecErrors` when it is not a readable YAML mapping."""
    name = shown or str(path)
    try:
        data = path.read_bytes()
    except OSError as error:
        raise SpecErrors(
            [Problem(Location(name), f"cannot read the file: {error.strerror}")]
        ) from None
    if len(data) > _MAX_BYTES:
        raise SpecErrors(
            [
                Problem(
                    Location(name), f"the file has {len(data)} bytes; at most {_MAX_BYTES} are read"
                )
            ]
        )
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise SpecErrors(
            [Problem(Location(name, line), "the file is not UTF-8", "save it as UTF-8")]
        ) from None
    return parse_yaml(text, name)


def parse_yaml(text: str, name: str) -> Document:
    """Read YAML text; ``name`` is the file name that errors show."""
    document = Document(name, None)
    try:
        loader = _Loader(text)
        try:
            node = loader.get_single_node()
        finally:
            loader.dispose()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        loc = Location(name, mark.line + 1, mark.column + 1) if mark else Location(name)
        raise SpecErrors(
            [Problem(loc, f"not valid YAML: {error.problem or error.context}")]
        ) from None
    except yaml.YAMLError as error:
        raise SpecErrors(
            [Problem(Location(name, 1), f"not valid YAML: {str(error).splitlines()[0]}")]
        ) from None
    except RecursionError:
        raise SpecErrors([Problem(Location(name, 1), "the YAML is nested too deeply")]) from None
    if node is None:
        raise SpecErrors(
            [
                Problem(
                    Location(name, 1), "the file is empty", "start it with 'enums:' or 'structs:'"
                )
            ]
        )
    problems: list[Problem] = []
    document.value = _Converter(document, problems).convert(node, ())
    if not isinstance(document.value, dict):
        problems.append(Problem(document.where(()), "the file must be a mapping of sections"))
    if problems:
        raise SpecErrors(problems)
    return document


class _Converter:
    _MAX_DEPTH = 40

    def __init__(self, document: Document, problems: list[Problem]) -> None:
        self.document = document
        self.problems = problems
        self.seen: set[int] = set()
        self.constructor = yaml.constructor.SafeConstructor()

    def convert(self, node: yaml.Node, path: Path_) -> Any:
        mark = node.start_mark
        loc = Location(self.document.file, mark.line + 1, mark.column + 1)
        self.document.marks[path] = loc
        if len(path) > self._MAX_DEPTH:
            self.problems.append(Problem(loc, "the YAML is nested too deeply"))
            return None
        if not isinstance(node, yaml.ScalarNode):
            if id(node) in self.seen:
                self.problems.append(
                    Problem(loc, "YAML aliases are not accepted here", "write the value out")
                )
                return None
            self.seen.add(id(node))
        if isinstance(node, yaml.MappingNode):
            return self.mapping(node, path)
        if isinstance(node, yaml.SequenceNode):
            return [self.convert(item, (*path, index)) for index, item in enumerate(node.value)]
        assert isinstance(node, yaml.ScalarNode)
        return self.scalar(node, loc)

    def mapping(self, node: yaml.MappingNode, path: Path_) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for key_node, value_node in node.value:
            mark = key_node.start_mark
            loc = Location(self.document.file, mark.line + 1, mark.column + 1)
            key = key_node.value if isinstance(key_node, yaml.ScalarNode) else None
            if not isinstance(key, str) or key_node.tag == "tag:yaml.org,2002:merge":
                self.problems.append(Problem(loc, "keys must be plain words"))
                continue
            if key in found:
                self.problems.append(Problem(loc, f"duplicate key '{key}'", "keep one of the two"))
                continue
            here = (*path, key)
            self.document.keys[here] = loc
            found[key] = self.convert(value_node, here)
        return found

    def scalar(self, node: yaml.ScalarNode, loc: Location) -> Any:
        kind = node.tag.rpartition(":")[2]
        if kind == "str" or node.style:
            return node.value
        if kind in ("int", "bool", "null"):
            try:
                return getattr(self.constructor, f"construct_yaml_{kind}")(node)
            except (ValueError, KeyError):
                self.problems.append(Problem(loc, f"'{node.value}' is not a readable {kind}"))
                return None
        if node.tag.startswith("tag:yaml.org,2002:"):
            return node.value
        self.problems.append(Problem(loc, f"the tag '{node.tag}' is not accepted here"))
        return None
