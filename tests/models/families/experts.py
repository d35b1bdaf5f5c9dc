"""Decoders with experts, and with latent attention."""

from __future__ import annotations

from .case import YARN, Case

EXPERTS = {"moe_intermediate_size": 48, "num_experts": 8, "num_experts_per_tok": 3}
CASES = {
    "qwen3_moe": Case("qwen3_moe", {**EXPERTS, "head_dim": 32, "norm_topk_prob": True}),
    "qwen3_moe-some": Case(
        "qwen3_moe",
        {**EXPERTS, "num_hidden_layers": 4, "mlp_only_layers": [1], "decoder_sparse_step": 2},
        nightly=True,
    ),
}
GROUPED = {
    "moe_intermediate_size": 32,
    "num_experts_per_tok": 3,
    "n_routed_experts": 12,
    "n_shared_experts": 2,
    "n_group": 3,
    "topk_group": 2,
    "first_k_dense_replace": 1,
    "norm_topk_prob": True,
    "routed_scaling_factor": 1.7,
    "num_hidden_layers": 3,
}
CASES |= {
    "mixtral": Case("mixtral", {"num_local_experts": 6, "sliding_window": 33}, nightly=True),
    "qwen2_moe": Case(
        "qwen2_moe",
        {
            **EXPERTS,
            "shared_expert_intermediate_size": 80,
            "use_sliding_window": True,
            "sliding_window": 21,
        },
        nightly=True,
    ),
    "olmoe": Case(
        "olmoe",
        {"num_experts": 8, "num_experts_per_tok": 3, "attention_bias": True, "clip_qkv": 0.5},
        nightly=True,
    ),
    "phimoe": Case(
        "phimoe",
        {
            "num_local_experts": 6,
            "attention_bias": True,
            "lm_head_bias": True,
            "router_jitter_noise": 0.1,
            "rope_parameters": {
                "rope_type": "longrope",
                "rope_theta": 10000.0,
                "short_factor": [1.0, 1.1, 1.3, 1.9, 2.0, 2.1, 2.2, 2.3],
                "long_factor": [1.0, 2.0, 4.0, 8.0, 9.0, 9.5, 10.0, 11.0],
                "short_mscale": 1.2,
                "long_mscale": 1.4,
                "original_max_position_embeddings": 128,
            },
        },
        nightly=True,
    ),
    "granitemoe": Case(
        "granitemoe",
        {
            "num_local_experts": 5,
            "embedding_multiplier": 12.0,
            "attention_multiplier": 0.3,
            "residual_multiplier": 0.22,
            "logits_scaling": 0.5,
        },
        nightly=True,
    ),
    "granitemoeshared": Case(
        "granitemoeshared",
        {"num_local_experts": 5, "shared_intermediate_size": 48, "attention_multiplier": 0.3},
        nightly=True,
    ),
    "glm4_moe": Case(
        "glm4_moe",
        {**GROUPED, "head_dim": 16, "attention_bias": True, "use_qk_norm": True},
        nightly=True,
    ),
    "dots1": Case(
        "dots1",
        {**GROUPED, "attention_bias": True, "sliding_window": 19, "max_window_layers": 1},
        nightly=True,
    ),
    "ernie4_5_moe": Case(
        "ernie4_5_moe",
        {
            "moe_intermediate_size": 32,
            "moe_num_experts": 8,
            "moe_k": 3,
            "moe_norm_min": 0.5,
            "use_bias": True,
            "tie_word_embeddings": False,
            "num_hidden_layers": 3,
        },
        nightly=True,
    ),
    "gpt_oss": Case(
        "gpt_oss",
        {
            "head_dim": 16,
            "num_local_experts": 6,
            "num_experts_per_tok": 3,
            "sliding_window": 19,
            "swiglu_limit": 0.5,
            "rope_parameters": {**YARN, "truncate": False},
        },
        nightly=True,
    ),
    "hunyuan_v1_moe": Case(
        "hunyuan_v1_moe",
        {
            "head_dim": 16,
            "num_experts": 6,
            "moe_topk": 3,
            "attention_bias": True,
            "rope_parameters": {
                "rope_type": "dynamic",
                "rope_theta": 10000.0,
                "factor": 1.0,
                "alpha": 1000.0,
            },
        },
        nightly=True,
    ),
}
LATENT = {
    **GROUPED,
    "kv_lora_rank": 32,
    "q_lora_rank": 24,
    "qk_nope_head_dim": 12,
    "qk_rope_head_dim": 8,
    "v_head_dim": 20,
    "attention_bias": True,
    "num_key_value_heads": 4,
    "rope_parameters": {**YARN, "mscale": 0.7, "mscale_all_dim": 1.3},
}
CASES |= {
    "deepseek_v2": Case(
        "deepseek_v2",
        {
            **LATENT,
            "topk_method": "group_limited_greedy",
            "norm_topk_prob": False,
            "q_lora_rank": None,
        },
        nightly=True,
    ),
    "deepseek_v3": Case("deepseek_v3", LATENT),
    "deepseek_v3-halves": Case("deepseek_v3", {**LATENT, "rope_interleave": False}, nightly=True),
}
