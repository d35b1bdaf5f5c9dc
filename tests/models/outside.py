"""Tiny models of families that transformers has not, and what they give.

The reference is a family of transformers that computes the same under other names, with what is
missing in it added here.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import transformers
from safetensors.torch import save_file

from ..support.tiny_models import COMMON, randomise

Tensors = dict[str, torch.Tensor]


@dataclass(frozen=True, slots=True)
class Outside:
    """How a model of a family is made of one that transformers has."""

    model_type: str
    like: str  # model_type of the reference
    config: dict[str, Any]  # of config.json, without the sizes
    reference: dict[str, Any]  # of the reference, without the sizes
    renamed: Callable[[Tensors], Tensors]
    spelled: dict[str, str | None]  # names of sizes in config.json; None: it has not that one
    alibi: bool = False
    unit_head: bool = False


def renames(**names: str) -> Callable[[Tensors], Tensors]:
    """Replace parts of names; `__` stands for a dot."""

    def rename(tensors: Tensors) -> Tensors:
        renamed = {}
        for name, tensor in tensors.items():
            for part, other in names.items():
                name = name.replace(part.replace("__", "."), other)
            renamed[name] = tensor
        return renamed

    return rename


def together(tensors: Tensors, name: str, interleaved: bool) -> Tensors:
    """q, k and v of a layer as one tensor; interleaved: after each kv head's query heads."""
    joined = {k: t for k, t in tensors.items() if not any(f".{n}_proj." in k for n in "qkv")}
    for key in [k for k in tensors if ".q_proj." in k]:
        q, k, v = (tensors[key.replace("q_proj", f"{n}_proj")] for n in "qkv")
        if interleaved:
            g, e = COMMON["num_key_value_heads"], 16
            parts = [x.reshape(g, -1, e, *x.shape[1:]) for x in (q, k, v)]
            fused = torch.cat(parts, 1).reshape(-1, *q.shape[1:])
        else:
            fused = torch.cat([q, k, v])
        joined[key.replace("q_proj", name)] = fused.contiguous()
    return joined


_INTERNLM2 = renames(
    self_attn__wqkv="attention.wqkv",
    self_attn__o_proj="attention.wo",
    mlp__gate_proj="feed_forward.w1",
    mlp__up_proj="feed_forward.w3",
    mlp__down_proj="feed_forward.w2",
    input_layernorm="attention_norm",
    post_attention_layernorm="ffn_norm",
    embed_tokens="tok_embeddings",
    lm_head="output",
)
_EXAONE = renames(
    model__layers="transformer.h",
    self_attn__="attn.attention.",
    o_proj="out_proj",
    mlp__gate_proj="mlp.c_fc_0",
    mlp__up_proj="mlp.c_fc_1",
    mlp__down_proj="mlp.c_proj",
    input_layernorm="ln_1",
    post_attention_layernorm="ln_2",
    model__norm="transformer.ln_f",
    model__embed_tokens="transformer.wte",
)
_MINICPM = {"scale_emb": 12, "scale_depth": 1.4, "dim_model_base": 256}
OUTSIDE = {
    "internlm2": Outside(
        "internlm2",
        "llama",
        {"bias": True, "rope_theta": 1e6, "rope_scaling": {"type": "dynamic", "factor": 2.0}},
        {"attention_bias": True, "rope_parameters": {"rope_type": "default", "rope_theta": 1e6}},
        lambda tensors: _INTERNLM2(together(tensors, "wqkv", True)),
        {},
    ),
    "minicpm": Outside(
        "minicpm",
        "granite",
        _MINICPM,
        {
            "embedding_multiplier": 12.0,
            "residual_multiplier": 1.4 / math.sqrt(COMMON["num_hidden_layers"]),
            "logits_scaling": COMMON["hidden_size"] / 256,
            "attention_multiplier": 0.25,
            "tie_word_embeddings": True,
        },
        lambda tensors: tensors,
        {},
    ),
    "baichuan": Outside(
        "baichuan",
        "llama",
        {"model_max_length": 256},
        {"num_key_value_heads": 4},
        lambda tensors: together(tensors, "W_pack", False),
        {"num_key_value_heads": None},
    ),
    "baichuan-alibi": Outside(
        "baichuan",
        "llama",
        {"model_max_length": 256, "z_loss_weight": 0},
        {"num_key_value_heads": 4},
        lambda tensors: together(tensors, "W_pack", False),
        {"num_key_value_heads": None, "max_position_embeddings": None},
        alibi=True,
        unit_head=True,
    ),
    "mimo": Outside("mimo", "qwen2", {"attention_bias": True}, {}, lambda tensors: tensors, {}),
    "exaone": Outside(
        "exaone",
        "llama",
        {"activation_function": "silu"},
        {"rms_norm_eps": 1e-5},
        _EXAONE,
        {"num_hidden_layers": "num_layers"},
    ),
}


def save(folder: Path, case: Outside, seed: int = 0) -> Callable[[list[int]], Any]:
    """Save a model of the family; returns a function from a prompt to its logits [n, vocab]."""
    torch.manual_seed(seed)
    cfg = transformers.AutoConfig.for_model(case.like, **{**COMMON, **case.reference})
    model = transformers.AutoModelForCausalLM.from_config(cfg).float().eval()
    randomise(model, 0)
    folder.mkdir(parents=True, exist_ok=True)
    tensors = {name: t.clone() for name, t in model.state_dict().items()}
    if cfg.tie_word_embeddings:
        del tensors["lm_head.weight"]
    save_file(case.renamed(tensors), folder / "model.safetensors")
    sizes = {case.spelled.get(name, name): value for name, value in COMMON.items()}
    sizes.pop(None, None)
    config = {"model_type": case.model_type, **sizes, **case.config}
    config["architectures"] = ["TheirForCausalLM"]
    (folder / "config.json").write_text(json.dumps(config))
    if case.unit_head:
        with torch.no_grad():
            model.lm_head.weight.copy_(torch.nn.functional.normalize(model.lm_head.weight))

    def logits(prompt: list[int]) -> Any:
        extra = _alibi(len(prompt), cfg.num_attention_heads) if case.alibi else {}
        with torch.no_grad():
            return model(torch.tensor([prompt]), **extra).logits[0].numpy()

    return logits


def _alibi(n: int, heads: int) -> dict[str, torch.Tensor]:
    """Biases in the place of a mask, and nothing that rotates; for a power of two of heads."""
    slopes = 2.0 ** (-8.0 / heads * torch.arange(1, heads + 1))
    distance = torch.arange(n)[None] - torch.arange(n)[:, None]
    bias = slopes[:, None, None] * distance
    hidden = torch.full((n, n), torch.finfo(torch.float32).min).triu(1)
    return {
        "attention_mask": (bias + hidden)[None],
        "position_ids": torch.zeros((1, n), dtype=torch.long),
    }
