"""Runs llama.cpp's own benchmark programs.

Wall times are those that the programs report for the measured phase. CPU time is a whole process's,
so the time of a shorter run is subtracted: loading, warm-up and the prompt cancel out.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

BATCH_PROMPT_CONTEXT = 4096  # tokens of the KV cache in batched runs


@dataclass(frozen=True, slots=True)
class Output:
    """Output of a child process, with its CPU seconds and peak memory."""

    text: str
    cpu_s: float
    peak_bytes: int  # bytes of peak memory, including mapped files


def run_child(command: list[str], environment: dict[str, str] | None = None) -> Output:
    """Run a command to its end; `environment` is added to this process's variables.

    Raises:
        SystemExit: the command failed; the message has the end of its output.
    """
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        environment = dict(os.environ) | (environment or {})
        process = subprocess.Popen(command, stdout=out, stderr=err, env=environment)
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        texts = []
        for stream in (out, err):
            stream.seek(0)
            texts.append(stream.read())
    if process.returncode:
        said = (texts[1] or texts[0])[-2000:]
        raise SystemExit(f"{' '.join(command)} failed ({process.returncode}):\n{said}")
    return Output(texts[0], used.ru_utime + used.ru_stime, 1024 * used.ru_maxrss)


@dataclass(frozen=True, slots=True)
class Llama:
    """llama.cpp's two benchmark programs, with a model and a number of threads."""

    bench: str
    batched_bench: str
    model: Path
    threads: int

    @classmethod
    def from_environment(cls, model: Path, threads: int) -> Llama:
        """Find the programs in LLAMA_BENCH and LLAMA_BATCHED_BENCH; see README.md."""
        names = ("LLAMA_BENCH", "LLAMA_BATCHED_BENCH")
        if missing := [n for n in names if not os.environ.get(n)]:
            raise SystemExit(f"Set {' and '.join(missing)}: see benchmarks/README.md.")
        bench, batched = (os.environ[n] for n in names)
        return cls(bench, batched, model, threads)

    def prefill(self, tokens: int) -> dict[str, Any]:
        """Measure a prompt of `tokens` tokens; return wall and CPU seconds."""
        (full, long), (_, short) = (
            self._bench(["-p", str(tokens), "-n", "0", "-r", str(r)]) for r in (3, 1)
        )
        wall = statistics.median(full["samples_ns"]) * 1e-9
        return self._result(full, long, wall_s=wall, cpu_s=(long.cpu_s - short.cpu_s) / 2)

    def decode(self, depth: int, tokens: int) -> dict[str, Any]:
        """Measure `tokens` decode steps of a sequence of `depth` tokens.

        Return seconds of all steps.
        """
        short_tokens = tokens // 4
        (full, long), (_, short) = (
            self._bench(["-p", "0", "-n", str(n), "-d", str(depth), "-r", "1"])
            for n in (tokens, short_tokens)
        )
        cpu = (long.cpu_s - short.cpu_s) * tokens / (tokens - short_tokens)
        return self._result(full, long, wall_s=full["samples_ns"][0] * 1e-9, cpu_s=cpu)

    def decode_batch(self, batch: int, depth: int, tokens: int) -> dict[str, Any]:
        """Measure `tokens` decode steps of `batch` sequences of `depth` tokens each."""
        short_tokens = tokens // 4
        (full, long), (_, short) = (self._batched(batch, depth, n) for n in (tokens, short_tokens))
        cpu = (long - short) * tokens / (tokens - short_tokens)
        return {"wall_s": full["t_tg"], "cpu_s": cpu}

    def _bench(self, arguments: list[str]) -> tuple[dict[str, Any], Output]:
        common = ["-m", str(self.model), "-t", str(self.threads), "-o", "json"]
        output = run_child([self.bench, *common, *arguments])
        (record,) = json.loads(output.text)
        return record, output

    def _batched(self, batch: int, depth: int, tokens: int) -> tuple[dict[str, Any], float]:
        numbers = {"-npp": depth, "-ntg": tokens, "-npl": batch, "-t": self.threads}
        numbers["-c"] = max(BATCH_PROMPT_CONTEXT, batch * (depth + tokens))
        arguments = [str(part) for pair in numbers.items() for part in pair]
        command = [self.batched_bench, "-m", str(self.model), "--output-format", "jsonl"]
        output = run_child([*command, *arguments])
        (line,) = [x for x in output.text.splitlines() if x.startswith("{")]
        return json.loads(line), output.cpu_s

    @staticmethod
    def _result(
        record: dict[str, Any], output: Output, *, wall_s: float, cpu_s: float
    ) -> dict[str, Any]:
        return {
            "peak_bytes": output.peak_bytes,
            "wall_s": wall_s,
            "cpu_s": cpu_s,
            "weight_bytes": record["model_size"],
            "build": record["build_commit"],
        }
