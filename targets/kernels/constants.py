"""Looks up constants by comparisons in registers, without a table in memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from tvm.script import tirx as T


def constant(values: Sequence[float], index: Any) -> Any:
    """Return the expression values[index] as float32, by log2(len(values)) comparisons."""

    def bits(low: int, high: int) -> Any:
        if high - low == 1:
            return T.uint32(int(np.float32(values[low]).view(np.uint32)))
        middle = (low + high) // 2
        return T.if_then_else(index < middle, bits(low, middle), bits(middle, high))

    return T.reinterpret("float32", bits(0, len(values)))
