"""Let NumPy, and PyTorch where it is installed, work on the memory that a model runs on (Linux).

    python examples/dlpack_arrays.py path/to/the/host/ep.so

Imported memory is read and written through DLPack, and arrays are fed to the model, in place.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parent.parent / "generated" / "python")]

import numpy
from host_exports import SharedMemory
from identity_model import identity_model
from ort_interop.runtime import Runtime, Session, Tensor

SHAPE = (4, 16)


def with_numpy(session: Session, x: Tensor, y: Tensor) -> float:
    """Write the input and read the output through NumPy arrays over the tensors' own memory."""
    given, result = numpy.from_dlpack(x), numpy.from_dlpack(y)
    given[...] = numpy.linspace(0, 1, 64, dtype=numpy.float32).reshape(SHAPE)
    session.run({"input": x}, {"output": y})
    assert (given == result).all()
    return float(result.sum())


def with_torch(session: Session, x: Tensor, y: Tensor) -> float | None:
    """The same with PyTorch, which also lends its own memory to a run; None without it."""
    try:
        import torch
    except ImportError:
        return None
    torch.from_dlpack(x).fill_(0.5)
    session.run({"input": x}, {"output": y})
    lent = torch.zeros(SHAPE)
    runtime = session.runtime
    session.run({"input": y}, {"output": runtime.from_dlpack(lent)})
    assert bool((lent == 0.5).all())
    return float(lent.sum())


def main(library: str | None, ep_library: str) -> dict[str, float | None]:
    """Run both; the sums that they saw."""
    with (
        SharedMemory(8192) as exported,
        Runtime.load(library) as runtime,
        runtime.register_library(ep_library, "host") as ep,
    ):
        (device,) = ep.devices
        importer = device.importer()
        assert importer is not None, "this EP imports nothing"
        with (
            importer,
            importer.import_memory(exported.fd, 8192) as memory,
            memory.tensor(SHAPE, "float32") as x,
            memory.tensor(SHAPE, "float32", 4096) as y,
            runtime.session(identity_model(SHAPE), device) as session,
        ):
            return {"numpy": with_numpy(session, x, y), "torch": with_torch(session, x, y)}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("ep_library", help="the built host EP")
    parser.add_argument(
        "--library", help="ONNX Runtime's library; the installed wheel's if left out"
    )
    arguments = parser.parse_args()
    print(main(arguments.library, arguments.ep_library))
