"""Against llama.cpp: its vocabularies' tests, and its own conversion of random models.

Its sources come with the source distribution of llama-cpp-python, from the package index.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from wherry.compiler.api import Limits, convert_model, ensure_artifact
from wherry.compiler.checkpoint.assemble import blocks
from wherry.compiler.checkpoint.folder import read_folder
from wherry.compiler.checkpoint.formats import open_checkpoint
from wherry.compiler.checkpoint.gguf.header import read_header
from wherry.compiler.checkpoint.gguf.opening import open_gguf, open_model
from wherry.compiler.checkpoint.gguf.pre_tokenizers import PRE_TOKENIZERS
from wherry.compiler.checkpoint.gguf.tokenizer import build
from wherry.compiler.checkpoint.gguf.vocabulary import vocabulary_of
from wherry.compiler.library.export import parameters
from wherry.compiler.load import describe, families
from wherry.compiler.weight_marker import own_of
from wherry.models.arch import plan, read_config

from ...models.families import CASES
from ...models.families.case import YARN
from ...support import llama_cpp, tiny_models
from . import writing

pytestmark = pytest.mark.nightly
SEPARATOR = "\n__ggml_vocab_test__\n"
# llama.cpp takes the two scales to be the same.
LATENT_YARN = {**YARN, "mscale": 1.3, "mscale_all_dim": 1.3}
MINISTRAL3 = {**YARN, "mscale": 1.0, "mscale_all_dim": 1.0, "llama_4_scaling_beta": 0.5}
LLLG = ["sliding_attention"] * 3 + ["full_attention"]
# What a file of GGUF does not say, and llama.cpp takes for granted.
FAMILIES = {
    "llama": {},
    "llama-tied": {},
    "llama-mha-biases": {},
    "llama-odd-sizes": {},
    "llama-linear": {},
    "llama-llama3": {},
    "llama-yarn": {},
    "mistral": {"model_type": "llama"},  # one architecture in GGUF
    "mixtral": {"config": {"sliding_window": None}},
    "qwen2": {},
    "qwen2_moe": {"config": {"use_sliding_window": False}},
    "qwen3": {},
    "qwen3-tied-yarn": {},
    "qwen3_moe": {},
    "gemma": {},
    "gemma2": {"config": {"query_pre_attn_scalar": 16}},
    "gemma3": {
        "config": {
            "query_pre_attn_scalar": 32,
            "layer_types": ["sliding_attention"] * 2,
            "attn_logit_softcapping": None,  # which llama.cpp's converter refuses
        }
    },
    "phi3": {},
    "phi3-longrope": {},
    "granite": {},
    "olmo2": {},
    "smollm3": {"config": {"no_rope_layer_interval": 4, "num_hidden_layers": 4}},
    "seed_oss": {},
    "ernie4_5": {},
    "arcee": {},
    "gpt_oss": {"config": {"swiglu_limit": 7.0}},
    "gemma4": {},
    "gemma4-experts": {},
    "gemma3n": {"config": {"vocab_size_per_layer_input": 320}},
    "qwen3_5_text": {"mtp": True},
    "qwen3_5_text-odd": {},
    "qwen3_5_moe_text": {},
    "qwen3_next": {},
    "ministral3": {"config": {"rope_parameters": MINISTRAL3}},
    "glm4": {},
    "glm4_moe": {},
    "deepseek_v2": {"config": {"rope_parameters": LATENT_YARN}},
    "deepseek_v3": {"config": {"rope_parameters": LATENT_YARN, "scoring_func": "sigmoid"}},
    "lfm2": {"config": {"block_auto_adjust_ff_dim": False}},
    "lfm2_moe": {"config": {"routed_scaling_factor": 1.0}},
    "olmo3": {},
    "exaone4": {"config": {"sliding_window_pattern": 4, "num_hidden_layers": 4}},
    "cohere": {},
    "cohere-head-norms": {},
    "cohere2": {"config": {"num_hidden_layers": 4, "layer_types": LLLG, "rotary_pct": 1.0}},
    "hunyuan_v1_dense": {
        "config": {"rope_parameters": {"rope_type": "default", "rope_theta": 10000.0}}
    },
    "minimax_m2": {},
    "llama4": {
        "config": {
            "no_rope_layer_interval": 4,
            "attention_chunk_size": 8192,
            "floor_scale": 8192,
            "attn_scale": 0.1,
        }
    },
    "granitemoe": {},
    # Its conversion knows the kinds of layers by their older names.
    "granitemoehybrid": {"saved": {"layer_types": ["mamba", "attention", "mamba"]}},
    "bamba": {"model_type": "granitemoehybrid", "saved": {"attn_rotary_emb": 8}},
    "granitemoeshared": {},
    "ernie4_5_moe": {"config": {"moe_norm_min": 1e-12}},
    "dots1": {"config": {"sliding_window": None}},
    "starcoder2": {"config": {"sliding_window": None}},
    "stablelm": {},
    "nemotron": {},
    "jais2": {},
    "exaone_moe": {},
    "afmoe": {
        "config": {
            "num_hidden_layers": 4,
            "layer_types": LLLG,
            "global_attn_every_n_layers": 4,
        }
    },
    "olmoe": {"config": {"clip_qkv": None}},
}
# Families whose norms have one added in the file, which is subtracted again, and whose decays are
# stored as their exponentials.
ROUNDED = ("gemma", "gemma2", "gemma3_text", "qwen3_5_text", "qwen3_5_moe_text", "qwen3_next")
ROUNDED += ("nemotron", "granitemoehybrid", "bamba")


@pytest.fixture(scope="module")
def sources(tmp_path_factory) -> Path:
    """llama.cpp's folder."""
    return llama_cpp.sources(tmp_path_factory.mktemp("llama"))


def test_vocabularies(sources):
    """Each text of llama.cpp's tests has the tokens that the models' own tokenizers give it."""
    tried, wrong = 0, []
    for file in sorted((sources / "models").glob("*.gguf")):
        texts, answers = (file.with_name(file.name + end) for end in (".inp", ".out"))
        if not texts.is_file():
            continue
        tried += 1
        tokenizer = build(vocabulary_of(read_header(file)))
        given = texts.read_bytes().decode().split(SEPARATOR)
        for text, line in zip(given, answers.read_text().split("\n"), strict=False):
            ids = tokenizer.encode(text, add_special_tokens=False).ids
            if ids != [int(token) for token in line.split()]:
                wrong.append(f"{file.name}: {text!r}")
    assert tried == 15
    assert not wrong, "\n".join(wrong)


def test_each_rule_of_splitting_is_known(sources):
    """No rule that llama.cpp has is missing, and none is ours alone."""
    text = (sources / "src" / "llama-vocab.cpp").read_text()
    names = {part.split('"')[1] for part in text.split("tokenizer_pre == ")[1:]}
    assert names - {"default"} == set(PRE_TOKENIZERS) - {"default"}


@pytest.fixture(scope="module")
def converted(sources, tmp_path_factory) -> dict[str, Path]:
    """Folders of random models, each with its model.gguf."""
    home = tmp_path_factory.mktemp("models")
    folders = {}
    for name, changes in FAMILIES.items():
        folders[name] = home / name
        config = {**CASES[name].config, **changes.get("config", {})}
        tiny_models.save(folders[name], CASES[name].model_type, **config)
        tokens = {"model": {"vocab": {f"[{i}]": i for i in range(320)}}, "added_tokens": []}
        (folders[name] / "tokenizer.json").write_text(json.dumps(tokens))
        write_fields(folders[name], changes.get("saved", {}))
        if changes.get("mtp"):
            add_prediction(folders[name])
    program = Path(__file__).with_name("to_gguf.py")
    subprocess.run([sys.executable, program, sources, *folders.values()], check=True)
    return folders


def write_fields(folder: Path, fields: dict[str, Any]) -> None:
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | fields))


def add_prediction(folder: Path) -> None:
    """Add a block of multi-token prediction, as Qwen 3.5 publishes it, to a folder."""
    write_fields(folder, {"mtp_num_hidden_layers": 1})
    tensors = load_file(folder / "model.safetensors")
    last = "model.layers.3."
    own = {n: a for n, a in tensors.items() if n.startswith(last)}
    block = {f"mtp.layers.0.{n.removeprefix(last)}": a + 1 for n, a in own.items()}
    norm = tensors["model.norm.weight"]
    names = ("norm", "pre_fc_norm_embedding", "pre_fc_norm_hidden")
    block |= {f"mtp.{n}.weight": norm + 1 for n in names}
    block["mtp.fc.weight"] = np.ones((len(norm), 2 * len(norm)), np.float32)
    save_file({**tensors, **block}, folder / "model.safetensors", {"format": "pt"})


@pytest.mark.parametrize("name", FAMILIES)
def test_a_folder_and_its_gguf_are_one_model(converted, name):
    folder = converted[name]
    why = folder / "model.txt"
    assert not why.exists(), why.read_text()
    original, model = describe(read_folder(folder)), open_model(folder / "model.gguf")
    kind = FAMILIES[name].get("model_type", original.arch.name)
    assert model.config["model_type"] == kind
    arch = families()[kind]
    config = read_config(arch.config, model.config)
    for layer in range(config.num_hidden_layers):
        assert config.attention_shape(layer) == original.config.attention_shape(layer)
    assert config.scales() == original.config.scales()
    assert config.rms_norm_eps == original.config.rms_norm_eps
    shapes = parameters(original.arch, original.config, original.entries)
    assert config.num_hidden_layers == original.config.num_hidden_layers
    exact = original.arch.name not in ROUNDED
    for got, expected in zip(
        weights(arch, shapes, open_gguf(folder / "model.gguf"), config),
        weights(original.arch, shapes, open_checkpoint(read_folder(folder)), original.config),
        strict=True,
    ):
        np.testing.assert_allclose(
            got.reshape(expected.shape), expected, rtol=0, atol=0 if exact else 2e-7
        )


def test_a_model_with_reordered_columns_keeps_its_blocks(converted, tmp_path):
    """Qwen 3.5's value heads are tiled in the file: the input of ssm_out is reordered instead."""
    read = gguf.GGUFReader(converted["qwen3_5_text"] / "model.gguf")
    sizes = {
        name.removeprefix("qwen35."): field.contents()
        for name, field in read.fields.items()
        if name.startswith("qwen35.")
    }
    tensors = {t.name: np.array(t.data) for t in read.tensors}
    kinds = {"attn": "Q4_0", **dict.fromkeys(("ssm_out", "ffn", "embd", "output"), "Q8_0")}
    file = str(writing.write(tmp_path / "m.gguf", "qwen35", tensors, sizes, kinds=kinds))
    weights = convert_model(file, tmp_path / "weights")
    (own,) = own_of(weights)["model.layers.0.linear_attn.out_proj.weight"]
    assert own.scheme.name == "Q8_0_ordered"
    limits = Limits(context=128, max_batch=64, prefill_chunk=64)
    folders = [
        ensure_artifact(file, limits=limits, kv_dtype="float32", **options)
        for options in ({"quant": "q0f32"}, {"quant": "kept", "activations": "float"})
    ]
    prompt = np.random.default_rng(4).integers(0, 300, 50).tolist()
    expected, got = (tiny_models.Runner(folder).step({0: prompt})[0] for folder in folders)
    assert np.abs(got - expected).max() <= 2e-4 * np.abs(expected).max()


def weights(arch, shapes, checkpoint, config):
    weight_plan = plan(arch, shapes, checkpoint.shapes, config)
    for parameter in weight_plan.parameters:
        yield np.concatenate([np.atleast_1d(rows) for _, rows in blocks(parameter, checkpoint)])
