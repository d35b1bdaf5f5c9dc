"""A checkpoint as transformers saves it, for each way it may store a tied head."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pytest
import torch
import transformers

from wherry.compiler.convert import convert
from wherry.compiler.weight_cache import load_state
from wherry.models.arch import Architecture, RopeConfig, concat, drop, tie

from .convert_toy import weights


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    hidden_size: int
    intermediate_size: int
    num_hidden_layers: int
    num_attention_heads: int
    num_key_value_heads: int
    head_dim: int
    vocab_size: int
    max_position_embeddings: int
    rope: RopeConfig
    rms_norm_eps: float
    tie_word_embeddings: bool = False
    ACCEPTED: ClassVar[Mapping[str, tuple[Any, ...]]] = {
        "hidden_act": ("silu",),
        "attention_bias": (False,),
        "mlp_bias": (False,),
    }


ARCH = Architecture(
    name="llama",
    config=Config,
    model=object,
    weights=(
        concat("qkv_proj.weight", "q_proj.weight", "k_proj.weight", "v_proj.weight"),
        concat("gate_up_proj.weight", "gate_proj.weight", "up_proj.weight"),
        tie("lm_head.weight", "model.embed_tokens.weight"),
        drop("rotary_emb.inv_freq"),
    ),
)
FUSED = {"qkv_proj": ("q_proj", "k_proj", "v_proj"), "gate_up_proj": ("gate_proj", "up_proj")}


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_llama(tmp_path, tied, dtype):
    torch.manual_seed(0)
    hf = transformers.LlamaConfig(
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        vocab_size=100,
        max_position_embeddings=128,
        tie_word_embeddings=tied,
    )
    model = transformers.LlamaForCausalLM(hf).to(dtype)
    model.save_pretrained(tmp_path / "hf", max_shard_size="30KB")
    assert (tmp_path / "hf" / "model.safetensors.index.json").is_file()
    tensors = {n: t.float().numpy() for n, t in model.state_dict().items()}
    want = dict(tensors)
    for fused, parts in FUSED.items():
        for name in [n for n in tensors if f".{parts[0]}." in n]:
            names = [name.replace(parts[0], part) for part in parts]
            want[name.replace(parts[0], fused)] = np.concatenate([want.pop(n) for n in names])
    shapes = {n: t.shape for n, t in want.items()}
    convert(weights(tmp_path / "hf", shapes, ARCH, scheme="q0f32"), tmp_path / "out")
    state = load_state(tmp_path / "out")
    assert set(state) == set(want)
    for name, array in want.items():
        np.testing.assert_array_equal(state[name], array, err_msg=name)
    copied = json.loads((tmp_path / "out" / "config.json").read_text())
    assert copied["model_type"] == "llama"
