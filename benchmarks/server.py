"""Compares Wherry's server with llama.cpp's: `python -m benchmarks.server`; see README.md.

Both servers have equal random weights, run one after the other, and get the same requests from
`wherry bench`.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from wherry.bench.workload import WORDS

from .busy import busy_cores, warning
from .drive_llama import run_child
from .make_models import DEFAULT_FOLDER
from .rows import ROWS, machine, versions, write_row
from .shapes import SHAPES
from .word_models import readable_folder, readable_gguf

CONTEXT = 2048  # tokens of one conversation
START_SECONDS = 600
PROMPT, OUTPUT = 256, 64  # tokens of a prompt and of a response
REQUESTS = {1: 6, 8: 32, 32: 96, 64: 128}  # number of clients -> number of requests
CLIENTS = max(REQUESTS)
_CONVERSATIONS, _TURNS, _TURN_WORDS = 4, 6, 120


def _free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return int(s.getsockname()[1])


@contextlib.contextmanager
def serving(command: list[str], port: int) -> Iterator[str]:
    """Run a server in its own process; yield its URL when it is ready."""
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen([*command, "--port", str(port)], stdout=log, stderr=log)
        try:
            url, end = f"http://127.0.0.1:{port}", time.monotonic() + START_SECONDS
            while not _is_ready(url):
                if process.poll() is not None or time.monotonic() > end:
                    log.seek(0)
                    raise SystemExit(f"{command[0]} did not start:\n{log.read()[-2000:].decode()}")
                time.sleep(0.2)
            yield url
        finally:
            process.terminate()
            process.wait(60)


def _is_ready(url: str) -> bool:
    try:
        with urllib.request.urlopen(f"{url}/health", timeout=2) as answer:
            return bool(answer.status == 200)
    except (urllib.error.URLError, OSError):
        return False


def wherry_server(shape: str, threads: int) -> list[str]:
    """Return the command that starts Wherry's server."""
    folder = str(readable_folder(DEFAULT_FOLDER, shape))
    sizes = ["--context", str(CONTEXT), "--max-batch", str(CLIENTS), "--threads", str(threads)]
    return [sys.executable, "-m", "wherry", "serve", folder, *sizes]


def llama_server(shape: str, threads: int) -> list[str]:
    """Return the command of llama.cpp's server: a slot per client, each with the whole context."""
    program = os.environ.get("LLAMA_SERVER") or sys.exit("Set LLAMA_SERVER to llama-server's path")
    file = str(readable_gguf(DEFAULT_FOLDER, shape, "q4_0"))
    sizes = ["-c", str(CONTEXT * CLIENTS), "-np", str(CLIENTS), "-t", str(threads)]
    return [program, "-m", file, *sizes, "--host", "127.0.0.1", "--no-webui"]


def benchmark(url: str, *arguments: str) -> dict[str, Any]:
    """Run `wherry bench` on a server; return its results."""
    command = [sys.executable, "-m", "wherry", "bench", "--url", url, "--json"]
    output = run_child([*command, "--endpoint", "completions", *arguments])
    report: dict[str, Any] = json.loads(output.text)
    return report


def closed_loop(url: str, clients: int) -> dict[str, Any]:
    """Measure `clients` clients, each with one request at a time."""
    counts = ["--concurrency", str(clients), "--requests", str(REQUESTS[clients])]
    sizes = ["--prompt-tokens", str(PROMPT), "--output-tokens", str(OUTPUT)]
    return benchmark(url, *counts, *sizes, "--seed", str(clients))


def turns(path: Path) -> Path:
    """Write a trace of alternating conversations: each prompt begins with all earlier turns."""
    rng = random.Random(0)
    said = [""] * _CONVERSATIONS
    lines = []
    for turn in range(_TURNS):
        for i in range(_CONVERSATIONS):
            said[i] += " " + " ".join(rng.choices(WORDS, k=_TURN_WORDS))
            # seconds; the previous response has ended by then
            at = (turn * _CONVERSATIONS + i) * 1.5
            lines.append(json.dumps({"at": at, "prompt": said[i].strip(), "max_tokens": 16}))
    path.write_text("\n".join(lines) + "\n")
    return path


def measured(url: str, clients: Sequence[int], trace: Path) -> dict[str, dict[str, Any]]:
    """Measure the workloads on one server: numbers of clients, and with all of them the trace."""
    reports = {f"clients{n}": closed_loop(url, n) for n in clients}
    if len(clients) == len(REQUESTS):
        reports["multi-turn"] = benchmark(url, "--trace", str(trace))
    return reports


def compare(shape: str, threads: int, rounds: int, clients: Sequence[int]) -> None:
    """Measure both servers in turn; write the rows."""
    before = busy_cores()
    runs: dict[str, list[dict[str, dict[str, Any]]]] = {"wherry": [], "llama": []}
    with tempfile.TemporaryDirectory() as folder:
        trace = turns(Path(folder) / "turns.jsonl")
        for _ in range(rounds):
            for side, command in (
                ("wherry", wherry_server(shape, threads)),
                ("llama", llama_server(shape, threads)),
            ):
                with serving(command, _free_port()) as url:
                    runs[side].append(measured(url, clients, trace))
    for what in runs["wherry"][0]:
        sides = {side: _summary([run[what] for run in results]) for side, results in runs.items()}
        row = {
            "what": f"server-{what}",
            "shape": shape,
            "threads": threads,
            "quant": "q4f16_1",
            "rounds": rounds,
            "prompt_tokens": PROMPT,
            "output_tokens": OUTPUT,
            **sides,
            "ratio_tokens_per_second": _over(sides, "output_tokens_per_second"),
            "ratio_first_token": _over(sides, "ttft_p50_ms", inverse=True),
            "machine": machine(),
            "versions": versions(),
        }
        if busy := warning(before):
            row["warning"] = busy
        print(write_row(ROWS, row))


def _over(sides: dict[str, dict[str, float]], name: str, *, inverse: bool = False) -> float:
    """Return Wherry's value over llama.cpp's, or the reverse if less is better."""
    wherry, llama = sides["wherry"][name], sides["llama"][name]
    return round(llama / wherry if inverse else wherry / llama, 3)


def _summary(results: list[dict[str, Any]]) -> dict[str, float]:
    """Return medians over the rounds."""

    def median(*path: str) -> float:
        values = []
        for run in results:
            value: Any = run
            for name in path:
                value = value[name]
            values.append(float(value))
        return round(statistics.median(values), 3)

    return {
        "failed": median("failed"),
        "output_tokens_per_second": median("per_second", "output_tokens"),
        "ttft_p50_ms": median("milliseconds", "ttft", "p50"),
        "ttft_p99_ms": median("milliseconds", "ttft", "p99"),
        "tpot_p50_ms": median("milliseconds", "tpot", "p50"),
    }


def main() -> None:
    """Measure the shapes named on the command line."""
    parser = argparse.ArgumentParser(description="Compare Wherry's server with llama.cpp's.")
    parser.add_argument("shapes", nargs="*", default=["smollm2-135m"], help=", ".join(SHAPES))
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--clients", type=int, nargs="+", choices=REQUESTS, default=list(REQUESTS))
    arguments = parser.parse_args()
    for shape in arguments.shapes:
        compare(shape, arguments.threads, arguments.rounds, arguments.clients)


if __name__ == "__main__":
    main()
