"""What a model sees of a step: the ragged batch, and the state that it reads and writes.

Axes: n rows, r sequences, m logit rows, h query heads, g kv heads, e head dim. The batch arrays are
described in docs/design/compiled-library.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tvm import te
from tvm.relax.frontend.nn import Tensor, op

from wherry import ops
from wherry.ops import AttentionSpec, GivenName, RopeAppendSpec

from . import reference

PAGE_SIZE = 16  # tokens of a page


@dataclass(frozen=True, slots=True)
class Pages:
    """Page table of one group of layers, int32."""

    indptr: Tensor  # [r+1]
    ids: Tensor  # [p]; -1 behind the group's window


@dataclass(frozen=True, slots=True)
class Batch:
    """The arrays that describe a step, all int32."""

    tokens: Tensor  # [n]
    positions: Tensor  # [n]
    sequences: Tensor  # [n]
    query_indptr: Tensor  # [r+1]
    pages: tuple[Pages, ...]  # of each group of layers
    logit_rows: Tensor  # [m]

    def wanted(self, x: Tensor) -> Tensor:
        """The rows of x [n, d] whose logits are wanted, [m, d]."""
        shape = [self.logit_rows.shape[0], x.shape[1]]
        return op.tensor_expr_op(
            lambda rows, t: te.compute(shape, lambda i, k: t[rows[i], k], "wanted"),
            "wanted",
            [self.logit_rows, x],
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class AttentionShape:
    """The static side of one attention layer."""

    heads: int
    kv_heads: int
    head_dim: int
    scale: float  # of the scores
    inv_freq: tuple[float, ...]  # radians a position, one a rotated pair; (): nothing rotates
    rope_scaling: float = 1.0  # multiplies cosine and sine
    qk_norm_eps: float | None = None  # set: Q and K heads are RMS-normalised before RoPE
    norm_last: bool = False  # the norms' weights are multiplied after RoPE
    v_norm: bool = False  # V heads are RMS-normalised, too, without weights
    kv: GivenName = "both"  # what of K and V stands behind Q
    window: int | None = None  # tokens that a row sees, its own included; None: all before it
    softcap: float | None = None  # set: scores become cap * tanh(score / cap)
    latent: bool = False  # keys are the values, too: see latent.py
    slopes: tuple[float, ...] = ()  # one a query head: minus slope * distance in a score (ALiBi)


def page_shape(kv_heads: int, head_dim: int, kv_dtype: str, planes: int = 2) -> tuple[int, ...]:
    """Shape of one page of a layer; see `wherry.ops.page_shape`."""
    return ops.page_shape(kv_heads, PAGE_SIZE, head_dim, kv_dtype, planes)


class PagedKV:
    """The paged cache of the attention layers: one tensor a layer, updated in place.

    A layer's tensor is [pages, *page_shape(...)].
    """

    def __init__(
        self, batch: Batch, layers: Mapping[int, Tensor], groups: Mapping[int, int]
    ) -> None:
        """Args: `groups`, of each layer that has pages, whose they are."""
        self.batch = batch
        self.layers = dict(layers)
        self.groups = groups

    def attend(
        self,
        layer: int,
        qkv: Tensor,
        shape: AttentionShape,
        qk_norm: tuple[Tensor, Tensor] | None = None,
        sinks: Tensor | None = None,
    ) -> Tensor:
        """Append the rows' K and V to `layer`, then attend.

        qkv [n, qkv_heads*e] -> [n, h*e]. `qk_norm`: weights [e] of the Q and the K norm. `sinks`:
        float32 [h], see `reference.attention`. A layer without own K and V (`shape.kv` "none")
        names the one whose pages it reads.
        """
        n, dtype, pages = qkv.shape[0], qkv.dtype, self.layers[layer]
        h, g, e = shape.heads, shape.kv_heads, shape.head_dim
        common: dict[str, Any] = {
            "heads": h,
            "kv_heads": g,
            "head_dim": e,
            "page_size": PAGE_SIZE,
            "kv_dtype": pages.dtype,
            "planes": 2 if pages.dtype == "int8" else int(pages.shape[1]),
        }
        rope = RopeAppendSpec(
            **common,
            rotary_dim=2 * len(shape.inv_freq),
            inv_freq=shape.inv_freq,
            scaling=shape.rope_scaling,
            qk_norm_eps=shape.qk_norm_eps,
            norm_last=shape.norm_last,
            v_norm=shape.v_norm,
            kv=shape.kv,
        )
        b = self.batch
        args = [op.reshape(qkv, (n, rope.qkv_heads, e))]
        own = b.pages[self.groups[layer]]
        args += [b.positions, b.sequences, own.indptr, own.ids, *(qk_norm or ()), pages]
        q = Tensor.placeholder([n, h, e], dtype)
        self.layers[layer], q = op.tensor_ir_inplace_op(
            reference.rope_append(rope, dtype), "rope_append", args, [len(args) - 1, -1], [pages, q]
        )
        attention = AttentionSpec(
            **common,
            scale=shape.scale,
            window=shape.window,
            softcap=shape.softcap,
            slopes=shape.slopes,
            sinks=sinks is not None,
        )
        rows = [q, b.positions, b.sequences, b.query_indptr, own.indptr, own.ids]
        out = op.tensor_ir_op(
            reference.attention(attention, dtype),
            "attention",
            [*rows, *([] if sinks is None else [sinks]), self.layers[layer]],
            Tensor.placeholder([n, h, e], dtype),
        )
        return op.reshape(out, (n, h * e))
