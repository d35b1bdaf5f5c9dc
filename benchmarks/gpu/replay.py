"""Runs recorded kernels and models on this machine's GPU, and prints a JSON line for each.

`python -m benchmarks.gpu.replay kernel|model DEVICE FOLDER...` ends at the first exception, because
the device may be unusable for this process; `check.py` continues with another process.
"""

from __future__ import annotations

import ctypes
import json
import sys
import traceback
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

# tolerances of |got - expected| / |expected|
NEAR = {np.dtype("float32"): 2e-4, np.dtype("float16"): 2e-3}
# Tolerance of each float32 whose bits are in a column of uint32: RELATIVE_ERROR of the kernel
# `candidates` on both devices.
BITS_NEAR = 4e-5


def _distance(got: np.ndarray, expected: np.ndarray) -> float:
    """Return 0 for equal bits; else the relative distance of two arrays, or infinity."""
    if got.tobytes() == expected.tobytes():
        return 0.0
    if expected.dtype not in NEAR or not np.array_equal(np.isnan(got), np.isnan(expected)):
        return float("inf")
    there = np.isfinite(expected)
    a, b = got[there].astype("float64"), expected[there].astype("float64")
    return float(np.linalg.norm(a - b)) / max(float(np.linalg.norm(b)), 1e-30)


def _distance_with_bits(got: np.ndarray, expected: np.ndarray, columns: list[int]) -> float:
    """Return the largest relative distance of the float32 in columns of uint32; others are equal.

    NaN equal NaN. Infinity if other columns differ.
    """
    if not np.array_equal(np.delete(got, columns, -1), np.delete(expected, columns, -1)):
        return float("inf")
    a, b = (x[..., columns].view("float32").astype("float64") for x in (got, expected))
    if not np.array_equal(np.isfinite(a), np.isfinite(b)):
        return float("inf")
    there = np.isfinite(b)
    # sums of vanishing exponentials may be subnormal, which devices flush to zero
    relative = np.abs(a[there] - b[there]) / np.maximum(np.abs(b[there]), 1e-30)
    return float(relative.max(initial=0.0))


def kernel(folder: Path, device: str) -> dict[str, Any]:
    """Run each recorded call of a kernel; return the largest distance of an output."""
    import tvm_ffi

    _open_runtime(device)
    run = tvm_ffi.load_module(str(folder / "kernel.so"))["kernel"]
    description = json.loads((folder / "kernel.json").read_text())
    bits: dict[str, list[int]] = description.get("float_bits", {})
    worst, wrong = 0.0, []
    for path in sorted(folder.glob("*.npz")):
        with np.load(path) as arrays:
            given = [arrays[f"in{i}"] for i in range(sum(n.startswith("in") for n in arrays.files))]
            outputs = _call(run, given, device)
            for name in (n for n in arrays.files if n.startswith("out")):
                expected = arrays[name]
                got, columns = outputs[int(name[3:])], bits.get(name[3:])
                if columns:
                    distance, bound = _distance_with_bits(got, expected, columns), BITS_NEAR
                else:
                    distance, bound = _distance(got, expected), NEAR.get(expected.dtype, 0.0)
                worst = max(worst, distance)
                if distance > bound:
                    wrong.append(f"{path.name} {name} {expected.dtype} {distance:.1e}")
    return {"ok": not wrong, "worst": worst, "wrong": wrong}


@cache
def _open_runtime(device: str) -> None:
    from wherry.runtime.core.library import open_runtime

    open_runtime(device)


def _call(run: Any, given: list[np.ndarray], device: str) -> list[np.ndarray]:
    """Run a kernel on the device through TVM's C runtime; return all its arrays."""
    import tvm_ffi

    allocate, write, read = (
        tvm_ffi.get_global_func(f"runtime.TVMTensor{name}")
        for name in ("AllocWithScope", "CopyFromBytes", "CopyToBytes")
    )

    def on_device(array: np.ndarray) -> Any:
        shape, dtype = tvm_ffi.Shape(array.shape), tvm_ffi.dtype(str(array.dtype))
        tensor = allocate(shape, dtype, tvm_ffi.device(device, 0), None)
        write(tensor, np.ascontiguousarray(array).ctypes.data_as(ctypes.c_void_p), array.nbytes)
        return tensor

    tensors = [on_device(array) for array in given]
    run(*tensors)
    after = [np.empty_like(array, order="C") for array in given]
    for tensor, array in zip(tensors, after, strict=True):
        read(tensor, array.ctypes.data_as(ctypes.c_void_p), array.nbytes)
    return after


def model(folder: Path, device: str) -> dict[str, Any]:
    """Run the prompt alone and in a batch; return the largest difference of a log-probability."""
    from wherry.artifact.manifest import read_manifest
    from wherry.runtime.core.interface import SamplingParams
    from wherry.runtime.core.native import NativeCore
    from wherry.runtime.load.loading import native_core

    compiled = folder / "model"
    case = json.loads((folder / "case.json").read_text())
    with np.load(folder / "expected.npz") as expected:
        prompt, logprobs = expected["prompt"].tolist(), expected["logprobs"]
    config = {"context": case["context"], "max_batch": 4, "prefill_chunk": 64}
    core = native_core(compiled, read_manifest(compiled), f"{device}:0", {}, config)
    assert isinstance(core, NativeCore)
    core.start()
    params = SamplingParams(temperature=0.0, max_tokens=24, prompt_logprobs=0)

    def run(prompts: dict[int, list[int]]) -> tuple[list[float], dict[int, list[int]]]:
        core.clear_cache()
        for i, tokens in prompts.items():
            core.add(i, tokens, params)
        got: list[float] = []
        answers: dict[int, list[int]] = {i: [] for i in prompts}
        left = len(prompts)
        while left:
            for event in core.wait_events(1000):
                if event.error:
                    raise RuntimeError(event.error)
                if event.prompt and event.id == 0:
                    got.append(event.logprob)
                elif not event.prompt and event.token >= 0:
                    answers[event.id].append(event.token)
                left -= event.finish != 0
        return got, answers

    alone, answer = run({0: prompt})
    batched, answers = run({0: prompt, 1: prompt[3:40], 2: prompt[:9], 3: prompt[7:]})
    stats = core.stats()
    core.close()
    difference = float(np.abs(np.array(alone[-len(logprobs) :]) - logprobs).max())
    same = alone == batched and answer[0] == answers[0]
    return {
        "ok": difference <= case["bound"]
        and same
        and not stats.graphs_given_up
        and not stats.chains_given_up,
        "worst": difference,
        "same_in_a_batch": same,
        "steps": stats.steps,
        "chained_steps": stats.chained_steps,
        "chains_given_up": stats.chains_given_up,
        "graph_steps": stats.graph_steps,
        "graphs_given_up": stats.graphs_given_up,
    }


KINDS: dict[str, Callable[[Path, str], dict[str, Any]]] = {"kernel": kernel, "model": model}


def replay(kind: str, folder: Path, device: str) -> dict[str, Any]:
    """Replay one folder; return a line of the report."""
    note = folder / "kernel.json"
    result = {"kind": kind, "name": folder.name}
    result |= json.loads(note.read_text()) if note.exists() else {}
    result.pop("float_bits", None)  # long, and of no interest in a report
    try:
        return result | KINDS[kind](folder, device)
    except Exception:
        return result | {"ok": False, "error": traceback.format_exc()[-2000:]}


def main() -> None:
    """Replay the folders `KIND DEVICE FOLDER...`; an exception ends the process."""
    kind, device, *folders = sys.argv[1:]
    for folder in folders:
        line = replay(kind, Path(folder), device)
        print(json.dumps(line), flush=True)
        if "error" in line:
            sys.exit(1)


if __name__ == "__main__":
    main()
