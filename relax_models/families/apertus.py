"""Apertus decoders: norms of q and k, and xIELU, an activation with learned parameters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from tvm import te, tirx
from tvm.relax.frontend import nn
from tvm.relax.frontend.nn import Tensor, op

from wherry.ops import AttentionShape

from .. import decoder
from ..arch import Architecture, rename
from ..config import Epsilon, Positions
from ..decoder import WEIGHTS, Biases

_LLAMA3: Mapping[str, Any] = {
    "rope_type": "llama3",
    "rope_theta": 12000000.0,
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 8192,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ApertusConfig(decoder.DecoderConfig):
    """Fields of Apertus's config.json that shape the computation."""

    max_position_embeddings: Positions = 65536
    rms_norm_eps: Epsilon = 1e-5
    attention_bias: bool = False
    DEFAULTS: ClassVar[Mapping[str, Any]] = {"rope_parameters": _LLAMA3}
    ACCEPTED: ClassVar[Mapping[str, tuple[Any, ...]]] = {
        "hidden_act": ("xielu",),
        "mlp_bias": (False,),
        "post_norm": (False,),
        "qk_norm": (True,),
    }

    def attention_shape(self, layer: int = 0) -> AttentionShape:
        shape = decoder.DecoderConfig.attention_shape(self, layer)
        return replace(shape, qk_norm_eps=self.rms_norm_eps)

    def biases(self) -> Biases:
        return Biases(qkv=self.attention_bias, out=self.attention_bias)


class XIELU(nn.Module):
    """Activation xIELU: p x^2 + beta x for x > 0, else n (exp(min(x, eps)) - 1 - x) + beta x.

    p = softplus(alpha_p), n = beta + softplus(alpha_n); https://arxiv.org/abs/2411.13010.
    """

    def __init__(self) -> None:
        self.alpha_p = nn.Parameter((1,))
        self.alpha_n = nn.Parameter((1,))
        self.beta = nn.Parameter(())
        self.eps = nn.Parameter(())

    def forward(self, x: Tensor) -> Tensor:
        """Compute the activation: x [n, f] -> [n, f]."""

        def compute(
            t: te.Tensor, p: te.Tensor, n: te.Tensor, beta: te.Tensor, eps: te.Tensor
        ) -> te.Tensor:
            def element(*i: tirx.Var) -> tirx.PrimExpr:
                y, b = t[i].astype("float32"), beta()
                small = tirx.exp(tirx.min(y, eps())) - 1.0 - y
                up, down = _softplus(p[0]) * y * y, (b + _softplus(n[0])) * small
                return (tirx.Select(y > 0.0, up, down) + b * y).astype(t.dtype)

            return te.compute(t.shape, element, "xielu")

        numbers = [self.alpha_p, self.alpha_n, self.beta, self.eps]
        return op.tensor_expr_op(compute, "xielu", [x, *numbers])


def _softplus(x: Any) -> Any:
    return tirx.log(1.0 + tirx.exp(x))


class MLP(nn.Module):
    def __init__(self, cfg: ApertusConfig) -> None:
        self.up_proj = nn.Linear(cfg.hidden_size, cfg.intermediate_size, bias=False)
        self.act_fn = XIELU()
        self.down_proj = nn.Linear(cfg.intermediate_size, cfg.hidden_size, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """Compute the feed-forward: x [n, d] -> [n, d]."""
        return self.down_proj(self.act_fn(self.up_proj(x)))


class Block(decoder.Block):
    attention = decoder.HeadNormAttention

    def feed_forward(self, cfg: ApertusConfig, layer: int) -> nn.Module:
        return MLP(cfg)


class Decoder(decoder.Decoder):
    block = Block


class CausalLM(decoder.CausalLM):
    decoder = Decoder


ARCH = Architecture(
    name="apertus",
    config=ApertusConfig,
    model=CausalLM,
    weights=(
        *WEIGHTS,
        rename("input_layernorm.weight", "attention_layernorm.weight"),
        rename("post_attention_layernorm.weight", "feedforward_layernorm.weight"),
    ),
)
