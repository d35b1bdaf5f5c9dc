"""Kinds of layers that a config.json says in fields of its own, compared with transformers'."""

from __future__ import annotations

import json

import pytest
import transformers

from wherry.compiler.checkpoint.folder import read_folder
from wherry.compiler.choices import Limits
from wherry.compiler.load import describe, families
from wherry.errors import ModelError, UsageError
from wherry.models.arch import read_config

SIZES = {"hidden_size": 64, "intermediate_size": 96, "num_attention_heads": 4, "vocab_size": 320}
SIZES |= {"num_key_value_heads": 2, "head_dim": 16}
LAYERS = 9


def read(name, **fields):
    """Our configuration and transformers' of the fields that a file has."""
    given = {**SIZES, "num_hidden_layers": LAYERS, **fields}
    official = transformers.AutoConfig.for_model(name, **json.loads(json.dumps(given)))
    return read_config(families()[name].config, given), official


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"first_k_dense_replace": 1},
        {"first_k_dense_replace": 4, "prefix_dense_sliding_window_pattern": 3},
        {"first_k_dense_replace": 3, "sliding_window_pattern": 2},
    ],
)
def test_cohere_2_with_dense_layers_first(fields):
    config, official = read("cohere2_moe", **fields)
    windowed = [kind == "sliding_attention" for kind in official.layer_types]
    assert [config.windowed(i) for i in range(LAYERS)] == windowed
    dense = [kind == "dense" for kind in official.mlp_layer_types]
    assert [config.dense(i) for i in range(LAYERS)] == dense
    forced = official.prefix_dense_sliding_window_pattern == 1
    rotates = [w or (d and forced) for w, d in zip(windowed, dense, strict=True)]
    assert [config.rope_of(i) is not None for i in range(LAYERS)] == rotates


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"interleave_moe_layer_step": 2, "no_rope_layer_interval": 3},
        {"moe_layers": [], "no_rope_layers": [1, 0, 0] * 3},
        {"moe_layers": [2, 5], "no_rope_layers": [], "attn_temperature_tuning": True},
    ],
)
def test_llama_4(fields):
    config, official = read("llama4_text", **fields)
    assert [i for i in range(LAYERS) if config.sparse(i)] == official.moe_layers
    assert [config.rotates(i) for i in range(LAYERS)] == [bool(n) for n in official.no_rope_layers]
    assert config.chunked == ("chunked_attention" in official.layer_types)


def test_llama_4_ends_at_its_chunk():
    config, _ = read("llama4_text", attention_chunk_size=8192, max_position_embeddings=10485760)
    assert (config.context, config.longest) == (8192, 8192)
    unchunked, _ = read("llama4_text", no_rope_layers=[0] * LAYERS, max_position_embeddings=65536)
    assert (unchunked.context, unchunked.longest) == (65536, 65536)


def test_a_context_beyond_the_chunk_is_refused(tmp_path):
    fields = {"model_type": "llama4_text", **SIZES, "num_hidden_layers": LAYERS}
    (tmp_path / "config.json").write_text(json.dumps(fields))
    with pytest.raises(UsageError, match="only the first is supported; it ends at 8192: --context"):
        Limits(context=8193).deployment(describe(read_folder(tmp_path)))


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"num_experts_per_tok": 99}, "num_experts_per_tok: found 99, for the"),
        ({"num_experts_per_tok": 0}, "num_experts_per_tok: found 0, for the"),
        ({"layer_types": ["sliding_attention"] * LAYERS}, "layer_types: found sliding_attention"),
        ({"no_rope_layers": [1, 0]}, "no_rope_layers: 2 found for num_hidden_layers, 9"),
        ({"num_local_experts": 0}, "num_local_experts: found 0"),
        ({"attention_chunk_size": 0}, "attention_chunk_size: found 0"),
    ],
)
def test_what_llama_4_cannot_be(fields, said):
    with pytest.raises(ModelError, match=said):
        read_config(
            families()["llama4_text"].config, {**SIZES, "num_hidden_layers": LAYERS, **fields}
        )


def test_exaone_says_the_layers_with_experts_in_two_ways():
    flags = [False, True, True] * 3
    config, _ = read("exaone_moe", is_moe_layer=flags)
    assert [config.sparse(i) for i in range(LAYERS)] == flags
    given = {**SIZES, "num_hidden_layers": LAYERS, "is_moe_layer": flags}
    with pytest.raises(ModelError, match=r"is_moe_layer: .*an unknown field"):
        read_config(families()["exaone_moe"].config, given | {"mlp_layer_types": ["dense"] * 9})


def test_minimax_counts_rotated_dimensions():
    config, official = read("minimax_m2", head_dim=128, rotary_dim=64)
    assert config.rope.rotary_dim(128) == 64
    assert official.rope_parameters["partial_rotary_factor"] == 0.5
    explicit = {"rope_theta": 1e6, "partial_rotary_factor": 0.25}
    config, _ = read("minimax_m2", head_dim=128, rotary_dim=64, rope_parameters=explicit)
    assert config.rope.rotary_dim(128) == 32


def test_gemma_3n_reads_the_older_fields_of_rope():
    older = {"rope_theta": 5e5, "rope_local_base_freq": 2e4}
    config, official = read("gemma3n_text", num_kv_shared_layers=0, **older)
    assert (config.rope.theta, config.local_rope.theta) == (5e5, 2e4)
    assert official.rope_parameters["full_attention"]["rope_theta"] == 5e5


def test_muse_glimmer_has_one_base():
    given = {**SIZES, "num_hidden_layers": 4, "layer_rope_theta": [500.0, 10000.0, 0.0, 500.0]}
    with pytest.raises(ModelError, match=r"layer_rope_theta: found 500\.0, supported are 0 and"):
        read_config(families()["muse_glimmer_text"].config, given)
