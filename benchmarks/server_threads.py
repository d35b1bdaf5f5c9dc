"""Measures what a token costs above the engine: `python -m benchmarks.server_threads`.

The server runs in a process of its own, which tells the CPU time of each of its threads; the
clients stream chats of the demo model, 1, 16, 64 and 256 at a time. While the most streams run,
GET /health is timed. The row has CPU microseconds per token of Python's threads and of the
engine's, tokens per second, and the 99th percentile of /health. Then, without /health, longer and
shorter streams tell what a further token and what a request costs.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from .busy import busy_cores, warning
from .rows import ROWS, machine, versions, write_row
from .server import _free_port, serving

STREAMS = (1, 16, 64, 256)
TOKENS = 96  # of each stream
_APART = 64  # streams whose requests and tokens are told apart
_LONGER = 384  # tokens of each of them in the longer runs
_REPEATS = 3  # of a shorter and a longer run; the least of each counts
_REQUEST = {
    "messages": [{"role": "user", "content": "Tell me a story."}],
    "ignore_eos": True,
    "stream": True,
    "temperature": 0,
}


def _threads() -> dict[str, float]:
    """Return CPU seconds by thread: Python's by name, and of all others together."""
    seconds: dict[str, float] = {}
    for thread in threading.enumerate():
        assert thread.ident is not None, "it runs"
        name = thread.name.rstrip("_0123456789")
        clock = time.pthread_getcpuclockid(thread.ident)
        seconds[name] = seconds.get(name, 0.0) + time.clock_gettime(clock)
    return {**seconds, "native": time.process_time() - sum(seconds.values())}


def serve(model: str, port: int, report: Path) -> None:
    """Serve until SIGINT; once `report`.ask exists, write the threads' CPU seconds to `report`."""
    from wherry.runtime.server.serving import serve as run

    def tell() -> None:
        ask, part = report.with_suffix(".ask"), report.with_suffix(".part")
        while True:
            time.sleep(0.01)
            if ask.exists():
                ask.unlink()
                part.write_text(json.dumps(_threads()))
                part.replace(report)

    threading.Thread(target=tell, name="benchmark", daemon=True).start()
    run(model, port=port, log_format="json")


async def _stream(port: int, tokens: int) -> int:
    """Stream one chat; return the number of chunks with text."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    body = json.dumps({**_REQUEST, "max_tokens": tokens}).encode()
    head = f"POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: {len(body)}"
    writer.write(f"{head}\r\nContent-Type: application/json\r\n\r\n".encode() + body)
    count = 0
    while line := await reader.readline():
        count += b'"content":' in line
        if b"[DONE]" in line:
            break
    writer.close()
    return count


async def _health(port: int, times: list[float], over: asyncio.Event) -> None:
    while not over.is_set():
        start = time.monotonic()
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")
        await reader.read()
        writer.close()
        times.append(time.monotonic() - start)
        await asyncio.sleep(0.02)


async def _load(port: int, streams: int) -> tuple[float, list[float]]:
    """Run streams at once; return the seconds, and those of each GET /health."""
    times: list[float] = []
    over = asyncio.Event()
    probe = asyncio.create_task(_health(port, times, over))
    start = time.monotonic()
    await asyncio.gather(*(_stream(port, TOKENS) for _ in range(streams)))
    seconds = time.monotonic() - start
    over.set()
    await probe
    return seconds, times


def _thread_seconds(report: Path) -> Mapping[str, float]:
    report.unlink(missing_ok=True)
    report.with_suffix(".ask").touch()
    while not report.exists():
        time.sleep(0.01)
    seconds: dict[str, float] = json.loads(report.read_text())
    del seconds["benchmark"]
    return seconds


async def _unprobed(port: int, tokens: int) -> None:
    await asyncio.gather(*(_stream(port, tokens) for _ in range(_APART)))


def _apart(port: int, report: Path) -> dict[str, float]:
    """Return the CPU time of Python's threads by request and by further token."""
    least = dict.fromkeys((TOKENS, _LONGER), float("inf"))
    for _ in range(_REPEATS):
        for tokens in least:
            before = _python_seconds(report)
            asyncio.run(_unprobed(port, tokens))
            least[tokens] = min(least[tokens], _python_seconds(report) - before)
    token = (least[_LONGER] - least[TOKENS]) / _APART / (_LONGER - TOKENS)
    return {
        "streams": _APART,
        "python_us_per_further_token": round(1e6 * token, 2),
        "python_ms_per_request": round(1e3 * (least[TOKENS] / _APART - TOKENS * token), 3),
        **{f"python_us_per_token_of_{n}": round(1e6 * s / _APART / n, 2) for n, s in least.items()},
    }


def _python_seconds(report: Path) -> float:
    return sum(s for name, s in _thread_seconds(report).items() if name != "native")


def measure(model: str, folder: Path, streams_at_once: Sequence[int]) -> list[dict[str, Any]]:
    """Return a result for each number of streams, and at last one of requests and tokens apart."""
    port, report = _free_port(), folder / "threads.json"
    command = [
        sys.executable,
        "-m",
        "benchmarks.server_threads",
        "--model",
        model,
        "--report",
        str(report),
    ]
    results: list[dict[str, Any]] = []
    with serving(command, port):
        asyncio.run(_load(port, 4))  # the first requests compile and cache
        for streams in streams_at_once:
            before = _thread_seconds(report)
            seconds, health = asyncio.run(_load(port, streams))
            after = _thread_seconds(report)
            used = {n: after[n] - before.get(n, 0.0) for n in after}
            tokens = streams * TOKENS
            native = used.pop("native", 0.0)
            results.append(
                {
                    "streams": streams,
                    "tokens_per_second": round(tokens / seconds, 1),
                    "python_us_per_token": round(1e6 * sum(used.values()) / tokens, 2),
                    "engine_us_per_token": round(1e6 * native / tokens, 2),
                    "threads_us_per_token": {
                        n: round(1e6 * s / tokens, 2) for n, s in used.items() if s > 0
                    },
                    "health_ms_p99": round(
                        1e3 * statistics.quantiles(health + health, n=100)[98], 2
                    ),
                }
            )
            print(json.dumps(results[-1]), file=sys.stderr)
        results.append(_apart(port, report))
        print(json.dumps(results[-1]), file=sys.stderr)
    return results


def main() -> None:
    """Measure, or be the server that is measured."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default="demo")
    parser.add_argument("--port", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--report", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--streams", type=int, nargs="*", default=STREAMS)
    parser.add_argument("--no-row", action="store_true", help="only print the result")
    args = parser.parse_args()
    if args.report:
        serve(args.model, args.port, args.report)
        return
    busy = busy_cores()
    with tempfile.TemporaryDirectory() as folder:
        results = measure(args.model, Path(folder), args.streams)
    row = {"shape": args.model, "what": "server-threads", "threads": os.cpu_count(), "quant": ""}
    row |= {"machine": machine(), "versions": versions(), "tokens": TOKENS, "results": results}
    if note := warning(busy):
        row["warning"] = note
    print(json.dumps(row, indent=2))
    if not args.no_row:
        write_row(ROWS, row)


if __name__ == "__main__":
    main()
