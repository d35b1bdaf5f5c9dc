"""Text models of folders with vision or audio models, compared with transformers'."""

from __future__ import annotations

import json
import logging

import numpy as np
import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file

from wherry.compiler.api import convert_model
from wherry.compiler.checkpoint.folder import read_folder
from wherry.compiler.checkpoint.text_part import READ, others, text_names, text_part
from wherry.compiler.load import describe
from wherry.compiler.weight_cache import load_state
from wherry.errors import ModelError

from ..support.tiny_models import (
    COMMON,
    OFFSET_NORMS,
    WITH_PARTS,
    Runner,
    compiled,
    randomise,
    save,
)
from .families import CASES
from .test_against_transformers import close

SIGLIP = {
    "hidden_size": 32,
    "intermediate_size": 32,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "image_size": 28,
    "patch_size": 14,
}
QWEN = {"depth": 1, "hidden_size": 32, "num_heads": 2, "intermediate_size": 32, "patch_size": 14}
MROPE = {"rope_type": "default", "rope_theta": 10000.0, "mrope_section": [2, 3, 3]}
TEXT = {
    "cohere2_vision": {**CASES["cohere2"].config, "model_type": "cohere2"},
    "exaone4_5": {**CASES["exaone4"].config, "model_type": "exaone4"},
    "gemma3": CASES["gemma3"].config,
    "gemma4": CASES["gemma4"].config,
    "gemma4_unified": CASES["gemma4_unified"].config,
    "idefics3": {"model_type": "llama"},
    "internvl": {"model_type": "qwen2"},
    "lfm2_vl": {"model_type": "lfm2", "full_attn_idxs": [1], "block_multiple_of": 8},
    "llama4": CASES["llama4"].config,
    "llava": {"model_type": "llama"},
    "mistral3": {"model_type": "mistral", "sliding_window": None},
    "muse_glimmer": CASES["muse_glimmer"].config,
    "qwen2_5_vl": {"rope_parameters": MROPE},
    "qwen2_vl": {"rope_parameters": MROPE},
    "qwen3_5": CASES["qwen3_5_text"].config,
    "qwen3_5_moe": CASES["qwen3_5_moe_text"].config,
    "qwen3_vl": {"head_dim": 16, "rope_parameters": MROPE},
    "qwen3_vl_moe": {
        "head_dim": 16,
        "rope_parameters": MROPE,
        "num_experts": 4,
        "num_experts_per_tok": 2,
        "moe_intermediate_size": 48,
    },
    "smolvlm": {"model_type": "llama"},
}
VISION = {
    "cohere2_vision": {**SIGLIP, "model_type": "siglip_vision_model"},
    "exaone4_5": {
        **QWEN,
        "num_key_value_heads": 1,
        "out_hidden_size": 64,
        "fullatt_block_indexes": [0],
    },
    "gemma3": SIGLIP,
    "gemma4": {**SIGLIP, "num_key_value_heads": 2, "head_dim": 16},
    "gemma4_unified": {"mm_embed_dim": 64, "mm_posemb_size": 8, "output_proj_dims": 64},
    "idefics3": SIGLIP,
    "internvl": {**SIGLIP, "image_size": [28, 28], "patch_size": [14, 14]},
    "lfm2_vl": {name: size for name, size in SIGLIP.items() if name != "image_size"},
    "llama4": {
        **SIGLIP,
        "vision_output_dim": 32,
        "projector_input_dim": 32,
        "projector_output_dim": 32,
    },
    "llava": {**SIGLIP, "model_type": "clip_vision_model"},
    "mistral3": {**SIGLIP, "model_type": "pixtral", "head_dim": 16},
    "muse_glimmer": WITH_PARTS["muse_glimmer_text"][1]["vision_config"],
    "qwen2_5_vl": {**QWEN, "out_hidden_size": 64, "fullatt_block_indexes": [0]},
    "qwen2_vl": {**QWEN, "embed_dim": 32, "hidden_size": 64},
    "qwen3_5": {**QWEN, "out_hidden_size": 64},
    "qwen3_5_moe": {**QWEN, "out_hidden_size": 64},
    "qwen3_vl": {**QWEN, "out_hidden_size": 64, "deepstack_visual_indexes": [0]},
    "qwen3_vl_moe": {**QWEN, "out_hidden_size": 64, "deepstack_visual_indexes": [0]},
    "smolvlm": SIGLIP,
}
UNBUILT = "gemma3n"  # its vision model is from a library that the tests do not have
NAMES = [
    pytest.param(name, marks=() if name == "gemma3" else pytest.mark.nightly)
    for name in READ
    if name != UNBUILT
]


@pytest.mark.cpu
@pytest.mark.parametrize("name", NAMES)
def test_text_is_computed_as_in_the_full_model(name, tmp_path, caplog):
    sizes = {n: v for n, v in COMMON.items() if not n.endswith("token_id")}
    full = transformers.AutoConfig.for_model(
        name,
        text_config={**sizes, **TEXT[name]},
        vision_config=VISION[name],
        **({"audio_config": None} if name == "gemma4" else {}),
        **{f"{kind}_token_id": 300 + i for i, kind in enumerate(("image", "video"))},
    )
    torch.manual_seed(1)
    model = transformers.AutoModelForImageTextToText.from_config(full).float().eval()
    randomise(model, 1 if f"{name}_".startswith(OFFSET_NORMS) else 0)
    model.save_pretrained(tmp_path)
    prompt = np.random.default_rng(3).integers(3, 290, 40).tolist()
    with torch.no_grad():
        expected = model(torch.tensor([prompt])).logits[0].numpy()
    if name == "cohere2_vision":  # transformers multiplies by it in the text model alone
        expected = expected * full.text_config.logit_scale
    with caplog.at_level(logging.WARNING):
        folder = compiled(tmp_path)
    close(Runner(folder).step({0: prompt})[0], expected)
    assert "only the text model is read; tensors of" in caplog.text
    assert "vision" in caplog.text or "visual" in caplog.text
    assert "text_config" not in json.loads((folder / "config.json").read_text())


def test_text_is_read_from_a_folder_of_parts(tmp_path):
    """The parts are a text model's under the names that the whole has for them."""
    alone, full = tmp_path / "alone", tmp_path / "whole"
    save(alone, f"{UNBUILT}_text", **CASES[UNBUILT].config)
    tensors = {
        name.replace("model.", "model.language_model.", 1): value
        for name, value in load_file(alone / "model.safetensors").items()
    }
    full.mkdir()
    save_file({**tensors, "model.vision_tower.x": torch.zeros(2)}, full / "model.safetensors")
    own = json.loads((alone / "config.json").read_text())
    (full / "config.json").write_text(json.dumps({"model_type": UNBUILT, "text_config": own}))
    converted, expected = (convert_model(str(folder), quant="q0f32") for folder in (full, alone))
    assert load_state(converted).keys() == load_state(expected).keys()
    assert all(np.array_equal(v, load_state(expected)[n]) for n, v in load_state(converted).items())


def test_the_configuration_that_gemma_3_4b_comes_with(tmp_path):
    """It names of its text model what differs from transformers' defaults."""
    given = {
        "architectures": ["Gemma3ForConditionalGeneration"],
        "boi_token_index": 255999,
        "eoi_token_index": 256000,
        "eos_token_id": [1, 106],
        "image_token_index": 262144,
        "initializer_range": 0.02,
        "mm_tokens_per_image": 256,
        "model_type": "gemma3",
        "text_config": {
            "hidden_size": 2560,
            "intermediate_size": 10240,
            "model_type": "gemma3_text",
            "num_hidden_layers": 34,
            "rope_scaling": {"factor": 8.0, "rope_type": "linear"},
            "sliding_window": 1024,
        },
        "torch_dtype": "bfloat16",
        "transformers_version": "4.50.0.dev0",
        "vision_config": {"hidden_size": 1152, "model_type": "siglip_vision_model"},
    }
    (tmp_path / "config.json").write_text(json.dumps(given))
    described = describe(read_folder(tmp_path))
    official = transformers.AutoConfig.for_model(**given).text_config
    config = described.config
    assert described.folder.text and described.arch.name == "gemma3_text"
    for name in ("vocab_size", "num_attention_heads", "num_key_value_heads", "head_dim"):
        assert getattr(config, name) == getattr(official, name)
    assert (config.rope.theta, config.rope.factor, config.local_rope.theta) == (1e6, 8.0, 1e4)
    assert [config.windowed(i) for i in range(34)] == [
        kind == "sliding_attention" for kind in official.layer_types
    ]


def test_the_older_form_of_qwen_without_a_text_config():
    given = {
        "model_type": "qwen2_5_vl",
        "hidden_size": 64,
        "rope_scaling": {"type": "mrope", "mrope_section": [16, 24, 24]},
        "vision_config": {"depth": 32},
        "vision_start_token_id": 151652,
        "tie_word_embeddings": True,
    }
    assert text_part(given) == {
        "model_type": "qwen2",
        "hidden_size": 64,
        "rope_scaling": {"type": "default"},
        "tie_word_embeddings": True,
    }


def test_names_of_all_spellings():
    spelled = [
        "language_model.model.layers.0.a.weight",
        "language_model.lm_head.weight",
        "model.language_model.norm.weight",
        "model.embed_tokens.weight",
        "visual.blocks.0.weight",
        "model.vision_tower.x",
        "model.vision_tower.y",
    ]
    text = text_names(spelled)
    assert text == {
        "model.layers.0.a.weight": spelled[0],
        "lm_head.weight": spelled[1],
        "model.norm.weight": spelled[2],
        "model.embed_tokens.weight": spelled[3],
    }
    assert others(spelled, text) == {"visual": 1, "vision_tower": 2}


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"model_type": "mllama", "text_config": {"model_type": "mllama_text_model"}}, "Only the"),
        (
            {"model_type": "llava", "text_config": {"model_type": "zamba"}},
            "whose text_config has 'zamba', a family of models that is not supported; similar "
            "names are zamba2",
        ),
        ({"model_type": "llava", "text_config": {"model_type": "llama"}}, "hidden_size: missing"),
    ],
)
def test_what_is_not_read_is_named(given, said, tmp_path):
    (tmp_path / "config.json").write_text(json.dumps(given))
    with pytest.raises(ModelError) as caught:
        describe(read_folder(tmp_path))
    assert said in str(caught.value)
