"""Tiny configurations of every encoder family, and random models of them."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers

WINDOWED, FULL = "sliding_attention", "full_attention"
COMMON: dict[str, Any] = {
    "vocab_size": 320,
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "max_position_embeddings": 256,
    "pad_token_id": 1,
}
DISTIL = {"dim": 64, "hidden_dim": 96, "n_layers": 2, "n_heads": 4, "intermediate_size": None}


@dataclass(frozen=True, slots=True)
class Case:
    """One configuration: what `save` is called with."""

    model_type: str
    config: dict[str, Any] = field(default_factory=dict)
    nightly: bool = False  # not in the default set of tests
    # fields of config.json that replace those of transformers, which computes the same by others
    published: dict[str, Any] = field(default_factory=dict)

    @property
    def named(self) -> str:
        """The `model_type` that config.json has."""
        return str(self.published.get("model_type", self.model_type))


CASES = {
    "bert": Case("bert"),
    "bert-odd-sizes": Case(
        "bert",
        {"hidden_size": 60, "num_attention_heads": 3, "vocab_size": 307, "hidden_act": "gelu_new"},
        nightly=True,
    ),
    "roberta": Case("roberta", {"max_position_embeddings": 130}, nightly=True),
    "xlm-roberta": Case("xlm-roberta", {"type_vocab_size": 1}),
    "camembert": Case("camembert", {"type_vocab_size": 1}, nightly=True),
    "distilbert": Case("distilbert", DISTIL, nightly=True),
    "mpnet": Case("mpnet", {"max_position_embeddings": 320}),
    "modernbert": Case(
        "modernbert", {"local_attention": 14, "global_attn_every_n_layers": 2, "pad_token_id": 0}
    ),
    "modernbert-biases": Case(
        "modernbert",
        {
            "local_attention": 30,
            "layer_types": [WINDOWED, FULL],
            "norm_bias": True,
            "attention_bias": True,
            "mlp_bias": True,
            "pad_token_id": 0,
        },
        nightly=True,
    ),
    "nomic_bert": Case("nomic_bert", {"type_vocab_size": 2}),
    "jina_embeddings_v3": Case("jina_embeddings_v3", nightly=True),
    "gte": Case("gte"),
    "gte-no-segments": Case(
        "gte",
        {
            "type_vocab_size": 0,
            "hidden_act": "silu",
            "rope_parameters": {"rope_type": "default", "rope_theta": 500.0},
        },
        nightly=True,
    ),
    "gte-of-older-code": Case(
        "gte",
        {"rope_parameters": {"rope_type": "linear", "rope_theta": 16e4, "factor": 8 ** (2 / 16)}},
        published={
            "model_type": "new",
            "rope_parameters": None,
            "rope_theta": 20000,
            "rope_scaling": {"type": "ntk", "factor": 8.0},
            "layer_norm_type": "layer_norm",
            "logn_attention_clip1": False,
            "logn_attention_scale": False,
            "pack_qkv": True,
            "position_embedding_type": "rope",
            "unpad_inputs": False,
            "use_memory_efficient_attention": False,
        },
        nightly=True,
    ),
    "eurobert": Case("eurobert", {"num_key_value_heads": 2}),
    "eurobert-biases": Case(
        "eurobert",
        {"num_key_value_heads": 2, "attention_bias": True, "mlp_bias": True},
        nightly=True,
    ),
    "eurobert-heads": Case(
        "eurobert",
        {
            "head_dim": 20,
            "classifier_pooling": "bos",
            "rope_parameters": {"rope_type": "default", "rope_theta": 250000.0},
        },
        nightly=True,
    ),
    "embedding-gemma": Case(
        "gemma3_text",
        {
            "use_bidirectional_attention": True,
            "num_key_value_heads": 2,
            "head_dim": 32,
            "sliding_window": 18,
            "query_pre_attn_scalar": 20,
            "layer_types": [WINDOWED, FULL],
        },
    ),
}


def parameters(cases: dict[str, Case]) -> list[Any]:
    """Return pytest's parameters, with marks."""
    return [
        pytest.param(name, marks=pytest.mark.nightly if case.nightly else ())
        for name, case in cases.items()
    ]


def save(
    folder: Path, case: Case, kind: Any = transformers.AutoModel, **config: Any
) -> torch.nn.Module:
    """Save a random float32 model of a class of transformers; return it, ready to evaluate."""
    torch.manual_seed(0)
    fields = {**COMMON, **case.config, **config}
    given = {name: value for name, value in fields.items() if value is not None}
    cfg = transformers.AutoConfig.for_model(case.model_type, **given)
    model = kind.from_config(cfg).float().eval()
    offset = 1 if case.model_type.startswith("gemma") else 0
    with torch.no_grad():
        for name, p in model.named_parameters():
            if "norm" in name.lower():
                p.copy_((1 - offset if name.endswith("weight") else 0) + 0.2 * torch.randn_like(p))
            else:
                p.copy_(torch.randn_like(p) * (0.3 if "embed" in name else 0.1))
    model.save_pretrained(folder)
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | case.published))
    return model
