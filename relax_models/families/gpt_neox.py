"""GPT-NeoX decoders (Pythia, RedPajama): partial RoPE, parallel attention and feed-forward."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tvm.relax.frontend import nn

from .. import classic, decoder
from ..arch import Architecture, drop, rename, reorder
from ..decoder import TIED, Biases
from ..layers.activations import Name


@dataclass(frozen=True, slots=True, kw_only=True)
class GPTNeoXConfig(classic.ClassicConfig):
    """Fields of GPTNeoX's config.json that shape the computation."""

    hidden_act: Name = "gelu"
    attention_bias: bool = True
    use_parallel_residual: bool = True

    @staticmethod
    def prepared(given: dict[str, Any]) -> dict[str, Any]:
        """Rename RoPE fields that older checkpoints spell differently."""
        given = dict(given)
        own = {"rope_theta": given.pop("rotary_emb_base", 10000.0)}
        own["partial_rotary_factor"] = given.pop("rotary_pct", 0.25)
        return own | given

    def biases(self) -> Biases:
        return Biases(qkv=self.attention_bias, out=self.attention_bias, mlp=True)


class Decoder(decoder.Decoder):
    def block_of(self, cfg: GPTNeoXConfig) -> type[nn.Module]:
        return classic.TwinNormBlock if cfg.use_parallel_residual else classic.Block


class CausalLM(decoder.CausalLM):
    decoder = Decoder


NAMES: Mapping[str, str] = {
    "self_attn.qkv_proj": "attention.query_key_value",
    "self_attn.o_proj": "attention.dense",
    "mlp.up_proj": "mlp.dense_h_to_4h",
    "mlp.down_proj": "mlp.dense_4h_to_h",
    "model.norm": "gpt_neox.final_layer_norm",
}
KINDS = ("weight", "bias")
ARCH = Architecture(
    name="gpt_neox",
    config=GPTNeoXConfig,
    model=CausalLM,
    weights=(
        TIED,
        *(rename(f"{o}.{kind}", f"{t}.{kind}") for o, t in NAMES.items() for kind in KINDS),
        rename("model.embed_tokens.weight", "gpt_neox.embed_in.weight"),
        rename("lm_head.weight", "embed_out.weight"),
        rename("model.layers.*", "gpt_neox.layers.*"),
        *(reorder(f"query_key_value.{kind}", classic.by_head) for kind in KINDS),
        drop("attention.bias"),  # a stored causal mask
        drop("attention.masked_bias"),
        drop("rotary_emb.inv_freq"),
    ),
    base="gpt_neox",
)
