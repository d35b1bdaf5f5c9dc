"""What a linear makes of a panel's sums before it stores them: a bias, an activation. CPUs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tvm.script import tirx as T

from wherry.ops import BiasedLinearSpec, LinearSpec

from . import vector as v
from .elementwise import FORMULAS
from .function import Parameter
from .isa import Isa
from .tiles import PANEL

Finish = Callable[[Any, Any], Any]  # arguments: index of a panel, its sums (float32x16)


def can_finish(spec: BiasedLinearSpec) -> bool:
    """Return whether whole vectors of the bias belong to every panel."""
    return spec.out_features % PANEL == 0


def bias_parameters(spec: LinearSpec) -> list[Parameter]:
    """Return the kernel's parameters between x and the weights."""
    biased = isinstance(spec, BiasedLinearSpec)
    return [("bias", (spec.out_features,), "float32")] if biased else []


def finish_of(spec: LinearSpec, isa: Isa, bias: Any) -> Finish:
    """Return a function that emits what is stored of a panel's sums; `bias`: the buffer, if any."""
    if not isinstance(spec, BiasedLinearSpec):
        return lambda _panel, sums: sums

    def finish(panel: Any, sums: Any) -> Any:
        # A strip may have panels beyond the last column, of which nothing is stored.
        first = T.min(panel * PANEL, spec.out_features - PANEL)
        y = v.let(sums + bias[v.span(first, PANEL)])
        return v.let(FORMULAS[spec.activation](y, PANEL, isa)) if spec.activation else y

    return finish
