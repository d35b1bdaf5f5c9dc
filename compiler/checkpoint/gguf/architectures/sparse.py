"""The GGUF architectures with experts; `hybrids.py` has those with recurrent layers, too."""

from __future__ import annotations

from collections.abc import Mapping

from . import changes
from .family import GgufFamily

_USED = {"expert_count": "num_experts", "expert_used_count": "num_experts_per_tok"}
SMALL = {**_USED, "expert_feed_forward_length": "moe_intermediate_size"}
LOCAL = {"expert_count": "num_local_experts", "expert_used_count": "num_experts_per_tok"}
# Fields of families whose experts are in groups, as DeepSeek's.
_GROUPED = {
    "expert_count": "n_routed_experts",
    "expert_used_count": "num_experts_per_tok",
    "expert_feed_forward_length": "moe_intermediate_size",
    "expert_group_count": "n_group",
    "expert_group_used_count": "topk_group",
    "expert_shared_count": "n_shared_experts",
    "expert_weights_scale": "routed_scaling_factor",
    "expert_weights_norm": "norm_topk_prob",
    "leading_dense_block_count": "first_k_dense_replace",
}
_SHARED = {
    f"ffn_{part}_shexp": f"mlp.shared_experts.{part}_proj" for part in ("gate", "up", "down")
}
_CORRECTED = {**_SHARED, "exp_probs_b.bias": "mlp.gate.e_score_correction_bias"}
_LATENT = {
    **_CORRECTED,
    "attn_q_a": "self_attn.q_a_proj",
    "attn_q_a_norm": "self_attn.q_a_layernorm",
    "attn_q_b": "self_attn.q_b_proj",
    "attn_kv_a_mqa": "self_attn.kv_a_proj_with_mqa",
    "attn_kv_a_norm": "self_attn.kv_a_layernorm",
    "attn_kv_b": "self_attn.kv_b_proj",  # files of before April 2025
    # The two halves of kv_b_proj, as the model computes with them.
    "attn_k_b": "self_attn.k_up_proj",
    "attn_v_b": "self_attn.v_up_proj",
}
GRANITE = {  # fields of Granite
    "embedding_scale": "embedding_multiplier",
    "attention.scale": "attention_multiplier",
    "residual_scale": "residual_multiplier",
    "logit_scale": "logits_scaling",
}
GRANITE_MOE = {  # tensors of Granite's mixtures
    "ffn_gate_inp": "block_sparse_moe.router.layer",
    "ffn_gate_shexp": "shared_mlp.gate_proj",
    "ffn_up_shexp": "shared_mlp.up_proj",
    "ffn_down_shexp": "shared_mlp.output_linear",
}
_MIXTRAL = {
    "ffn_gate_inp": "block_sparse_moe.gate",
    "ffn_gate_exps": "block_sparse_moe.experts.{}.w1",
    "ffn_up_exps": "block_sparse_moe.experts.{}.w3",
    "ffn_down_exps": "block_sparse_moe.experts.{}.w2",
}
_BIASES = {"attention_bias": "attn_q.bias"}

# GGUF files of Mixtral have the architecture "llama" and a field for the number of experts.
MIXTRAL = GgufFamily(
    model_type="mixtral",
    classes="MixtralForCausalLM",
    layer=_MIXTRAL,
    fields=LOCAL,
    changes=changes.PAIRED,
)
# Both are "deepseek2"; the function that scores experts tells them apart.
DEEPSEEK_V2 = GgufFamily(
    model_type="deepseek_v2",
    classes="DeepseekV2ForCausalLM",
    layer=_LATENT,
    fields=_GROUPED,
    flags={"attention_bias": "attn_kv_a_mqa.bias"},
    explicit_head=False,
    own_heads=True,
)
DEEPSEEK_V3 = GgufFamily(
    model_type="deepseek_v3",
    classes="DeepseekV3ForCausalLM",
    layer=_LATENT,
    fields=_GROUPED,
    flags={"attention_bias": "attn_kv_a_mqa.bias"},
    explicit_head=False,
    own_heads=True,
)
SPARSE: Mapping[str, GgufFamily] = {
    "qwen2moe": GgufFamily(
        model_type="qwen2_moe",
        classes="Qwen2MoeForCausalLM",
        fields={
            **SMALL,
            "expert_shared_feed_forward_length": "shared_expert_intermediate_size",
        },
        changes=changes.ONE_ROW,
        fixed={"use_sliding_window": False, "norm_topk_prob": False},
        explicit_head=False,
    ),
    "qwen3moe": GgufFamily(
        model_type="qwen3_moe",
        classes="Qwen3MoeForCausalLM",
        fields=SMALL,
        fixed={"norm_topk_prob": True},
        flags=_BIASES,
    ),
    "qwen3vlmoe": GgufFamily(
        model_type="qwen3_moe",
        classes="Qwen3MoeForCausalLM",
        fields=SMALL,
        fixed={"norm_topk_prob": True},
        flags=_BIASES,
        ignored=("n_deepstack_layers",),
    ),
    "gpt-oss": GgufFamily(
        model_type="gpt_oss",
        classes="GptOssForCausalLM",
        layer={
            "post_attention_norm": "post_attention_layernorm",
            "attn_sinks.weight": "self_attn.sinks",
            "ffn_gate_inp": "mlp.router",
        },
        fields={**LOCAL, "attention.sliding_window": "sliding_window"},
        flags=_BIASES,
    ),
    "glm4moe": GgufFamily(
        model_type="glm4_moe",
        classes="Glm4MoeForCausalLM",
        layer={**_CORRECTED, "post_attention_norm": "post_attention_layernorm"},
        fields=_GROUPED,
        flags={**_BIASES, "use_qk_norm": "attn_q_norm.weight"},
    ),
    "dots1": GgufFamily(
        model_type="dots1",
        classes="Dots1ForCausalLM",
        layer=_CORRECTED,
        fields=_GROUPED,
        fixed={"sliding_window": None},
        flags=_BIASES,
    ),
    "exaone-moe": GgufFamily(
        model_type="exaone_moe",
        classes="ExaoneMoeForCausalLM",
        layer={**_SHARED, "exp_probs_b.bias": "mlp.e_score_correction_bias"},
        fields={
            **SMALL,
            "expert_group_count": "n_group",
            "expert_group_used_count": "topk_group",
            "expert_shared_count": "num_shared_experts",
            "expert_weights_scale": "routed_scaling_factor",
            "expert_weights_norm": "norm_topk_prob",
            "leading_dense_block_count": "first_k_dense_replace",
        },
        ignored=("expert_shared_feed_forward_length",),  # the tensors have it
    ),
    "afmoe": GgufFamily(
        model_type="afmoe",
        classes="AfmoeForCausalLM",
        layer={
            **_SHARED,
            "attn_gate": "self_attn.gate_proj",
            "post_attention_norm": "post_attention_layernorm",
            "ffn_norm": "pre_mlp_layernorm",
            "post_ffw_norm": "post_mlp_layernorm",
            "ffn_gate_inp": "mlp.router.gate",
            "exp_probs_b.bias": "mlp.expert_bias",
        },
        fields={
            **SMALL,
            "expert_shared_count": "num_shared_experts",
            "expert_weights_scale": "route_scale",
            "leading_dense_block_count": "num_dense_layers",
        },
        fixed={"mup_enabled": True},
        flags=_BIASES,
    ),
    "minimax-m2": GgufFamily(
        model_type="minimax_m2",
        classes="MiniMaxM2ForCausalLM",
        layer={**_MIXTRAL, "exp_probs_b.bias": "block_sparse_moe.e_score_correction_bias"},
        fields=LOCAL,
    ),
    "olmoe": GgufFamily(
        model_type="olmoe",
        classes="OlmoeForCausalLM",
        fields=_USED,
        fixed={"norm_topk_prob": False},
        flags=_BIASES,
        explicit_head=False,
    ),
    "granitemoe": GgufFamily(
        model_type="granitemoe",
        classes="GraniteMoeForCausalLM",
        layer=GRANITE_MOE,
        fields={
            **LOCAL,
            **GRANITE,
            "expert_shared_feed_forward_length": "shared_intermediate_size",
        },
        flags=_BIASES,
        changes=changes.PAIRED,
    ),
    "ernie4_5-moe": GgufFamily(
        model_type="ernie4_5_moe",
        classes="Ernie4_5_MoeForCausalLM",
        layer={**_SHARED, "exp_probs_b.bias": "mlp.moe_statics.e_score_correction_bias"},
        fields={
            "expert_count": "moe_num_experts",
            "expert_used_count": "moe_k",
            "expert_feed_forward_length": "moe_intermediate_size",
            "expert_shared_count": "moe_num_shared_experts",
            "leading_dense_block_count": "moe_layer_start_index",
            "interleave_moe_layer_step": "moe_layer_interval",
        },
        ignored=("expert_shared_feed_forward_length",),  # the tensors have it
        flags={"use_bias": "attn_output.bias"},
    ),
    "llama4": GgufFamily(
        model_type="llama4_text",
        classes="Llama4ForCausalLM",
        layer={
            "ffn_gate": "feed_forward.gate_proj",
            "ffn_up": "feed_forward.up_proj",
            "ffn_down": "feed_forward.down_proj",
            "ffn_gate_inp": "feed_forward.router",
            "ffn_gate_exps": "feed_forward.experts.{}.gate_proj",
            "ffn_up_exps": "feed_forward.experts.{}.up_proj",
            "ffn_down_exps": "feed_forward.experts.{}.down_proj",
            "ffn_gate_shexp": "feed_forward.shared_expert.gate_proj",
            "ffn_up_shexp": "feed_forward.shared_expert.up_proj",
            "ffn_down_shexp": "feed_forward.shared_expert.down_proj",
        },
        fields={**LOCAL, "interleave_moe_layer_step": "interleave_moe_layer_step"},
        flags=_BIASES,
    ),
}
