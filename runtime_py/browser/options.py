"""The load options that an engine in a browser accepts: a subset of LoadOptions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .bridge import Progress

# Options that limit the engine's sizes, with their names in engine/config/config.h.
LIMITS = (
    "context",
    "kv_tokens",
    "max_batch",
    "max_drafts",
    "max_slowdown",
    "prefill_chunk",
    "prefix_cache",
    "threads",
)


def split(options: Mapping[str, Any]) -> tuple[dict[str, Any], Progress | None]:
    """Split load options into the engine's limits and the progress callback; None omits an option.

    Raises:
        TypeError: an option is unknown.
    """
    accepted = (*LIMITS, "progress")
    if unknown := sorted(set(options) - set(accepted)):
        raise TypeError(
            f"unknown options {', '.join(unknown)}; in a browser a model is loaded with "
            f"{', '.join(accepted)}. What it is compiled for is said on another machine: "
            "wherry compile MODEL --target webgpu"
        )
    limits = {name: value for name, value in options.items() if value is not None}
    return limits, limits.pop("progress", None)
