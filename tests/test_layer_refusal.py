"""A release without the interop API: the layer refuses it, and the EP does with a status."""

from __future__ import annotations

import pytest
from layer_fixtures import host_ep_fixture  # noqa: F401
from layer_rig import child, ort
from ort_interop.runtime import Runtime
from support import ort_library_path

TOO_OLD = "1.23.2"


def test_the_layer_refuses_it() -> None:
    with pytest.raises(ort.UnsupportedVersion, match=r"API version 24 .* 1\.23\.2"):
        Runtime.load(ort_library_path(TOO_OLD))


@pytest.mark.parametrize("version", [None, 24, 30])
def test_it_prints_nothing(version: int | None) -> None:
    program = f"""
from layer_rig import *
try:
    Runtime.load(sys.argv[1], {version})
except ort.UnsupportedVersion as error:
    print(error.wanted, error.host)
"""
    done = child(program, str(ort_library_path(TOO_OLD)))
    assert (done.stdout, done.stderr) == (f"{version or 24} {TOO_OLD}\n", "")


def test_the_ep_refuses_it(host_ep: str) -> None:
    library = ort.load(ort_library_path(TOO_OLD), floor=23, api_version=23)
    with Runtime(library) as runtime:
        with pytest.raises(ort.OrtError, match=r"1\.24.*1\.23\.2"):
            runtime.register_library(host_ep, "host")
        assert not runtime.libraries
