"""Biases of attention scores by the distance of key and query, as T5 has them.

Distances share buckets: the near ones have one each, the others fewer, the farther they are. A
parameter has one bias for each bucket and head. Source: https://arxiv.org/abs/1910.10683, section
2.1.
"""

from __future__ import annotations

import math

import numpy as np
from tvm import te
from tvm.relax.frontend.nn import Tensor, op


def bucket(distance: int, buckets: int, reach: int, *, causal: bool = False) -> int:
    """Return the bucket of a key `distance` rows after the query.

    Half of the buckets are for keys after it, unless attention is `causal`. Half of the rest are
    exact distances, the others grow logarithmically up to `reach`.
    """
    side = buckets if causal else buckets // 2
    few, n = side // 2, abs(distance)
    if n >= few:
        # in float32, as transformers computes it: a border may fall on a whole number
        ratio = np.log(np.float32(n) / np.float32(few)) / np.float32(math.log(reach / few))
        n = min(few + int(ratio * np.float32(side - few)), side - 1)
    return n + (side if distance > 0 and not causal else 0)


def biases(table: Tensor, reach: int, *, causal: bool = False) -> Tensor:
    """Return the bias of each distance and head, in the dtype of `table` [buckets, h].

    The result is [h, 2 * reach + 1], of distances from -reach to reach (`RaggedAttentionSpec`); if
    `causal`, [h, reach + 1], of keys 0 to `reach` rows before the query (`AttentionSpec`).
    """
    buckets, heads = (int(size) for size in table.shape)
    distances = range(0, -reach - 1, -1) if causal else range(-reach, reach + 1)
    indices = [bucket(d, buckets, reach, causal=causal) for d in distances]
    rows, shape = Tensor.from_const(np.array(indices, np.int32)), (heads, len(indices))
    return op.tensor_expr_op(
        lambda t, at: te.compute(shape, lambda h, d: t[at[d], h], "distances"),
        "distances",
        [table, rows],
    )
