"""What encoders compute over the rows of a step, with reference PrimFuncs.

No cache is involved: a step holds whole sequences, next to each other and without padding. Axes:
n rows, r sequences, m result rows, h query heads, g KV heads, e head dim, d hidden.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from tvm import te, tirx
from tvm.relax.frontend.nn import Tensor, op
from tvm.script import tirx as T

from wherry.ops import PoolingName, PoolSpec, RaggedAttentionSpec, script
from wherry.ops.tags import tag

from ..step import Batch, Ragged


def attend(
    qkv: Tensor, batch: Ragged, spec: RaggedAttentionSpec, bias: Tensor | None = None
) -> Tensor:
    """Compute bidirectional attention: qkv [n, (h + 2 g) * e] -> [n, h * e].

    Args:
        qkv: queries, keys and values, rotated if the family rotates them.
        batch: the rows' sequences.
        spec: static shape of the layer's attention.
        bias: float32 [h, 2 * reach + 1], if `spec.reach` is set.
    """
    rows = [qkv, batch.sequences, batch.query_indptr, *([] if bias is None else [bias])]
    out = Tensor.placeholder([qkv.shape[0], spec.heads * spec.head_dim], qkv.dtype)
    return op.tensor_ir_op(attention_reference(spec), "ragged_attention", rows, out)


def pooled(x: Tensor, batch: Batch, mode: PoolingName) -> Tensor:
    """Return one vector of the sequence of each result row: x [n, d] -> [m, d]."""
    dim = int(x.shape[1])
    args = [x, batch.sequences, batch.query_indptr, batch.logit_rows]
    out = Tensor.placeholder([batch.logit_rows.shape[0], dim], x.dtype)
    return op.tensor_ir_op(pool_reference(PoolSpec(dim=dim, mode=mode)), "pool", args, out)


def segments(batch: Batch, separator: int | None) -> Tensor:
    """Return the segment of each row, int32 [n]: 1 after the first `separator` of its sequence.

    Without a separator all rows are of segment 0.
    """

    def compute(tokens: te.Tensor, sequences: te.Tensor) -> te.Tensor:
        n = tokens.shape[0]
        if separator is None:
            return te.compute((n,), lambda i: tirx.const(0, "int32"), "segments")
        k = te.reduce_axis((0, n), "k")

        def has_separator_before(i: tirx.Var) -> tirx.PrimExpr:
            is_before = tirx.all(tokens[k] == separator, sequences[k] == sequences[i], k < i)
            return te.max(tirx.Select(is_before, tirx.const(1, "int32"), tirx.const(0, "int32")), k)

        return te.compute((n,), has_separator_before, "segments")

    return op.tensor_expr_op(compute, "segments", [batch.tokens, batch.sequences])


@cache
def attention_reference(spec: RaggedAttentionSpec) -> tirx.PrimFunc:
    """Return the PrimFunc (qkv, sequences, query_indptr, [bias], out) of `RaggedAttentionSpec`.

    Each row and head is a softmax in two passes over the keys, in ascending order.
    """
    h, g, e, scale = spec.heads, spec.kv_heads, spec.head_dim, spec.scale
    width, window, reach = spec.width, spec.window or 2**30, spec.reach or 0
    biased, group = spec.reach is not None, h // g

    @script.prim_func(s_tir=True, private=True)
    def func(
        qkv: T.handle,
        sequences: T.handle,
        query_indptr: T.handle,
        bias: T.handle,
        out: T.handle,
    ) -> None:
        n, r1 = T.int64(), T.int64()
        QKV = T.match_buffer(qkv, (n, width), "float32")
        SEQ = T.match_buffer(sequences, (n,), "int32")
        PTR = T.match_buffer(query_indptr, (r1,), "int32")
        BIAS = T.match_buffer(bias, (h, 2 * reach + 1), "float32")
        OUT = T.match_buffer(out, (n, h * e), "float32")
        for row, head in T.grid(n, h):
            with T.sblock("row_head"):
                i, j = T.axis.remap("SS", [row, head])
                T.reads()
                T.writes(OUT[i, j * e : (j + 1) * e])
                acc = T.sblock_alloc_buffer((e,), "float32", scope="local")
                # maximum, sum, score, weight
                state = T.sblock_alloc_buffer((4,), "float32", scope="local")
                state[0] = T.float32(-3.0e38)
                state[1] = T.float32(0)
                for k in T.serial(e):
                    acc[k] = T.float32(0)
                for after in T.serial(PTR[SEQ[i] + 1] - PTR[SEQ[i]]):
                    if T.abs(T.Cast("int32", i) - PTR[SEQ[i]] - after) <= window:
                        state[2] = T.float32(0)
                        for k in T.serial(e):
                            state[2] = (
                                state[2]
                                + QKV[i, j * e + k]
                                * QKV[PTR[SEQ[i]] + after, (h + j // group) * e + k]
                            )
                        state[2] = state[2] * T.float32(scale)
                        if biased:
                            state[2] = (
                                state[2]
                                + BIAS[
                                    j,
                                    reach
                                    + T.max(
                                        T.min(PTR[SEQ[i]] + after - T.Cast("int32", i), reach),
                                        -reach,
                                    ),
                                ]
                            )
                        state[3] = T.exp(state[0] - T.max(state[0], state[2]))
                        state[0] = T.max(state[0], state[2])
                        state[1] = state[1] * state[3] + T.exp(state[2] - state[0])
                        for k in T.serial(e):
                            acc[k] = (
                                acc[k] * state[3]
                                + T.exp(state[2] - state[0])
                                * QKV[PTR[SEQ[i]] + after, (h + g + j // group) * e + k]
                            )
                for k in T.serial(e):
                    OUT[i, j * e + k] = acc[k] / state[1]

    return tag(func if biased else _without(func, 3), "ragged_attention", spec)


def _without(func: tirx.PrimFunc, unused: int) -> tirx.PrimFunc:
    """Return `func` without a parameter that its body ignores."""
    params = [param for i, param in enumerate(func.params) if i != unused]
    return tirx.PrimFunc(params, func.body, func.ret_type, func.attrs)


@cache
def pool_reference(spec: PoolSpec) -> tirx.PrimFunc:
    """Return the PrimFunc (x [n, d], sequences, query_indptr, rows int32 [m], out [m, d]).

    It computes in float32, rows in ascending order.
    """
    dim, mode = spec.dim, spec.mode

    def first(x: Any, begin: Any, end: Any, column: Any) -> Any:
        """Emit what the sum or the maximum starts with: a row of the sequence, or 0."""
        if mode == "last":
            return x[end - 1, column]
        return x[begin, column] if mode in ("cls", "max") else T.float32(0)

    def joined(total: Any, value: Any, place: Any) -> Any:
        """Emit the state after a row, which is `place` rows after the first."""
        if mode == "max":
            return T.max(total, value)
        if mode == "weightedmean":
            return total + value * T.Cast("float32", place + 1)
        return total + value if mode in ("mean", "mean_sqrt_len") else total

    def divisor(rows: Any) -> Any:
        count = T.Cast("float32", rows)
        if mode == "mean_sqrt_len":
            return T.sqrt(count)
        if mode == "weightedmean":
            return count * (count + T.float32(1)) * T.float32(0.5)
        return count if mode == "mean" else T.float32(1)

    @script.prim_func(s_tir=True, private=True)
    def func(
        x: T.handle, sequences: T.handle, query_indptr: T.handle, rows: T.handle, out: T.handle
    ) -> None:
        n, r1, m = T.int64(), T.int64(), T.int64()
        X = T.match_buffer(x, (n, dim), "float32")
        SEQ = T.match_buffer(sequences, (n,), "int32")
        PTR = T.match_buffer(query_indptr, (r1,), "int32")
        ROWS = T.match_buffer(rows, (m,), "int32")
        OUT = T.match_buffer(out, (m, dim), "float32")
        for row, column in T.grid(m, dim):
            with T.sblock("row_column"):
                i, j = T.axis.remap("SS", [row, column])
                T.reads()
                T.writes(OUT[i, j])
                total = T.sblock_alloc_buffer((1,), "float32", scope="local")
                total[0] = first(X, PTR[SEQ[ROWS[i]]], PTR[SEQ[ROWS[i]] + 1], j)
                for after in T.serial(PTR[SEQ[ROWS[i]] + 1] - PTR[SEQ[ROWS[i]]]):
                    total[0] = joined(total[0], X[PTR[SEQ[ROWS[i]]] + after, j], after)
                OUT[i, j] = total[0] / divisor(PTR[SEQ[ROWS[i]] + 1] - PTR[SEQ[ROWS[i]]])

    return tag(func, "pool", spec)
