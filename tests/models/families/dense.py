"""Dense decoders with RoPE."""

from __future__ import annotations

from .case import DYNAMIC, LINEAR, LLAMA3, WINDOWED, YARN, Case

CASES = {
    "llama": Case("llama"),
    "llama-tied": Case("llama", {"tie_word_embeddings": True}, nightly=True),
    "llama-mha-biases": Case(
        "llama", {"num_key_value_heads": 4, "attention_bias": True, "mlp_bias": True}, nightly=True
    ),
    "llama-odd-sizes": Case(
        "llama",
        {
            "hidden_size": 48,
            "intermediate_size": 84,
            "head_dim": 24,
            "num_attention_heads": 3,
            "num_key_value_heads": 1,
            "vocab_size": 307,
        },
    ),
    "llama-heads-of-64": Case("llama", {"head_dim": 64}, nightly=True),  # on tensor cores
    "llama-linear": Case("llama", {"rope_parameters": LINEAR}, nightly=True),
    "llama-dynamic": Case("llama", {"rope_parameters": DYNAMIC}, nightly=True),
    "llama-llama3": Case("llama", {"rope_parameters": LLAMA3}, nightly=True),
    "llama-yarn": Case("llama", {"rope_parameters": YARN}, nightly=True),
    "qwen2": Case("qwen2", nightly=True),
    "qwen3": Case("qwen3", {"head_dim": 32}),
    "qwen3-tied-yarn": Case(
        "qwen3",
        {"head_dim": 16, "tie_word_embeddings": True, "rope_parameters": YARN},
        nightly=True,
    ),
    "qwen2-window": Case(
        "qwen2",
        {"use_sliding_window": True, "sliding_window": 21, "max_window_layers": 1},
        nightly=True,
    ),
    "mistral": Case("mistral", {"sliding_window": None}, nightly=True),
    "mistral-window": Case("mistral", {"sliding_window": 13}),
    "ministral": Case(
        "ministral",
        {"head_dim": 16, "sliding_window": 13, "layer_types": [WINDOWED, "full_attention"]},
        nightly=True,
    ),
    "arcee": Case("arcee", {"attention_bias": True, "mlp_bias": True}, nightly=True),
    "smollm3": Case("smollm3", {"no_rope_layer_interval": 2, "attention_bias": True}, nightly=True),
    "granite": Case(
        "granite",
        {
            "embedding_multiplier": 12.0,
            "attention_multiplier": 0.3,
            "residual_multiplier": 0.22,
            "logits_scaling": 0.5,
        },
        nightly=True,
    ),
    "olmo2": Case("olmo2", {"attention_bias": True}, nightly=True),
    "seed_oss": Case(
        "seed_oss", {"head_dim": 16, "attention_out_bias": True, "mlp_bias": True}, nightly=True
    ),
    "phi3": Case("phi3", {"sliding_window": 33}, nightly=True),
    "phi3-longrope": Case(
        "phi3",
        {
            "rope_parameters": {
                "rope_type": "longrope",
                "rope_theta": 10000.0,
                "partial_rotary_factor": 0.5,
                "short_factor": [1.0, 1.1, 1.3, 1.9],
                "long_factor": [1.0, 2.0, 4.0, 8.0],
            },
            "original_max_position_embeddings": 128,
        },
    ),
    "helium": Case("helium", {"head_dim": 16, "attention_bias": True}, nightly=True),
    "ernie4_5": Case("ernie4_5", {"head_dim": 16, "use_bias": True}, nightly=True),
    "glm": Case("glm", {"head_dim": 16}, nightly=True),
    "glm4": Case("glm4", {"head_dim": 16}, nightly=True),
    "gemma": Case("gemma", {"head_dim": 16}, nightly=True),
    "gemma2": Case(
        "gemma2",
        {
            "head_dim": 16,
            "sliding_window": 19,
            "query_pre_attn_scalar": 20,
            "attn_logit_softcapping": 2.0,
            "final_logit_softcapping": 3.0,
        },
    ),
    "gemma3": Case(
        "gemma3_text",
        {
            "head_dim": 32,
            "sliding_window": 19,
            "query_pre_attn_scalar": 20,
            "attn_logit_softcapping": 2.0,  # which transformers does not use
            "layer_types": [WINDOWED, "full_attention"],
            "rope_parameters": {
                WINDOWED: {"rope_type": "default", "rope_theta": 10000.0},
                "full_attention": {
                    "rope_type": "linear",
                    "rope_theta": 1000000.0,
                    "factor": 8.0,
                },
            },
        },
        nightly=True,
    ),
    "gemma2-heads-of-64": Case(  # on tensor cores
        "gemma2",
        {"head_dim": 64, "sliding_window": 19, "attn_logit_softcapping": 2.0},
        nightly=True,
    ),
    "gemma4": Case(
        "gemma4_text",
        {
            "num_hidden_layers": 4,
            "head_dim": 16,
            "global_head_dim": 32,
            "num_global_key_value_heads": 1,
            "attention_k_eq_v": True,
            "attention_bias": True,
            "num_kv_shared_layers": 2,
            "use_double_wide_mlp": True,
            "hidden_size_per_layer_input": 8,
            "vocab_size_per_layer_input": 320,
            "final_logit_softcapping": 3.0,
            "sliding_window": 19,
            "layer_types": [WINDOWED, "full_attention"] * 2,
        },
    ),
    "gemma4-experts": Case(
        "gemma4_text",
        {
            "head_dim": 16,
            "global_head_dim": 32,
            "hidden_size_per_layer_input": 0,
            "enable_moe_block": True,
            "num_experts": 6,
            "top_k_experts": 3,
            "moe_intermediate_size": 32,
            "sliding_window": 19,
            "layer_types": [WINDOWED, "full_attention"],
        },
        nightly=True,
    ),
    "olmo3": Case(
        "olmo3",
        {
            "sliding_window": 19,
            "layer_types": [WINDOWED, "full_attention"],
            "rope_parameters": {
                WINDOWED: {"rope_type": "default", "rope_theta": 500000.0},
                "full_attention": YARN,
            },
        },
        nightly=True,
    ),
    "exaone4": Case("exaone4", {"sliding_window": 19, "sliding_window_pattern": 2}, nightly=True),
    "cohere": Case("cohere", {"attention_bias": True, "logit_scale": 0.5}, nightly=True),
    "cohere-head-norms": Case("cohere", {"use_qk_norm": True, "logit_scale": 0.5}, nightly=True),
    "cohere2": Case(
        "cohere2",
        {"logit_scale": 0.5, "sliding_window": 19, "layer_types": [WINDOWED, "full_attention"]},
    ),
    "starcoder2": Case("starcoder2", {"sliding_window": 19}, nightly=True),
    "nemotron": Case("nemotron", {"attention_bias": True, "mlp_bias": True}, nightly=True),
}
