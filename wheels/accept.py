"""Checks an installed wheel where there is no compiler: run, doctor, compile, serve.

    python wheels/accept.py

Runs the command `wherry` that lies next to this Python, with an empty PATH and a cache of its own.
Prints a line of JSON: seconds of each step.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

WHERRY = Path(sys.executable).parent / "wherry"
COMPILERS = ("c++", "g++", "gcc", "cc", "clang", "cmake", "make", "node", "npm")


def wherry(*arguments: str, home: Path) -> str:
    """Run a command; what it printed to stdout."""
    done = subprocess.run(
        [WHERRY, *arguments], env=environment(home), cwd=home, capture_output=True, text=True
    )
    if done.returncode:
        raise SystemExit(
            f"wherry {' '.join(arguments)} ended with {done.returncode}:\n"
            f"{done.stdout}{done.stderr}"
        )
    return done.stdout


def environment(home: Path) -> dict[str, str]:
    """Only what a program must have: nothing on PATH, a cache of its own."""
    return {"PATH": "", "HOME": str(home), "WHERRY_CACHE": str(home / "cache"), "LANG": "C.UTF-8"}


def run(home: Path) -> None:
    """The demo model tells a story."""
    story = wherry("run", "demo", "--seed", "1", "Tell me a story.", home=home)
    if len(story.split()) < 10:
        raise SystemExit(f"the demo model's story is short: {story!r}")


def doctor(home: Path) -> None:
    """The doctor finds no fault."""
    wherry("doctor", home=home)


def compile_(home: Path) -> None:
    """A second model in a folder of its own; objects in the place of a linked library."""
    wherry("compile", "demo", "--quant", "q8f16_1", "-o", str(home / "compiled"), home=home)
    names = {path.name for path in (home / "compiled").rglob("*")}
    if "model.tar" not in names:
        raise SystemExit(f"the compiled folder has no model.tar: {', '.join(sorted(names))}")
    if not wherry("run", str(home / "compiled"), "--seed", "1", "Hello!", home=home).strip():
        raise SystemExit("the compiled folder did not answer")


@contextlib.contextmanager
def server(home: Path) -> Iterator[str]:
    """A server of the compiled folder; its address."""
    command = [WHERRY, "serve", "demo", "--port", "0"]
    log = home / "server.log"
    with log.open("wb") as out:
        process = subprocess.Popen(command, env=environment(home), cwd=home, stdout=out, stderr=out)
        try:
            yield wait_for_address(process, log)
        finally:
            process.terminate()
            process.wait(60)


def wait_for_address(process: subprocess.Popen[bytes], log: Path) -> str:
    """The address that a server prints when it is ready."""
    until = time.monotonic() + 300
    while time.monotonic() < until and process.poll() is None:
        if found := re.search(r"http://127\.0\.0\.1:\d+", log.read_text(errors="replace")):
            return found[0]
        time.sleep(0.1)
    raise SystemExit(f"the server did not start:\n{log.read_text(errors='replace')}")


def serve(home: Path) -> None:
    """A server answers one request."""
    messages = [{"role": "user", "content": "Hello!"}]
    body = json.dumps({"model": "demo", "messages": messages, "max_tokens": 8}).encode()
    with server(home) as address:
        request = urllib.request.Request(
            f"{address}/v1/chat/completions", body, {"Content-Type": "application/json"}
        )
        with urllib.request.urlopen(request, timeout=120) as response:
            answer = json.load(response)
    if not answer["choices"][0]["message"]["content"]:
        raise SystemExit(f"the server's answer is empty: {answer}")


STEPS: dict[str, Callable[[Path], None]] = {
    "run": run,
    "doctor": doctor,
    "compile": compile_,
    "serve": serve,
}


def main() -> None:
    """Run all steps; exit with a message at the first that fails."""
    folders = [Path(folder) for folder in os.get_exec_path()]
    found = [name for name in COMPILERS if any((folder / name).exists() for folder in folders)]
    seconds: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as folder:
        for name, step in STEPS.items():
            start = time.monotonic()
            step(Path(folder))
            seconds[name] = round(time.monotonic() - start, 1)
    print(json.dumps({"seconds": seconds, "on this machine's PATH": found}))


if __name__ == "__main__":
    main()
