"""RoPE without a KV cache: the angles of a step, and queries and keys that they rotate.

Axes: n rows, h query heads, g KV heads, e head dim.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from tvm import te, tirx
from tvm.relax.frontend.nn import Tensor, op

from wherry.ops import RaggedAttentionSpec

from ..step import Batch

Angles = tuple[Tensor, Tensor]


def angles(batch: Batch, inv_freq: Sequence[float], scaling: float = 1.0) -> Angles:
    """Return cosine and sine of each row's angles, times `scaling`, float32 [n, e / 2] each.

    Args:
        batch: the rows' positions.
        inv_freq: radians per position, one for each rotated pair.
        scaling: factor of both (YaRN's attention factor).
    """
    return _angles(batch.positions, inv_freq, lambda positions, i, _j: positions[i], scaling)


def axial_angles(
    coordinates: Tensor, by_row: Sequence[float], by_column: Sequence[float]
) -> Angles:
    """Return cosine and sine of each patch's angles, float32 [n, e / 2] each.

    Args:
        coordinates: int32 [n, 2], row and column of each patch.
        by_row: radians per row, one for each of the first rotated pairs.
        by_column: radians per column, one for each of the others.
    """
    first = len(by_row)

    def place(coordinates: te.Tensor, i: tirx.Var, j: tirx.Var) -> tirx.PrimExpr:
        return tirx.Select(j < first, coordinates[i, 0], coordinates[i, 1])

    return _angles(coordinates, [*by_row, *by_column], place)


def _angles(
    positions: Tensor,
    inv_freq: Sequence[float],
    place: Callable[[te.Tensor, tirx.Var, tirx.Var], tirx.PrimExpr],
    scaling: float = 1.0,
) -> Angles:
    """Return cosine and sine of `place` times frequency of each row and pair, times `scaling`."""
    frequencies = Tensor.from_const(np.array(inv_freq, np.float32))
    shape = (positions.shape[0], len(inv_freq))

    def of(name: str) -> Tensor:
        function = getattr(tirx, name[:3])

        def compute(positions: te.Tensor, f: te.Tensor) -> te.Tensor:
            def element(i: tirx.Var, j: tirx.Var) -> tirx.PrimExpr:
                angle = place(positions, i, j).astype("float32") * f[j]
                return function(angle) * tirx.const(scaling, "float32")

            return te.compute(shape, element, name)

        return op.tensor_expr_op(compute, name, [positions, frequencies])

    return of("cosine"), of("sine")


def rotated(qkv: Tensor, by: Angles, spec: RaggedAttentionSpec) -> Tensor:
    """Rotate the heads of q and k, as Hugging Face's rotate_half: qkv [n, (h + 2 g) * e], same."""
    n, half = qkv.shape[0], spec.head_dim // 2
    heads = spec.heads + 2 * spec.kv_heads
    last = spec.heads + spec.kv_heads  # heads from here on are values

    def compute(x: te.Tensor, cosine: te.Tensor, sine: te.Tensor) -> te.Tensor:
        def element(i: tirx.Var, j: tirx.Var, s: tirx.Var, k: tirx.Var) -> tirx.PrimExpr:
            other = x[i, j, 1 - s, k] * sine[i, k]
            turned = x[i, j, s, k] * cosine[i, k] + tirx.Select(s == 0, -other, other)
            return tirx.if_then_else(j < last, turned, x[i, j, s, k])

        return te.compute((n, heads, 2, half), element, "rotated")

    apart = op.reshape(qkv, [n, heads, 2, half])
    turned = op.tensor_expr_op(compute, "rotated", [apart, *by])
    return op.reshape(turned, [n, spec.width])
