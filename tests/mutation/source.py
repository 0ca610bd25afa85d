"""The header that is mutated, and the check that is under test, from the tree's own spec."""

from __future__ import annotations

import re
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from ort_interop_gen.drift.check import NOT_CHECKED, run_check
from ort_interop_gen.drift.compare import compare
from ort_interop_gen.drift.finding import Finding, Severity
from ort_interop_gen.drift.lint_docs import lint_docs
from ort_interop_gen.header.errors import HeaderError
from ort_interop_gen.header.reader import read_header
from ort_interop_gen.render.env import TargetEnv
from ort_interop_gen.render.targets.c_header import CHeader
from ort_interop_gen.spec.abi import Abi
from ort_interop_gen.spec.load import load_spec
from ort_interop_gen.spec.model import Model

from .engine import MAIN, Header, interop_surface, real_header

ROOT = Path(__file__).resolve().parents[2]
SPEC = ROOT / "spec"


def at_release(model: Model, release: int) -> Model:
    """The same spec for a project that knows no release after ``release``."""
    versions = model.versions.model_copy(update={"newest": release, "ep_structs": release})
    return Model(model.sources, versions, model.backends)


def rendered_text(model: Model, release: int) -> str:
    """The C ABI header of a release, as the generator renders it, before it is formatted."""
    env = TargetEnv(ROOT / "templates" / "c_header")
    outputs = {o.path: o.text for o in CHeader().render(at_release(model, release), env)}
    return outputs["include/ort_interop_abi.h"]


def own_macros_removed(text: str) -> str:
    """Without what the rendered header adds for its users, which is not ONNX Runtime's."""
    return re.sub(r"^#define ORT_INTEROP_\w*VERSION .*\n", "", text, flags=re.M)


class SpecCheck:
    """The command ``check`` without a process of its own: the spec against a folder of headers.

    ``version-back`` and the like are a matter of two headers: see :meth:`against_header`.
    """

    def __init__(self, model: Model, original: Abi) -> None:
        self.model = model
        self.original = original
        self.known: Counter[tuple[str, str]] = Counter()
        """Faults that the documentation had before: ONNX Runtime's headers have some."""

    def __call__(self, folder: Path) -> Sequence[Finding]:
        """What ``check`` reports."""
        result = run_check(self.model, folder / MAIN)
        if result.exit_code == NOT_CHECKED:
            return [Finding("not-checked", Severity.UNREADABLE, "", result.message)]
        return result.findings

    def against_header(self, folder: Path) -> Sequence[Finding]:
        """What ``diff`` reports between the header as it was and the mutant."""
        try:
            result = read_header(folder / MAIN)
        except HeaderError as error:
            return [Finding("not-checked", Severity.UNREADABLE, "", str(error))]
        return compare(self.original, result.abi, result.unreadable)

    def of_documentation(self, folder: Path) -> Sequence[Finding]:
        """What ``lint-docs`` reports beyond what it did for the header as it was."""
        try:
            result = read_header(folder / MAIN)
        except HeaderError as error:
            return [Finding("not-checked", Severity.UNREADABLE, "", str(error))]
        left = Counter(self.known)
        new = []
        for finding in lint_docs(result, folder / MAIN, model=self.model):
            key = (finding.rule, finding.symbol)
            if left[key] > 0:
                left[key] -= 1
            else:
                new.append(finding)
        return new


def _prepared(header: Header, model: Model) -> tuple[Header, SpecCheck]:
    with tempfile.TemporaryDirectory() as folder:
        header.write(Path(folder))
        original = read_header(Path(folder) / MAIN).abi
        check = SpecCheck(model, original)
        check.known.update((f.rule, f.symbol) for f in check.of_documentation(Path(folder)))
    return header, check


def from_spec(release: int | None = None) -> tuple[Header, SpecCheck]:
    """The rendered header of a release (default: the newest) and its check."""
    model = load_spec(SPEC)
    text = own_macros_removed(rendered_text(model, release or model.newest))
    return _prepared(Header({MAIN: text}, interop_surface(model)), model)


def from_folder(folder: Path) -> tuple[Header, SpecCheck]:
    """ONNX Runtime's own headers in a folder, and the check against the spec of their release."""
    model = load_spec(SPEC)
    return _prepared(real_header(folder, interop_surface(model)), model)
