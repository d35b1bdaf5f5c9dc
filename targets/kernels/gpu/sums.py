"""Sums over a block of threads: by shuffles where the device has SIMD groups."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from . import emit as e
from .limits import GpuLimits
from .simdgroups import sums as simdgroups


def block_sums(limits: GpuLimits, values: Sequence[Any], threads: int, thread: Any) -> list[Any]:
    """Emit the sum over all threads of each value; all threads get the sums.

    Devices with SIMD groups use shuffles, others a tree in shared memory.
    """
    if limits.simdgroups:
        return simdgroups.block_sums(values, threads, thread)
    return e.block_sums(values, threads, thread)
