"""Against llama.cpp: its vocabularies' tests, and its own conversion of random models.

Its sources come with the source distribution of llama-cpp-python, from the package index.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tarfile
from pathlib import Path

import numpy as np
import pytest

from wherry.compiler.checkpoint.assemble import blocks
from wherry.compiler.checkpoint.formats import open_checkpoint
from wherry.compiler.checkpoint.gguf.header import read_header
from wherry.compiler.checkpoint.gguf.opening import open_gguf, open_model
from wherry.compiler.checkpoint.gguf.pre_tokenizers import PRE_TOKENIZERS
from wherry.compiler.checkpoint.gguf.tokenizer import build
from wherry.compiler.checkpoint.gguf.vocabulary import vocabulary_of
from wherry.compiler.library.export import parameters
from wherry.compiler.load import describe, families
from wherry.models.arch import plan, read_config

from ...models.families import CASES
from ...support import tiny_models

pytestmark = pytest.mark.nightly
PACKAGE = "llama-cpp-python==0.3.36"
SEPARATOR = "\n__ggml_vocab_test__\n"
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
    "gemma3": {"config": {"query_pre_attn_scalar": 32, "layer_types": ["sliding_attention"] * 2}},
    "phi3": {},
    "phi3-longrope": {},
    "granite": {},
    "olmo2": {},
    "smollm3": {"config": {"no_rope_layer_interval": 4, "num_hidden_layers": 4}},
    "seed_oss": {},
    "ernie4_5": {},
    "arcee": {},
}


@pytest.fixture(scope="module")
def sources(tmp_path_factory) -> Path:
    """llama.cpp's folder."""
    folder = tmp_path_factory.mktemp("llama")
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
    command += ["--no-binary", "llama-cpp-python", "--dest", str(folder), PACKAGE]
    subprocess.run(command, check=True)
    with tarfile.open(next(folder.glob("*.tar.gz"))) as packed:
        packed.extraction_filter = getattr(tarfile, "data_filter", None)  # Python 3.11.4
        packed.extractall(folder)
    return next(folder.glob("*/vendor/llama.cpp"))


def test_vocabularies(sources):
    """Each text of llama.cpp's tests has the tokens that the models' own tokenizers give it."""
    tried, wrong = 0, []
    for file in sorted((sources / "models").glob("*.gguf")):
        texts, answers = (file.with_name(file.name + end) for end in (".inp", ".out"))
        if not texts.is_file():
            continue
        tried += 1
        made = build(vocabulary_of(read_header(file)))
        given = texts.read_bytes().decode().split(SEPARATOR)
        for text, line in zip(given, answers.read_text().split("\n"), strict=False):
            found = made.encode(text, add_special_tokens=False).ids
            if found != [int(token) for token in line.split()]:
                wrong.append(f"{file.name}: {text!r}")
    assert tried == 15
    assert not wrong, "\n".join(wrong)


def test_each_rule_of_splitting_is_known(sources):
    """No rule that llama.cpp has is missing, and none is ours alone."""
    text = (sources / "src" / "llama-vocab.cpp").read_text()
    theirs = {part.split('"')[1] for part in text.split("tokenizer_pre == ")[1:]}
    assert theirs - {"default"} == set(PRE_TOKENIZERS) - {"default"}


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
    program = Path(__file__).with_name("to_gguf.py")
    subprocess.run([sys.executable, program, sources, *folders.values()], check=True)
    return folders


@pytest.mark.parametrize("name", FAMILIES)
def test_a_folder_and_its_gguf_are_one_model(converted, name):
    folder = converted[name]
    why = folder / "model.txt"
    assert not why.exists(), why.read_text()
    ours, model = describe(folder), open_model(folder / "model.gguf")
    kind = FAMILIES[name].get("model_type", ours.arch.name)
    assert model.config["model_type"] == kind
    arch = families()[kind]
    config = read_config(arch.config, model.config)
    for layer in range(config.num_hidden_layers):
        assert config.attention_shape(layer) == ours.config.attention_shape(layer)
    assert config.scales() == ours.config.scales()
    assert config.rms_norm_eps == ours.config.rms_norm_eps
    shapes = parameters(ours.arch, ours.config, ours.entries)
    exact = not name.startswith("gemma")  # one was added to norms, and is subtracted
    for got, wanted in zip(
        weights(arch, shapes, open_gguf(folder / "model.gguf"), config),
        weights(ours.arch, shapes, open_checkpoint(folder), ours.config),
        strict=True,
    ):
        np.testing.assert_allclose(got, wanted, rtol=0, atol=0 if exact else 2e-7)


def weights(arch, shapes, checkpoint, config):
    made = plan(arch, shapes, checkpoint.shapes, config)
    for parameter in made.parameters:
        yield np.concatenate([np.atleast_1d(rows) for _, rows in blocks(parameter, checkpoint)])
