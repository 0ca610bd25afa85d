"""Hundreds of random orders of closing and dropping, under AddressSanitizer."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

from ep_build import SANITIZE, Tree
from layer_fixtures import library_fixture, need_module  # noqa: F401
from layer_rig import child
from support import GENERATED, need_tool

need_module("numpy")
ORDERS = int(os.environ.get("SHUFFLE_ORDERS", "60"))
"""Set SHUFFLE_ORDERS for more; 60 take a minute."""
SHUFFLE = """
from layer_rig import *
from ort_interop.runtime import InUseError, _node
import gc, json, random
class Source:
    def __init__(self):
        self.lent = {}
    def allocate(self, size, alignment):
        block = bytearray(size + alignment)
        self.lent[id(block)] = block
        return block
    def free(self, block):
        del self.lent[id(block)]
counts = {"orders": set(), "closed": 0, "dropped": 0, "refused": 0, "left": 0}
sys.unraisablehook = lambda caught: sys.exit(f"unraisable: {caught.exc_value}")
for seed in range(int(sys.argv[3])):
    dice = random.Random(seed)
    made = Rig(sys.argv[1], sys.argv[2])
    exports = [made.exported, made.counter]
    things = made.parts
    things["binding"] = made.session.io_binding()
    things["binding"].bind_input("input", made.x)
    things["binding"].bind_output("output", made.y)
    things["run"] = made.session.prepare({"input": made.x}, {"output": made.y}, stream=made.stream)
    things["array"] = made.x.numpy()
    things["frame"] = made.session.frame({"input": made.x}, {"output": made.y},
        stream=made.stream, wait=made.semaphore, signal=made.semaphore)
    things["extra"] = made.importer.import_memory(made.exported.fd, SIZE).tensor((8,), "int8")
    things["fence"] = made.semaphore.on(made.stream)
    source = Source()
    things["allocator"] = made.runtime.allocator(source)
    things["allocator"].register()
    things["own"] = things["allocator"].tensor((8,), "int8")
    things["shared"] = made.session_of("Relu", device=None, env_allocators=True)
    things["output"] = things["shared"].run({"input": made.x})["output"]
    work = dice.randrange(4)
    if work == 1:
        things["run"]()
    elif work > 1:
        things["frame"](0, 1)
        things["fence"].wait(1)
        if work == 2:
            made.semaphore.wait_on_host(1)
    if dice.random() < 0.3:
        things["cycle"] = [things]
    device = made.device
    del made
    order = list(things)
    dice.shuffle(order)
    counts["orders"].add(tuple(order))
    for name in order:
        thing = things[name]
        if name in ("array", "cycle") or dice.random() < 0.5:
            del thing
            if name != "cycle":
                things[name] = None
            counts["dropped"] += 1
        else:
            try:
                thing.close()
                counts["closed"] += 1
            except InUseError:
                counts["refused"] += 1
            del thing
        if dice.random() < 0.2:
            gc.collect()
    del things, device
    gc.collect()
    for export in exports:
        export.close()
    counts["left"] += len(_node._living) + len(source.lent)
counts["orders"] = len(counts["orders"])
print(json.dumps(counts))
"""


def test_random_orders_of_release(library: str, tmp_path: Path) -> None:
    gcc = need_tool("gcc")
    asan, ubsan = (
        subprocess.run(
            [gcc, f"-print-file-name={name}"], capture_output=True, text=True
        ).stdout.strip()
        for name in ("libasan.so", "libubsan.so")
    )
    ep = Tree(GENERATED).make(tmp_path / "build", f"EXTRA_CFLAGS={SANITIZE}")
    done = child(
        SHUFFLE,
        library,
        str(ep),
        str(ORDERS),
        timeout=60 + 5 * ORDERS,
        environment={"LD_PRELOAD": f"{asan} {ubsan}", "ASAN_OPTIONS": "detect_leaks=0"},
    )
    assert (done.returncode, done.stderr) == (0, ""), done.stderr[:3000]
    counts = json.loads(done.stdout)
    assert counts["orders"] == ORDERS and counts["left"] == 0, counts
    assert min(counts["closed"], counts["dropped"], counts["refused"]) > ORDERS, counts
