"""An API that changed before it shipped: the first proposal's spec against the release."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import yaml
from header_synth import synthesise
from ort_interop_gen.drift.compare import compare
from ort_interop_gen.spec import Model, load_spec
from ort_interop_gen.spec.abi import Field, function_pointer
from ort_interop_gen.spec.ctype import Named, Pointer
from ort_interop_gen.spec.facts import load_facts
from support import ROOT

PROPOSAL = ROOT / "tests" / "data" / "proposal"
RELEASE = 24


def proposal(folder: Path) -> Model:
    """The proposal's spec, with everything else as release 1.24 has it."""
    slots: dict[str, dict[str, list[Any]]] = yaml.safe_load((PROPOSAL / "slots.yaml").read_text())
    rest = yaml.safe_load((ROOT / "spec" / "ort_abi.yaml").read_text())
    for kind in ("enums", "opaque", "structs", "typedefs", "functions", "macros"):
        rest[kind] = [e for e in rest.get(kind, []) if e.get("since", 1) <= RELEASE]
    for struct in rest["structs"]:
        instead = slots.get(struct["name"], {})
        fields = []
        for item in struct["fields"]:
            if item.get("since", 1) <= RELEASE:
                fields += instead.pop(item.get("slot", ""), [item])
        struct["fields"] = fields
        assert not instead, f"the release has no slots {list(instead)}"
    (folder / "ort_abi.yaml").write_text(yaml.safe_dump(rest, sort_keys=False))
    (folder / "interop_api.yaml").write_text((PROPOSAL / "interop_api.yaml").read_text())
    return load_spec(folder)


IMPORTER = (
    "CanImportMemory ImportMemory CreateTensorFromMemory CanImportSemaphore ImportSemaphore"
    " WaitSemaphore SignalSemaphore"
)
MOVED = {
    **{f"OrtApi.ExternalResourceImporter_{n}": f"OrtInteropApi.{n}" for n in IMPORTER.split()},
    **{
        f"OrtApi.{n}": f"OrtInteropApi.{n}"
        for n in (
            "CreateExternalResourceImporterForDevice",
            "ReleaseExternalResourceImporter",
            "ReleaseExternalMemoryHandle",
            "ReleaseExternalSemaphoreHandle",
        )
    },
}
IMPL = "OrtExternalResourceImporterImpl"
EXPECTED: dict[str, set[str]] = {
    # Functions moved from OrtApi, some with a prefix, into a table of their own.
    "slot-relocated": set(MOVED),
    "type-added": {"OrtInteropApi"},
    "slot-inserted": {"OrtApi.GetInteropApi"},
    "slot-replaced": {"OrtApi.RunOptions_SetSyncStream"},
    # The implementation's handles became public base structs, for which its own types went.
    "opaque-completed": {"OrtExternalMemoryHandle", "OrtExternalSemaphoreHandle"},
    "type-removed": {
        "OrtExternalMemoryHandleImpl",
        "OrtExternalSemaphoreHandleImpl",
        "OrtExternalMemoryAccessMode",
    },
    "param-type": {
        *(f"{IMPL}.{n}" for n in IMPORTER.split() if not n.startswith("Can")),
        f"{IMPL}.ReleaseMemory",
        f"{IMPL}.ReleaseSemaphore",
        # The factory is asked for an EP device, not for a memory device.
        "OrtEpFactory.CreateExternalResourceImporterForDevice",
    },
    # What went: the access mode, the tensor's location, a version macro for each struct.
    "field-removed": {"OrtExternalMemoryDescriptor.access_mode"},
    "param-count": {"OrtInteropApi.CreateTensorFromMemory"},
    "macro-removed": {
        f"ORT_EXTERNAL_{n}_DESCRIPTOR_VERSION" for n in ("MEMORY", "SEMAPHORE", "TENSOR")
    },
    # The importer is stamped with the version of its maker.
    "field-inserted": {f"{IMPL}.ort_version_supported"},
    # "Unsupported" became success with a null importer.
    "sal-changed": {
        "OrtEpFactory.CreateExternalResourceImporterForDevice",
        "OrtInteropApi.CreateExternalResourceImporterForDevice",
    },
    # A release slot is declared by a macro, which calls its parameter so; and the factory's device.
    "param-renamed": {
        "OrtInteropApi.ReleaseExternalResourceImporter",
        "OrtInteropApi.ReleaseExternalMemoryHandle",
        "OrtInteropApi.ReleaseExternalSemaphoreHandle",
        "OrtEpFactory.CreateExternalResourceImporterForDevice",
    },
}
"""What became of the proposal on its way into the release, by rule; nothing else is found."""


def test_each_difference_has_its_rule_and_there_is_no_noise(tmp_path: Path) -> None:
    model = proposal(tmp_path)
    findings = compare(model.at(RELEASE), load_facts(ROOT / "spec" / "facts" / "ort-1.24.1.json"))
    found: dict[str, set[str]] = {}
    for finding in findings:
        found.setdefault(finding.rule, set()).add(finding.symbol)
    assert found == EXPECTED
    assert len(findings) == sum(map(len, EXPECTED.values())), "something is reported twice"
    assert {f.symbol: f.actual for f in findings if f.rule == "slot-relocated"} == MOVED


def test_the_command_line_shows_it(tmp_path: Path) -> None:
    """The same with a header of the release, as a maintainer of a binding would meet it."""
    spec = tmp_path / "spec"
    spec.mkdir()
    proposal(spec)
    header = synthesise(load_spec(ROOT / "spec").at(RELEASE), tmp_path / "ort")
    command = [sys.executable, "-m", "ort_interop_gen", "check", "--format", "json"]
    command += ["--spec-dir", str(spec), "--header", str(header)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 1, done.stderr
    found = {(f["rule"], f["symbol"]) for f in json.loads(done.stdout)["findings"]}
    assert found == {(rule, symbol) for rule, symbols in EXPECTED.items() for symbol in symbols}


def test_a_typedef_may_be_spelled_out() -> None:
    """OrtStatus* is OrtStatusPtr: a header may write either, and nothing is broken."""
    release = load_facts(ROOT / "spec" / "facts" / "ort-1.29.0.json")
    status = Pointer(Named("OrtStatus"))

    def spelled(field: Field) -> Field:
        if field.function is None or field.function.returns != Named("OrtStatusPtr"):
            return field
        function = replace(field.function, returns=status)
        return replace(field, function=function, type=function_pointer(function))

    structs = {
        name: replace(struct, fields=tuple(map(spelled, struct.fields)))
        for name, struct in release.structs.items()
    }
    assert structs != release.structs
    assert compare(release, replace(release, structs=structs)) == []
