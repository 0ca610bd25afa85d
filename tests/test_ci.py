"""What CI maintainers take over: the action, the pre-commit hooks, the GitLab job, the CMake function."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from header_synth import synthesise
from ort_interop_gen.spec import load_spec
from support import ROOT, need_tool

RENAMED = ("ORT_API2_STATUS(ImportMemory,", "ORT_API2_STATUS(ImportAllocation,")
SHIFTED = ("ORT_EXTERNAL_SEMAPHORE_D3D12_FENCE = 0", "ORT_EXTERNAL_SEMAPHORE_D3D12_FENCE = 7")


@pytest.fixture(scope="module")
def released(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with headers that fit the spec."""
    return synthesise(load_spec(ROOT / "spec").at(29), tmp_path_factory.mktemp("ort")).parent


def edit(path: Path, change: tuple[str, str]) -> int:
    """Change the header; the line that was changed."""
    old, new = change
    text = path.read_text()
    assert text.count(old) == 1
    path.write_text(text.replace(old, new))
    return text[: text.index(old)].count("\n") + 1


def run(command: list[str], **options: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, **options)


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A git repository with what a user of the hooks or the action gets of this one."""
    folder = tmp_path_factory.mktemp("project") / "ort-interop-gen"
    folder.mkdir()
    for name in ("generator", "spec", "templates"):
        ignored = shutil.ignore_patterns("__pycache__", "*.pyc")
        shutil.copytree(ROOT / name, folder / name, ignore=ignored)
    for name in ("pyproject.toml", "README.md", "LICENSE", "action.yml", ".pre-commit-hooks.yaml"):
        shutil.copy(ROOT / name, folder / name)
    repository(folder)
    return folder


def repository(folder: Path) -> str:
    """Make a folder a repository of one commit, whose id is returned."""
    git = need_tool("git")
    identity = ["-c", "user.name=test", "-c", "user.email=test@localhost"]
    for words in (["init", "-q"], ["add", "-A"], [*identity, "commit", "-q", "-m", "all"]):
        done = run([git, *words], cwd=folder)
        assert done.returncode == 0, done.stderr
    return run([git, "rev-parse", "HEAD"], cwd=folder).stdout.strip()


# The action --------------------------------------------------------------------------------------


def _filled(text: str, inputs: Mapping[str, str]) -> str:
    """Text with its ``${{ inputs.x }}``; anything else in such braces has no place in our steps."""
    return re.sub(r"\$\{\{ inputs\.([\w-]+) \}\}", lambda m: inputs[m[1]], text)


class Action:
    """Runs the steps of ``action.yml`` as GitHub's runner does, on this machine."""

    def __init__(self, path: Path, temporary: Path) -> None:
        self.action = yaml.safe_load((path / "action.yml").read_text())
        self.path = path
        self.temporary = temporary

    def install(self) -> None:
        """The first step, once for all tests."""
        first = self.action["runs"]["steps"][0]
        none = self.temporary / "none"
        done = self.step(first, self.temporary, {"python": sys.executable}, none, none)
        assert done.returncode == 0, done.stderr

    def step(
        self,
        step: dict[str, Any],
        workspace: Path,
        inputs: Mapping[str, str],
        output: Path,
        summary: Path,
    ) -> subprocess.CompletedProcess[str]:
        environ = {k: _filled(v, inputs) for k, v in step.get("env", {}).items()}
        assert "${{" not in step["run"], "inputs must go through the environment"
        environ |= {
            "GITHUB_ACTION_PATH": str(self.path),
            "RUNNER_TEMP": str(self.temporary),
            "GITHUB_OUTPUT": str(output),
            "GITHUB_STEP_SUMMARY": str(summary),
        }
        shell = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]]
        return run(shell, cwd=workspace, env=os.environ | environ)

    def run(self, workspace: Path, **given: str) -> tuple[int, str, dict[str, str], str]:
        """The last step's exit code, what was printed, the outputs and the summary."""
        inputs = {k: v.get("default", "") for k, v in self.action["inputs"].items()}
        required = {k for k, v in self.action["inputs"].items() if v.get("required")}
        words = {k.replace("_", "-"): v for k, v in given.items()}
        assert required <= words.keys() <= inputs.keys()
        output, summary = self.temporary / "output", self.temporary / "summary"
        output.write_text("")
        summary.write_text("")
        printed = ""
        code = 0
        steps = self.action["runs"]["steps"]
        for step in steps[1:]:
            done = self.step(step, workspace, inputs | words, output, summary)
            printed += done.stdout + done.stderr
            code = done.returncode
            if code:
                break
        outputs = dict(line.split("=", 1) for line in output.read_text().splitlines())
        return code, printed, outputs, summary.read_text()


@pytest.fixture(scope="module")
def action(sources: Path, tmp_path_factory: pytest.TempPathFactory) -> Action:
    found = Action(sources, tmp_path_factory.mktemp("runner"))
    found.install()
    return found


def workspace(folder: Path, released: Path) -> Path:
    shutil.copytree(released, folder / "third party" / "ort")
    return folder


def test_the_action_passes_headers_that_fit(action: Action, tmp_path: Path, released: Path) -> None:
    place = workspace(tmp_path, released)
    code, printed, outputs, summary = action.run(place, header="third party/ort")
    assert code == 0, printed
    assert outputs["result"] == "clean"
    assert "no differences" in summary
    assert "::error" not in printed
    assert json.loads(Path(outputs["sarif"]).read_text())["runs"][0]["results"] == []


def test_the_action_annotates_and_fails(action: Action, tmp_path: Path, released: Path) -> None:
    place = workspace(tmp_path, released)
    line = edit(place / "third party" / "ort" / "onnxruntime_c_api.h", SHIFTED)
    code, printed, outputs, summary = action.run(place, header="third party/ort")
    assert code == 1
    assert outputs["result"] == "drift"
    assert f"::error file=third party/ort/onnxruntime_c_api.h,line={line},title=" in printed
    assert "🔴 breaking (1)" in summary
    (result,) = json.loads(Path(outputs["sarif"]).read_text())["runs"][0]["results"]
    place_of = result["locations"][0]["physicalLocation"]
    assert place_of["artifactLocation"]["uri"] == "third%20party/ort/onnxruntime_c_api.h"
    assert place_of["region"]["startLine"] == line


def test_the_action_hands_its_inputs_on(action: Action, tmp_path: Path, released: Path) -> None:
    place = workspace(tmp_path, released)
    edit(place / "third party" / "ort" / "onnxruntime_c_api.h", RENAMED)
    options = {"header": "third party/ort"}
    assert action.run(place, **options, fail_on="breaking")[0] == 0
    assert action.run(place, **options, fail_on="source")[0] == 1
    (place / "my config.toml").write_text(
        '[rules.slot-renamed]\nseverity = "off"\nreason = "ours"\n'
    )
    assert action.run(place, **options, config="my config.toml")[0] == 0
    code, printed, outputs, _ = action.run(place, **options, spec_dir="nowhere; exit 0")
    assert (code, outputs) == (2, {})
    title = "::error title=The ONNX Runtime headers could not be checked::"
    assert f"{title}nowhere; exit 0: error: there is no interop_api.yaml" in printed
    assert f"{title}Error: Invalid value for '--fail-on'" in action.run(
        place, **options, fail_on="100%"
    )[1].replace("100%25", "100%")


def test_what_is_installed_has_everything(action: Action, tmp_path: Path) -> None:
    """Templates of reports and recorded releases travel with the package."""
    tool = action.temporary / "ort-interop-gen" / "bin" / "ort-interop-gen"
    command = [str(tool), "diff", "1.28", "1.29", "--format", "html"]
    done = run(command, cwd=tmp_path, env={**os.environ, "PYTHONPATH": ""})
    assert (done.returncode, done.stderr) == (1, "")
    assert done.stdout.rstrip().endswith("</html>")


# pre-commit --------------------------------------------------------------------------------------


def test_the_pre_commit_hooks_in_a_scratch_repository(
    sources: Path, tmp_path: Path, released: Path
) -> None:
    tool = need_tool("pre-commit")
    user = tmp_path / "user"
    shutil.copytree(released, user / "ort")
    revision = run([need_tool("git"), "rev-parse", "HEAD"], cwd=sources).stdout.strip()
    hooks = [
        {"id": "ort-interop-check", "args": ["--header", "ort", "--fail-on", "source"]},
        {"id": "ort-interop-lint-docs", "args": ["--header", "ort"]},
    ]
    config = {"repos": [{"repo": str(sources), "rev": revision, "hooks": hooks}]}
    (user / ".pre-commit-config.yaml").write_text(yaml.safe_dump(config))
    repository(user)
    environ = os.environ | {"PRE_COMMIT_HOME": str(tmp_path / "cache"), "NO_COLOR": "1"}
    environ.pop("GIT_DIR", None)

    def hook(name: str, *files: str) -> subprocess.CompletedProcess[str]:
        command = [tool, "run", name, "--color", "never", "--files", *files]
        return run(command, cwd=user, env=environ)

    done = hook("ort-interop-check", "ort/onnxruntime_c_api.h")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Passed" in done.stdout
    line = edit(user / "ort" / "onnxruntime_c_api.h", RENAMED)
    done = hook("ort-interop-check", "ort/onnxruntime_ep_c_api.h")
    assert done.returncode == 1
    assert "source[slot-renamed] OrtInteropApi.ImportMemory" in done.stdout
    assert f"ort/onnxruntime_c_api.h:{line}" in done.stdout
    assert "Skipped" in hook("ort-interop-check", ".pre-commit-config.yaml").stdout
    done = hook("ort-interop-lint-docs", "ort/onnxruntime_c_api.h")
    assert "Passed" in done.stdout or "documentation[" in done.stdout, done.stdout + done.stderr


# GitLab ------------------------------------------------------------------------------------------


def _documented(language: str, needle: str) -> str:
    text = (ROOT / "docs" / "ci.md").read_text()
    blocks = re.findall(rf"```{language}\n(.*?)```", text, re.S)
    (block,) = [b for b in blocks if needle in b]
    return str(block)


def test_the_documented_gitlab_job(tmp_path: Path, released: Path) -> None:
    job = yaml.safe_load(_documented("yaml", "junit"))["onnxruntime-headers"]
    header = job["variables"]["ORT_INCLUDE_DIR"]
    shutil.copytree(released, tmp_path / header)
    install, *script = job["script"]
    assert install == "pip install ort-interop-gen"
    path = f"{Path(need_tool('ort-interop-gen')).parent}{os.pathsep}{os.environ['PATH']}"
    environ = os.environ | job["variables"] | {"PATH": path}
    artifacts = [*job["artifacts"]["paths"], job["artifacts"]["reports"]["junit"]]
    for change, code in ((None, 0), (RENAMED, 1)):
        if change:
            edit(tmp_path / header / "onnxruntime_c_api.h", change)
        done = run(["bash", "-ec", "\n".join(script)], cwd=tmp_path, env=environ)
        assert done.returncode == code, done.stdout + done.stderr
        for name in artifacts:
            text = (tmp_path / name).read_text()
            assert ("ImportAllocation" in text) == bool(change)
            (tmp_path / name).unlink()


def test_the_documented_configuration_is_one(tmp_path: Path) -> None:
    from ort_interop_gen.drift.config import load_config

    path = tmp_path / "pyproject.toml"
    path.write_text(_documented("toml", "fail-on"))
    config = load_config(path)
    assert config.fail_on == "contract"
    assert set(config.overrides) == {"param-renamed"}


def test_the_documented_workflow_uses_what_the_action_has() -> None:
    action = yaml.safe_load((ROOT / "action.yml").read_text())
    steps = yaml.safe_load(_documented("yaml", "upload-sarif"))["jobs"]["headers"]["steps"]
    (ours,) = [s for s in steps if s.get("id") == "drift"]
    assert ours["with"].keys() <= action["inputs"].keys()
    used = set(re.findall(r"steps\.drift\.outputs\.(\w+)", str(steps)))
    assert used <= action["outputs"].keys()
    assert {s["shell"] for s in action["runs"]["steps"]} == {"bash"}


# CMake -------------------------------------------------------------------------------------------

_PROJECT = """\
cmake_minimum_required(VERSION 3.20)
project(user LANGUAGES C)
list(APPEND CMAKE_MODULE_PATH "{modules}")
include(OrtInterop)
add_library(ep STATIC ep.c)
ort_interop_check_header(ep {arguments})
"""


class Project:
    """A CMake project that compiles one file and checks its headers before."""

    def __init__(self, folder: Path, released: Path, arguments: str) -> None:
        self.folder = folder
        self.build_folder = folder / "build"
        shutil.copytree(released, folder / "ort")
        (folder / "ep.c").write_text("int ep(void);\nint ep(void) { return 0; }\n")
        modules = ROOT / "cmake"
        (folder / "CMakeLists.txt").write_text(
            _PROJECT.format(modules=modules, arguments=arguments)
        )

    def configure(self, *options: str, **environ: str) -> subprocess.CompletedProcess[str]:
        command = [need_tool("cmake"), "-S", str(self.folder), "-B", str(self.build_folder)]
        return run([*command, "-G", "Ninja", *options], env=os.environ | environ)

    def build(self) -> subprocess.CompletedProcess[str]:
        return run([need_tool("cmake"), "--build", str(self.build_folder)])


@pytest.fixture
def tool() -> str:
    need_tool("ninja")
    return f"-DORT_INTEROP_GEN={need_tool('ort-interop-gen')}"


def test_a_build_checks_its_headers(tmp_path: Path, released: Path, tool: str) -> None:
    project = Project(tmp_path, released, "HEADER ort")
    done = project.configure(tool)
    assert done.returncode == 0, done.stderr
    done = project.build()
    assert done.returncode == 0, done.stdout
    assert "Checking" in done.stdout
    assert "no work to do" in project.build().stdout

    header = tmp_path / "ort" / "onnxruntime_c_api.h"
    line = edit(header, RENAMED)
    done = project.build()
    assert done.returncode != 0
    error = re.search(r"^(.*):(\d+): error: OrtInteropApi\.ImportMemory: .*$", done.stdout, re.M)
    assert error is not None, done.stdout
    assert (tmp_path / "build" / error[1]).resolve() == header.resolve()
    assert int(error[2]) == line
    assert project.build().returncode != 0, "a failed check must not count as done"

    edit(header, RENAMED[::-1])
    assert project.build().returncode == 0


def test_a_header_that_is_included_counts_too(tmp_path: Path, released: Path, tool: str) -> None:
    project = Project(tmp_path, released, 'HEADER "${CMAKE_SOURCE_DIR}/ort/onnxruntime_c_api.h"')
    assert project.configure(tool).returncode == 0
    assert project.build().returncode == 0
    header = tmp_path / "ort" / "onnxruntime_error_code.h"
    edit(header, ("ORT_FAIL = 1", "ORT_FAIL = 2"))
    done = project.build()
    assert done.returncode != 0
    assert "onnxruntime_error_code.h" in done.stdout


def test_a_header_that_is_gone_is_noticed(tmp_path: Path, released: Path, tool: str) -> None:
    project = Project(tmp_path, released, "HEADER ort")
    assert project.configure(tool).returncode == 0
    assert project.build().returncode == 0
    (tmp_path / "ort" / "onnxruntime_error_code.h").unlink()
    done = project.build()
    assert done.returncode != 0
    assert re.search(
        r"onnxruntime_c_api\.h:\d+: error: 'onnxruntime_error_code\.h' is included", done.stdout
    )
    assert project.build().returncode != 0


def test_the_build_fails_on_what_it_is_told(tmp_path: Path, released: Path, tool: str) -> None:
    project = Project(tmp_path, released, "HEADER ort FAIL_ON breaking")
    assert project.configure(tool).returncode == 0
    header = tmp_path / "ort" / "onnxruntime_c_api.h"
    edit(header, RENAMED)
    done = project.build()
    assert done.returncode == 0, done.stdout
    assert ": warning: OrtInteropApi.ImportMemory" in done.stdout
    edit(header, SHIFTED)
    assert project.build().returncode != 0


def test_configuration_and_baseline_in_a_build(tmp_path: Path, released: Path, tool: str) -> None:
    project = Project(tmp_path, released, "HEADER ort CONFIG rules.toml")
    config = tmp_path / "rules.toml"
    config.write_text('[rules.slot-renamed]\nseverity = "off"\nreason = "ours"\n')
    assert project.configure(tool).returncode == 0
    edit(tmp_path / "ort" / "onnxruntime_c_api.h", RENAMED)
    assert project.build().returncode == 0
    config.write_text("")
    assert (
        project.build().returncode != 0
    ), "the check must run again when its configuration changes"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("", "give HEADER"),
        ("HEADER nowhere", "there is no"),
        ("HEADER ort STRICT", "unknown argument 'STRICT'"),
        ("HEADER ort", "ort-interop-gen was not found"),
    ],
)
def test_faults_are_told_at_configuration(
    tmp_path: Path, released: Path, arguments: str, message: str
) -> None:
    need_tool("ninja")
    project = Project(tmp_path, released, arguments)
    folders = [
        folder
        for folder in os.environ["PATH"].split(os.pathsep)
        if not (Path(folder) / "ort-interop-gen").exists()
    ]
    done = project.configure(PATH=os.pathsep.join(folders))
    assert done.returncode != 0
    assert message in " ".join(done.stderr.split())
