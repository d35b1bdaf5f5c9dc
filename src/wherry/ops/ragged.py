"""Records of what encoders compute over the rows of a step: attention, and pooling.

Axes: n rows of r sequences, m result rows, h query heads, g KV heads, e head dimension.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from .record import Record, check_positive

PoolingName = Literal["cls", "mean", "max", "last", "mean_sqrt_len", "weightedmean"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RaggedAttentionSpec(Record):
    """Spec of bidirectional attention: each row attends to all rows of its sequence in the step.

    qkv [n, (h + 2 g) * e] -> out [n, h * e], float32. Nothing is kept, so one step has to hold the
    whole sequence. With `reach`, a weight [h, 2 * reach + 1] is added to the scores: the element
    reach + d for a key d rows after the query, where d is clamped to -reach..reach.
    """

    heads: int  # query heads h
    kv_heads: int  # KV heads g
    head_dim: int  # elements e of a head
    scale: float  # factor of q . k
    window: int | None = None  # rows that a row attends to on each side of it; None: all
    reach: int | None = None  # largest distance that has a bias of its own; None: no bias

    def __post_init__(self) -> None:
        check_positive(self, "heads", "kv_heads", "head_dim")
        if self.heads % self.kv_heads:
            raise ValueError(f"{self.heads} query heads do not share {self.kv_heads} kv heads")
        for name in ("window", "reach"):
            if getattr(self, name) is not None:
                check_positive(self, name)

    @property
    def width(self) -> int:
        """Return the number of columns of qkv."""
        return (self.heads + 2 * self.kv_heads) * self.head_dim


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolSpec(Record):
    """Spec of pooling: x [n, dim] -> [m, dim], a vector of the sequence of each result row.

    "cls" takes the first row, "last" the last one, "max" the largest element of each column;
    "mean", "mean_sqrt_len" and "weightedmean" divide a sum by the number of rows, by its square
    root, or weight row i (from 1) with i and divide by the sum of weights.
    """

    dim: int
    mode: PoolingName

    def __post_init__(self) -> None:
        check_positive(self, "dim")
        if self.mode not in get_args(PoolingName):
            raise ValueError(f"mode {self.mode!r} is not one of {get_args(PoolingName)}")
