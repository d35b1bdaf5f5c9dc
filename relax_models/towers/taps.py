"""Tables of positions that are interpolated: a patch lies between several of their rows.

Axes: n patches, d hidden.
"""

from __future__ import annotations

from tvm import te, tirx
from tvm.relax.frontend.nn import Tensor, op

from .tower import Patches


def with_taps(x: Tensor, table: Tensor, tiles: Patches) -> Tensor:
    """Return x [n, d] plus the weighted sum of each patch's rows of a table [positions, d]."""
    taps = int(tiles.positions.shape[1])

    def compute(x: te.Tensor, table: te.Tensor, rows: te.Tensor, by: te.Tensor) -> te.Tensor:
        def element(i: tirx.Var, k: tirx.Var) -> tirx.PrimExpr:
            total = sum(table[rows[i, t], k].astype("float32") * by[i, t] for t in range(taps))
            return x[i, k] + total.astype(x.dtype)

        return te.compute(x.shape, element, "with_taps")

    args = [x, table, tiles.positions, tiles.position_weights]
    return op.tensor_expr_op(compute, "with_taps", args)
