"""Tables of the supported GGUF architectures: names of fields and tensors, and special cases.

The names are those in llama.cpp's `gguf-py/gguf/constants.py`. Shifts and row orders undo the
changes that llama.cpp's `conversion/` makes to a Hugging Face checkpoint.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

# Tensor names in GGUF -> in Llama's Hugging Face checkpoints: first those outside of layers, then
# those below "blk.N.".
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
# Norms before and after attention and feed-forward -> their names in Gemma 2.
_SANDWICH = {
    "post_attention_norm": "post_attention_layernorm",
    "ffn_norm": "pre_feedforward_layernorm",
    "post_ffw_norm": "post_feedforward_layernorm",
}
_AFTER = {  # norms only after attention and feed-forward -> their names in OLMo 2
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
    """The conversion rules of one architecture."""

    model_type: str  # value of model_type in config.json
    classes: str  # name of the model class in transformers
    # Tensor names below "blk.N." -> in the checkpoint, in addition to `_LAYER` or overriding it.
    layer: Mapping[str, str] = field(default_factory=dict)
    # Metadata fields -> fields of config.json, in addition to those of every architecture.
    fields: Mapping[str, str] = field(default_factory=dict)
    # Fields of config.json that have the same value in all GGUF files of the architecture.
    fixed: Mapping[str, Any] = field(default_factory=dict)
    # Boolean fields of config.json -> tensor of layer 0 whose presence means true.
    flags: Mapping[str, str] = field(default_factory=dict)
    paired: bool = False  # whether rows of q and k are interleaved for RoPE, see `Pairs`
    norm_shift: float = 0.0  # value to add to the weights of norms
    epsilon: str = "rms_norm_eps"  # field of config.json for the epsilon of norms
    explicit_head: bool = True  # whether config.json contains head_dim

    def name_of(self, stored: str) -> str | None:
        """Return the Hugging Face name of a GGUF tensor; None: the family has no such tensor.

        In a tensor of all experts, "{}" stands for the expert's number.
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
# GGUF files of Mixtral have the architecture "llama" and a field for the number of experts.
MIXTRAL = Family(
    model_type="mixtral",
    classes="MixtralForCausalLM",
    layer=_MIXTRAL,
    fields={"expert_count": "num_local_experts", "expert_used_count": "num_experts_per_tok"},
    paired=True,
)
