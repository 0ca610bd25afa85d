"""Fixtures of all tests; what they stand on is in :mod:`support`."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from support import need_tool, ort_library_path

_SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]
settings.register_profile("default", max_examples=200, deadline=None, suppress_health_check=_SLOW)
settings.register_profile("fuzz", max_examples=10_000, deadline=None, suppress_health_check=_SLOW)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))
# A shell starts what runs in its background with Ctrl-C ignored, which the tests' programs inherit.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session", name="need_tool")
def need_tool_fixture() -> Callable[[str], str]:
    """:func:`need_tool` as a fixture."""
    return need_tool


@pytest.fixture(scope="session")
def headers_dir() -> Path:
    """The folder with real ORT headers in ``<release>/``, named by ``ORT_HEADERS_DIR``.

    The headers cannot travel with the project, so their absence skips even with REQUIRE_ALL=1.
    """
    named = os.environ.get("ORT_HEADERS_DIR")
    if not named:
        pytest.skip("ORT_HEADERS_DIR is not set: no real ONNX Runtime headers to read")
    folder = Path(named)
    assert folder.is_dir(), f"ORT_HEADERS_DIR={named} is not a folder"
    return folder


@pytest.fixture(scope="session")
def ort_library() -> Callable[[str], Path]:
    """A function from a version (``"1.24.1"``) to the path of that release's shared library."""
    return ort_library_path
