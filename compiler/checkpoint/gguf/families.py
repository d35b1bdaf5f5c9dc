"""The architectures of GGUF that are read: their names of fields and tensors, and what differs.

The names are those of llama.cpp's `gguf-py/gguf/constants.py`; the factors and orders are what its
`conversion/` does to a checkpoint of Hugging Face, undone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

# GGUF's names of tensors outside of layers, and in layer N, as Llama's checkpoints call them.
_OUTER = {
    "token_embd": "model.embed_tokens",
    "output_norm": "model.norm",
    "output": "lm_head",
}
_LAYER = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_qkv": "self_attn.qkv_proj",
    "attn_output": "self_attn.o_proj",
    "attn_q_norm": "self_attn.q_norm",
    "attn_k_norm": "self_attn.k_norm",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
    "ffn_gate_inp": "mlp.gate",
    "ffn_gate_exps": "mlp.experts.{}.gate_proj",
    "ffn_up_exps": "mlp.experts.{}.up_proj",
    "ffn_down_exps": "mlp.experts.{}.down_proj",
    "ffn_gate_inp_shexp": "mlp.shared_expert_gate",
    "ffn_gate_shexp": "mlp.shared_expert.gate_proj",
    "ffn_up_shexp": "mlp.shared_expert.up_proj",
    "ffn_down_shexp": "mlp.shared_expert.down_proj",
}
# Norms before and after attention and feed-forward, as Gemma 2 names them.
_SANDWICH = {
    "post_attention_norm": "post_attention_layernorm",
    "ffn_norm": "pre_feedforward_layernorm",
    "post_ffw_norm": "post_feedforward_layernorm",
}
_AFTER = {  # norms only behind attention and feed-forward, as in OLMo 2
    "post_attention_norm": "post_attention_layernorm",
    "post_ffw_norm": "post_feedforward_layernorm",
}
_MIXTRAL = {
    "ffn_gate_inp": "block_sparse_moe.gate",
    "ffn_gate_exps": "block_sparse_moe.experts.{}.w1",
    "ffn_up_exps": "block_sparse_moe.experts.{}.w3",
    "ffn_down_exps": "block_sparse_moe.experts.{}.w2",
}
_EXPERTS = {"expert_count": "num_experts", "expert_used_count": "num_experts_per_tok"}
_SMALL_EXPERTS = {**_EXPERTS, "expert_feed_forward_length": "moe_intermediate_size"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """One architecture."""

    model_type: str  # of our file in `families/`, Hugging Face's name
    classes: str  # transformers' class
    layer: Mapping[str, str] = field(default_factory=dict)  # tensors' names, besides Llama's
    fields: Mapping[str, str] = field(default_factory=dict)  # more metadata -> of config.json
    fixed: Mapping[str, Any] = field(default_factory=dict)  # what GGUF takes for granted
    flags: Mapping[str, str] = field(default_factory=dict)  # config.json's -> a tensor of layer 0
    paired: bool = False  # rows of q and k are pairs of dimensions that rotate together
    norm_shift: float = 0.0  # is added to the weights of norms
    epsilon: str = "rms_norm_eps"  # config.json's name
    windows: bool = False  # the metadata say which layers have a window
    explicit_head: bool = True  # config.json has a head_dim

    def name_of(self, stored: str) -> str | None:
        """A tensor's name in a checkpoint; None: it is not a tensor of this family.

        The number of an expert is "{}".
        """
        base, dot, kind = stored.rpartition(".")
        if not dot or kind not in ("weight", "bias"):
            return None
        if base in _OUTER:
            return f"{_OUTER[base]}.{kind}"
        blk, _, rest = base.partition(".")
        number, _, part = rest.partition(".")
        if blk != "blk" or not number.isdecimal():
            return None
        known = {**_LAYER, **self.layer}
        return f"model.layers.{int(number)}.{known[part]}.{kind}" if part in known else None


_BIASES = {"attention_bias": "attn_q.bias"}
_LLAMA = {**_BIASES, "mlp_bias": "ffn_up.bias"}
FAMILIES: Mapping[str, Family] = {
    "llama": Family(model_type="llama", classes="LlamaForCausalLM", paired=True, flags=_LLAMA),
    "qwen2": Family(
        model_type="qwen2",
        classes="Qwen2ForCausalLM",
        fixed={"use_sliding_window": False},
        explicit_head=False,
    ),
    "qwen2moe": Family(
        model_type="qwen2_moe",
        classes="Qwen2MoeForCausalLM",
        fields={
            **_SMALL_EXPERTS,
            "expert_shared_feed_forward_length": "shared_expert_intermediate_size",
        },
        fixed={"use_sliding_window": False, "norm_topk_prob": False},
        explicit_head=False,
    ),
    "qwen3": Family(model_type="qwen3", classes="Qwen3ForCausalLM", flags=_BIASES),
    "qwen3moe": Family(
        model_type="qwen3_moe",
        classes="Qwen3MoeForCausalLM",
        fields=_SMALL_EXPERTS,
        fixed={"norm_topk_prob": True},
        flags=_BIASES,
    ),
    "gemma": Family(model_type="gemma", classes="GemmaForCausalLM", norm_shift=-1.0),
    "gemma2": Family(
        model_type="gemma2",
        classes="Gemma2ForCausalLM",
        layer=_SANDWICH,
        fields={
            "attn_logit_softcapping": "attn_logit_softcapping",
            "final_logit_softcapping": "final_logit_softcapping",
        },
        norm_shift=-1.0,
    ),
    "gemma3": Family(
        model_type="gemma3_text",
        classes="Gemma3ForCausalLM",
        layer=_SANDWICH,
        fields={"final_logit_softcapping": "final_logit_softcapping"},
        norm_shift=-1.0,
    ),
    "phi3": Family(
        model_type="phi3",
        classes="Phi3ForCausalLM",
        layer={"ffn_up": "mlp.gate_up_proj"},
        explicit_head=False,
    ),
    "granite": Family(
        model_type="granite",
        classes="GraniteForCausalLM",
        fields={
            "embedding_scale": "embedding_multiplier",
            "attention.scale": "attention_multiplier",
            "residual_scale": "residual_multiplier",
            "logit_scale": "logits_scaling",
        },
        paired=True,
        flags=_LLAMA,
    ),
    "olmo2": Family(model_type="olmo2", classes="Olmo2ForCausalLM", layer=_AFTER, flags=_BIASES),
    "smollm3": Family(
        model_type="smollm3", classes="SmolLM3ForCausalLM", paired=True, flags=_LLAMA
    ),
    "seed_oss": Family(
        model_type="seed_oss",
        classes="SeedOssForCausalLM",
        layer={"post_attention_norm": "post_attention_layernorm"},
        flags={
            **_BIASES,
            "attention_out_bias": "attn_output.bias",
            "mlp_bias": "ffn_up.bias",
        },
    ),
    "ernie4_5": Family(
        model_type="ernie4_5", classes="Ernie4_5ForCausalLM", flags={"use_bias": "attn_output.bias"}
    ),
    "arcee": Family(
        model_type="arcee",
        classes="ArceeForCausalLM",
        fixed={"hidden_act": "relu2"},
        paired=True,
        flags=_LLAMA,
    ),
}
# Llama's architecture with experts is Mixtral's.
MIXTRAL = Family(
    model_type="mixtral",
    classes="MixtralForCausalLM",
    layer=_MIXTRAL,
    fields={"expert_count": "num_local_experts", "expert_used_count": "num_experts_per_tok"},
    paired=True,
)
