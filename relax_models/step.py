"""The interface between a model and a step: a ragged batch, and attention within its sequences.

A model knows neither pages nor where keys and values are stored: `passes/paged_kv.py` adds them.

Axes: n rows, r sequences, m logit rows, h query heads, e head dim. The arrays are described in
docs/design/compiled-library.md.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Protocol

from tvm import te, tirx
from tvm.relax.frontend.nn import Tensor, op

from wherry.ops import AttentionShape
from wherry.ops.tags import CACHED_ATTENTION, KEEP_HIDDEN, KEPT_HIDDEN, tag


class Ragged(Protocol):
    """Rows of several sequences, without padding."""

    @property
    def sequences(self) -> Tensor:
        """Return the sequence of each row, int32 [n]."""

    @property
    def query_indptr(self) -> Tensor:
        """Return where the rows of each sequence begin, int32 [r+1]."""


@dataclass(frozen=True, slots=True)
class Batch:
    """The int32 arrays that describe the batch of a step."""

    tokens: Tensor  # [n]
    positions: Tensor  # [n]
    sequences: Tensor  # [n]
    query_indptr: Tensor  # [r+1]
    logit_rows: Tensor  # [m]

    def at_logit_rows(self, x: Tensor) -> Tensor:
        """Return the rows of x [n, d] whose logits are needed, [m, d]."""
        shape = [self.logit_rows.shape[0], x.shape[1]]
        return op.tensor_expr_op(
            lambda rows, t: te.compute(shape, lambda i, k: t[rows[i], k], "at_logit_rows"),
            "at_logit_rows",
            [self.logit_rows, x],
        )

    def at_logit_rows_after(self, x: Tensor, before: Tensor) -> Tensor:
        """Return `at_logit_rows(x)`, computed after `before` [n, k].

        No other result may need `before`.
        """
        rows, d = self.logit_rows.shape[0], int(x.shape[1])
        func = rows_after(d, int(before.shape[1]), x.dtype, before.dtype)
        out = Tensor.placeholder([rows, d], x.dtype)
        return op.tensor_ir_op(func, "at_logit_rows_after", [self.logit_rows, x, before], out)

    @property
    def rope_positions(self) -> Tensor | None:
        """Return each row's positions on the axes of M-RoPE, int32 [n, 3]; None: it has one."""
        return None

    @property
    def last_visible(self) -> Tensor | None:
        """Return the last position that each row attends to, int32 [n]; None: its own."""
        return None

    def with_images(self, x: Tensor) -> Tensor:
        """Return token embeddings x [n, d]; in the rows of images, features of them."""
        return x

    def after_layer(self, x: Tensor, layer: int) -> Tensor:
        """Return a layer's result x [n, d]; in the rows of images, with what features add."""
        return x


@dataclass(frozen=True, slots=True, kw_only=True)
class WithImages(Batch):
    """A batch of a model that sees, whose rows may be features of images.

    A feature has d elements in the place of a token's embedding, and then d for each of the first k
    layers, which are added to its result (DeepStack, https://arxiv.org/abs/2406.04334).
    """

    image_rows: Tensor  # [n], row of `image_features` in the place of a token's; -1: none
    image_features: Tensor  # float32 [f, d * (1 + k)]
    rope_positions: Tensor | None = None
    last_visible: Tensor | None = None

    def with_images(self, x: Tensor) -> Tensor:
        """Return token embeddings x [n, d]; in the rows of images, features of them."""
        return self._combined(x, 0, "with_images", lambda _token, feature: feature)

    def after_layer(self, x: Tensor, layer: int) -> Tensor:
        """Return a layer's result x [n, d]; in the rows of images, with what features add."""
        first = (layer + 1) * int(x.shape[1])
        if first >= int(self.image_features.shape[1]):
            return x
        return self._combined(x, first, "after_layer", lambda state, feature: state + feature)

    def _combined(
        self, x: Tensor, first: int, name: str, combine: Callable[[Any, Any], Any]
    ) -> Tensor:
        """Return x, with columns from `first` on of features in the rows of images."""

        def compute(states: te.Tensor, rows: te.Tensor, features: te.Tensor) -> te.Tensor:
            def element(i: tirx.Var, k: tirx.Var) -> tirx.PrimExpr:
                feature = features[te.max(rows[i], 0), first + k].astype(x.dtype)
                both = combine(states[i, k], feature)
                return tirx.if_then_else(rows[i] >= 0, both, states[i, k])

            return te.compute(states.shape, element, name)

        args = [x, self.image_rows, self.image_features]
        return op.tensor_expr_op(compute, name, args)


@dataclass(frozen=True, slots=True)
class WithSource(Batch):
    """A batch of an encoder-decoder, whose sequences have sources."""

    source_lengths: Tensor  # [r], tokens that were encoded

    def over_source(self) -> Batch:
        """Return the batch as cross-attention reads it: a row's position is its source's last."""
        positions = op.tensor_expr_op(
            lambda sequences, lengths: te.compute(
                sequences.shape, lambda i: lengths[sequences[i]] - 1, "last_of_source"
            ),
            "last_of_source",
            [self.sequences, self.source_lengths],
        )
        return replace(self, positions=positions)


@dataclass(frozen=True, slots=True)
class Appending(Batch):
    """A batch for which attention only appends K and V to the cache.

    Whatever else is computed from the layers' results is not used.
    """

    step: Batch  # the batch of which it is
    appended: list[Tensor]  # what depends on the appends, one tensor for each

    @classmethod
    def of(cls, batch: Batch) -> Appending:
        """Return `batch` for appends alone."""
        rows = (batch.tokens, batch.positions, batch.sequences, batch.query_indptr)
        return cls(*rows, batch.logit_rows, batch, [])

    @property
    def rope_positions(self) -> Tensor | None:
        """Return each row's positions on the axes of M-RoPE, int32 [n, 3]; None: it has one."""
        return self.step.rope_positions

    def with_images(self, x: Tensor) -> Tensor:
        """Return token embeddings x [n, d]; in the rows of images, features of them."""
        return self.step.with_images(x)


@cache
def rows_after(d: int, k: int, dtype: str, before: str) -> tirx.PrimFunc:
    """Return the PrimFunc (rows int32 [m], x dtype [n, d], unused before [n, k]) -> [m, d]."""
    n, m = te.var("n", "int64"), te.var("m", "int64")
    rows = te.placeholder((m,), "int32", "rows")
    x = te.placeholder((n, d), dtype, "x")
    unused = te.placeholder((n, k), before, "before")
    y = te.compute((m, d), lambda i, j: x[rows[i], j], "at_logit_rows")
    func = te.create_prim_func([rows, x, unused, y]).without_attr("global_symbol")
    return tag(func, "at_logit_rows_after", {})


def rows_added(x: Tensor, total: Tensor, batch: Batch) -> Tensor:
    """Return total [m, d] + the logit rows of x [n, d], by one operation that is never fused."""
    n, m, d = te.var("n", "int64"), te.var("m", "int64"), int(x.shape[1])
    rows = te.placeholder((m,), "int32", "rows")
    states = te.placeholder((n, d), x.dtype, "x")
    before = te.placeholder((m, d), total.dtype, "total")
    y = te.compute((m, d), lambda i, j: before[i, j] + states[rows[i], j], "added")
    func = te.create_prim_func([rows, states, before, y]).without_attr("global_symbol")
    out = Tensor.placeholder(list(total.shape), total.dtype)
    args = [batch.logit_rows, x, total]
    return op.tensor_ir_op(tag(func, "rows_added", {}), "rows_added", args, out)


def keep_hidden(x: Tensor, batch: Batch) -> Tensor:
    """Keep x [n, d] for the rows after these, as `kept_hidden` reads it; return x."""
    out = Tensor.placeholder(list(x.shape), x.dtype)
    return op.extern(KEEP_HIDDEN, [x, batch.positions, batch.sequences], out)


def kept_hidden(batch: Batch, size: int, dtype: str, after: Tensor | None = None) -> Tensor:
    """Return what is kept of the row before each row of its sequence, [n, size]; zeros at first.

    Args:
        batch: the rows.
        size: elements of a row.
        dtype: dtype of the result.
        after: a result of `keep_hidden` in this entry, whose rows are then found; None: this is the
            first use of the cache in its entry.
    """
    out = Tensor.placeholder([batch.tokens.shape[0], size], dtype)
    rows = [batch.positions, batch.sequences, *([] if after is None else [after])]
    return op.extern(KEPT_HIDDEN, rows, out)


def attention(
    qkv: Tensor,
    batch: Batch,
    shape: AttentionShape,
    qk_norm: tuple[Tensor, Tensor] | None = None,
    sinks: Tensor | None = None,
    bias: Tensor | None = None,
) -> Tensor:
    """Append each row's K and V to its sequence's cache, then attend to the cache.

    Args:
        qkv: [n, qkv_heads * e].
        batch: the rows' positions and sequences; without those of M-RoPE, all axes are equal.
        shape: static shape of the layer's attention.
        qk_norm: weights [e] of the norms of Q and K heads, if `shape.qk_norm_eps` is set.
        sinks: float32 [h], see `AttentionSpec`.
        bias: float32 [h, reach + 1], if `shape.reach` is set.

    Returns:
        the output of attention, [n, h * e].
    """
    if isinstance(batch, Appending):
        shape = replace(shape, appends=True)
    rows = [qkv, batch.positions, batch.sequences, batch.query_indptr]
    if batch.rope_positions is None:
        shape = replace(shape, axes=())
    elif shape.axes:
        rows.append(batch.rope_positions)
    if batch.last_visible is not None:
        shape = replace(shape, last_visible=True)
        rows.append(batch.last_visible)
    out = Tensor.placeholder([qkv.shape[0], shape.heads * shape.head_dim], qkv.dtype)
    extras = [x for x in (sinks, bias) if x is not None]
    args = [shape.to_json(), *rows, *(qk_norm or ()), *extras]
    y = op.extern(CACHED_ATTENTION, args, out)
    if isinstance(batch, Appending):
        batch.appended.append(y)
    return y


def cross_attention(q: Tensor, source: Batch, shape: AttentionShape) -> Tensor:
    """Attend to the keys and values of the source that `keep_source` has written.

    Args:
        q: [n, h * e].
        source: the batch's `over_source()`.
        shape: static shape of the layer's attention, `cross`.

    Returns:
        the output of attention, [n, h * e].
    """
    return attention(q, source, replace(shape, kv="none"))


def keep_source(
    kv: Tensor, batch: Batch, shape: AttentionShape, before: Tensor | None = None
) -> Tensor:
    """Write a source's keys and values into its sequence's pages.

    Args:
        kv: keys and values of the source's tokens, [n, 2 * g * e].
        batch: the source's rows.
        shape: static shape of the layer's attention, `cross`.
        before: the result of the layer before, if there is one.

    Returns:
        a tensor [m, g * e] that depends on the writes of all layers so far; the last is the result
        of the entry.
    """
    keys, _ = op.split(kv, 2, axis=-1)
    # The append is one operation with the rotation of queries, so it gets some.
    given = op.concat([keys, kv], dim=-1)
    kept = attention(given, batch, replace(shape, heads=shape.kv_heads, appends=True))
    return batch.at_logit_rows(kept) if before is None else rows_added(kept, before, batch)
