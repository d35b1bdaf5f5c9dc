"""Measured runs of llama.cpp's own benchmark programs.

Wall times are those that they report, of the measured phase only. CPU time is that of the whole
process, so that of a shorter run is subtracted: loading, warming up and the prompt cancel out.
"""

from __future__ import annotations

import json
import os
import resource
import statistics
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

BATCH_PROMPT_CONTEXT = 4096  # tokens of the cache in the batched runs


@dataclass(frozen=True, slots=True)
class Output:
    """What a child process printed, and the CPU seconds it took."""

    text: str
    cpu_s: float


def run_child(command: list[str], environment: dict[str, str] | None = None) -> Output:
    """Run a command to its end; `environment` is added to this process's.

    Raises:
        SystemExit: it failed; with the end of what it wrote.
    """
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        command, capture_output=True, text=True, env=dict(os.environ) | (environment or {})
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        said = (done.stderr or done.stdout)[-2000:]
        raise SystemExit(f"{' '.join(command)} failed ({done.returncode}):\n{said}")
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Output(done.stdout, cpu)


@dataclass(frozen=True, slots=True)
class Llama:
    """The two programs, a model and a number of threads."""

    bench: str
    batched_bench: str
    model: Path
    threads: int

    @classmethod
    def from_environment(cls, model: Path, threads: int) -> Llama:
        """Find the programs by LLAMA_BENCH and LLAMA_BATCHED_BENCH; see README.md."""
        names = ("LLAMA_BENCH", "LLAMA_BATCHED_BENCH")
        if missing := [n for n in names if not os.environ.get(n)]:
            raise SystemExit(f"Set {' and '.join(missing)}: see benchmarks/README.md.")
        bench, batched = (os.environ[n] for n in names)
        return cls(bench, batched, model, threads)

    def prefill(self, tokens: int) -> dict[str, Any]:
        """A prompt: wall and CPU seconds of one."""
        (full, long), (_, short) = (
            self._bench(["-p", str(tokens), "-n", "0", "-r", str(r)]) for r in (3, 1)
        )
        wall = statistics.median(full["samples_ns"]) * 1e-9
        return self._result(full, wall_s=wall, cpu_s=(long - short) / 2)

    def decode(self, depth: int, tokens: int) -> dict[str, Any]:
        """`tokens` steps of one sequence that has `depth` tokens: seconds of all of them."""
        short_tokens = tokens // 4
        (full, long), (_, short) = (
            self._bench(["-p", "0", "-n", str(n), "-d", str(depth), "-r", "1"])
            for n in (tokens, short_tokens)
        )
        cpu = (long - short) * tokens / (tokens - short_tokens)
        return self._result(full, wall_s=full["samples_ns"][0] * 1e-9, cpu_s=cpu)

    def decode_batch(self, batch: int, depth: int, tokens: int) -> dict[str, Any]:
        """`tokens` steps of `batch` sequences that have `depth` tokens each."""
        short_tokens = tokens // 4
        (full, long), (_, short) = (self._batched(batch, depth, n) for n in (tokens, short_tokens))
        cpu = (long - short) * tokens / (tokens - short_tokens)
        return {"wall_s": full["t_tg"], "cpu_s": cpu}

    def _bench(self, arguments: list[str]) -> tuple[dict[str, Any], float]:
        common = ["-m", str(self.model), "-t", str(self.threads), "-o", "json"]
        output = run_child([self.bench, *common, *arguments])
        (record,) = json.loads(output.text)
        return record, output.cpu_s

    def _batched(self, batch: int, depth: int, tokens: int) -> tuple[dict[str, Any], float]:
        numbers = {"-npp": depth, "-ntg": tokens, "-npl": batch, "-t": self.threads}
        numbers["-c"] = max(BATCH_PROMPT_CONTEXT, batch * (depth + tokens))
        arguments = [str(part) for pair in numbers.items() for part in pair]
        command = [self.batched_bench, "-m", str(self.model), "--output-format", "jsonl"]
        output = run_child([*command, *arguments])
        (line,) = [x for x in output.text.splitlines() if x.startswith("{")]
        return json.loads(line), output.cpu_s

    @staticmethod
    def _result(record: dict[str, Any], *, wall_s: float, cpu_s: float) -> dict[str, Any]:
        return {
            "wall_s": wall_s,
            "cpu_s": cpu_s,
            "weight_bytes": record["model_size"],
            "build": record["build_commit"],
        }
