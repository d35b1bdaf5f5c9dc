"""The fields of config.json that single families derive from the metadata and tensors of a file.

What the metadata lack is what llama.cpp takes for granted.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import inf
from statistics import NormalDist
from typing import Any

from ..fields import Fields
from ..header import TensorEntry

Config = Mapping[str, Any]  # the fields of config.json that have been converted already
Tensors = Mapping[str, TensorEntry]  # by their names in GGUF

_27B = {"gemma2": 46, "gemma3": 62}  # number of layers of the 27B models, see `_query_scale`
_WINDOW = "attention.sliding_window"
_PATTERN = "attention.sliding_window_pattern"
_KV_HEADS = "attention.head_count_kv"
_GATING = "expert_gating_func"
_MSCALE = "rope.scaling.yarn_log_multiplier"
_SOFTMAX, _SIGMOID = 1, 2  # codes of `_GATING`
WINDOWED, FULL = "sliding_attention", "full_attention"


def _gemma2(fields: Fields, config: Config, tensors: Tensors) -> dict[str, Any]:
    return {
        "sliding_window": fields.integer(_WINDOW),
        "query_pre_attn_scalar": _query_scale(fields, config),
    }


def _gemma3(fields: Fields, config: Config, tensors: Tensors) -> dict[str, Any]:
    """Return the fields of Gemma 3: every sixth layer has full attention, the others a window."""
    fields.expect(_PATTERN, 6)
    # Layers with a window have their own RoPE base.
    own = {"rope_local_base_freq": fields.number("rope.freq_base_swa", 10000.0)}
    if _WINDOW in fields:
        own["sliding_window"] = fields.integer(_WINDOW)
    return {**own, "query_pre_attn_scalar": _query_scale(fields, config)}


def _query_scale(fields: Fields, config: Config) -> int:
    """Return Gemma's query_pre_attn_scalar: hidden size / heads for 27B models, else head_dim.

    The metadata lack this value. llama.cpp recognizes a 27B model by its number of layers, too.
    """
    name = fields.prefix.removesuffix(".")
    if config["num_hidden_layers"] == _27B[name]:
        return int(config["hidden_size"]) // max(int(config["num_attention_heads"]), 1)
    return int(config["head_dim"])


def _gemma4(fields: Fields, config: Config, tensors: Tensors) -> dict[str, Any]:
    """Return the fields of Gemma 4, whose layers with and without a window differ in their heads.

    Layers that have no v use k for it. The last layers may have a feed-forward of twice the width.
    """
    count = config["num_hidden_layers"]
    windowed = [bool(x) for x in fields.layers(_PATTERN, count)]
    widths = fields.layers("feed_forward_length", count)
    heads = fields.layers(_KV_HEADS, count)
    full = [i for i in range(count) if not windowed[i]]
    own = [i for i in full if f"blk.{i}.attn_k.weight" in tensors]
    width = widths[0] if widths else 0
    _uniform(fields, _KV_HEADS, heads, lambda i: windowed[i])
    shared = count - int(config.get("num_kv_shared_layers", 0))
    _uniform(fields, "feed_forward_length", widths, lambda i: i >= shared)
    sizes = {name: fields.integer(f"attention.{name}_length") for name in ("key", "value")}
    inner = fields.integer("attention.key_length_swa", sizes["key"])
    fields.expect("attention.value_length", sizes["key"])
    fields.expect("attention.value_length_swa", inner)
    fields.expect("rope.dimension_count_swa", inner)
    return {
        "layer_types": [WINDOWED if x else FULL for x in windowed],
        "intermediate_size": width,
        "use_double_wide_mlp": bool(widths) and widths[-1] == 2 * width,
        "num_key_value_heads": next((h for h, x in zip(heads, windowed, strict=True) if x), 1),
        "num_global_key_value_heads": heads[full[0]] if full else None,
        "attention_k_eq_v": bool(own) and f"blk.{own[0]}.attn_v.weight" not in tensors,
        "local_rope": _local_rope(fields),
        "head_dim": inner,
        "global_head_dim": sizes["key"],
        "vocab_size_per_layer_input": config.get("vocab_size"),
        "enable_moe_block": "num_experts" in config,
    }


def _uniform(fields: Fields, name: str, values: list[Any], kind: Callable[[int], bool]) -> None:
    """Add a problem if layers of one kind have different values."""
    for which in (False, True):
        distinct = {x for i, x in enumerate(values) if kind(i) == which}
        if len(distinct) > 1:
            fields.problems.append(
                f"{fields.prefix}{name}: {sorted(distinct)} in layers of one kind, supported is one"
            )


def _gemma3n(fields: Fields, config: Config, tensors: Tensors) -> dict[str, Any]:
    """Return the fields of Gemma 3n, whose layers differ in width and sparsity.

    The file has how many standard deviations above the mean a gate must be; config.json has the
    quantile, which is zero in dense layers.
    """
    count = config["num_hidden_layers"]
    above = fields.layers("activation_sparsity_scale", count, -inf)
    table, laurel = tensors.get("per_layer_token_embd.weight"), tensors.get("blk.0.laurel_l.weight")
    return {
        **_windows(fields, config, tensors),
        "local_rope": _local_rope(fields),
        "intermediate_size": fields.layers("feed_forward_length", count),
        "activation_sparsity_pattern": [round(NormalDist().cdf(x), 6) for x in above],
        **({"vocab_size_per_layer_input": table.shape[0]} if table else {}),
        **({"laurel_rank": laurel.shape[0]} if laurel else {}),
    }


def _phi3(fields: Fields, config: Config, tensors: Tensors) -> dict[str, Any]:
    window = fields.integer(_WINDOW, 0)
    return {"sliding_window": window or None}


def _smollm3(fields: Fields, config: Config, tensors: Tensors) -> dict[str, Any]:
    """Return the fields of SmolLM3, which the metadata lack.

    Every fourth layer has no RoPE, in all published models and in llama.cpp.
    """
    return {"no_rope_layer_interval": 4, "use_sliding_window": False}


def _olmo3(fields: Fields, config: Config, tensors: Tensors) -> dict[str, Any]:
    """Return OLMo 3's fields: layers with a window have RoPE without scaling."""
    return {**_windows(fields, config, tensors), "local_rope": _local_rope(fields)}


def _local_rope(fields: Fields) -> dict[str, Any]:
    """Return RoPE of layers with a window, whose base is that of all layers by default."""
    base = fields.number("rope.freq_base", 10000.0)
    return {"rope_type": "default", "rope_theta": fields.number("rope.freq_base_swa", base)}


def _windows(fields: Fields, config: Config, tensors: Tensors) -> dict[str, Any]:
    """Return the window and the kinds of layers; without a pattern every fourth has no window."""
    count = config["num_hidden_layers"]
    if _WINDOW not in fields:
        return {"sliding_window": None, "layer_types": [FULL] * count}
    default = [bool((i + 1) % 4) for i in range(count)]
    kinds = fields.layers(_PATTERN, count) if _PATTERN in fields else default
    return {
        "sliding_window": fields.integer(_WINDOW),
        "layer_types": [WINDOWED if kind else FULL for kind in kinds],
    }


def _gpt_oss(fields: Fields, config: Config, tensors: Tensors) -> dict[str, Any]:
    """Check that all feed-forwards are experts of one width; every other layer has a window."""
    fields.expect("expert_feed_forward_length", config["intermediate_size"])
    kinds = [FULL if i % 2 else WINDOWED for i in range(config["num_hidden_layers"])]
    return {"layer_types": kinds, "yarn": {"truncate": False}}


def _grouped(fields: Fields, config: Config, tensors: Tensors) -> dict[str, Any]:
    """Check that experts are scored by a sigmoid."""
    fields.expect(_GATING, _SIGMOID)
    return {}


def _sigmoid_and_windows(fields: Fields, config: Config, tensors: Tensors) -> dict[str, Any]:
    return {**_grouped(fields, config, tensors), **_windows(fields, config, tensors)}


def _expert_width(fields: Fields, config: Config, tensors: Tensors) -> dict[str, Any]:
    """Check that experts have the width that the metadata have for feed-forwards."""
    fields.expect(_GATING, _SIGMOID)
    fields.expect("expert_feed_forward_length", config["intermediate_size"])
    return {}


def _deepseek_v2(fields: Fields, config: Config, tensors: Tensors) -> dict[str, Any]:
    """Return DeepSeek V2's fields: experts by a softmax, without normalized weights."""
    fields.expect(_GATING, _SOFTMAX)
    grouped = int(config.get("n_group", 1)) > 1
    return {
        **_latent(fields, config),
        "topk_method": "group_limited_greedy" if grouped else "greedy",
    }


def _deepseek_v3(fields: Fields, config: Config, tensors: Tensors) -> dict[str, Any]:
    fields.expect(_GATING, _SIGMOID)
    return {**_latent(fields, config), "rope_interleave": True}


def _latent(fields: Fields, config: Config) -> dict[str, Any]:
    """Return the lengths of latent attention.

    Newer files have the lengths of a head's keys over latents, and those without latents besides.
    """
    rank = fields.integer("attention.kv_lora_rank")
    rotated = fields.integer("rope.dimension_count")
    suffix = "_mla" if "attention.key_length_mla" in fields else ""
    if suffix:
        fields.expect("attention.key_length", rank + rotated)
        fields.expect("attention.value_length", rank)
    key = fields.integer(f"attention.key_length{suffix}")
    has_q = "attention.q_lora_rank" in fields
    return {
        "kv_lora_rank": rank,
        "q_lora_rank": fields.integer("attention.q_lora_rank") if has_q else None,
        "qk_rope_head_dim": rotated,
        "qk_nope_head_dim": key - rotated,
        "v_head_dim": fields.integer(f"attention.value_length{suffix}"),
        "num_key_value_heads": config["num_attention_heads"],
        # The file has a tenth of DeepSeek's mscale.
        "yarn": _mscale(round(10 * fields.number(_MSCALE), 6)) if _MSCALE in fields else {},
    }


def _mscale(value: float) -> dict[str, float]:
    """Return YaRN's two scales, which llama.cpp takes to be the same."""
    return {"mscale": value, "mscale_all_dim": value}


def _ministral3(fields: Fields, config: Config, tensors: Tensors) -> dict[str, Any]:
    """Return Ministral 3's fields: queries grow with their positions."""
    grows = fields.number("attention.temperature_scale")
    yarn = {**_mscale(fields.number(_MSCALE, 1.0)), "llama_4_scaling_beta": grows}
    return {"sliding_window": None, "yarn": yarn}


def _llama4(fields: Fields, config: Config, tensors: Tensors) -> dict[str, Any]:
    """Return Llama 4's fields, whose intermediate_size is the width of an expert.

    The models with 128 experts do not normalize q and k, which llama.cpp tells by that number, too.
    """
    return {
        "use_qk_norm": config.get("num_local_experts") != 128,
        "intermediate_size": fields.integer("expert_feed_forward_length"),
        "intermediate_size_mlp": config["intermediate_size"],
    }


def _delta(fields: Fields, config: Config, tensors: Tensors) -> dict[str, Any]:
    """Return which layers of Qwen 3.5 and Qwen3-Next attend, and the width of a value head."""
    count = config["num_hidden_layers"]
    inner, heads = fields.integer("ssm.inner_size"), int(config.get("linear_num_value_heads", 1))
    every = fields.integer("full_attention_interval", 4)
    usual = [bool((i + 1) % max(every, 1)) for i in range(count)]
    name = "attention.recurrent_layers"
    recurrent = fields.layers(name, count) if name in fields else usual
    kv = {h for h, no in zip(fields.layers(_KV_HEADS, count), recurrent, strict=True) if not no}
    return {
        **_axes(fields, config, tensors),
        "layer_types": ["linear_attention" if x else FULL for x in recurrent],
        "linear_value_head_dim": inner // max(heads, 1),
        "num_key_value_heads": max(kv, default=1),
        "attention_bias": any(n.endswith(".attn_q.bias") for n in tensors),
    }


def _axes(fields: Fields, _config: Config, _tensors: Tensors) -> dict[str, Any]:
    """Return the fields of M-RoPE: frequencies of time, height and width, and of a fourth axis."""
    if (name := "rope.dimension_sections") not in fields:
        return {}
    *section, other = fields.layers(name, 4)
    if other:
        fields.problems.append(f"{fields.prefix}{name}: {other} of a fourth axis")
    return {"mrope_section": section, "mrope_interleaved": True}


def _granite_hybrid(fields: Fields, config: Config, tensors: Tensors) -> dict[str, Any]:
    """Return the fields of Granite 4: layers without KV heads are Mamba-2's.

    `rope.scaling.finetuned` says whether layers with attention have RoPE. Bamba's files, of the
    same architecture, have no scale of scores and no width of a shared expert.
    """
    kinds, kv = _attending(fields, config["num_hidden_layers"], "linear_attention")
    inner, hidden = fields.integer("ssm.inner_size"), max(int(config["hidden_size"]), 1)
    rotates = fields.flag("rope.scaling.finetuned", True)
    shared = fields.integer("expert_shared_feed_forward_length", int(config["intermediate_size"]))
    has = {name.split(".", 2)[-1] for name in tensors}
    return {
        "layer_types": kinds,
        "num_key_value_heads": kv,
        "position_embedding_type": "rope" if rotates else None,
        "attention_multiplier": config.get(
            "attention_multiplier", max(config["head_dim"], 1) ** -0.5
        ),
        "attention_bias": "attn_q.bias" in has,
        "shared_intermediate_size": shared,
        "num_local_experts": config.get("num_local_experts", 0),
        "num_experts_per_tok": config.get("num_experts_per_tok", 0),
        "mamba_expand": inner / hidden,
        "mamba_d_head": inner // max(int(config.get("mamba_n_heads", 1)), 1),
        "mamba_conv_bias": "ssm_conv1d.bias" in has,
        "mamba_proj_bias": "ssm_in.bias" in has,
    }


def _attending(fields: Fields, count: int, other: str) -> tuple[list[str], int]:
    """Return the kinds of layers, of which those without KV heads are `other`, and the KV heads."""
    heads = fields.layers(_KV_HEADS, count)
    kv = {h for h in heads if h}
    if len(kv) > 1:
        fields.problems.append(f"{fields.prefix}{_KV_HEADS}: layers differ, found {sorted(kv)}")
    return [FULL if h else other for h in heads], max(kv, default=1)


def _convolutions(fields: Fields, config: Config, tensors: Tensors) -> dict[str, Any]:
    """Return the fields of LFM2: layers without KV heads are convolutions."""
    kinds, kv = _attending(fields, config["num_hidden_layers"], "conv")
    return {
        "layer_types": kinds,
        "num_key_value_heads": kv,
        "conv_bias": any(n.endswith("shortconv.in_proj.bias") for n in tensors),
    }


def _sparse_convolutions(fields: Fields, config: Config, tensors: Tensors) -> dict[str, Any]:
    """Return the fields of LFM2's mixtures of experts."""
    fields.expect(_GATING, _SIGMOID)
    bias = any(n.endswith("exp_probs_b.bias") for n in tensors)
    return {**_convolutions(fields, config, tensors), "use_expert_bias": bias}


# Functions that return the additional fields of an architecture, by `Family.model_type`.
OWN: Mapping[str, Callable[[Fields, Config, Tensors], dict[str, Any]]] = {
    "gemma2": _gemma2,
    "gemma3_text": _gemma3,
    "gemma4_text": _gemma4,
    "gemma3n_text": _gemma3n,
    "phi3": _phi3,
    "smollm3": _smollm3,
    "olmo3": _olmo3,
    "exaone4": _windows,
    "cohere2": _windows,
    "exaone_moe": _sigmoid_and_windows,
    "afmoe": _sigmoid_and_windows,
    "gpt_oss": _gpt_oss,
    "glm4_moe": _grouped,
    "dots1": _grouped,
    "minimax_m2": _expert_width,
    "deepseek_v2": _deepseek_v2,
    "deepseek_v3": _deepseek_v3,
    "llama4_text": _llama4,
    "ministral3": _ministral3,
    "qwen3": _axes,
    "qwen3_moe": _axes,
    "qwen3_next": _delta,
    "qwen3_5_text": _delta,
    "qwen3_5_moe_text": _delta,
    "granitemoehybrid": _granite_hybrid,
    "lfm2": _convolutions,
    "lfm2_moe": _sparse_convolutions,
}
