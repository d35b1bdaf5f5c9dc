"""Records a GPU's kernels with PyTorch's profiler, which also sees Wherry's kernels.

Kernels are named as the library's functions; a linear can be identified by its grid.
"""

from __future__ import annotations

import json
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

MOST = 16  # kernels in a row of results


def recorded(work: Callable[[], None]) -> list[dict[str, Any]]:
    """Return all kernels that a GPU ran during `work`, as events of a Chrome trace.

    Raises:
        ImportError: PyTorch is not installed.
    """
    import torch

    torch.cuda.init()
    activities = [torch.profiler.ProfilerActivity.CUDA]
    with torch.profiler.profile(activities=activities) as profiler:
        work()
        torch.cuda.synchronize()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.json"
        profiler.export_chrome_trace(str(path))
        events: list[dict[str, Any]] = json.loads(path.read_text())["traceEvents"]
    return [e for e in events if e.get("cat") == "kernel"]


def by_name(events: Iterable[Mapping[str, Any]], steps: int) -> dict[str, Any]:
    """Return the kernels of a step, averaged over `steps` steps, the longest first.

    Times are in microseconds; `busy_us` is the sum over kernels, `span_us` the time from the first
    kernel's begin to the last one's end.
    """
    ordered = sorted(events, key=lambda e: float(e["ts"]))
    if not ordered:
        return {"busy_us": 0.0, "span_us": 0.0, "launches": 0.0, "kernels": []}
    times: dict[str, list[float]] = defaultdict(list)
    longest: dict[str, Mapping[str, Any]] = {}
    for event in ordered:
        name, time = str(event["name"]), float(event["dur"])
        if time > max(times[name], default=-1.0):
            longest[name] = event["args"]
        times[name].append(time)
    busy = sum(map(sum, times.values()))
    end = max(float(e["ts"]) + float(e["dur"]) for e in ordered)
    kernels = [
        {
            "name": name,
            "us": sum(own) / steps,
            "share": sum(own) / busy,
            "calls": len(own) / steps,
            "longest_us": max(own),
            **{key: longest[name].get(key) for key in ("grid", "block", "registers per thread")},
        }
        for name, own in sorted(times.items(), key=lambda item: -sum(item[1]))
    ]
    return {
        "busy_us": busy / steps,
        "span_us": (end - float(ordered[0]["ts"])) / steps,
        "launches": len(ordered) / steps,
        "kernels": kernels[:MOST],
    }
