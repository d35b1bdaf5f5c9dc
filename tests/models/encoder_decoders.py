"""Tiny configurations of every encoder-decoder family, and random models of them."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
import transformers
from safetensors.torch import save_file

T5: dict[str, Any] = {
    "vocab_size": 320,
    "d_model": 64,
    "d_kv": 16,
    "d_ff": 96,
    "num_layers": 2,
    "num_heads": 4,
    "decoder_start_token_id": 0,
}

BART: dict[str, Any] = {
    "vocab_size": 320,
    "d_model": 64,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 2,
    "encoder_ffn_dim": 96,
    "decoder_ffn_dim": 80,
    "max_position_embeddings": 256,
}


@dataclass(frozen=True, slots=True)
class Case:
    """One configuration: what `save` is called with."""

    model_type: str
    config: dict[str, Any] = field(default_factory=dict)
    untied: bool = False  # whether the LM head has weights of its own, as in T5 v1.1 and FLAN-T5
    nightly: bool = False  # not in the default set of tests


CASES = {
    "t5": Case("t5", {**T5, "feed_forward_proj": "relu"}),
    "t5-untied": Case("t5", {**T5, "feed_forward_proj": "gated-gelu"}, untied=True, nightly=True),
    "t5-odd-sizes": Case(
        "t5",
        {
            **T5,
            "d_model": 60,
            "d_kv": 20,
            "num_decoder_layers": 3,
            "num_heads": 5,
            "feed_forward_proj": "gated-silu",
            "relative_attention_num_buckets": 16,
            "relative_attention_max_distance": 20,
        },
        nightly=True,
    ),
    "bart": Case("bart", BART),
    "bart-scaled": Case(
        "bart",
        {**BART, "scale_embedding": True, "activation_function": "relu", "decoder_layers": 3},
        nightly=True,
    ),
    "mt5": Case("mt5", {**T5, "feed_forward_proj": "gated-gelu"}, untied=True, nightly=True),
}


def _size(case: Case, name: str) -> float:
    """Return the standard deviation of a parameter, with which greedy outputs hardly repeat.

    A tied head repeats the last token where its embedding outweighs the layers and the positions.
    """
    if case.model_type == "bart":
        table = 0.05 if case.config.get("scale_embedding") else 0.2
        return 2.0 if "embed_positions" in name else table if "shared" in name else 0.1
    return 0.1 if case.untied or name.startswith("shared") else 0.2


def save(folder: Path, case: Case) -> torch.nn.Module:
    """Save a random float32 model as the published checkpoints are; return it, ready to evaluate.

    transformers ties the head of every T5 that it makes, and says so in the config.json that it
    writes; those of the published models with a head of their own do not.
    """
    torch.manual_seed(0)
    cfg = transformers.AutoConfig.for_model(case.model_type, **case.config)
    if case.model_type in ("t5", "mt5"):
        cfg.scale_decoder_outputs = not case.untied
    model = transformers.AutoModelForSeq2SeqLM.from_config(cfg).float().eval()
    with torch.no_grad():
        if case.untied:
            model.lm_head.weight = torch.nn.Parameter(torch.empty_like(model.lm_head.weight))
        for name, p in model.named_parameters():
            if "norm" in name:
                p.copy_((0 if name.endswith("bias") else 1) + 0.2 * torch.randn_like(p))
            elif "relative_attention_bias" in name:
                p.copy_(torch.randn_like(p))
            else:
                p.copy_(torch.randn_like(p) * _size(case, name))
        if case.model_type == "t5" and not case.untied:
            model.decoder.final_layer_norm.weight.mul_(16)
        for name, p in model.named_buffers():
            if name == "final_logits_bias":
                p.copy_(0.3 * torch.randn_like(p))
    folder.mkdir(parents=True, exist_ok=True)
    model.config.save_pretrained(folder)
    raw = json.loads((folder / "config.json").read_text())
    raw |= {"architectures": [type(model).__name__], "tie_word_embeddings": not case.untied}
    raw.pop("scale_decoder_outputs", None)
    (folder / "config.json").write_text(json.dumps(raw))
    copies = ("embed_tokens.weight", *(() if case.untied else ("lm_head.weight",)))
    tensors = {n: t for n, t in model.state_dict().items() if not n.endswith(copies)}
    save_file(tensors, folder / "model.safetensors", {"format": "pt"})
    return model
