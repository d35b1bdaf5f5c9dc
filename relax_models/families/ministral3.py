"""Ministral 3 decoders: Mistral with YaRN; queries are scaled by the logarithm of the position."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from tvm import te, tirx
from tvm.relax.frontend.nn import Tensor, op

from .. import decoder
from ..arch import Architecture
from ..config import Epsilon, Positions, Range, Size
from ..decoder import WEIGHTS
from ..step import Batch, attention

_YARN: Mapping[str, Any] = {
    "type": "yarn",
    "rope_theta": 1000000.0,
    "factor": 16.0,
    "original_max_position_embeddings": 16384,
    "beta_fast": 32.0,
    "beta_slow": 1.0,
    "mscale_all_dim": 1.0,
    "mscale": 1.0,
    "llama_4_scaling_beta": 0.1,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Ministral3Config(decoder.WindowedConfig):
    """Fields of Ministral3's config.json that shape the computation."""

    head_dim: Size | None = 128
    max_position_embeddings: Positions = 262144
    rms_norm_eps: Epsilon = 1e-5
    growth: Annotated[float, Range(0.0, 1e3)] = 0.0
    SPELLED: ClassVar[Mapping[str, str]] = {"growth": "llama_4_scaling_beta"}
    DEFAULTS: ClassVar[Mapping[str, Any]] = {"num_key_value_heads": 8, "rope_parameters": _YARN}

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
    def grown_from(self) -> int:
        """Return the number of positions after which queries are scaled up."""
        return self.rope.original_max_position_embeddings or self.max_position_embeddings


class Attention(decoder.Attention):
    def __init__(self, cfg: Ministral3Config, layer: int) -> None:
        super().__init__(cfg, layer)
        self.growth, self.grown_from = float(cfg.growth), cfg.grown_from

    def forward(self, x: Tensor, batch: Batch) -> Tensor:
        """Compute attention: x [n, d] -> [n, d]."""
        qkv = self.qkv_proj(x)
        if self.growth:
            qkv = self._grown(qkv, batch.positions)
        return self.o_proj(attention(qkv, batch, self.shape))

    def _grown(self, qkv: Tensor, positions: Tensor) -> Tensor:
        """Scale queries by 1 + growth * log(1 + position // grown_from), before RoPE.

        RoPE keeps a vector's length, so the order does not matter.
        """
        width, dtype = self.shape.heads * self.shape.head_dim, qkv.dtype

        def compute(t: te.Tensor, p: te.Tensor) -> te.Tensor:
            def element(i: tirx.Var, k: tirx.Var) -> tirx.PrimExpr:
                turns = tirx.floordiv(p[i], self.grown_from).astype("float32")
                factor = 1.0 + self.growth * tirx.log(1.0 + turns)
                return tirx.if_then_else(
                    k < width, (t[i, k].astype("float32") * factor).astype(dtype), t[i, k]
                )

            return te.compute(t.shape, element, "grown")

        return op.tensor_expr_op(compute, "grown", [qkv, positions])


class Block(decoder.Block):
    attention = Attention


class Decoder(decoder.Decoder):
    block = Block


class CausalLM(decoder.CausalLM):
    decoder = Decoder


ARCH = Architecture(name="ministral3", config=Ministral3Config, model=CausalLM, weights=WEIGHTS)
