"""Alternating updates (AltUp): several hidden states of a row, of which a layer computes one.

Before a layer the states are mixed; after it all are corrected by what the layer changed in the
active one. Source: https://arxiv.org/abs/2301.13310, as Gemma 3n computes it.

Axes: n rows, T states, d hidden. All states of a row are one row of T * d elements.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tvm import te, tirx
from tvm.relax.frontend import nn
from tvm.relax.frontend.nn import Tensor, op

from .dense import Unquantized, exact

F32 = "float32"


class Coefficients(nn.Module):
    """Linear of a few inputs, which kernels for matrices are not made for."""

    def __init__(self, in_features: int, out_features: int) -> None:
        self.weight = exact((out_features, in_features))

    def forward(self, x: Tensor) -> Tensor:
        """x [n, in] -> [n, out]."""
        outputs, inputs = (int(size) for size in self.weight.shape)

        def compute(t: te.Tensor, w: te.Tensor) -> te.Tensor:
            def element(i: tirx.Var, k: tirx.Var) -> tirx.PrimExpr:
                y = tirx.const(0, F32)
                for j in range(inputs):
                    y += t[i, j].astype(F32) * w[k, j].astype(F32)
                return y.astype(t.dtype)

            return te.compute((t.shape[0], outputs), element, "coefficients")

        return op.tensor_expr_op(compute, "coefficients", [x, self.weight])


class AltUp(nn.Module):
    """Mixes and corrects the states around one layer."""

    def __init__(self, cfg: Any, states: int, active: int, *, scaled: bool) -> None:
        self.size, self.states, self.active = cfg.hidden_size, states, active
        self.router_norm = cfg.norm()
        self.modality_router = Unquantized(self.size, states, bias=False)
        self.prediction_coefs = Coefficients(states, states * states)
        self.correction_coefs = Coefficients(states, states)
        self.correct_output_scale = exact((self.size,)) if scaled else None

    def _modalities(self, x: Tensor) -> Tensor:
        """Return the weights of the states: x [n, d] -> [n, T]."""
        return op.tanh(self.modality_router(self.router_norm(x) * (1 / self.size)))

    def one(self, states: Tensor, which: int) -> Tensor:
        """Return one of the states [n, T * d]: [n, d]."""
        return column_block(states, which, self.size)

    def predict(self, states: Tensor) -> Tensor:
        """Mix the states: [n, T * d] -> [n, T * d]."""
        size, count = self.size, self.states
        weights = self.prediction_coefs(self._modalities(self.one(states, self.active)))

        def compute(x: te.Tensor, w: te.Tensor) -> te.Tensor:
            def element(i: tirx.Var, k: tirx.Var) -> tirx.PrimExpr:
                state, column = k // size, k % size
                y = x[i, k].astype(F32)
                for t in range(count):
                    y += x[i, t * size + column].astype(F32) * w[i, state * count + t].astype(F32)
                return y.astype(x.dtype)

            return te.compute(x.shape, element, "predicted")

        return op.tensor_expr_op(compute, "predicted", [states, weights])

    def correct(self, predicted: Tensor, activated: Tensor) -> Tensor:
        """Correct predicted states [n, T * d] by the layer's result [n, d]: [n, T * d]."""
        size, active = self.size, self.active
        weights = self.correction_coefs(self._modalities(activated))

        def compute(x: te.Tensor, y: te.Tensor, w: te.Tensor) -> te.Tensor:
            def element(i: tirx.Var, k: tirx.Var) -> tirx.PrimExpr:
                column = k % size
                before = x[i, active * size + column].astype(F32)
                factor = w[i, k // size].astype(F32) + tirx.const(1, F32)
                change = (y[i, column].astype(F32) - before) * factor
                return (x[i, k].astype(F32) + change).astype(x.dtype)

            return te.compute(x.shape, element, "corrected")

        return op.tensor_expr_op(compute, "corrected", [predicted, activated, weights])

    def result(self, corrected: Tensor) -> Tensor:
        """Return the corrected active state, scaled if the model does: [n, T * d] -> [n, d]."""
        x = self.one(corrected, self.active)
        return x if self.correct_output_scale is None else x * self.correct_output_scale

    def added(self, corrected: Tensor, y: Tensor) -> Tensor:
        """Add y [n, d] to all states but the first: [n, T * d] -> [n, T * d]."""
        size = self.size

        def compute(x: te.Tensor, z: te.Tensor) -> te.Tensor:
            return te.compute(
                x.shape,
                lambda i, k: tirx.if_then_else(k < size, x[i, k], x[i, k] + z[i, k % size]),
                "added",
            )

        return op.tensor_expr_op(compute, "added", [corrected, y])


def column_block(x: Tensor, which: int, size: int) -> Tensor:
    """Return `size` columns of x [n, w], the block of that number: [n, size]."""
    return op.tensor_expr_op(
        lambda t: te.compute((t.shape[0], size), lambda i, k: t[i, which * size + k], "block"),
        "block",
        [x],
    )


def of_length(y: Tensor, x: Tensor, least: float = 1e-5) -> Tensor:
    """Scale rows to the root mean squares of other rows: y, x [n, d] -> [n, d].

    The mean square of y counts as `least` at least.
    """
    floor = tirx.const(least, F32)

    def compute(t: te.Tensor, own: te.Tensor, target_square: te.Tensor) -> te.Tensor:
        def element(i: tirx.Var, k: tirx.Var) -> tirx.PrimExpr:
            factor = tirx.sqrt(target_square[i, 0]) * tirx.rsqrt(tirx.max(own[i, 0], floor))
            return (t[i, k].astype(F32) * factor).astype(t.dtype)

        return te.compute(t.shape, element, "of_length")

    own, target_square = (row_mean(t, int(x.shape[1]), lambda e, _: e * e) for t in (y, x))
    return op.tensor_expr_op(compute, "of_length", [y, own, target_square])


def row_mean(x: Tensor, size: int, of: Callable[[Any, list[Any]], Any], *others: Tensor) -> Tensor:
    """Return the mean of a function of each row's first `size` elements: x [n, w] -> [n, 1].

    `of` gets an element of x and of each of `others`, float32 [n, 1], and returns an expression;
    x and the result are one reduction, which schedules of devices understand.
    """

    def compute(t: te.Tensor, *more: te.Tensor) -> te.Tensor:
        k, count = te.reduce_axis((0, size), "k"), tirx.const(1 / size, F32)

        def element(i: tirx.Var, _: tirx.Var) -> tirx.PrimExpr:
            return te.sum(of(t[i, k].astype(F32), [m[i, 0] for m in more]) * count, k)

        return te.compute((t.shape[0], 1), element, "mean")

    return op.tensor_expr_op(compute, "row_mean", [x, *others])
