"""Attention temperature: queries grow with the logarithm of their position.

Long contexts flatten the softmax of scores; larger queries sharpen it again (Llama 4, from
https://arxiv.org/abs/2501.19399).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from tvm import te, tirx
from tvm.relax.frontend.nn import Tensor, op

from ..config import Range


@dataclass(frozen=True, slots=True)
class Temperature:
    """Factor of a query at position p: 1 + growth * log(1 + (p + ahead) // interval)."""

    growth: float
    interval: int  # tokens between two steps of the factor
    ahead: int = 0  # number of positions by which a step comes earlier


def tempered(qkv: Tensor, positions: Tensor, width: int, temperature: Temperature) -> Tensor:
    """Scale the first `width` columns of qkv [n, w], the queries, at positions int32 [n].

    RoPE keeps the lengths of vectors, so this comes before it.
    """
    dtype = qkv.dtype

    def compute(t: te.Tensor, p: te.Tensor) -> te.Tensor:
        def element(i: tirx.Var, k: tirx.Var) -> tirx.PrimExpr:
            steps = tirx.floordiv(p[i] + temperature.ahead, temperature.interval)
            factor = 1.0 + temperature.growth * tirx.log(1.0 + steps.astype("float32"))
            scaled = (t[i, k].astype("float32") * factor).astype(dtype)
            return tirx.if_then_else(k < width, scaled, t[i, k])

        return te.compute(t.shape, element, "tempered")

    return op.tensor_expr_op(compute, "tempered", [qkv, positions])


# no slots, because families combine it with their dense model's fields
@dataclass(frozen=True, kw_only=True)
class TemperedConfig:
    """Fields of families that store the scaling of queries among RoPE's fields."""

    growth: Annotated[float, Range(0.0, 1e3)] = 0.0
    SPELLED: ClassVar[Mapping[str, str]] = {"growth": "llama_4_scaling_beta"}

    @staticmethod
    def prepared(given: dict[str, Any]) -> dict[str, Any]:
        """Read the scaling of queries, which is stored among RoPE's fields."""
        rope = given.get("rope_parameters")
        if not isinstance(rope, dict):
            return given
        own = {k: v for k, v in rope.items() if k == "llama_4_scaling_beta" and v is not None}
        # max_position_embeddings is a duplicate here
        dropped = {"llama_4_scaling_beta", "max_position_embeddings"}
        return given | own | {"rope_parameters": {k: rope[k] for k in rope if k not in dropped}}

    @property
    def temperature(self: Any) -> Temperature | None:
        """Return how queries grow with their position; None: they do not."""
        interval = self.rope.original_max_position_embeddings or self.max_position_embeddings
        return Temperature(float(self.growth), interval) if self.growth else None
