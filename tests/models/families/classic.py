"""GPT-2, what came before Llama, and dense decoders unlike it."""

from __future__ import annotations

from .case import LLAMA3, WINDOWED, YARN, Case

# They spell the sizes that all others share in another way, or have them not.
NO_KV = {"num_key_value_heads": None}
CLASSIC = {**NO_KV, "intermediate_size": None}
BLOOM = {
    **CLASSIC,
    "num_attention_heads": 6,
    "hidden_size": 96,
    "max_position_embeddings": None,
    "seq_length": 256,
}
CASES = {
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
    "bloom": Case("bloom", BLOOM),
    "bloom-normed": Case(
        "bloom", {**BLOOM, "apply_residual_connection_post_layernorm": True}, nightly=True
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
        nightly=True,
    ),
    "apertus": Case("apertus", {"rope_parameters": LLAMA3, "attention_bias": True}, nightly=True),
}
