"""The whole of ``generate``: load, cross-check, render, format, parse, and only then write."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from ..spec.abi import Location
from ..spec.problems import Problem
from .errors import RenderErrors, render_error
from .find_header import FoundHeader, find_header
from .inputs import (
    State,
    input_digest,
    read_state,
    reusable,
    style_digest,
    unchanged,
    write_state,
)
from .write import MANIFEST, Plan, apply, digest, manifest_text, plan

if TYPE_CHECKING:
    from ..spec import Model
    from .crosscheck import CrossCheck
    from .output import Output
    from .target import Target

STYLE = ".clang-format"
MAIN_FILE = "interop_api.yaml"


@dataclass(frozen=True, slots=True)
class Request:
    """What to generate, from where, into which folder."""

    spec_dir: Path
    templates: Path
    out: Path
    header: Path | None = None
    environ: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))


@dataclass(slots=True)
class Result:
    """What a run did or would do."""

    changes: Plan
    texts: dict[str, str]
    report: list[str]
    findings: list[str] = field(default_factory=list)
    stopped: bool = False
    """The cross-check found that the spec is wrong; nothing was rendered."""
    skipped: bool = False
    """Nothing had changed since the last run, so nothing was done."""


def generate(request: Request) -> Result:
    """Bring the output folder up to date; raise :class:`~..spec.SpecErrors` on bad input."""
    header = find_header(request.header, request.environ)
    inputs = _inputs(request, header)
    state = read_state(request.out)
    if unchanged(request.out, state, inputs):
        return Result(Plan(), {}, state.report, skipped=True)
    result, rendered = _run(request, header, state)
    if not result.stopped:
        apply(request.out, result.texts, result.changes)
        style = style_digest(request.templates / STYLE)
        files = {path: digest(text.encode()) for path, text in result.texts.items()}
        if not result.findings:
            write_state(request.out, State(inputs, style, files, rendered, result.report))
    return result


def check(request: Request) -> Result:
    """What ``generate`` would change, found without trusting any record of earlier runs."""
    return _run(request, find_header(request.header, request.environ), None)[0]


def _inputs(request: Request, header: FoundHeader | None) -> str:
    if not (request.spec_dir / MAIN_FILE).is_file():
        from ..spec import load_spec

        load_spec(request.spec_dir)  # says what is wrong with the folder
    if not (request.templates / STYLE).is_file():
        raise render_error(
            f"there is no {STYLE} in this folder",
            "name the templates' folder with --templates",
            Location(str(request.templates)),
        )
    files: set[Path] = set()
    if header is not None:
        files = {header.path, *header.path.parent.glob("onnxruntime_*.h")}
    return input_digest((request.spec_dir, request.templates), sorted(files))


def _run(
    request: Request, header: FoundHeader | None, state: State | None
) -> tuple[Result, dict[str, str]]:
    from ..spec import load_spec
    from .background import Background
    from .crosscheck import check_facts, check_header
    from .target import load_targets

    model = load_spec(request.spec_dir)
    # Both need what each release has.
    for release in range(model.floor, model.newest + 1):
        model.at(release)

    def crosscheck() -> list[CrossCheck]:
        return [check_facts(model, request.spec_dir / "facts"), check_header(model, header)]

    # The check needs as long as the rendering, and neither needs the other.
    with Background(crosscheck) as checking:
        texts, rendered = _texts(request, batches(model, load_targets(), request.templates), state)
        checks = checking.result()
    report = [line for check in checks for line in check.report]
    findings = [line for check in checks for line in check.findings]
    if any(check.stops for check in checks):
        return Result(Plan(), {}, report, findings, stopped=True), {}
    texts[MANIFEST] = manifest_text(texts)
    return Result(plan(request.out, texts), texts, report, findings), rendered


def render(model: Model, targets: Iterable[Target], templates: Path) -> list[Output]:
    """Every output of every target; two targets that claim one path are an error."""
    return [output for batch in batches(model, targets, templates) for output in batch]


def batches(model: Model, targets: Iterable[Target], templates: Path) -> Iterator[list[Output]]:
    """What :func:`render` gives, target by target as it is rendered."""
    from .env import TargetEnv

    seen = {MANIFEST.casefold()}
    problems = []
    for target in targets:
        outputs = list(target.render(model, TargetEnv(templates / target.name)))
        for output in outputs:
            if output.path.casefold() in seen:
                problems.append(
                    Problem(
                        Location(output.path),
                        f"target '{target.name}' renders a file that is already rendered",
                        "give one of the two another path",
                    )
                )
            seen.add(output.path.casefold())
        yield outputs
    if problems:
        raise RenderErrors(problems)


def _texts(
    request: Request, lots: Iterable[list[Output]], state: State | None
) -> tuple[dict[str, str], dict[str, str]]:
    """The final text of every output, and the digest of each before it was formatted."""
    from .format import Formatter

    style = request.templates / STYLE
    styled = style_digest(style) if state is not None else ""
    known: dict[str, str] = {}
    rendered: dict[str, str] = {}
    paths: list[str] = []
    with Formatter(style) as formatter:
        for outputs in lots:
            digests = {o.path: digest(o.text.encode()) for o in outputs if not o.verbatim}
            if state is not None:
                known |= reusable(request.out, state, styled, digests)
            rendered |= digests
            paths += [o.path for o in outputs]
            formatter.add([o for o in outputs if o.path not in known])
        texts = formatter.result() | known
    return {path: texts[path] for path in paths}, rendered
