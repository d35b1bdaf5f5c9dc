"""Runs one workload of Wherry in its own process and prints a JSON object.

It drives the engine (`wherry_engine_add`, `wherry_engine_step`) with token ids: no tokenizer, no
server, no stop tokens. A step includes greedy sampling, which llama.cpp's programs do not do.
"""

from __future__ import annotations

import argparse
import json
import time
from ctypes import byref, c_size_t
from pathlib import Path
from typing import Any

import numpy as np

from wherry.artifact.manifest import read_manifest
from wherry.runtime.core.interface import SamplingParams
from wherry.runtime.core.native import EVENT_BATCH, NativeCore
from wherry.runtime.load.loading import native_core

NO_BUDGET = 1_000_000  # step budget so large that time does not limit a step's prompt rows


class Driver:
    """A loaded model and its engine, whose steps this object runs."""

    def __init__(self, folder: Path, threads: int, config: dict[str, int]) -> None:
        begin = time.perf_counter(), time.process_time()
        core = native_core(folder, read_manifest(folder), "cpu", {"threads": threads}, config)
        assert isinstance(core, NativeCore)
        self.core = core
        self.load_s = time.perf_counter() - begin[0]
        self.load_cpu_s = time.process_time() - begin[1]
        self.random = np.random.default_rng(1)
        self.next_id, self.chunk = 0, config["prefill_chunk"]

    def add(self, prompt: int, output: int) -> None:
        """Queue a request with `prompt` random tokens and `output` tokens."""
        vocab = self.core.metadata["vocab_size"]
        tokens = self.random.integers(0, vocab, prompt).tolist()
        self.next_id += 1
        self.core.add(self.next_id, tokens, SamplingParams(max_tokens=output, temperature=0.0))

    def step(self) -> int:
        """Run one step; return the number of events."""
        n = c_size_t()
        core = self.core
        core._call("wherry_engine_step", core._engine, core._events, EVENT_BATCH, byref(n))
        return n.value

    def run(self, steps: int | None = None) -> dict[str, float]:
        """Run all steps, or `steps` of them; return wall and CPU seconds of all threads."""
        before = self.core.stats()
        wall, cpu = time.perf_counter(), time.process_time()
        done = 0
        while done != steps and (steps is not None or self._busy()):
            self.step()
            done += 1
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        after = self.core.stats()
        assert after.steps - before.steps == done, "a step ran nothing"
        return {
            "wall_s": wall,
            "cpu_s": cpu,
            "model_s": after.model_seconds - before.model_seconds,
            "prefilled": after.prefill_tokens - before.prefill_tokens,
            "decoded": after.decode_tokens - before.decode_tokens,
        }

    def _busy(self) -> bool:
        stats = self.core.stats()
        return stats.waiting + stats.prefilling + stats.running > 0

    def prefill(self, tokens: int) -> dict[str, float]:
        """Measure a prompt in as few steps as the chunk allows, including its first token."""
        self.add(tokens, 1)
        result = self.run()
        assert result["prefilled"] == tokens, result
        return result

    def decode(self, batch: int, depth: int, tokens: int) -> dict[str, float]:
        """Measure `tokens` decode steps of `batch` sequences with `depth` tokens each."""
        steps = warm_up(batch, depth, self.chunk)
        for _ in range(batch):
            self.add(depth, tokens + steps + 2)
        for _ in range(steps):
            if self.core.stats().running == batch:
                break
            self.step()
        else:
            raise AssertionError(f"{batch} prompts of {depth} took more than {steps} steps")
        self.step()  # the first step of a batch size is a warm-up
        result = self.run(tokens)
        assert result["decoded"] == batch * tokens, result
        self.core.reset()
        return result


def warm_up(batch: int, depth: int, chunk: int) -> int:
    """Return the most steps that `batch` prompts of `depth` tokens can take.

    Each decoding sequence has one of a step's `chunk` rows; `NO_BUDGET` leaves all others to
    prompts.
    """
    return -(-batch * depth // max(chunk - batch, 1)) + batch + 1


def weight_bytes(metadata: dict[str, Any]) -> int:
    """Return the bytes of all parameters in the kernels' layout."""
    return sum(int(np.prod(p["shape"])) * np.dtype(p["dtype"]).itemsize for p in metadata["params"])


def state_bytes(metadata: dict[str, Any]) -> int:
    """Return the bytes of recurrent states that a decode step reads and writes for a sequence."""
    states = (state for state in metadata["state"] if state["kind"] == "recurrent")
    return 2 * sum(
        int(state["layers"] * np.prod(state["shape"]) * np.dtype(state["dtype"]).itemsize)
        for state in states
    )


def cache_bytes(metadata: dict[str, Any], depth: int) -> int:
    """Return the bytes of keys and values that a decode step reads of `depth` tokens."""
    total = 0
    for state in metadata["state"]:
        if state["kind"] == "paged_kv":
            page = int(np.prod(state["shape"])) * np.dtype(state["dtype"]).itemsize
            window = metadata["groups"][state["group"]].get("window") or depth
            total += state["layers"] * page * min(depth, window) // metadata["page_size"]
    return total


def main() -> None:
    """Measure one workload and print its times as JSON."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--threads", type=int, required=True)
    parser.add_argument("--prefill", type=int, help="tokens; otherwise decoding is measured")
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--depth", type=int, default=96)
    parser.add_argument("--tokens", type=int, default=64)
    a = parser.parse_args()
    compiled = read_manifest(a.folder).deployment["prefill_chunk"]
    chunk = min(max(a.prefill or 0, a.depth, 2 * a.batch), compiled)
    decoded = a.depth + a.tokens + warm_up(a.batch, a.depth, chunk) + 2
    config = {
        "max_batch": a.batch,
        "context": -(-(max(a.prefill or 0, decoded) + 1) // 16) * 16,  # rounded up to whole pages
        "prefill_chunk": chunk,
        "max_slowdown": NO_BUDGET,
    }
    driver = Driver(a.folder, a.threads, config)
    if a.prefill:
        driver.prefill(a.prefill)  # warm-up: touches the memory of the KV cache and the workspace
        result = driver.prefill(a.prefill)
    else:
        result = driver.decode(a.batch, a.depth, a.tokens)
    result |= {
        "load_s": driver.load_s,
        "load_cpu_s": driver.load_cpu_s,
        "weight_bytes": weight_bytes(dict(driver.core.metadata)),
        "state_bytes": state_bytes(dict(driver.core.metadata)),
        "cache_bytes": cache_bytes(dict(driver.core.metadata), a.depth),
    }
    driver.core.close()
    print(json.dumps(result))


if __name__ == "__main__":
    main()
