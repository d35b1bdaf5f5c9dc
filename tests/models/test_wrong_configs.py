"""Fields of config.json that do not fit each other: errors name the field, none is a traceback."""

from __future__ import annotations

import json

import pytest

from wherry.compiler.checkpoint.folder import read_folder
from wherry.compiler.library.export import parameters
from wherry.compiler.load import describe
from wherry.errors import ModelError
from wherry.models.config import about_config

from ..fuzz.test_configs import complete_config

LOCAL = {"rope_type": "default", "rope_theta": 10000.0}


def rope(config, **kinds):
    return {**config["rope_parameters"], **kinds}


# family, change of its config.json, what the error says
WRONG = {
    "too many experts": ("mixtral", {"num_experts_per_tok": 9}, "num_experts_per_tok: 9"),
    "too many of qwen3": ("qwen3_moe", {"num_experts_per_tok": 99}, "num_experts_per_tok: 99"),
    "gemma3's local rope": (
        "gemma3",
        lambda c: {"rope_parameters": rope(c, sliding_attention=5)},
        "rope_parameters: found 5, expected an object",
    ),
    "gemma3n's local rope": (
        "gemma3n",
        lambda c: {"rope_parameters": rope(c, sliding_attention="x")},
        "rope_parameters: found 'x', expected an object",
    ),
    "gemma3n's full rope": (
        "gemma3n",
        lambda c: {"rope_parameters": rope(c, full_attention=[])},
        r"rope_parameters: found \[\[\]\], expected an object",
    ),
    "no list of kinds": (
        "gemma4",
        {"layer_types": 5, "per_layer_config": {}},
        "layer_types: found 5",
    ),
    "gemma3n's kinds": (
        "gemma3n",
        lambda c: {"layer_types": c["layer_types"][1:]},
        "layer_types: ",
    ),
    "gemma4_unified's kinds": (
        "gemma4_unified",
        lambda c: {"layer_types": c["layer_types"][1:], "per_layer_config": {}},
        "layer_types: ",
    ),
    "phimoe's factors": (
        "phimoe",
        {
            "rope_parameters": {
                "rope_type": "longrope",
                "rope_theta": 10000.0,
                "short_factor": [1.0] * 3,
                "long_factor": [1.0] * 8,
                "short_mscale": 1.0,
                "long_mscale": 1.0,
                "original_max_position_embeddings": 64,
            }
        },
        "short_factor: 3 numbers found for 8 frequencies",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_the_field_is_named(name, tmp_path):
    family, change, said = WRONG[name]
    config = complete_config(family)
    config |= change(config) if callable(change) else change
    (tmp_path / "config.json").write_text(json.dumps(config))
    with pytest.raises(ModelError, match=said):
        describe(read_folder(tmp_path))


def test_a_net_for_the_rest(tmp_path, monkeypatch):
    """Whatever a configuration makes a family's code raise is an error about config.json."""
    with pytest.raises(ModelError, match=r"config\.json \(model_type 'boat'\).*KeyError: 'sail'"):
        with about_config("boat"):
            {}["sail"]
    with pytest.raises(ModelError, match=r"^own$"), about_config("boat"):
        raise ModelError("own")
    (tmp_path / "config.json").write_text(json.dumps(complete_config("llama")))
    described = describe(read_folder(tmp_path))
    monkeypatch.setattr(type(described.config), "biases", lambda self: [][1])
    with pytest.raises(ModelError, match="IndexError"):
        parameters(described.arch, described.config)
