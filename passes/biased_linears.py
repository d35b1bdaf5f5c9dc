"""Finds linears whose bias, and an activation after it, a target's kernel computes with them.

    h = linear(x, W)                          y = biased_linear(x, b, W)
    y = R.add(h, b)

    h = linear(x, W)                          y = biased_linear(x, b, W)
    s = R.add(h, b)
    y = activation(s)

A tensor between two of these operations must have no other reader. Without a kernel for
"biased_linear" (the linear's spec and `activation`), the operations stay as they are.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import Any

from tvm import ir, relax
from tvm_ffi import structural_equal

from .kernels import Answers, Packed

ADD = ir.Op.get("relax.add")


@dataclass(frozen=True, slots=True)
class _Linear:
    """A linear up to a binding: its spec, and its arguments."""

    spec: dict[str, Any]
    x: relax.Expr
    weights: list[relax.Expr]
    bias: relax.Expr | None = None


class BiasedLinears:
    """Linears by the variable of their result, in the order in which a function is visited."""

    def __init__(self, answers: Answers) -> None:
        self._answers = answers
        self._known: dict[relax.Var, _Linear] = {}
        self._last: _Linear | None = None  # what the call that was visited last computes

    def bind(self, var: relax.Expr) -> None:
        """Say that `var` has the result of the last call, and a single reader."""
        if self._last is not None:
            self._known[var] = self._last

    def visit(
        self, call: relax.Call, tagged: tuple[str, str] | None
    ) -> tuple[Packed, list[relax.Expr]] | None:
        """Return the kernel that computes `call` and a linear before it, and its arguments.

        `tagged` is the tag of the PrimFunc that it calls. The arguments are x, the bias and the
        stored weights; None: there is no such linear or kernel.
        """
        self._last = None
        if call.op == ADD:
            linear = self._with_bias(*call.args)
        elif tagged is not None and tagged[0] == "activation":
            linear = self._activated(call.args[1].fields[0], json.loads(tagged[1]))
        else:
            linear = None
            if tagged is not None and tagged[0] == "linear":
                x, *weights = call.args[1].fields
                self._last = _Linear(json.loads(tagged[1]) | {"activation": None}, x, weights)
        kernel = None if linear is None else self._answers.kernel("biased_linear", linear.spec)
        if linear is None or kernel is None:
            return None
        self._last = linear
        return kernel, [linear.x, linear.bias, *linear.weights]

    def _with_bias(self, left: relax.Expr, right: relax.Expr) -> _Linear | None:
        for h, bias in ((left, right), (right, left)):
            linear = self._known.get(h)
            if linear is None or linear.bias is not None:
                continue
            columns = int(h.ty.shape[-1])
            if structural_equal(bias.ty, relax.TensorType([columns], "float32")):
                return replace(linear, bias=bias)
        return None

    def _activated(self, x: relax.Expr, spec: dict[str, Any]) -> _Linear | None:
        linear = self._known.get(x)
        if linear is None or linear.bias is None or linear.spec["activation"] or spec["gated"]:
            return None
        return replace(linear, spec=linear.spec | {"activation": spec["kind"]})
