"""Measures a compiled folder on a GPU: `python -m benchmarks.gpu.measure FOLDER DEVICE [SIZES]`.

It measures prefill of a long prompt, decoding at several batch sizes, time to first token and
memory, and compares the bytes that a step reads with the GPU's bandwidth. On CUDA a second row
measures decoding without CUDA graphs, and a third row the kernels' times.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from ctypes import byref, c_size_t
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from wherry.artifact.manifest import read_manifest
from wherry.runtime.core.interface import SamplingParams
from wherry.runtime.core.native import EVENT_BATCH, NativeCore
from wherry.runtime.load.loading import native_core

from .fill import fill
from .profile import by_name, recorded

BATCHES = (1, 8, 64)
CONTEXT = 1024  # tokens of each sequence before the measured decoding
STEPS = 64  # measured decode steps
PROFILED = 16  # steps whose kernels are recorded
MOST = 8 * STEPS  # tokens that a sequence may generate while other prompts are computed
PREFILL = 2048  # tokens of the measured prompt


def longest(context: int, prefill: int) -> int:
    """Return the tokens of the longest sequence, which is the context that a folder needs."""
    return max(context + MOST, prefill + 1)


@dataclass(frozen=True)
class Sizes:
    """Prompt length, context and batch sizes to measure; a folder is compiled for these."""

    batches: Sequence[int] = BATCHES
    context: int = CONTEXT
    prefill: int = PREFILL


class Stepper:
    """An engine whose steps this object runs and times."""

    def __init__(self, folder: Path, device: str, sizes: Sizes, graphs: bool = True) -> None:
        self.sizes = sizes
        config = {
            "context": longest(sizes.context, sizes.prefill),
            "max_batch": max(sizes.batches),
            "prefill_chunk": sizes.prefill,
            "kv_tokens": max(sizes.batches) * longest(sizes.context, sizes.prefill),
            "prefix_cache": False,
        }
        begin = time.perf_counter()
        options = {"cuda_graphs": int(graphs)}
        core = native_core(folder, read_manifest(folder), f"{device}:0", options, config)
        assert isinstance(core, NativeCore)
        self.core, self.load_s = core, time.perf_counter() - begin
        self.random = np.random.default_rng(1)
        self.ids = 0

    def add(self, prompt: int, output: int) -> None:
        """Queue a request with `prompt` random tokens that generates `output` tokens."""
        tokens = self.random.integers(0, self.core.metadata["vocab_size"], prompt).tolist()
        self.ids += 1
        self.core.add(self.ids, tokens, SamplingParams(max_tokens=output, temperature=0.0))

    def step(self) -> float:
        """Run one step; return its seconds."""
        begin, n = time.perf_counter(), c_size_t()
        core = self.core
        core._call("wherry_engine_step", core._engine, core._events, EVENT_BATCH, byref(n))
        return time.perf_counter() - begin

    def drain(self) -> None:
        """Run steps until no request is left."""
        while True:
            stats = self.core.stats()
            if not stats.waiting + stats.prefilling + stats.running:
                return
            self.step()

    def first_token(self, prompt: int) -> float:
        """Return the seconds from a request to its only token."""
        self.add(prompt, 1)
        begin = time.perf_counter()
        self.drain()
        return time.perf_counter() - begin

    @contextmanager
    def decoding(self, batch: int) -> Iterator[None]:
        """Start `batch` sequences; inside of the block each has one row in every step."""
        for _ in range(batch):
            self.add(self.sizes.context, MOST)
        while self.core.stats().running < batch:
            self.step()
        for _ in range(8):
            self.step()
        yield
        if self.core.stats().running != batch:
            raise RuntimeError(f"{batch} sequences did not decode together to the end")
        for i in range(batch):
            self.core.abort(self.ids - i)
        self.drain()

    def decode(self, batch: int) -> float:
        """Return the median seconds of a step of `batch` sequences with one row each."""
        with self.decoding(batch):
            return statistics.median(self.step() for _ in range(STEPS))


def measure(folder: Path, device: str, sizes: Sizes) -> dict[str, Any]:
    """Measure a compiled folder; return a row."""
    filled = fill(folder)
    manifest = read_manifest(folder)
    run = Stepper(folder, device, sizes)
    run.first_token(sizes.prefill)  # warm-up
    prefill = statistics.median(run.first_token(sizes.prefill) for _ in range(5))
    row: dict[str, Any] = {
        "model": folder.name,
        "quant": manifest.quantization,
        "stored_bytes": filled,
        "load_s": run.load_s,
        "memory": dict(manifest.memory),
        "prefill_tokens": sizes.prefill,
        "prefill_tokens_s": sizes.prefill / prefill,
        "first_token_s": statistics.median(run.first_token(16) for _ in range(5)),
        "context": sizes.context,
    }
    row |= decoding(run, manifest.memory)
    run.core.close()
    return row


def without_graphs(folder: Path, device: str, sizes: Sizes) -> Iterator[dict[str, Any]]:
    """Measure decoding again without CUDA graphs; then profile the kernels."""
    manifest = read_manifest(folder)
    run = Stepper(folder, device, sizes, graphs=False)
    about = {"model": folder.name, "quant": manifest.quantization, "context": sizes.context}
    yield about | decoding(run, manifest.memory)
    yield about | {"profile": profile(run)}
    run.core.close()


def profile(run: Stepper) -> dict[str, Any]:
    """Profile the kernels of a prompt, and of a decode step for each batch size."""
    kernels = {"prefill": by_name(recorded(lambda: _prefill(run)), 1)}
    for batch in run.sizes.batches:
        with run.decoding(batch):
            kernels[f"decode_{batch}"] = by_name(recorded(lambda: _steps(run)), PROFILED)
    return kernels


def _prefill(run: Stepper) -> None:
    run.first_token(run.sizes.prefill)


def _steps(run: Stepper) -> None:
    for _ in range(PROFILED):
        run.step()


def decoding(run: Stepper, memory: Mapping[str, int]) -> dict[str, Any]:
    """Measure each batch size, and count how steps were launched."""
    measured: dict[str, Any] = {}
    for batch in run.sizes.batches:
        seconds = run.decode(batch)
        cache = batch * (run.sizes.context + STEPS // 2) * memory["kv_per_token"]
        measured[f"decode_{batch}"] = {
            "step_s": seconds,
            "tokens_s": batch / seconds,
            "bytes_s": (memory["weights"] + cache) / seconds,
        }
    stats = run.core.stats()
    measured["steps"] = {
        "steps": stats.steps,
        "chained": stats.chained_steps,
        "chains_given_up": stats.chains_given_up,
        "graphs": stats.graph_steps,
        "graphs_given_up": stats.graphs_given_up,
    }
    return measured


def main() -> None:
    """Measure a compiled folder and print its rows as JSON."""
    folder, device, *sizes = sys.argv[1:]
    requested = Sizes(**json.loads(sizes[0])) if sizes else Sizes()
    print(json.dumps(measure(Path(folder), device, requested)), flush=True)
    if device == "cuda":
        for row in without_graphs(Path(folder), device, requested):
            print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main()
