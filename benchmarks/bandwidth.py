"""Measures this CPU's read bandwidth: `python -m benchmarks.bandwidth --threads N` prints JSON.

A compiled sum runs over 512 MB, far more than any cache; the best of several passes counts, because
the machine may have other work. Decoding one sequence reads all weights once a token, so this
bounds its speed.
"""

from __future__ import annotations

import argparse
import json
import time

import numpy as np
import tvm
from tvm.script import tirx as T
from tvm.target import Target

from wherry.targets.target import find

BYTES = 512 << 20
BLOCK = 1 << 20  # bytes of one thread's task
LANES = 16
VECTORS = 8  # independent sums, so that additions do not wait for each other
BLOCKS = BYTES // BLOCK
STEPS = BLOCK // (4 * LANES * VECTORS)


@T.prim_func(s_tir=True)
def _sum(
    data: T.Buffer((BLOCKS, STEPS, VECTORS, LANES), "int32"),  # type: ignore[valid-type]
    sums: T.Buffer((BLOCKS, VECTORS, LANES), "int32"),  # type: ignore[valid-type]
) -> None:
    T.func_attr({"tirx.noalias": True, "global_symbol": "sum"})
    for block in T.parallel(BLOCKS):
        for vector in range(VECTORS):
            for lane in T.vectorized(LANES):
                sums[block, vector, lane] = 0
        for step in range(STEPS):
            for vector in T.unroll(VECTORS):
                for lane in T.vectorized(LANES):
                    sums[block, vector, lane] = (
                        sums[block, vector, lane] + data[block, step, vector, lane]
                    )


def read_bandwidth(threads: int, passes: int = 7) -> float:
    """Return the bytes per second that `threads` threads read together."""
    configure = tvm.get_global_func("runtime.config_threadpool")
    # mode -3: no thread is bound to a core
    configure(-3, threads, [str(i) for i in range(threads)])
    target = Target(dict(find("cpu").device))
    run = tvm.compile(tvm.IRModule({"sum": _sum}), target=target)["sum"]
    data = tvm.runtime.tensor(np.ones((BLOCKS, STEPS, VECTORS, LANES), np.int32))
    sums = tvm.runtime.tensor(np.zeros((BLOCKS, VECTORS, LANES), np.int32))
    best = float("inf")
    for _ in range(passes):
        begin = time.perf_counter()
        run(data, sums)
        best = min(best, time.perf_counter() - begin)
    assert (sums.numpy() == STEPS).all()
    return BYTES / best


def main() -> None:
    """Measure the read bandwidth and print it as JSON."""
    parser = argparse.ArgumentParser(description="Read bandwidth of this CPU.")
    parser.add_argument("--threads", type=int, default=1)
    threads = parser.parse_args().threads
    print(json.dumps({"threads": threads, "bytes_per_s": read_bandwidth(threads)}))


if __name__ == "__main__":
    main()
