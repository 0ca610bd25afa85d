"""Fixtures of the Python layer's tests: the library of a release, the host EP built once."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from ep_build import Tree
from layer_rig import RELEASE, Rig
from support import GENERATED, need_tool, ort_library_path


def need_module(name: str) -> Any:
    """A package that tests need; without it they are skipped, or fail with REQUIRE_ALL=1."""
    try:
        return import_module(name)
    except ImportError:
        reason = f"the package '{name}' is not installed"
        if os.environ.get("REQUIRE_ALL") == "1":
            pytest.fail(f"REQUIRE_ALL=1, but {reason}", pytrace=False)
        pytest.skip(reason, allow_module_level=True)


@pytest.fixture(scope="session", name="library")
def library_fixture() -> str:
    """ONNX Runtime's library of the release that is tested."""
    return str(ort_library_path(RELEASE))


@pytest.fixture(scope="session", name="host_ep")
def host_ep_fixture(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The host EP, built once; ``LAYER_EP`` names a binary that others share."""
    given = os.environ.get("LAYER_EP")
    if given:
        return given
    need_tool("make")
    return str(Tree(Path(GENERATED)).make(tmp_path_factory.mktemp("host-ep")))


@pytest.fixture(name="rig")
def rig_fixture(library: str, host_ep: str) -> Iterator[Rig]:
    """A rig; the test fails if it leaves anything of the EP library open."""
    made = Rig(library, host_ep)
    yield made
    gc.collect()
    made.close()
