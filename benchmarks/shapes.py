"""The shapes to measure: `config.json` of published Hugging Face repositories."""

from __future__ import annotations

from typing import Any

_COMMON: dict[str, Any] = {
    "attention_bias": False,
    "attention_dropout": 0.0,
    "hidden_act": "silu",
    "rope_scaling": None,
    "tie_word_embeddings": True,
    "torch_dtype": "float16",  # dtype of the weights from make_models.py
}

SHAPES: dict[str, dict[str, Any]] = {
    "smollm2-135m": _COMMON
    | {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "vocab_size": 49152,
        "hidden_size": 576,
        "intermediate_size": 1536,
        "num_hidden_layers": 30,
        "num_attention_heads": 9,
        "num_key_value_heads": 3,
        "head_dim": 64,
        "max_position_embeddings": 8192,
        "rms_norm_eps": 1e-5,
        "rope_theta": 100000.0,
        "mlp_bias": False,
    },
    "qwen3-0.6b": _COMMON
    | {
        "architectures": ["Qwen3ForCausalLM"],
        "model_type": "qwen3",
        "vocab_size": 151936,
        "hidden_size": 1024,
        "intermediate_size": 3072,
        "num_hidden_layers": 28,
        "num_attention_heads": 16,
        "num_key_value_heads": 8,
        "head_dim": 128,
        "max_position_embeddings": 40960,
        "rms_norm_eps": 1e-6,
        "rope_theta": 1000000.0,
    },
    "llama-3.2-1b": _COMMON
    | {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "vocab_size": 128256,
        "hidden_size": 2048,
        "intermediate_size": 8192,
        "num_hidden_layers": 16,
        "num_attention_heads": 32,
        "num_key_value_heads": 8,
        "head_dim": 64,
        "max_position_embeddings": 131072,
        "rms_norm_eps": 1e-5,
        "rope_theta": 500000.0,
        "rope_scaling": {
            "factor": 32.0,
            "high_freq_factor": 4.0,
            "low_freq_factor": 1.0,
            "original_max_position_embeddings": 8192,
            "rope_type": "llama3",
        },
        "mlp_bias": False,
    },
    "llama-3.1-8b": _COMMON
    | {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "vocab_size": 128256,
        "hidden_size": 4096,
        "intermediate_size": 14336,
        "num_hidden_layers": 32,
        "num_attention_heads": 32,
        "num_key_value_heads": 8,
        "head_dim": 128,
        "max_position_embeddings": 131072,
        "rms_norm_eps": 1e-5,
        "rope_theta": 500000.0,
        "rope_scaling": {
            "factor": 8.0,
            "high_freq_factor": 4.0,
            "low_freq_factor": 1.0,
            "original_max_position_embeddings": 8192,
            "rope_type": "llama3",
        },
        "tie_word_embeddings": False,
        "mlp_bias": False,
    },
    "qwen3-8b": _COMMON
    | {
        "architectures": ["Qwen3ForCausalLM"],
        "model_type": "qwen3",
        "vocab_size": 151936,
        "hidden_size": 4096,
        "intermediate_size": 12288,
        "num_hidden_layers": 36,
        "num_attention_heads": 32,
        "num_key_value_heads": 8,
        "head_dim": 128,
        "max_position_embeddings": 40960,
        "rms_norm_eps": 1e-6,
        "rope_theta": 1000000.0,
        "tie_word_embeddings": False,
    },
    # Four of 48 layers: 3 billion weights instead of 30; a token uses a tenth of them.
    "qwen3-30b-a3b-4l": _COMMON
    | {
        "architectures": ["Qwen3MoeForCausalLM"],
        "model_type": "qwen3_moe",
        "vocab_size": 151936,
        "hidden_size": 2048,
        "intermediate_size": 6144,
        "num_hidden_layers": 4,
        "num_attention_heads": 32,
        "num_key_value_heads": 4,
        "head_dim": 128,
        "max_position_embeddings": 40960,
        "rms_norm_eps": 1e-6,
        "rope_theta": 1000000.0,
        "moe_intermediate_size": 768,
        "num_experts": 128,
        "num_experts_per_tok": 8,
        "norm_topk_prob": True,
        "decoder_sparse_step": 1,
        "mlp_only_layers": [],
    },
    # Five of six layers have a sliding window of 512 tokens.
    "gemma-3-1b": {
        "architectures": ["Gemma3ForCausalLM"],
        "model_type": "gemma3_text",
        "attention_bias": False,
        "attention_dropout": 0.0,
        "hidden_activation": "gelu_pytorch_tanh",
        "tie_word_embeddings": True,
        "torch_dtype": "float16",
        "vocab_size": 262144,
        "hidden_size": 1152,
        "intermediate_size": 6912,
        "num_hidden_layers": 26,
        "num_attention_heads": 4,
        "num_key_value_heads": 1,
        "head_dim": 256,
        "max_position_embeddings": 32768,
        "query_pre_attn_scalar": 256,
        "rms_norm_eps": 1e-6,
        "rope_theta": 1000000.0,
        "rope_local_base_freq": 10000.0,
        "sliding_window": 512,
        "sliding_window_pattern": 6,
    },
    # Three of four layers are recurrent (gated delta net).
    "qwen3.5-0.8b": {
        "architectures": ["Qwen3_5ForCausalLM"],
        "model_type": "qwen3_5_text",
        "torch_dtype": "float16",
        "tie_word_embeddings": True,
        "vocab_size": 248320,
        "hidden_size": 1024,
        "intermediate_size": 3584,
        "num_hidden_layers": 24,
        "num_attention_heads": 8,
        "num_key_value_heads": 2,
        "head_dim": 256,
        "linear_num_key_heads": 16,
        "linear_num_value_heads": 16,
        "linear_key_head_dim": 128,
        "linear_value_head_dim": 128,
        "linear_conv_kernel_dim": 4,
        "full_attention_interval": 4,
        "max_position_embeddings": 262144,
        "rms_norm_eps": 1e-6,
        "rope_parameters": {
            "rope_type": "default",
            "rope_theta": 1e7,
            "partial_rotary_factor": 0.25,
        },
    },
}
# measured only on request, because they have gigabytes of weights
LARGE = ("qwen3-30b-a3b-4l", "gemma-3-1b", "qwen3.5-0.8b")


def weight_shapes(config: dict[str, Any]) -> dict[str, tuple[int, ...]]:
    """Return the shapes of a checkpoint's tensors, by Hugging Face's names."""
    hidden, inner, head = config["hidden_size"], config["intermediate_size"], config["head_dim"]
    queries, keys = config["num_attention_heads"] * head, config["num_key_value_heads"] * head
    shapes: dict[str, tuple[int, ...]] = {
        "model.embed_tokens.weight": (config["vocab_size"], hidden)
    }
    for layer in range(config["num_hidden_layers"]):
        if config["model_type"] == "qwen3_5_text":
            interval = config["full_attention_interval"]
            attends = layer % interval == interval - 1
            shapes |= hybrid_layer(config, f"model.layers.{layer}", attends=attends)
            continue
        of_layer: dict[str, tuple[int, ...]] = {
            "input_layernorm": (hidden,),
            "self_attn.q_proj": (queries, hidden),
            "self_attn.k_proj": (keys, hidden),
            "self_attn.v_proj": (keys, hidden),
            "self_attn.o_proj": (hidden, queries),
            "post_attention_layernorm": (hidden,),
            **_feed_forward(config, hidden, inner),
        }
        if config["model_type"] == "gemma3_text":
            of_layer |= dict.fromkeys(
                ("pre_feedforward_layernorm", "post_feedforward_layernorm"), (hidden,)
            )
        if config["model_type"].startswith(("qwen3", "gemma3")):
            of_layer |= {"self_attn.q_norm": (head,), "self_attn.k_norm": (head,)}
        shapes |= {f"model.layers.{layer}.{name}.weight": s for name, s in of_layer.items()}
    return shapes | {"model.norm.weight": (hidden,)}


def hybrid_layer(
    config: dict[str, Any], prefix: str, *, attends: bool
) -> dict[str, tuple[int, ...]]:
    """Return the tensors of a layer of Qwen 3.5: with gated attention, or with a delta net."""
    d, f, e = (config[name] for name in ("hidden_size", "intermediate_size", "head_dim"))
    own: dict[str, tuple[int, ...]]
    if attends:
        queries, keys = config["num_attention_heads"] * e, config["num_key_value_heads"] * e
        own = {f"self_attn.{name}_norm.weight": (e,) for name in "qk"}
        own |= {f"self_attn.{name}_proj.weight": (keys, d) for name in "kv"}
        own |= {
            "self_attn.q_proj.weight": (2 * queries, d),
            "self_attn.o_proj.weight": (d, queries),
        }
    else:
        heads, size = config["linear_num_value_heads"], config["linear_value_head_dim"]
        values = heads * size
        width = 2 * config["linear_num_key_heads"] * config["linear_key_head_dim"] + values
        own = {f"linear_attn.in_proj_{name}.weight": (heads, d) for name in "ba"}
        own |= {f"linear_attn.{name}": (heads,) for name in ("A_log", "dt_bias")}
        own |= {
            "linear_attn.in_proj_qkv.weight": (width, d),
            "linear_attn.in_proj_z.weight": (values, d),
            "linear_attn.conv1d.weight": (width, 1, config["linear_conv_kernel_dim"]),
            "linear_attn.norm.weight": (size,),
            "linear_attn.out_proj.weight": (d, values),
        }
    own |= {f"{name}_layernorm.weight": (d,) for name in ("input", "post_attention")}
    own |= {f"mlp.{name}_proj.weight": (f, d) for name in ("gate", "up")}
    own |= {"mlp.down_proj.weight": (d, f)}
    return {f"{prefix}.{name}": shape for name, shape in own.items()}


def _feed_forward(config: dict[str, Any], hidden: int, inner: int) -> dict[str, tuple[int, ...]]:
    """Return the tensors of a layer's feed-forward."""

    def of(name: str, inner: int) -> dict[str, tuple[int, ...]]:
        up = (inner, hidden)
        return {f"{name}.gate_proj": up, f"{name}.up_proj": up, f"{name}.down_proj": up[::-1]}

    if not (experts := config.get("num_experts")):
        return of("mlp", inner)
    shapes: dict[str, tuple[int, ...]] = {"mlp.gate": (experts, hidden)}
    for e in range(experts):
        shapes |= of(f"mlp.experts.{e}", config["moe_intermediate_size"])
    return shapes


def inactive_numbers(config: dict[str, Any]) -> int:
    """Return the number of weights that a token does not use: those of other experts."""
    if not (experts := config.get("num_experts")):
        return 0
    each = 3 * config["hidden_size"] * config["moe_intermediate_size"]
    idle = experts - config["num_experts_per_tok"]
    return int(config["num_hidden_layers"] * idle * each)
