"""Measures a GPU's copy bandwidth and matrix product rate with PyTorch."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

COPY_BYTES = 4 << 30
SIDE = 8192  # rows and columns of the matrices


def _seconds(work: Callable[[], Any]) -> float:
    """Return the median seconds of ten runs of `work`, by the device's clock."""
    import torch

    for _ in range(3):
        work()
    times: list[float] = []
    for _ in range(10):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        work()
        end.record()
        end.synchronize()
        times.append(begin.elapsed_time(end) / 1e3)
    return sorted(times)[len(times) // 2]


def main() -> None:
    """Measure the GPU and print a JSON object."""
    import torch

    source = torch.randint(0, 255, (COPY_BYTES,), dtype=torch.uint8, device="cuda")
    into = torch.empty_like(source)
    copy = 2 * COPY_BYTES / _seconds(lambda: into.copy_(source))
    a, b = (torch.randn(SIDE, SIDE, dtype=torch.bfloat16, device="cuda") for _ in range(2))
    product = 2 * SIDE**3 / _seconds(lambda: a @ b)
    device = torch.cuda.get_device_properties(0)
    peaks = {"copy_bytes_s": copy, "bf16_flop_s": product, "gpu": device.name}
    print(json.dumps(peaks | {"memory": device.total_memory, "torch": torch.__version__}))


if __name__ == "__main__":
    main()
