"""What a process takes before it has a model: Python, libraries, and a tokenizer.

It depends on the machine and on versions, so it is measured where it is asked for: by a process
that loads all of these, and says how much it has.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path


def resident(field: str = "VmRSS", process: str = "self") -> int | None:
    """Bytes of a process in memory, mapped files and libraries too; None where nobody tells.

    Args:
        field: of proc(5)'s status: "VmRSS", or "VmHWM" for the most so far.
        process: its number, or "self".
    """
    try:
        lines = Path(f"/proc/{process}/status").read_text().splitlines()
    except OSError:
        return None
    found = [line.split()[1] for line in lines if line.startswith(f"{field}:")]
    return int(found[0]) * 1024 if found else None


def measured(folder: Path, *, compiler: bool = False) -> int | None:
    """Bytes of a process that is about to load a model; None where the system does not tell.

    Args:
        folder: has the tokenizer.
        compiler: whether the process looks the model up in the cache, which takes the compiler;
            one that is given a compiled folder does not.
    """
    command = [sys.executable, "-c", _SCRIPT, str(folder), json.dumps(compiler)]
    paths = json.dumps(sys.path)
    done = subprocess.run(command, input=paths, capture_output=True, text=True, check=False)
    return int(done.stdout) if done.returncode == 0 and done.stdout.strip().isdigit() else None


_SCRIPT = """
import json, sys
sys.path[:] = json.load(sys.stdin)
from wherry.runtime.load.program_memory import load_all
print(load_all(sys.argv[1], json.loads(sys.argv[2])) or "")
"""


def load_all(folder: str, compiler: bool) -> int | None:
    """Load what a process has before its model; its bytes in memory."""
    import importlib

    from ..core.library import open_core, open_runtime
    from . import jit
    from .loading import tokenizer_of

    importlib.import_module("wherry.runtime.engine")  # which imports this package
    if compiler:
        jit.load_compiler()
    open_runtime("cpu")
    open_core()
    kept = tokenizer_of(Path(folder))
    found = resident()
    del kept
    return found
