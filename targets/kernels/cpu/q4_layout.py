"""Packed 4-bit weights: the layout that all kernels of scheme "q4" read.

    W int32 [ceil(N/16), G, 4, 16]    S scale_dtype [ceil(N/16), G, 16]    G = ceil(K/32)

Byte b of W[p, g, j, c] belongs to row 16p + c: its low nibble is the weight k = 32g + 4j + b, its
high nibble k + 16. So four words of a row, each split into its nibbles, are eight operands of an
int8 dot product with consecutive activations. Value = (nibble - 7) * S; S is 0 in rows beyond N.
"""

from __future__ import annotations

from tvm.script import tirx as T
from tvm.tirx import PrimFunc

from wherry.targets.kernels.specs import LinearSpec

from .tiles import PANEL, panels

ZERO = 7  # nibble that stands for 0
GROUP = 32  # weights that share a scale
Shape = tuple[tuple[int, ...], str]


def groups(in_features: int) -> int:
    """Groups along K; the last may be partly used."""
    return -(-in_features // GROUP)


def packed_shapes(spec: LinearSpec) -> tuple[Shape, Shape]:
    """Shapes and dtypes of W and S."""
    count, g = panels(spec.out_features), groups(spec.in_features)
    return ((count, g, 4, PANEL), "int32"), ((count, g, PANEL), str(spec.scale_dtype))


def pack_q4(spec: LinearSpec) -> PrimFunc:
    """(q_weight uint32 [N, 4G], q_scale [N, G], W, S)."""
    n, g = spec.out_features, groups(spec.in_features)
    (shape, _), (scale_shape, scale_dtype) = packed_shapes(spec)

    @T.prim_func(s_tir=True, private=True, check_well_formed=False)
    def pack(q_weight: T.handle, q_scale: T.handle, packed: T.handle, scales: T.handle) -> None:
        T.func_attr({"tirx.noalias": True, "tirx.is_scheduled": True})
        Q = T.match_buffer(q_weight, (n, 4 * g), "uint32")
        QS = T.match_buffer(q_scale, (n, g), scale_dtype)
        W = T.match_buffer(packed, shape, "int32")
        S = T.match_buffer(scales, scale_shape, scale_dtype)
        for p in T.parallel(shape[0]):
            for i, c in T.grid(g, PANEL):
                with T.sblock("pack"):
                    T.reads()
                    T.writes()
                    # Rows beyond N repeat the last one, with scale 0.
                    row = T.min(p * PANEL + c, n - 1)
                    S[p, i, c] = T.if_then_else(
                        p * PANEL + c < n, QS[row, i], T.Cast(scale_dtype, T.float32(0))
                    )
                    for j in T.unroll(4):
                        W[p, i, j, c] = _interleave(
                            Q[row, i * 4 + j // 2] >> T.Cast("uint32", j % 2 * 16),
                            Q[row, i * 4 + 2 + j // 2] >> T.Cast("uint32", j % 2 * 16),
                        )

    return pack


def _interleave(low: T.uint32, high: T.uint32) -> T.int32:
    """Four nibbles of `low` and four of `high` into the low and high halves of four bytes."""
    word = T.uint32(0)
    for b in range(4):
        nibble = T.uint32(15)
        word = word | ((low >> T.uint32(4 * b)) & nibble) << T.uint32(8 * b)
        word = word | ((high >> T.uint32(4 * b)) & nibble) << T.uint32(8 * b + 4)
    return T.reinterpret("int32", word)
