"""The template environment is strict, and the target interface is enforced."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest
from ort_interop_gen.render.background import Background
from ort_interop_gen.render.env import TargetEnv, identifier
from ort_interop_gen.render.errors import RenderErrors
from ort_interop_gen.render.output import Output
from ort_interop_gen.render.pipeline import render
from ort_interop_gen.render.target import TARGETS, load_targets
from ort_interop_gen.spec import Model, load_spec
from support import ROOT


def template(folder: Path, text: str) -> TargetEnv:
    (folder / "t.h.j2").write_text(text, encoding="utf-8")
    return TargetEnv(folder)


@pytest.mark.parametrize(
    "text",
    [
        "a\nb\n{{ nothing }}\n",
        "a\nb\n{{ x.nothing }}\n",
        "a\nb\n{% if x %}\n",
        "a\nb\n{{ x | no }}\n",
    ],
)
def test_a_faulty_template_is_an_error_with_its_line(tmp_path: Path, text: str) -> None:
    with pytest.raises(RenderErrors) as caught:
        template(tmp_path, text).render("t.h.j2", x=object())
    (problem,) = caught.value.problems
    assert problem.loc.file.endswith("t.h.j2")
    assert problem.loc.line in (3, 4)


def test_a_missing_template_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(RenderErrors, match=r"none\.j2"):
        TargetEnv(tmp_path).render("none.j2")


def test_every_escape_is_a_filter(tmp_path: Path) -> None:
    env = template(tmp_path, '{{ t | c_string }} {{ t | py_string }} {{ "/*" | c_comment }}\n')
    assert env.render("t.h.j2", t='"') == '"\\"" "\\"" / *\n'


def test_plain_files_are_copied_in_order_and_templates_are_not(tmp_path: Path) -> None:
    template(tmp_path, "x")
    (tmp_path / "sub").mkdir()
    for name in ("z.c", "a.c", "sub/b.py"):
        (tmp_path / name).write_text("\n")
    found = list(TargetEnv(tmp_path).copy_tree("", "out"))
    assert [o.path for o in found] == ["out/a.c", "out/sub/b.py", "out/z.c"]
    assert [o.language for o in found] == ["c", "python", "c"]
    assert all(o.verbatim for o in found)


@pytest.mark.parametrize("name", ["", "a b", "1a", "a-b", "a;", "a\n"])
def test_only_identifiers_pass_as_identifiers(name: str) -> None:
    with pytest.raises(RenderErrors):
        identifier(name)


class _Target:
    def __init__(self, name: str, *paths: str) -> None:
        self.name = name
        self.paths = paths

    def render(self, model: Model, env: TargetEnv) -> Iterable[Output]:
        return [Output(path, "\n", "text") for path in self.paths]


def test_two_targets_cannot_claim_one_path(tmp_path: Path) -> None:
    model = load_spec(ROOT / "spec")
    # Folders of some systems do not tell cases apart, so neither do we.
    with pytest.raises(RenderErrors, match="already rendered"):
        render(model, [_Target("a", "x.h"), _Target("b", "X.h")], tmp_path)
    with pytest.raises(RenderErrors, match=r"manifest\.json"):
        render(model, [_Target("a", "manifest.json")], tmp_path)


def test_every_registered_target_loads_under_its_name() -> None:
    assert [t.name for t in load_targets()] == [module for module, _ in TARGETS]
    for target in load_targets():
        assert (ROOT / "templates" / target.name).is_dir()


def test_every_target_module_is_registered() -> None:
    modules = {p.stem for p in (ROOT / "generator" / "render" / "targets").glob("*.py")}
    assert modules - {"__init__"} == {module for module, _ in TARGETS}


def test_background_work_gives_its_result_or_its_error() -> None:
    with Background(lambda: [1, 2]) as work:
        assert work.result() == [1, 2]

    def fails() -> None:
        raise ValueError("from the child")

    with Background(fails) as work, pytest.raises(ValueError, match="from the child"):
        work.result()


def test_abandoned_background_work_ends() -> None:
    with pytest.raises(RuntimeError, match="main"), Background(lambda: "x" * (1 << 20)):
        raise RuntimeError("main")
