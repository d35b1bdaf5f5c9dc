"""The interface between a model and a step: a ragged batch, and attention within its sequences.

A model knows neither pages nor where keys and values are stored: `passes/paged_kv.py` adds them.

Axes: n rows, r sequences, m logit rows, h query heads, e head dim. The arrays are described in
docs/design/compiled-library.md.
"""

from __future__ import annotations

from dataclasses import dataclass

from tvm import te
from tvm.relax.frontend.nn import Tensor, op

from wherry.ops import AttentionShape
from wherry.ops.tags import CACHED_ATTENTION


@dataclass(frozen=True, slots=True)
class Batch:
    """The int32 arrays that describe the batch of a step."""

    tokens: Tensor  # [n]
    positions: Tensor  # [n]
    sequences: Tensor  # [n]
    query_indptr: Tensor  # [r+1]
    logit_rows: Tensor  # [m]

    def wanted(self, x: Tensor) -> Tensor:
        """Return the rows of x [n, d] whose logits are needed, [m, d]."""
        shape = [self.logit_rows.shape[0], x.shape[1]]
        return op.tensor_expr_op(
            lambda rows, t: te.compute(shape, lambda i, k: t[rows[i], k], "wanted"),
            "wanted",
            [self.logit_rows, x],
        )


def attention(
    qkv: Tensor,
    batch: Batch,
    shape: AttentionShape,
    qk_norm: tuple[Tensor, Tensor] | None = None,
    sinks: Tensor | None = None,
) -> Tensor:
    """Append each row's K and V to its sequence's cache, then attend to the cache.

    Args:
        qkv: [n, qkv_heads * e].
        batch: the rows' positions and sequences.
        shape: static shape of the layer's attention.
        qk_norm: weights [e] of the norms of Q and K heads, if `shape.qk_norm_eps` is set.
        sinks: float32 [h], see `AttentionSpec`.

    Returns:
        the output of attention, [n, h * e].
    """
    rows = [qkv, batch.positions, batch.sequences, batch.query_indptr]
    out = Tensor.placeholder([qkv.shape[0], shape.heads * shape.head_dim], qkv.dtype)
    args = [shape.to_json(), *rows, *(qk_norm or ()), *([] if sinks is None else [sinks])]
    return op.extern(CACHED_ATTENTION, args, out)
