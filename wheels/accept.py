"""Checks an installed wheel where there is no compiler: start, run, compile, serve, package.

    python wheels/accept.py [STEP ...] [--site DIR]

Runs this Python's command `wherry`, with an empty PATH and a cache of its own; `package` needs the
extra `browser`; `start` and `reload` do not run on Windows. Prints a line of JSON: seconds of each
step.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

WINDOWS = sys.platform == "win32"
WHERRY = Path(sysconfig.get_path("scripts")) / ("wherry.exe" if WINDOWS else "wherry")
COMPILERS = ("c++", "g++", "gcc", "cc", "clang", "cmake", "make", "node", "npm", "wasm-ld", "em++")
SITE = "site"
# One scheme that every GPU runs, and limits that a small device has.
SITE_OPTIONS = (
    *("--target", "webgpu", "--target", "wasm", "--quant", "q4f32_1"),
    *("--context", "256", "--max-batch", "8", "--prefill-chunk", "64"),
)
HELP_SECONDS = 0.15  # of CPU
QUANTS = ("q4f16_1", "q8f16_1")
WARM, LOADS = 40, 200  # loads before memory is measured, and while it is
GROWTH_BYTES = 4 << 20  # of resident memory; 200 copies of the model's code are 120 MB
# Two models side by side, then one load after the other: prints the growth of resident memory.
RELOAD = """
import gc, sys
from wherry import MLCEngine
from wherry.runtime.load.program_memory import resident

def answer(engine):
    message = {"role": "user", "content": "Hi"}
    done = engine.chat.completions.create(messages=[message], max_tokens=2, temperature=0)
    return done.choices[0].message.content

folders, warm, loads = sys.argv[1:3], int(sys.argv[3]), int(sys.argv[4])
with MLCEngine(folders[0]) as one, MLCEngine(folders[1]) as other:
    expected = [answer(one), answer(other)]
found = []
for turn in range(warm + loads):
    with MLCEngine(folders[turn % 2]) as engine:
        assert answer(engine) == expected[turn % 2], turn
    gc.collect()
    found.append(resident())
print(max(found[-20:]) - max(found[warm : warm + 20]))
"""


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
    own = {"PATH": "", "HOME": str(home), "WHERRY_CACHE": str(home / "cache"), "LANG": "C.UTF-8"}
    if WINDOWS:
        needed = ("PROCESSOR_ARCHITECTURE", "SYSTEMROOT", "TEMP")
        own |= {name: os.environ[name] for name in needed if name in os.environ}
        own["USERPROFILE"] = str(home)
    return own


def run(home: Path) -> None:
    """The demo model tells a story."""
    story = wherry("run", "demo", "--seed", "1", "Tell me a story.", home=home)
    if len(story.split()) < 10:
        raise SystemExit(f"the demo model's story is short: {story!r}")


def start(home: Path) -> None:
    """The help is printed within a budget of CPU time, after Python has compiled the modules."""
    wherry("--help", home=home)
    spent = []
    for _ in range(5):  # other programs make some of them slower
        before = cpu_seconds()
        wherry("--help", home=home)
        spent.append(cpu_seconds() - before)
    if min(spent) > HELP_SECONDS:
        raise SystemExit(
            f"wherry --help took {min(spent):.3f} s of CPU; {HELP_SECONDS} are allowed"
        )


def cpu_seconds() -> float:
    """The CPU time of all children that have ended."""
    import resource  # Windows has none

    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def doctor(home: Path) -> None:
    """The doctor finds no fault."""
    wherry("doctor", home=home)


def compile_(home: Path) -> None:
    """Two models in folders of their own; objects in the place of a linked library."""
    for quant in QUANTS:
        folder = home / quant
        wherry("compile", "demo", "--quant", quant, "-o", str(folder), home=home)
        names = {path.name for path in folder.rglob("*")}
        if "model.tar" not in names:
            raise SystemExit(f"{folder} has no model.tar: {', '.join(sorted(names))}")
        if not wherry("run", str(folder), "--seed", "1", "Hello!", home=home).strip():
            raise SystemExit(f"{folder} did not answer")


def reload(home: Path) -> None:
    """Two models loaded together, then in turn: memory stays what it was."""
    folders = [str(home / quant) for quant in QUANTS]
    done = subprocess.run(
        [sys.executable, "-c", RELOAD, *folders, str(WARM), str(LOADS)],
        env=environment(home),
        cwd=home,
        capture_output=True,
        text=True,
    )
    if done.returncode:
        raise SystemExit(f"{LOADS} loads ended with {done.returncode}:\n{done.stderr}")
    if int(done.stdout) > GROWTH_BYTES:
        raise SystemExit(f"{LOADS} loads took {done.stdout.strip()} bytes, and kept them")


@contextlib.contextmanager
def server(home: Path, *arguments: str) -> Iterator[str]:
    """A server of `wherry` on a free port; its address."""
    command = [WHERRY, *arguments, "--port", "0"]
    log = home / f"{arguments[0]}.log"
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
        if match := re.search(r"http://127\.0\.0\.1:\d+", log.read_text(errors="replace")):
            return match[0]
        time.sleep(0.1)
    raise SystemExit(f"the server did not start:\n{log.read_text(errors='replace')}")


def serve(home: Path) -> None:
    """A server answers one request."""
    messages = [{"role": "user", "content": "Hello!"}]
    body = json.dumps({"model": "demo", "messages": messages, "max_tokens": 8}).encode()
    with server(home, "serve", "demo") as address:
        request = urllib.request.Request(
            f"{address}/v1/chat/completions", body, {"Content-Type": "application/json"}
        )
        with urllib.request.urlopen(request, timeout=120) as response:
            answer = json.load(response)
    if not answer["choices"][0]["message"]["content"]:
        raise SystemExit(f"the server's answer is empty: {answer}")


def package(home: Path) -> None:
    """A site for browsers, which `wherry web` serves."""
    site = home / SITE
    wherry("package", "demo", *SITE_OPTIONS, "-o", str(site), home=home)
    for target in ("webgpu", "wasm"):
        library = site / "models" / f"demo-{target}" / "model.wasm"
        if library.read_bytes()[:4] != b"\0asm":
            raise SystemExit(f"{library} is no WebAssembly")
    with server(home, "web", str(site)) as address:
        for path, part in (("", "<title>Wherry</title>"), ("models.json", "demo-webgpu")):
            with urllib.request.urlopen(f"{address}/{path}", timeout=60) as response:
                if part not in response.read().decode():
                    raise SystemExit(f"{address}/{path} has no {part}")


STEPS: dict[str, Callable[[Path], None]] = {
    "start": start,
    "run": run,
    "doctor": doctor,
    "compile": compile_,
    "reload": reload,
    "serve": serve,
    "package": package,
}


def main() -> None:
    """Run all steps; exit with a message at the first that fails."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("steps", nargs="*", help=f"default: all of {', '.join(STEPS)}")
    parser.add_argument("--site", type=Path, help="where to keep the site that `package` made")
    options = parser.parse_args()
    if unknown := set(options.steps) - set(STEPS):
        parser.error(f"no steps: {', '.join(unknown)}; there are {', '.join(STEPS)}")
    folders = [Path(folder) for folder in os.get_exec_path()]
    compilers = [name for name in COMPILERS if any((folder / name).exists() for folder in folders)]
    seconds: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as folder:
        for name in options.steps or STEPS:
            start = time.monotonic()
            STEPS[name](Path(folder))
            seconds[name] = round(time.monotonic() - start, 1)
        if options.site and Path(folder, SITE).exists():
            shutil.copytree(Path(folder, SITE), options.site)
    print(json.dumps({"seconds": seconds, "on this machine's PATH": compilers}))


if __name__ == "__main__":
    main()
