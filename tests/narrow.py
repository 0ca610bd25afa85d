"""Narrow the text of spec files to an older release: what they would say had they been written then."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ort_interop_gen.spec.load import spec_files
from ort_interop_gen.spec.yamlfile import Document, Path_, parse_yaml


class _Text:
    def __init__(self, text: str, name: str) -> None:
        self.lines = text.split("\n")
        self.document: Document = parse_yaml(text, name)
        self.rows: dict[int, list[str]] = {n: [line] for n, line in enumerate(self.lines)}

    def span(self, path: Path_) -> tuple[int, int]:
        """First and last line of an item of a block sequence."""
        first = self.document.marks[path].line - 1
        dash = self.lines[first].index("- ")
        last = first
        for number in range(first + 1, len(self.lines)):
            body = self.lines[number].lstrip()
            indent = len(self.lines[number]) - len(body)
            if body and not body.startswith("#"):
                if indent <= dash:
                    break
                last = number
        return first, last

    def put(self, path: Path_, rows: list[str]) -> None:
        first, last = self.span(path)
        for number in range(first, last + 1):
            self.rows[number] = []
        self.rows[first] = rows

    def drop_key(self, path: Path_) -> None:
        """A key with a value on the same line, in a block mapping."""
        self.rows[self.document.keys[path].line - 1] = []

    def value(self, path: Path_, old: str, new: str) -> None:
        mark = self.document.marks[path]
        line = self.rows[mark.line - 1][0]
        at = mark.column - 1
        assert line[at:].startswith(old), (line, old)
        self.rows[mark.line - 1] = [line[:at] + new + line[at + len(old) :]]

    def text(self) -> str:
        return "\n".join(row for number in sorted(self.rows) for row in self.rows[number])


def newer_slots(data: dict[str, Any], release: int) -> set[str]:
    """The slots that a spec file has only after a release."""
    return {
        f"{struct['name']}.{member['slot']}"
        for struct in data.get("structs", ())
        for member in struct["fields"]
        if "slot" in member and max(struct.get("since", 1), member.get("since", 1)) > release
    }


def narrow_text(text: str, name: str, release: int, gone: frozenset[str] = frozenset()) -> str:
    """One spec file as it would have been when ``release`` was the newest, without ``gone`` slots."""
    work = _Text(text, name)
    data = work.document.value
    for key, value in data.get("versions", {}).items():
        if value > release:
            work.value(("versions", key), str(value), str(release))
    for section in ("enums", "opaque", "structs", "typedefs", "functions", "macros", "handles"):
        for index, element in enumerate(data.get(section, ())):
            path: Path_ = (section, index)
            if element.get("since", 1) > release:
                work.put(path, [])
                continue
            if element.get("moved", {}).get("release", 0) > release:
                work.drop_key((*path, "moved"))
                default = data.get("header", "onnxruntime_c_api.h")
                if element["moved"]["header"] == default:
                    work.drop_key((*path, "header"))
                else:
                    work.value((*path, "header"), element["header"], element["moved"]["header"])
            for at, constant in enumerate(element.get("constants", ())):
                _constant(work, (*path, "constants", at), constant, release)
            for function_path, function in _functions(path, element):
                if function.get("since", 1) > release:
                    work.put(function_path, [])
                else:
                    _params(work, function_path, function, release)
    for index, note in enumerate(data.get("annotate", ())):
        if note["slot"] in gone:
            work.put(("annotate", index), [])
    return work.text()


def _functions(path: Path_, element: dict[str, Any]) -> Iterator[tuple[Path_, dict[str, Any]]]:
    for at, member in enumerate(element.get("fields", ())):
        yield (*path, "fields", at), member
    if "function" in element:
        yield (*path, "function"), element["function"]


def _constant(work: _Text, path: Path_, constant: dict[str, Any], release: int) -> None:
    if constant.get("since", 1) > release:
        work.put(path, [])
    elif constant.get("renamed", {}).get("release", 0) > release:
        work.value((*path, "name"), constant["name"], constant["renamed"]["name"])
        work.drop_key((*path, "renamed"))


def _params(work: _Text, path: Path_, function: dict[str, Any], release: int) -> None:
    for at, param in enumerate(function.get("params", ())):
        later = [b for b in param.get("before", ()) if b["release"] > release] if isinstance(param, dict) else []  # fmt: skip
        if later:
            item = (*path, "params", at)
            first, _ = work.span(item)
            indent = work.lines[first].index("- ")
            decl = min(later, key=lambda b: int(b["release"]))["decl"]
            work.put(item, [" " * indent + f"- {json.dumps(decl)}"])


def narrow_folder(spec_dir: Path, target: Path, release: int) -> None:
    """A copy of a spec folder narrowed to a release; without backends, which name newer constants."""
    target.mkdir(parents=True, exist_ok=True)
    texts = {p.name: p.read_text("utf-8") for p in spec_files(spec_dir) if p.parent == spec_dir}
    gone = {s for n, t in texts.items() for s in newer_slots(parse_yaml(t, n).value, release)}
    for name, text in texts.items():
        narrowed = narrow_text(text, name, release, frozenset(gone))
        (target / name).write_text(narrowed, encoding="utf-8")
