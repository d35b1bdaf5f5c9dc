"""Measures what the engine's features save and cost: `python -m benchmarks.engine`.

README.md lists the workloads. Each one runs with a feature and without it, in turn (A B A B) in one
process on the same model, and must give equal tokens. With a ratio above 1, the feature saves time.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from wherry.artifact.manifest import read_manifest
from wherry.artifact.variants import library_for
from wherry.runtime.core.interface import Event, SamplingParams
from wherry.runtime.core.library import open_core, open_runtime
from wherry.runtime.core.native import NativeCore
from wherry.runtime.load.program_memory import resident

from . import hybrid_models
from .busy import busy_cores, warning
from .chain_models import DRAFT, walk, write
from .make_models import hf_folder
from .rows import ROWS, machine, versions, write_row
from .shapes import SHAPES

SHAPE = "smollm2-135m"
MODELS = Path.home() / ".cache" / "wherry-benchmarks"
CONTEXT = 4608
DRAFT_AGREES = 0.8
QUANT = "q4f16_1"
HYBRID = "qwen3.5-0.8b"
TURNS, QUESTION, ANSWERED = (
    20,
    100,
    50,
)  # of a chat: turns, new tokens of a question and of an answer


class Bench:
    """A compiled model, and engines of several configurations for it."""

    def __init__(self, folder: Path, draft: Path, threads: int, vocab: int, models: Path) -> None:
        self.folder, self.draft, self.threads, self.vocab = folder, draft, threads, vocab
        self.models = models  # folder of checkpoints
        open_runtime("cpu")

    def open(self, *, draft: bool = False, **config: Any) -> NativeCore:
        """Open an engine with its own thread."""
        files = [(f / library_for(read_manifest(f)), f) for f in (self.folder, self.draft)]
        config = {"context": 2048, "max_batch": 1, "prefill_chunk": 256} | config
        options = {"threads": self.threads}
        core = NativeCore(
            open_core(), *files[0], "cpu", options, config, files[1] if draft else None
        )
        core.start()
        return core


def answer(core: NativeCore, prompt: Sequence[int], **params: Any) -> list[Event]:
    """Return all events of one request."""
    core.add(1, prompt, SamplingParams(temperature=0.0, **params))
    events: list[Event] = []
    while not events or not events[-1].finish:
        events += core.wait_events(-1)
    return events


def timed(core: NativeCore, prompt: Sequence[int], **params: Any) -> tuple[list[int], float]:
    """Return a request's tokens, and the mean seconds per token after the first."""
    events = answer(core, prompt, **params)
    return [e.token for e in events], events[-1].decode_seconds / (len(events) - 1)


def edited(length: int, share: float, vocab: int) -> list[int]:
    """Return a text that the model would write, with some tokens replaced."""
    rng = np.random.default_rng(3)
    tokens = np.array(walk(7, length, vocab))
    wrong = rng.random(length) < share
    return list(map(int, np.where(wrong, rng.integers(0, vocab, length), tokens)))


def compared(
    bench: Bench,
    on: dict[str, Any],
    off: dict[str, Any],
    prompt: Sequence[int],
    params: dict[str, Any],
) -> dict[str, Any]:
    """Compare a request with and without a feature, three times in turn; return the ratio."""
    cores = [bench.open(**on), bench.open(**off)]
    seconds: list[list[float]] = [[], []]
    processor: list[list[float]] = [[], []]  # CPU time of the process, prompt and answer
    try:
        # warm-up run, which also gives the tokens to compare
        tokens = [timed(core, prompt, **params)[0] for core in cores]
        assert tokens[0] == tokens[1], "the feature changed the tokens"
        for _ in range(3):
            for core, times, own in zip(cores, seconds, processor, strict=True):
                core.reset()
                before = time.process_time()
                times.append(timed(core, prompt, **params)[1])
                own.append(time.process_time() - before)
        stats = cores[0].stats()
    finally:
        for core in cores:
            core.close()
    medians = [statistics.median(times) for times in seconds]
    return {
        "ratio": medians[1] / medians[0],
        "with_s": seconds[0],
        "without_s": seconds[1],
        "cpu_ratio": statistics.median(processor[1]) / statistics.median(processor[0]),
        "drafted_tokens": stats.drafted_tokens,
        "accepted_share": stats.accepted_tokens / max(stats.drafted_tokens, 1),
    }


def prompt_lookup(bench: Bench) -> dict[str, Any]:
    """Measure prompt lookup on an edit: the output repeats all but a twentieth of the prompt."""
    prompt = [*edited(512, 0.05, bench.vocab), walk(7, 1, bench.vocab)[0]]
    on, off = {"max_drafts": 8}, {"max_drafts": 0}
    return compared(bench, on, off, prompt, {"max_tokens": 256})


def draft_model(bench: Bench) -> dict[str, Any]:
    """Measure a draft model of a tenth of the size that agrees in four of five tokens."""
    prompt = walk(100, 32, bench.vocab)
    return compared(bench, {"draft": True}, {}, prompt, {"max_tokens": 256})


def multi_token(bench: Bench) -> dict[str, Any]:
    """Measure the block of a hybrid that agrees in four of five tokens."""
    vocab = hybrid_models.HYBRID["vocab_size"]
    folder = hybrid_models.write(
        bench.models / "hybrid-mtp", hybrid_models.HYBRID, agree=DRAFT_AGREES
    )
    folder_with_heads = compiled(folder, "--mtp")
    opened = Bench(folder_with_heads, folder_with_heads, bench.threads, vocab, bench.models)
    return compared(opened, {}, {"max_drafts": 0}, walk(100, 32, vocab), {"max_tokens": 256})


def unused_features(bench: Bench) -> dict[str, Any]:
    """Measure the cost of prefix cache and speculation where neither finds anything."""
    rng = np.random.default_rng(5)
    prompt = rng.integers(0, bench.vocab, 64).tolist()
    on = {"prefix_cache": True, "max_drafts": 8}
    off = {"prefix_cache": False, "max_drafts": 0}
    return compared(bench, on, off, prompt, {"max_tokens": 256})


def overhead(bench: Bench) -> dict[str, Any]:
    """Measure the share of a step outside of model and sampling, with 1 and 32 sequences."""
    row = {}
    for batch in (1, 32):
        core = bench.open(max_batch=batch, kv_tokens=batch * 256, context=256)
        rng = np.random.default_rng(6)
        for i in range(batch):
            core.add(
                i,
                rng.integers(0, bench.vocab, 64).tolist(),
                SamplingParams(max_tokens=160, temperature=0.0),
            )
        while core.stats().running < batch:
            core.wait_events(100)
        before = core.stats()
        while core.stats().steps < before.steps + 64:
            core.wait_events(100)
        after = core.stats()
        core.close()
        model = after.model_seconds - before.model_seconds
        sample = after.sample_seconds - before.sample_seconds
        host = after.host_seconds - before.host_seconds
        row[f"host_share_{batch}"] = host / (model + sample + host)
        row[f"sample_share_{batch}"] = sample / (model + sample + host)
    return row


class Streams:
    """Four running streams, and the seconds between their tokens."""

    def __init__(self, bench: Bench) -> None:
        self.core = bench.open(max_batch=8, context=CONTEXT, kv_tokens=20480, prefill_chunk=512)
        self.rng = np.random.default_rng(7)
        self.vocab = bench.vocab
        params = SamplingParams(max_tokens=4000, temperature=0.0)
        for i in range(4):
            self.core.add(i, self.prompt(64), params)
        self.last: dict[int, float] = {}
        self.gaps: list[float] = []
        self.prompt_done = 0.0

    def prompt(self, length: int) -> list[int]:
        """Return random tokens."""
        return list(map(int, self.rng.integers(0, self.vocab, length)))

    def run(self, until: Callable[[], bool]) -> None:
        """Process events until the condition `until` holds."""
        while not until():
            for event in self.core.wait_events(-1):
                now = time.perf_counter()
                if event.id == 99:
                    self.prompt_done = now
                elif event.id in self.last:
                    self.gaps.append(now - self.last[event.id])
                self.last[event.id] = now


def stall(bench: Bench) -> dict[str, Any]:
    """Measure the gaps between tokens of four streams while a prompt of 4k tokens arrives.

    They are compared with the gaps before it, and with the same tokens without the prompt, because
    contexts grow meanwhile.
    """
    streams = Streams(bench)
    streams.run(lambda: len(streams.gaps) >= 800)
    begin = len(streams.gaps)
    before = streams.gaps[200:begin]  # the first gaps include the streams' own prompts
    arrived = time.perf_counter()
    streams.core.add(99, streams.prompt(4096), SamplingParams(max_tokens=1))
    streams.run(lambda: streams.prompt_done > 0)
    end = len(streams.gaps)
    during = streams.gaps[begin:end]
    streams.core.close()
    control = Streams(bench)
    control.run(lambda: len(control.gaps) >= end)
    control.core.close()
    gaps = {"before": before, "during": during, "alone": control.gaps[begin:end]}
    p99 = {name: float(np.percentile(values, 99)) for name, values in gaps.items()}
    p50 = {name: float(np.median(values)) for name, values in gaps.items()}
    return {
        "p99_ratio": p99["during"] / p99["before"],
        "p50_ratio": p50["during"] / p50["before"],
        "p99_ratio_same_tokens": p99["during"] / p99["alone"],
        "p50_ratio_same_tokens": p50["during"] / p50["alone"],
        "p99_s": p99,
        "p50_s": p50,
        "prompt_s": streams.prompt_done - arrived,
    }


def shared_prefix(bench: Bench) -> dict[str, Any]:
    """Measure a request whose prefix of 2,000 tokens is cached: in memory, then on disk."""
    rng = np.random.default_rng(8)
    shared = rng.integers(0, bench.vocab, 2000).tolist()
    row: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        config: dict[str, Any] = {
            "context": 2304,
            "kv_tokens": 4608,
            "cache_dir": folder,
            "prefill_chunk": 512,
        }
        core = bench.open(**config)
        cold = answer(core, [*shared, 1], max_tokens=1)[0]
        warm = answer(core, [*shared, 2], max_tokens=1)[0]
        row["recomputed_share"] = (2001 - warm.cached_tokens) / 2000
        row["ttft_memory_ratio"] = warm.prefill_seconds / cold.prefill_seconds
        core.close()
        again = bench.open(**config)
        disk = answer(again, [*shared, 3], max_tokens=1)[0]
        row["disk_tokens"] = again.stats().disk_tokens
        row["ttft_disk_ratio"] = disk.prefill_seconds / cold.prefill_seconds
        again.close()
    return row


class Chats:
    """Chats of random tokens that take their turns at the same time, in one engine."""

    def __init__(self, core: NativeCore, count: int, vocab: int) -> None:
        self.core, self.vocab = core, vocab
        self.random = [np.random.default_rng(100 + i) for i in range(count)]
        self.texts: list[list[int]] = [[] for _ in range(count)]

    def turn(self) -> tuple[float, int]:
        """Add a question and an answer to each; return the first's seconds, and cached tokens."""
        for i, (random, text) in enumerate(zip(self.random, self.texts, strict=True)):
            text += random.integers(0, self.vocab, QUESTION).tolist()
            params = SamplingParams(max_tokens=ANSWERED, temperature=0.0)
            self.core.add(i, list(text), params)
        firsts: dict[int, Event] = {}
        unfinished = len(self.texts)
        while unfinished:
            for event in self.core.wait_events(-1):
                firsts.setdefault(event.id, event)
                self.texts[event.id].append(event.token)
                unfinished -= event.finish != 0
        return firsts[0].prefill_seconds, sum(e.cached_tokens for e in firsts.values())


def chat(bench: Bench) -> dict[str, Any]:
    """Measure 20 turns of a chat with a hybrid, and four of 16 chats that share a cache for four.

    Each turn has equally many new tokens. `ratio`: the first token's time at turn 20 without the
    prefix cache over the time with it; `turn_20_over_2`: with it, over the time at turn 2.
    """
    folder = compiled(hf_folder(bench.models, HYBRID))
    vocab = SHAPES[HYBRID]["vocab_size"]
    opened = Bench(folder, folder, bench.threads, vocab, bench.models)
    tokens = TURNS * (QUESTION + ANSWERED) + 16  # and a page
    core = opened.open(context=tokens)
    one = Chats(core, 1, vocab)
    seconds = [one.turn()[0] for _ in range(TURNS)]
    core.close()
    core = opened.open(context=tokens, prefix_cache=False)
    computed = answer(core, one.texts[0][:-ANSWERED], max_tokens=ANSWERED)
    core.close()
    assert [e.token for e in computed] == one.texts[0][-ANSWERED:], "the cache changed the tokens"
    turns = 4
    core = opened.open(context=tokens, max_batch=16, kv_tokens=4 * turns * (QUESTION + ANSWERED))
    many, cached, grown = Chats(core, 16, vocab), 0, 0
    for turn in range(turns):
        cached = many.turn()[1]
        grown = -(resident() or 0) if turn == 1 else grown
    grown += resident() or 0
    core.close()
    assert many.texts[0] == one.texts[0][: len(many.texts[0])], "company changed the tokens"
    return {
        "ratio": computed[0].prefill_seconds / seconds[-1],
        "turn_20_over_2": seconds[-1] / seconds[1],
        "first_token_s": seconds,
        "many_cached_tokens": cached,  # of 16 prompts of the last turn
        "many_grown_bytes": grown,  # of resident memory, from turn 2 on
    }


WORKLOADS: dict[str, Callable[[Bench], dict[str, Any]]] = {
    "prompt-lookup": prompt_lookup,
    "draft-model": draft_model,
    "mtp": multi_token,
    "unused-features": unused_features,
    "overhead": overhead,
    "stall": stall,
    "shared-prefix": shared_prefix,
    "chat": chat,
}


def compiled(folder: Path, *more: str) -> Path:
    """Return the compiled folder of a model; compile it if it does not exist."""
    command = [sys.executable, "-m", "wherry", "compile", str(folder), "--quant", QUANT]
    command += ["--context", str(CONTEXT), *more]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return Path(done.stdout.strip().splitlines()[-1])


def main() -> None:
    """Measure the named workloads, or all; write a row for each."""
    parser = argparse.ArgumentParser()
    parser.add_argument("workloads", nargs="*", help=", ".join(WORKLOADS))
    parser.add_argument("--shape", default=SHAPE, choices=list(SHAPES))
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--folder", type=Path, default=MODELS)
    parser.add_argument("--rows", type=Path, default=ROWS)
    a = parser.parse_args()
    shape = SHAPES[a.shape]
    target = write(a.folder / f"{a.shape}-chain", shape)
    small = DRAFT | {"vocab_size": shape["vocab_size"]}
    draft = write(a.folder / f"{a.shape}-draft", small, agree=DRAFT_AGREES)
    target_folder, draft_folder = compiled(target), compiled(draft)
    for name in a.workloads or WORKLOADS:
        busy = busy_cores()
        measured = WORKLOADS[name](
            Bench(target_folder, draft_folder, a.threads, shape["vocab_size"], a.folder)
        )
        row = {
            "shape": a.shape,
            "what": f"engine-{name}",
            "threads": a.threads,
            "quant": QUANT,
            **measured,
            "machine": machine(),
            "versions": versions(),
            "warning": warning(busy),
        }
        print(name, {k: v for k, v in measured.items() if not isinstance(v, list)})
        write_row(a.rows, row)


if __name__ == "__main__":
    main()
