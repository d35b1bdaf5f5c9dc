"""Sums over a block: by shuffles where the device has SIMD groups."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from . import emit as e
from .limits import GpuLimits
from .simdgroups import sums as simdgroups


def block_sums(limits: GpuLimits, values: Sequence[Any], threads: int, thread: Any) -> list[Any]:
    """See `emit.block_sums`; in registers with SIMD groups."""
    if limits.simdgroups:
        return simdgroups.block_sums(values, threads, thread)
    return e.block_sums(values, threads, thread)
