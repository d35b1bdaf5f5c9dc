"""Writes and reads rows: one JSON file per measurement, in the repository."""

from __future__ import annotations

import json
import os
import platform
import subprocess
from datetime import datetime, timezone
from importlib.metadata import version
from pathlib import Path
from typing import Any

import wherry
from wherry.base.temporary import write_atomically
from wherry.machine.cpu import cpu_features

ROWS = Path(__file__).parent / "rows"
FLAGS = (
    *("avx2", "avx_vnni", "avx512f", "avx512_vnni", "avx512_bf16", "amx_bf16", "amx_int8"),
    *("asimddp", "i8mm", "sve"),
)


def machine() -> dict[str, Any]:
    """Return the facts about the machine that the measurements depend on."""
    present = cpu_features()
    return {
        "cpu": _cpu_name(),
        "cores": os.cpu_count(),
        "flags": [f for f in FLAGS if f in present],
        "system": f"{platform.system()} {platform.machine()}",
    }


def _cpu_name() -> str:
    """Return the CPU's brand, family and model, because virtual machines may hide the brand."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    pairs = (x.partition(":") for x in lines)
    fields = {name.strip(): value.strip() for name, _, value in pairs}
    numbers = f"family {fields.get('cpu family', '?')} model {fields.get('model', '?')}"
    return f"{fields.get('model name', platform.machine())} ({numbers})"


def versions() -> dict[str, str]:
    """Return the versions of Wherry, with its commit, and of TVM."""
    root = str(Path(__file__).parents[1])
    commit = _git(root, "rev-parse", "--short=12", "HEAD")
    changed = [
        line
        for line in _git(root, "status", "--porcelain").splitlines()
        if "benchmarks/" not in line
    ]
    return {
        "wherry": wherry.__version__,
        "commit": commit + ("+changes" if changed else ""),
        "tvm": version("apache-tvm"),
    }


def _git(root: str, *arguments: str) -> str:
    done = subprocess.run(["git", "-C", root, *arguments], capture_output=True, text=True)
    return done.stdout.strip() if done.returncode == 0 else "unknown"


def write_row(folder: Path, row: dict[str, Any]) -> Path:
    """Write a row to a file named by date and subject; return its path."""
    now = datetime.now(timezone.utc)
    what = f"{row['shape']}-{row['what']}-t{row['threads']}-{row['quant']}"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{now:%Y-%m-%d-%H%M%S}-{what}.json"
    dated = {"schema": 1, "date": now.isoformat(timespec="seconds")} | row
    write_atomically(path, json.dumps(dated, indent=1) + "\n")
    return path


def read_rows(folder: Path) -> list[dict[str, Any]]:
    """Read all rows of a folder, the oldest first."""
    return [json.loads(path.read_text()) for path in sorted(folder.glob("*.json"))]
