"""Measures the memory of a process without a model: Python, libraries and a tokenizer.

This memory depends on the machine and on versions, so a process measures itself after it has loaded
all of these.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path


def resident(field: str = "VmRSS", process: str = "self") -> int | None:
    """Return a process's bytes in memory with mapped files; None if the system does not tell.

    Args:
        field: the field of proc(5)'s status: "VmRSS", or "VmHWM" for the maximum so far.
        process: the process's number, or "self".
    """
    try:
        lines = Path(f"/proc/{process}/status").read_text().splitlines()
    except OSError:
        return None
    sizes = [line.split()[1] for line in lines if line.startswith(f"{field}:")]
    return int(sizes[0]) * 1024 if sizes else None


def measured(folder: Path, *, compiler: bool = False) -> int | None:
    """Return the bytes of a process about to load a model; None if the system does not tell.

    Args:
        folder: a folder with the tokenizer.
        compiler: whether the process also loads the compiler, to find the model in the cache.
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
    """Load everything but a model; return the resident bytes of the process."""
    import importlib

    from ..core.library import open_core, open_runtime
    from . import jit
    from .side_files import SideFiles

    # The engine is imported by name, because it imports this package.
    importlib.import_module("wherry.runtime.engine")
    if compiler:
        jit.load_compiler()
    open_runtime("cpu")
    open_core()
    kept = SideFiles.read(Path(folder))
    memory = resident()
    del kept
    return memory
