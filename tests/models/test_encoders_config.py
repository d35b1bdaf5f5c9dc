"""Fields of encoders' published config.json: read, or refused with what to take instead."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from wherry.compiler.checkpoint.folder import read_folder
from wherry.compiler.load import describe
from wherry.errors import ModelError

from .encoders import COMMON

SIZES = {name: value for name, value in COMMON.items() if name != "pad_token_id"}
OLDER_GTE = {
    "model_type": "new",
    "architectures": ["NewModel"],
    "auto_map": {"AutoModel": "Alibaba-NLP/new-impl--modeling.NewModel"},
    "hidden_act": "gelu",
    "layer_norm_eps": 1e-12,
    "layer_norm_type": "layer_norm",
    "logn_attention_clip1": False,
    "logn_attention_scale": False,
    "pack_qkv": True,
    "position_embedding_type": "rope",
    "rope_scaling": {"factor": 8.0, "type": "ntk"},
    "rope_theta": 20000,
    "type_vocab_size": 1,
    "unpad_inputs": False,
    "use_memory_efficient_attention": False,
}
EUROBERT = {
    "model_type": "eurobert",
    "architectures": ["EuroBertForMaskedLM"],
    "attention_bias": False,
    "attention_dropout": 0.0,
    "bos_token": "<|begin_of_text|>",
    "clf_pooling": "mean",
    "hidden_act": "silu",
    "hidden_dropout": 0.0,
    "mask_token": "<|mask|>",
    "mask_token_id": 128002,
    "mlp_bias": False,
    "num_key_value_heads": 4,
    "pretraining_tp": 1,
    "rms_norm_eps": 1e-05,
    "rope_scaling": None,
    "rope_theta": 250000,
}
JINA = {
    "model_type": "xlm-roberta",
    "architectures": ["XLMRobertaModel"],
    "lora_adaptations": ["retrieval.query", "retrieval.passage"],
    "lora_alpha": 1,
    "load_trained_adapters": True,
    "matryoshka_dimensions": [32, 64],
    "position_embedding_type": "rotary",
    "rotary_emb_base": 20000.0,
    "type_vocab_size": 1,
}


def read(folder: Path, fields: dict[str, Any]) -> Any:
    (folder / "config.json").write_text(json.dumps(SIZES | fields))
    return describe(read_folder(folder)).config


def test_gte_of_its_older_code(tmp_path):
    rope = read(tmp_path, OLDER_GTE).rope
    assert (rope.kind, rope.theta) == ("linear", 160000.0)
    assert rope.factor == pytest.approx(8 ** (2 / 16))  # 16 elements of a head
    assert read(tmp_path, OLDER_GTE | {"rope_scaling": None}).rope.theta == 20000


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"logn_attention_scale": True}, "logn_attention_scale: found True"),
        ({"pack_qkv": False}, "pack_qkv: found False"),
        ({"layer_norm_type": "rms_norm"}, "layer_norm_type: found 'rms_norm'"),
        ({"position_embedding_type": "absolute"}, "position_embedding_type: found 'absolute'"),
        ({"rope_scaling": {"type": "ntk", "factor": 8.0, "mixed_b": 0.6}}, "mixed_b"),
        ({"rope_scaling": {"type": "ntk", "factor": "8"}}, "found type 'ntk'"),
        ({"rope_scaling": {"type": "ntk"}}, "found type 'ntk'"),
        ({"hidden_size": "64"}, "hidden_size: found '64'"),
    ],
)
def test_gte_that_cannot_be(tmp_path, fields, said):
    with pytest.raises(ModelError, match=said):
        read(tmp_path, OLDER_GTE | fields)


def test_eurobert_of_its_older_code(tmp_path):
    config = read(tmp_path, EUROBERT)
    assert config.classifier_pooling == "mean" and config.rope.theta == 250000
    with pytest.raises(ModelError, match="clf_pooling: found 'mean', but classifier_pooling is"):
        read(tmp_path, EUROBERT | {"classifier_pooling": "late"})
    with pytest.raises(ModelError, match="num_key_value_heads: 3 does not divide"):
        read(tmp_path, EUROBERT | {"num_key_value_heads": 3})


def test_jina_of_its_older_code_is_refused_with_what_to_take(tmp_path):
    with pytest.raises(ModelError, match=r"Supported is .* jinaai/jina-embeddings-v3-hf"):
        read(tmp_path, JINA)
