"""Read YAML into plain values together with the place of every node.

PyYAML's C scanner is used for its speed and its marks.  Only the part of YAML that the spec needs
is accepted: no aliases, no merge keys, no custom tags, no duplicate keys.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from .abi import Location
from .problems import Problem, SpecErrors

Path_ = tuple[str | int, ...]
_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_MAX_BYTES = 8 << 20
_INTEGER = re.compile(r"[-+]?(?:0|[1-9][0-9]{0,30}|0x[0-9A-Fa-f]{1,30})\Z")
_READABLE = "check its permissions"
_SYNTAX = "correct the syntax here or just above"
_SHALLOW = "no part of a spec is nested so deeply"


@dataclass
class Document:
    """A file's values and, by path (``("enums", 0, "name")``), where each stands."""

    file: str
    value: Any
    marks: dict[Path_, Location] = field(default_factory=dict)
    keys: dict[Path_, Location] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    """Faults of single nodes; the rest of the file can be looked at all the same."""

    def where(self, path: Path_) -> Location:
        """The place of the node at a path, or of its nearest existing ancestor."""
        while path and path not in self.marks:
            path = path[:-1]
        return self.marks.get(path, Location(self.file, 1, 1))

    def without(self, dropped: set[Path_]) -> Document:
        """The file without some of its sections ``(name,)`` and their items ``(name, index)``."""
        value: dict[str, Any] = {}
        moved: dict[Path_, Path_] = {}
        for section, items in self.value.items():
            if (section,) in dropped:
                continue
            moved[(section,)] = (section,)
            if not isinstance(items, list):
                value[section] = items
                continue
            kept = [at for at in range(len(items)) if (section, at) not in dropped]
            value[section] = [items[at] for at in kept]
            moved.update(((section, at), (section, to)) for to, at in enumerate(kept))

        def shifted(places: dict[Path_, Location]) -> dict[Path_, Location]:
            found = {}
            for path, place in places.items():
                deep = len(path) > 1 and isinstance(path[1], int)
                head = moved.get(path[:2] if deep else path[:1])
                if head is not None or not path:
                    found[(head or ()) + path[2 if deep else 1 :]] = place
            return found

        return Document(self.file, value, shifted(self.marks), shifted(self.keys))


def read_yaml(path: Path, shown: str | None = None) -> Document:
    """Read one file; raise :class:`SpecErrors` when it is not a readable YAML mapping."""
    name = shown or str(path)
    return parse_yaml(read_source(path, name).removeprefix("\ufeff"), name)


def read_source(path: Path, name: str) -> str:
    """A file's text as it is, mark and line ends included; raise :class:`SpecErrors` without any."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise SpecErrors(
            [Problem(Location(name), f"cannot read the file: {error.strerror}", _READABLE)]
        ) from None
    if len(data) > _MAX_BYTES:
        raise SpecErrors(
            [
                Problem(
                    Location(name),
                    f"the file has {len(data)} bytes; at most {_MAX_BYTES} are read",
                    "divide it into several files",
                )
            ]
        )
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise SpecErrors(
            [Problem(Location(name, line), "the file is not UTF-8", "save it as UTF-8")]
        ) from None


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
            [Problem(loc, f"not valid YAML: {error.problem or error.context}", _SYNTAX)]
        ) from None
    except yaml.YAMLError as error:
        raise SpecErrors(
            [
                Problem(
                    Location(name, 1, 1), f"not valid YAML: {str(error).splitlines()[0]}", _SYNTAX
                )
            ]
        ) from None
    except RecursionError:
        raise SpecErrors(
            [Problem(Location(name, 1, 1), "the YAML is nested too deeply", _SHALLOW)]
        ) from None
    if node is None:
        raise SpecErrors(
            [
                Problem(
                    Location(name, 1), "the file is empty", "start it with 'enums:' or 'structs:'"
                )
            ]
        )
    document.value = _Converter(document, document.problems).convert(node, ())
    if not isinstance(document.value, dict):
        problem = Problem(
            document.where(()),
            "the file must be a mapping of sections",
            "start it with 'enums:' or 'structs:'",
        )
        raise SpecErrors([*document.problems, problem])
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
            self.problems.append(Problem(loc, "the YAML is nested too deeply", _SHALLOW))
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
                self.problems.append(
                    Problem(
                        loc, "keys must be plain words", "write 'key: value'; nothing is merged"
                    )
                )
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
        if kind == "int" and not _INTEGER.match(node.value):
            # YAML 1.1 takes 010 for 8 and 1:30 for 90.
            hint = "write it in decimal, or in hexadecimal after 0x"
            self.problems.append(Problem(loc, f"'{node.value}' is not a plain number", hint))
        if kind in ("int", "bool", "null"):
            try:
                return getattr(self.constructor, f"construct_yaml_{kind}")(node)
            except ValueError:
                return 0  # a number that was refused above
        if not node.tag.startswith("tag:yaml.org,2002:"):
            self.problems.append(
                Problem(loc, f"the tag '{node.tag}' is not accepted here", "remove it")
            )
        return node.value
