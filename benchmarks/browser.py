"""Compares Wherry with wllama and WebLLM in one browser: `python -m benchmarks.browser`.

README.md has the set-up.

Both sides have equal random weights and prompts, and run in turn (A B A B).
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from queue import Empty, Queue
from threading import Thread
from typing import Any

from wherry.bench.workload import WORDS

from .busy import busy_cores, warning
from .drive_llama import run_child
from .make_models import DEFAULT_FOLDER
from .rows import ROWS, machine, versions, write_row
from .shapes import SHAPES
from .word_models import readable_folder, readable_gguf

WEB = Path(__file__).parents[1] / "web"
CONTEXT = 1024
PROMPT, OUTPUT = 256, 64  # tokens of a prompt and of a response
PEERS = {"wllama": "wasm", "webllm": "webgpu"}  # peer -> Wherry's target for the comparison
_SECONDS = 1200  # time limit of a page in seconds
_FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-dev-shm-usage",
)
_SOFTWARE_GPU = ("--enable-unsafe-webgpu", "--use-webgpu-adapter=swiftshader")
_TYPES = {".js": "text/javascript", ".html": "text/html", ".wasm": "application/wasm"}
_TICK = os.sysconf("SC_CLK_TCK")


def cpu_seconds(root: int) -> float:
    """Return the CPU time so far of a process and all its descendants, from /proc."""
    parents: dict[int, int] = {}
    ticks: dict[int, int] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:  # the process has ended
            continue
        pid = int(path.parent.name)
        parents[pid] = int(fields[1])
        # CPU time of the process and of its ended children
        ticks[pid] = sum(int(x) for x in fields[11:15])

    def belongs(pid: int) -> bool:
        while pid in parents and pid != root:
            pid = parents[pid]
        return pid == root

    return sum(n for pid, n in ticks.items() if belongs(pid)) / _TICK


class Page:
    """A browser with one page, which this object serves; the page posts its results."""

    def __init__(self, files: Mapping[str, Path], given: Any, flags: tuple[str, ...]) -> None:
        self._files = files
        self._given = json.dumps(given).encode()
        self._flags = flags
        self._results: Queue[Any] = Queue()
        self._browser: subprocess.Popen[bytes] | None = None

    def result(self) -> Any:
        """Open the page and wait for its results.

        Raises:
            SystemExit: the page failed or took too long.
        """
        chromium = shutil.which("chromium") or sys.exit("no Chromium: apt-get install chromium")
        server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        Thread(target=server.serve_forever, daemon=True).start()
        with tempfile.TemporaryDirectory(prefix="wherry-bench-") as profile:
            address = f"http://127.0.0.1:{server.server_port}/"
            command = [chromium, *_FLAGS, *self._flags, f"--user-data-dir={profile}", address]
            log = subprocess.DEVNULL
            self._browser = subprocess.Popen(command, stdout=log, stderr=log)
            try:
                report = self._results.get(timeout=_SECONDS)
            except Empty:
                raise SystemExit(f"no answer of the page for {_SECONDS} s") from None
            finally:
                self._browser.terminate()
                self._browser.wait(20)
                server.shutdown()
        if "failure" in report:
            raise SystemExit(report["failure"])
        return report

    def _file(self, path: str) -> Path:
        path = path.replace("/resolve/main/", "/")  # WebLLM appends this path to every address
        name, _, rest = path.strip("/").partition("/")
        if name and name in self._files:
            return self._files[name] / rest if rest else self._files[name]
        return self._files[""] / (path.strip("/") or "index.html")

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        page = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                path = self.path.partition("?")[0]
                if path == "/given.json":
                    return self._send(page._given, "application/json")
                file = page._file(path)
                if not file.is_file():
                    return self.send_error(404)
                kind = _TYPES.get(file.suffix, "application/octet-stream")
                self._send(file.read_bytes(), kind)

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"] or 0))
                answer = {}
                if self.path == "/mark":
                    assert page._browser
                    answer = {"cpu_s": cpu_seconds(page._browser.pid)}
                self._send(json.dumps(answer).encode(), "application/json")
                if self.path == "/result":
                    page._results.put(json.loads(body))

            def _send(self, body: bytes, kind: str) -> None:
                self.send_response(200)
                self.send_header("content-type", kind)
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: Any) -> None:
                """Suppress the log line of each request."""

        return Handler


def compiled(shape: str, target: str, quant: str, out: Path) -> Path:
    """Compile the shape's model, which has a tokenizer, for a browser; return its folder."""
    model = "demo" if shape == "demo" else str(readable_folder(DEFAULT_FOLDER, shape))
    command = [sys.executable, "-m", "wherry", "compile", model, "--target", target]
    sizes = ["--context", str(CONTEXT), "--max-batch", "1", "--prefill-chunk", str(PROMPT)]
    run_child([*command, *sizes, "--quant", quant, "-o", str(out / target.replace(":", "-"))])
    return out / target.replace(":", "-")


def prompts(rounds: int, prompt: int, output: int) -> list[dict[str, Any]]:
    """Return requests with prompts of `prompt` one-token words and no common prefix."""
    rng = random.Random(0)
    texts = [" " + " ".join(rng.choices(WORDS, k=prompt)) for _ in range(rounds)]
    return [{"prompt": text, "tokens": output + 1} for text in texts]


def compare(peer: str, arguments: argparse.Namespace, out: Path) -> dict[str, Any]:
    """Measure Wherry and a peer in one page; return their part of a row."""
    target = PEERS[peer]
    page = out / "page"
    run_child(["node", str(WEB / "bench" / "bundle.js"), str(page)])
    files = {"": page, "ours": compiled(arguments.shape, target, arguments.quant, out)}
    url = {"wllama": "peer.gguf", "webllm": "peer/"}[peer]
    if peer == "wllama":
        files["peer.gguf"] = readable_gguf(DEFAULT_FOLDER, arguments.shape, "q4_0")
    else:
        files["peer"] = compiled(arguments.shape, "webgpu:web-llm", arguments.quant, out)
    given = {
        "sides": [
            {"kind": "wherry", "url": "ours/", "context": CONTEXT},
            {"kind": peer, "url": url, "context": CONTEXT},
        ],
        # One extra run for each side, which does not count, because the browser compiles code in
        # it.
        "requests": prompts(1 + arguments.rounds, arguments.prompt, arguments.output),
    }
    busy = busy_cores()
    sides = Page(files, given, _SOFTWARE_GPU if target == "webgpu" else ()).result()
    a, b = (summary(side, arguments) for side in sides)
    return {
        "target": target,
        "peer": peer,
        "busy_cores_before": busy,
        "warning": warning(busy),
        "load_average": os.getloadavg()[0],
        **{
            f"ratio_{phase}_{clock}": round(b[phase][clock] / a[phase][clock], 3)
            for phase in ("prefill", "decode")
            for clock in ("wall_s", "cpu_s")
        },
        "wherry": a,
        peer: b,
    }


def summary(side: dict[str, Any], arguments: argparse.Namespace) -> dict[str, Any]:
    """Return medians over the rounds: seconds of a prompt, and of all tokens after the first."""
    _, *runs = side["runs"]
    expected = arguments.output + 1
    if wrong := [run["output"] for run in runs if run["output"] != expected]:
        raise SystemExit(f"{side['kind']} wrote {wrong} tokens instead of {expected}")
    phases: dict[str, Any] = {"prompt_tokens": runs[0]["prompt"], "load_s": side["load_s"]}
    for phase in ("prefill", "decode"):
        phases[phase] = {
            clock: round(statistics.median(run[phase][clock] for run in runs), 4)
            for clock in ("wall_s", "cpu_s")
        }
    return phases | {"runs": [{p: run[p] for p in ("prefill", "decode")} for run in runs]}


def main() -> None:
    """Measure the named peers; write a row for each."""
    parser = argparse.ArgumentParser(description="Compare Wherry with its peers in a browser.")
    parser.add_argument("peers", nargs="*", default=["wllama"], help=", ".join(PEERS))
    parser.add_argument("--shape", default="smollm2-135m", choices=[*SHAPES, "demo"])
    parser.add_argument("--quant", default="q4f16_1")
    parser.add_argument("--prompt", type=int, default=PROMPT)
    parser.add_argument("--output", type=int, default=OUTPUT)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--rows", type=Path, default=ROWS)
    arguments = parser.parse_args()
    for peer in arguments.peers:
        with tempfile.TemporaryDirectory(prefix="wherry-bench-") as folder:
            compared = compare(peer, arguments, Path(folder))
        row = {"what": f"browser-{peer}", "shape": arguments.shape, "threads": 1}
        row |= {"quant": arguments.quant, "prompt_tokens": arguments.prompt}
        row |= {"output_tokens": arguments.output, "rounds": arguments.rounds, **compared}
        row |= {"machine": machine(), "versions": versions()}
        print(write_row(arguments.rows, row))
        print({name: value for name, value in compared.items() if name.startswith("ratio")})


if __name__ == "__main__":
    main()
