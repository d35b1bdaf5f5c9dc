"""What fits into this machine's memory, known before anything is loaded."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from wherry.artifact import Manifest
from wherry.errors import ResourceError

PAGE = 16  # tokens; a cache is a whole number of pages
SHARE = 0.5  # of what the weights leave free, for the cache: others live here too


def available() -> int | None:
    """Bytes that this process may still take: free memory, or less by its control group's limit."""
    free = _meminfo("MemAvailable")
    group = Path("/sys/fs/cgroup")
    try:
        limit = int((group / "memory.max").read_text())
        left = limit - int((group / "memory.current").read_text())
    except (OSError, ValueError):  # no limit ("max"), or no such group
        return free
    return left if free is None else min(free, left)


def kv_tokens(manifest: Manifest, config: Mapping[str, int], free: int | None = None) -> int | None:
    """Tokens of the cache: each request's whole context if that fits, else what fits.

    Args:
        manifest: with `memory`: bytes of weights, of a token's cache, of a step.
        config: context and max_batch.
        free: bytes; None: what this machine has.

    Returns:
        None where the manifest or the machine does not tell.

    Raises:
        ResourceError: not even the weights and one page fit.
    """
    free = available() if free is None else free
    per_token = manifest.memory.get("kv_per_token", 0)
    if free is None or not per_token or "context" not in config:
        return None
    fixed = manifest.memory.get("weights", 0) + manifest.memory.get("workspace", 0)
    left = int((free - fixed) * SHARE) // per_token // PAGE * PAGE
    if left < PAGE:
        raise ResourceError(
            f"{manifest.name} needs {_mb(fixed)} for weights and a step, and "
            f"{_mb(per_token * PAGE)} for a page of its cache; {_mb(free)} are free. "
            "Close something, or compile it with a smaller scheme (--quant q4f16_1)."
        )
    return min(config["context"] * config.get("max_batch", 1), left)


def _meminfo(name: str) -> int | None:
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
    except OSError:
        return None
    for line in lines:
        key, _, value = line.partition(":")
        if key == name:
            return int(value.split()[0]) * 1024
    return None


def _mb(size: int) -> str:
    return f"{size / 1e6:,.1f} MB"
