"""InternLM2 and 2.5 decoders: Llama with other tensor names, and q, k and v in one tensor."""

from __future__ import annotations

from dataclasses import dataclass

from .. import decoder
from ..arch import Architecture, Groups, concat, drop, rename, reorder, tie
from ..config import Positions
from ..decoder import Biases, CausalLM


@dataclass(frozen=True, slots=True, kw_only=True)
class InternLM2Config(decoder.DecoderConfig):
    """Fields of InternLM2's config.json that shape the computation."""

    max_position_embeddings: Positions = 32768
    bias: bool = False

    def biases(self) -> Biases:
        return Biases(qkv=self.bias, out=self.bias)


def _groups(cfg: InternLM2Config) -> Groups:
    """Return the row order of `wqkv`: the query heads of a KV head, then its k and v."""
    return Groups(cfg.num_attention_heads, cfg.kv_heads, cfg.head_size)


KINDS = ("weight", "bias")
ARCH = Architecture(
    name="internlm2",
    config=InternLM2Config,
    model=CausalLM,
    weights=(
        concat("mlp.gate_up_proj.weight", "feed_forward.w1.weight", "feed_forward.w3.weight"),
        tie("lm_head.weight", "model.embed_tokens.weight"),
        *(rename(f"self_attn.qkv_proj.{kind}", f"attention.wqkv.{kind}") for kind in KINDS),
        *(rename(f"self_attn.o_proj.{kind}", f"attention.wo.{kind}") for kind in KINDS),
        rename("mlp.down_proj.weight", "feed_forward.w2.weight"),
        rename("input_layernorm.weight", "attention_norm.weight"),
        rename("post_attention_layernorm.weight", "ffn_norm.weight"),
        rename("model.embed_tokens.weight", "model.tok_embeddings.weight"),
        rename("lm_head.weight", "output.weight"),
        *(reorder(f"attention.wqkv.{kind}", _groups) for kind in KINDS),
        drop("rotary_emb.inv_freq"),
    ),
)
