"""Tiny configurations of every family, which turn on each of its features.

A new architecture, or a new field of a configuration, is a row of CASES. The longest prompts of the
tests have 70 tokens: windows are shorter, and so are the lengths that scaled RoPE begins with.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

LINEAR = {"rope_type": "linear", "rope_theta": 10000.0, "factor": 4.0}
DYNAMIC = {"rope_type": "dynamic", "rope_theta": 10000.0, "factor": 2.0}
LLAMA3 = {
    "rope_type": "llama3",
    "rope_theta": 500000.0,
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 64,
}
YARN = {
    "rope_type": "yarn",
    "rope_theta": 10000.0,
    "factor": 4.0,
    "original_max_position_embeddings": 64,
}
WINDOWED = "sliding_attention"


@dataclass(frozen=True, slots=True)
class Case:
    """One configuration: what `tiny_models.save` is called with."""

    model_type: str
    config: dict[str, Any] = field(default_factory=dict)
    nightly: bool = False  # not in the default set of tests


CASES = {
    "llama": Case("llama"),
    "llama-tied": Case("llama", {"tie_word_embeddings": True}),
    "llama-mha-biases": Case(
        "llama", {"num_key_value_heads": 4, "attention_bias": True, "mlp_bias": True}
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
    "llama-llama3": Case("llama", {"rope_parameters": LLAMA3}),
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
    ),
    "olmo2": Case("olmo2", {"attention_bias": True}, nightly=True),
    "seed_oss": Case(
        "seed_oss", {"head_dim": 16, "attention_out_bias": True, "mlp_bias": True}, nightly=True
    ),
}
CASES |= {
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
    "glm4": Case("glm4", {"head_dim": 16}),
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
    "cohere-head-norms": Case("cohere", {"use_qk_norm": True, "logit_scale": 0.5}),
    "cohere2": Case(
        "cohere2",
        {"logit_scale": 0.5, "sliding_window": 19, "layer_types": [WINDOWED, "full_attention"]},
    ),
    "starcoder2": Case("starcoder2", {"sliding_window": 19}, nightly=True),
    "nemotron": Case("nemotron", {"attention_bias": True, "mlp_bias": True}, nightly=True),
}
EXPERTS = {"moe_intermediate_size": 48, "num_experts": 8, "num_experts_per_tok": 3}
CASES |= {
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
}
CASES |= {
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
}
CASES |= {
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
# They spell the sizes that all others share in another way, or have them not.
NO_KV = {"num_key_value_heads": None}
CLASSIC = {**NO_KV, "intermediate_size": None}
CASES |= {
    "gpt2": Case("gpt2", {**CLASSIC, "n_inner": 96}, nightly=True),
    "gpt2-scores": Case(
        "gpt2",
        {**CLASSIC, "scale_attn_weights": False, "scale_attn_by_inverse_layer_idx": True},
        nightly=True,
    ),
    "gpt_bigcode": Case("gpt_bigcode", CLASSIC, nightly=True),
    "gpt_bigcode-heads": Case("gpt_bigcode", {**CLASSIC, "multi_query": False}, nightly=True),
    "gpt_neo": Case(
        "gpt_neo",
        {**NO_KV, "window_size": 19, "attention_types": [[["global", "local"], 1]]},
        nightly=True,
    ),
    "gpt_neox": Case("gpt_neox", {**NO_KV, "rotary_pct": 0.5}, nightly=True),
    "gpt_neox-serial": Case(
        "gpt_neox",
        {**NO_KV, "use_parallel_residual": False, "attention_bias": False, "hidden_act": "relu"},
        nightly=True,
    ),
    "gptj": Case("gptj", {**CLASSIC, "rotary_dim": 8}, nightly=True),
    "codegen": Case("codegen", {**CLASSIC, "rotary_dim": 8}, nightly=True),
    "phi": Case("phi", nightly=True),
    "phi-norms": Case("phi", {"qk_layernorm": True}, nightly=True),
    "stablelm": Case(
        "stablelm", {"use_qkv_bias": True, "partial_rotary_factor": 0.5}, nightly=True
    ),
    "stablelm-parallel": Case(
        "stablelm", {"use_parallel_residual": True, "qk_layernorm": True}, nightly=True
    ),
    "persimmon": Case("persimmon", NO_KV, nightly=True),
    "falcon": Case("falcon", {**CLASSIC, "bias": True}, nightly=True),
    "falcon-new": Case(
        "falcon",
        {**CLASSIC, "new_decoder_architecture": True, "num_kv_heads": 2, "ffn_hidden_size": 96},
        nightly=True,
    ),
    # Its slopes are powers of two: transformers rounds ALiBi's biases to bfloat16.
    "falcon-alibi": Case(
        "falcon",
        {**CLASSIC, "alibi": True, "multi_query": False, "parallel_attn": False},
        nightly=True,
    ),
    "bloom": Case(
        "bloom",
        {
            **CLASSIC,
            "num_attention_heads": 6,
            "hidden_size": 96,
            "max_position_embeddings": None,
            "seq_length": 256,
        },
    ),
    "mpt": Case(
        "mpt",
        {
            **CLASSIC,
            "max_position_embeddings": None,
            "max_seq_len": 256,
            "attn_config": {"clip_qkv": 0.5},
        },
        nightly=True,
    ),
    "opt": Case("opt", {**CLASSIC, "ffn_dim": 96}, nightly=True),
    "opt-behind": Case(
        "opt", {**CLASSIC, "ffn_dim": 96, "do_layer_norm_before": False, "word_embed_proj_dim": 48}
    ),
    "olmo": Case("olmo", {"clip_qkv": 0.5}, nightly=True),
    "jais2": Case("jais2", nightly=True),
    "hyperclovax": Case(
        "hyperclovax",
        {
            "embedding_multiplier": 12.0,
            "attention_multiplier": 0.3,
            "residual_multiplier": 0.22,
            "logits_scaling": 2.0,
        },
        nightly=True,
    ),
    "internlm3": Case(
        "internlm3", {"head_dim": 16, "attention_bias": True, "mlp_bias": True}, nightly=True
    ),
    "iquestcoder": Case("iquestcoder", {"head_dim": 16}, nightly=True),
    "cwm": Case(
        "cwm",
        {
            "head_dim": 16,
            "sliding_window": 19,
            "layer_types": ["full_attention", WINDOWED],
            "rope_parameters": LLAMA3,
        },
        nightly=True,
    ),
    "vaultgemma": Case(
        "vaultgemma",
        {"head_dim": 16, "sliding_window": 19, "attn_logit_softcapping": 2.0},
        nightly=True,
    ),
    "ministral3": Case(
        "ministral3",
        {
            "head_dim": 16,
            "rope_parameters": {
                **YARN,
                "original_max_position_embeddings": 20,
                "llama_4_scaling_beta": 0.5,
            },
        },
        nightly=True,
    ),
    "hunyuan_v1_dense": Case(
        "hunyuan_v1_dense",
        {
            "head_dim": 16,
            "attention_bias": True,
            "rope_parameters": {
                "rope_type": "dynamic",
                "rope_theta": 10000.0,
                "factor": 1.0,
                "alpha": 1000.0,
            },
        },
    ),
    "apertus": Case("apertus", {"rope_parameters": LLAMA3, "attention_bias": True}, nightly=True),
}
# Families of 2025 and 2026.
BOTH = [WINDOWED, "full_attention"]
CASES |= {
    "gemma4_unified": Case(
        "gemma4_unified_text",
        {
            "num_hidden_layers": 4,
            "head_dim": 16,
            "global_head_dim": 32,
            "num_global_key_value_heads": 1,
            "attention_k_eq_v": True,
            "attention_bias": True,
            "final_logit_softcapping": 3.0,
            "sliding_window": 19,
            "layer_types": BOTH * 2,
        },
        nightly=True,
    ),
    "gemma4_unified-shared": Case(
        "gemma4_unified_text",
        {
            "num_hidden_layers": 4,
            "head_dim": 16,
            "global_head_dim": 32,
            "num_kv_shared_layers": 2,
            "use_double_wide_mlp": True,
            "sliding_window": 19,
            "layer_types": BOTH * 2,
        },
        nightly=True,
    ),
    "llama4": Case(
        "llama4_text",
        {
            "num_hidden_layers": 4,
            "head_dim": 16,
            "intermediate_size_mlp": 112,
            "num_local_experts": 6,
            "interleave_moe_layer_step": 2,
            "no_rope_layer_interval": 2,
            "attention_bias": True,
            "attention_chunk_size": 80,
            "floor_scale": 20,
            "attn_scale": 0.5,
            "rope_parameters": LLAMA3,
        },
        nightly=True,
    ),
    "llama4-some": Case(
        "llama4_text",
        {
            "num_hidden_layers": 3,
            "head_dim": 32,
            "intermediate_size_mlp": 112,
            "num_local_experts": 4,
            "moe_layers": [1],
            "no_rope_layers": [1, 0, 1],
            "use_qk_norm": False,
            "attn_temperature_tuning": False,
            "tie_word_embeddings": True,
        },
        nightly=True,
    ),
    "granite_swa": Case(
        "granite_swa",
        {
            "embedding_multiplier": 12.0,
            "attention_multiplier": 0.3,
            "residual_multiplier": 0.22,
            "logits_scaling": 0.5,
            "num_hidden_layers": 3,
            "sliding_window": 19,
            "layer_types": ["full_attention", WINDOWED, WINDOWED],
            "layer_rope_theta": [0.0, 500.0, 10000.0],
        },
        nightly=True,
    ),
    "granite_swa-biases": Case(
        "granite_swa",
        {
            "attention_bias": True,
            "mlp_bias": True,
            "attention_multiplier": 0.25,
            "sliding_window": 33,
            "tie_word_embeddings": False,
        },
        nightly=True,
    ),
}
ROUTED = {"num_experts": 12, "num_experts_per_tok": 3, "num_hidden_layers": 3, "head_dim": 16}
MIXED = {**ROUTED, "moe_intermediate_size": 32}
CASES |= {
    "exaone_moe": Case(
        "exaone_moe",
        {
            **MIXED,
            "num_shared_experts": 2,
            "n_group": 3,
            "topk_group": 2,
            "sliding_window": 19,
            "sliding_window_pattern": 2,
        },
        nightly=True,
    ),
    "exaone_moe-some": Case(
        "exaone_moe",
        {
            **MIXED,
            "mlp_layer_types": ["sparse", "dense", "sparse"],
            "layer_types": ["full_attention", WINDOWED, WINDOWED],
            "sliding_window": 19,
            "routed_scaling_factor": 1.5,
        },
        nightly=True,
    ),
    "cohere2_moe": Case(
        "cohere2_moe",
        {
            **ROUTED,
            "num_shared_experts": 2,
            "expert_selection_fn": "sigmoid",
            "norm_topk_prob": False,
            "first_k_dense_replace": 1,
            "prefix_dense_intermediate_size": 80,
            "rms_norm_eps": 1e-6,
            "sliding_window": 19,
            "sliding_window_pattern": 2,
            "logit_scale": 0.5,
        },
        nightly=True,
    ),
    "cohere2_moe-sum": Case(
        "cohere2_moe",
        {
            **ROUTED,
            "num_shared_experts": 1,
            "shared_expert_combination_strategy": "sum",
            "attention_bias": True,
            "layer_types": [WINDOWED, "full_attention", WINDOWED],
            "sliding_window": 19,
            "logit_scale": 0.5,
            "tie_word_embeddings": False,
        },
        nightly=True,
    ),
    "minimax_m2": Case(
        "minimax_m2",
        {"head_dim": 16, "num_local_experts": 6, "num_experts_per_tok": 3, "rotary_dim": 8},
        nightly=True,
    ),
    "minimax_m2-whole-heads": Case(
        "minimax_m2",
        {
            "head_dim": 32,
            "num_local_experts": 4,
            "num_experts_per_tok": 2,
            "tie_word_embeddings": True,
        },
        nightly=True,
    ),
    "mistral4": Case(
        "mistral4",
        {
            **LATENT,
            "norm_topk_prob": True,
            "rope_parameters": {
                **YARN,
                "mscale": 0.7,
                "mscale_all_dim": 1.3,
                "original_max_position_embeddings": 20,
                "llama_4_scaling_beta": 0.5,
            },
        },
        nightly=True,
    ),
    "mistral4-halves": Case(
        "mistral4",
        {
            **LATENT,
            "n_group": 1,
            "topk_group": 1,
            "norm_topk_prob": False,
            "q_lora_rank": None,
            "rope_interleave": False,
            "rope_parameters": {**YARN, "llama_4_scaling_beta": 0.0},
        },
        nightly=True,
    ),
    "glm4_moe_lite": Case(
        "glm4_moe_lite",
        {
            **{k: v for k, v in LATENT.items() if k != "first_k_dense_replace"},
            "rope_parameters": {"rope_type": "default", "rope_theta": 1000000.0},
            "mlp_layer_types": ["sparse", "dense", "sparse"],
        },
        nightly=True,
    ),
    "glm4_moe_lite-flat": Case(
        "glm4_moe_lite",
        {
            **{k: v for k, v in LATENT.items() if k != "first_k_dense_replace"},
            "n_group": 1,
            "topk_group": 1,
            "q_lora_rank": None,
            "rope_interleave": False,
        },
        nightly=True,
    ),
    "afmoe": Case(
        "afmoe",
        {
            **MIXED,
            "num_shared_experts": 2,
            "route_scale": 1.7,
            "mup_enabled": True,
            "attention_bias": True,
            "sliding_window": 19,
            "global_attn_every_n_layers": 2,
        },
        nightly=True,
    ),
    "afmoe-dense": Case(
        "afmoe",
        {
            **MIXED,
            "num_dense_layers": 2,
            "num_shared_experts": 1,
            "sliding_window": 19,
            "layer_types": ["full_attention", WINDOWED, "full_attention"],
            "tie_word_embeddings": True,
        },
        nightly=True,
    ),
    "muse_glimmer": Case(
        "muse_glimmer_text",
        {
            "num_hidden_layers": 4,
            "head_dim": 16,
            "sliding_window": 19,
            "attention_bias": True,
            "output_multiplier": 1.5,
        },
        nightly=True,
    ),
    "muse_glimmer-thetas": Case(
        "muse_glimmer_text",
        {
            "head_dim": 32,
            "sliding_window": 19,
            "layer_types": ["full_attention", WINDOWED],
            "layer_rope_theta": [500.0, 0.0],
            "rope_parameters": {"rope_type": "default", "rope_theta": 500.0},
            "qk_scale_factor": 1.7,
            "output_multiplier": 0.5,
            "final_logit_softcapping": 3.0,
        },
        nightly=True,
    ),
}
CASES |= {
    "gemma3n": Case(
        "gemma3n_text",
        {
            "num_hidden_layers": 4,
            "head_dim": 16,
            "intermediate_size": [96, 64, 96, 64],
            "activation_sparsity_pattern": [0.8, 0.0, 0.6, 0.0],
            "hidden_size_per_layer_input": 8,
            "vocab_size_per_layer_input": 300,
            "num_kv_shared_layers": 2,
            "laurel_rank": 32,
            "attention_bias": True,
            "sliding_window": 19,
            "layer_types": BOTH * 2,
            "final_logit_softcapping": 3.0,
        },
        nightly=True,
    ),
    "gemma3n-two-states": Case(
        "gemma3n_text",
        {
            "num_hidden_layers": 3,
            "head_dim": 32,
            "hidden_size_per_layer_input": 8,
            "vocab_size_per_layer_input": 320,
            "num_kv_shared_layers": 0,
            "altup_num_inputs": 2,
            "altup_active_idx": 1,
            "altup_correct_scale": False,
            "sliding_window": 19,
            "layer_types": [WINDOWED, "full_attention", WINDOWED],
            "rope_parameters": {
                WINDOWED: {"rope_type": "default", "rope_theta": 500.0},
                "full_attention": {"rope_type": "linear", "rope_theta": 1e6, "factor": 8.0},
            },
        },
        nightly=True,
    ),
}
# Recurrent layers beside attention.
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
CASES |= {
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
}
PARAMETERS = [
    pytest.param(name, marks=pytest.mark.nightly if case.nightly else ())
    for name, case in CASES.items()
]
