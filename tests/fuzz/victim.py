"""A process that does one thing with a folder, over and over, each time in a child of its own.

Run as a program. Lines of JSON on stdin: {"target": name, "folder": path, "cache": path}; for each
a line on stdout: {"outcome": "done" | "refused" | "broken", "said": text}. What a child may take is
limited, so that a hang or a full memory is "broken", too.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

SECONDS = 30  # of CPU for a child; of wall, three times as many
MEMORY = 3 << 30  # bytes that a child may have besides what it begins with


def runtime() -> dict[str, Callable[[Path], Any]]:
    """What a person does with a compiled folder. No compiler is imported."""
    from wherry.runtime import MLCEngine
    from wherry.runtime.core.interface import SamplingParams
    from wherry.runtime.core.library import open_core, open_runtime
    from wherry.runtime.load.side_files import SideFiles

    open_runtime("cpu")
    open_core()

    def load(folder: Path) -> list[int]:
        """Load and generate; the tokens."""
        with MLCEngine(folder, threads=1, max_batch=1, kv_tokens=64) as engine:
            params = SamplingParams(max_tokens=8, temperature=0)
            return [event.token for event in engine.generate([3, 1], params)]

    def texts(folder: Path) -> None:
        """Tokenizer, template and defaults, and what a chat does with them."""
        files = SideFiles.read(folder)
        tokenizer, template = files.tokenizer, files.template
        text = "t3 Hello, wörld"
        if template:
            text = template.render([{"role": "user", "content": text}])
        tokenizer.decode(tokenizer.encode(text[:10_000])[:10_000])

    return {"load": load, "texts": texts}


def compiler() -> dict[str, Callable[[Path], Any]]:
    """What a compilation does with a model's folder before it compiles."""
    from wherry.compiler.api import convert_model
    from wherry.compiler.weight_marker import files_of

    def convert(folder: Path) -> list[str]:
        """Twice: the second finds the first's files. The hashes of all."""
        out = folder.parent / "out"
        convert_model(str(folder), out, quant="q4f16_1")
        return sorted(record.sha256 for record in files_of(out).values())

    return {"convert": convert}


def attempt(action: Callable[[Path], Any], folder: Path) -> dict[str, str]:
    """What comes of it in this process."""
    from wherry.errors import WherryError

    try:
        return {"outcome": "done", "said": json.dumps(action(folder))}
    except WherryError as e:
        known = str(e).strip() and "Traceback" not in str(e)
        return {"outcome": "refused" if known else "broken", "said": str(e)}
    except BaseException:
        return {"outcome": "broken", "said": traceback.format_exc()}


def child(action: Callable[[Path], Any], folder: Path, answer: int) -> None:
    """Never returns."""
    signal.alarm(3 * SECONDS)
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, used + MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    silence = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silence, 1)
    os.dup2(silence, 2)
    line = json.dumps(attempt(action, folder)).encode()
    while line:
        line = line[os.write(answer, line) :]
    os._exit(0)


def in_a_child(action: Callable[[Path], Any], folder: Path) -> dict[str, str]:
    """`attempt`, or how the child ended."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(reader)
        child(action, folder, writer)
    os.close(writer)
    with os.fdopen(reader, "rb") as f:
        output = f.read()
    _, status = os.waitpid(pid, 0)
    code = os.waitstatus_to_exitcode(status)
    if code == 0 and output:
        answer: dict[str, str] = json.loads(output)
        return answer
    name = signal.Signals(-code).name if code < 0 else f"exit code {code}"
    return {"outcome": "broken", "said": f"ended by {name}"}


def main() -> None:
    """Until stdin ends."""
    targets = {"runtime": runtime, "compiler": compiler}[sys.argv[1]]()
    print(json.dumps({"ready": sorted(targets)}), flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        os.environ["WHERRY_CACHE"] = request["cache"]
        answer = in_a_child(targets[request["target"]], Path(request["folder"]))
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
