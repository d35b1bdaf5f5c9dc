"""Families with recurrent layers beside attention."""

from __future__ import annotations

from .case import Case

DELTA = {
    "num_hidden_layers": 4,
    "head_dim": 16,
    "linear_key_head_dim": 8,
    "linear_value_head_dim": 16,
    "linear_num_key_heads": 2,
    "linear_num_value_heads": 4,
}
AXES = {
    "rope_type": "default",
    "rope_theta": 10000.0,
    "partial_rotary_factor": 0.25,
    "mrope_section": [1, 1, 0],
}
EXPERTS_BESIDE = {
    "num_experts": 6,
    "num_experts_per_tok": 2,
    "moe_intermediate_size": 24,
    "shared_expert_intermediate_size": 20,
}
# Mamba-2 layers beside attention, with the names that most families have.
MAMBA2 = {
    "num_hidden_layers": 3,
    "mamba_n_heads": 4,
    "mamba_d_head": 32,
    "mamba_n_groups": 1,
    "mamba_d_state": 16,
}
GRANITE = {
    "attention_multiplier": 0.2,
    "embedding_multiplier": 3.0,
    "logits_scaling": 0.7,
    "residual_multiplier": 0.6,
    "layer_types": ["mamba", "attention", "mamba"],
}
CASES = {
    "granitemoehybrid": Case(
        "granitemoehybrid",
        {
            **MAMBA2,
            **GRANITE,
            "num_local_experts": 6,
            "num_experts_per_tok": 2,
            "intermediate_size": 40,
            "shared_intermediate_size": 56,
            "tie_word_embeddings": True,
        },
    ),
    "granitemoehybrid-dense": Case(
        "granitemoehybrid",
        {
            **MAMBA2,
            **GRANITE,
            "layer_types": ["attention", "mamba", "mamba"],
            "position_embedding_type": "rope",
            "num_local_experts": 0,
            "num_experts_per_tok": 0,
            "shared_intermediate_size": 72,
            "attention_bias": True,
            "mamba_n_heads": 6,
            "mamba_d_head": "auto",
            "mamba_expand": 3,
            "mamba_n_groups": 3,
            "mamba_d_state": 10,
            "mamba_d_conv": 3,
            "mamba_proj_bias": True,
            "mamba_conv_bias": False,
            "time_step_limit": [0.3, 1.5],
        },
        nightly=True,
    ),
    "qwen3_5_text": Case("qwen3_5_text", {**DELTA, "rope_parameters": AXES}),
    "qwen3_5_text-odd": Case(
        "qwen3_5_text",
        {
            **DELTA,
            "num_hidden_layers": 2,
            "layer_types": ["full_attention", "linear_attention"],
            "linear_conv_kernel_dim": 3,
            "linear_key_head_dim": 6,
            "linear_value_head_dim": 20,
            "linear_num_key_heads": 3,
            "linear_num_value_heads": 3,
            "attention_bias": True,
            "tie_word_embeddings": True,
            "rope_parameters": AXES,
        },
        nightly=True,
    ),
    "qwen3_next": Case("qwen3_next", {**DELTA, **EXPERTS_BESIDE}),
    "qwen3_next-dense": Case(
        "qwen3_next",
        {
            **DELTA,
            **EXPERTS_BESIDE,
            "mlp_only_layers": [0, 3],
            "linear_num_value_heads": 2,
            "norm_topk_prob": False,
        },
        nightly=True,
    ),
    "qwen3_5_moe_text": Case(
        "qwen3_5_moe_text", {**DELTA, **EXPERTS_BESIDE, "rope_parameters": AXES}
    ),
    "qwen3_5_moe_text-odd": Case(
        "qwen3_5_moe_text",
        {
            **DELTA,
            **EXPERTS_BESIDE,
            "num_hidden_layers": 2,
            "layer_types": ["full_attention", "linear_attention"],
            "linear_num_value_heads": 2,
            "num_experts": 5,
            "num_experts_per_tok": 1,
            "attention_bias": True,
            "tie_word_embeddings": True,
            "rope_parameters": AXES,
        },
        nightly=True,
    ),
    "lfm2": Case(
        "lfm2",
        {
            "num_hidden_layers": 3,
            "layer_types": ["conv", "full_attention", "conv"],
            "block_multiple_of": 8,
        },
    ),
    "lfm2-biases": Case(
        "lfm2",
        {
            "layer_types": ["full_attention", "conv"],
            "conv_bias": True,
            "conv_L_cache": 4,
            "block_auto_adjust_ff_dim": False,
            "tie_word_embeddings": False,
        },
        nightly=True,
    ),
    "lfm2_moe": Case(
        "lfm2_moe",
        {
            "num_hidden_layers": 3,
            "layer_types": ["conv", "full_attention", "conv"],
            "num_dense_layers": 1,
            "num_experts": 6,
            "num_experts_per_tok": 3,
            "moe_intermediate_size": 40,
            "routed_scaling_factor": 1.5,
        },
    ),
    "lfm2_moe-plain": Case(
        "lfm2_moe",
        {
            "layer_types": ["full_attention", "conv"],
            "conv_bias": True,
            "conv_L_cache": 4,
            "num_dense_layers": 0,
            "num_experts": 5,
            "num_experts_per_tok": 2,
            "moe_intermediate_size": 24,
            "use_expert_bias": False,
            "norm_topk_prob": False,
            "tie_word_embeddings": False,
        },
        nightly=True,
    ),
    "lfm3": Case(
        "lfm3",
        {
            "num_hidden_layers": 4,
            "layer_types": ["conv", "full_attention", "sliding_attention", "conv"],
            "head_dim": 24,
            "sliding_window": 19,
        },
    ),
    "lfm3-plain": Case(
        "lfm3",
        {
            "num_hidden_layers": 5,
            "head_dim": 16,
            "conv_L_cache": 3,
            "conv_bias": True,
            "sliding_window": 21,
            "attention_bias": True,
            "use_sandwich_norm": False,
            "use_attention_gate": False,
            "tie_word_embeddings": False,
        },
        nightly=True,
    ),
}
