"""Every encoder against Hugging Face transformers, on the configurations of encoders.py."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file

from wherry.compiler.checkpoint.folder import read_folder
from wherry.compiler.load import describe

from ..support import gpu
from ..support.tiny_models import Runner, compiled
from .encoders import CASES, parameters, save

TOLERANCE = 2e-4  # of an element, float32
LENGTHS = (150, 37, 16, 1)  # of the texts: several blocks of keys, and less than a tile
pytestmark = pytest.mark.cpu


def prompts_for(vocab: int) -> list[list[int]]:
    rng = np.random.default_rng(3)
    return [rng.integers(2, vocab, n).tolist() for n in LENGTHS]


def close(got: np.ndarray, expected: np.ndarray) -> None:
    assert got.shape == expected.shape
    assert np.abs(expected).max() > 0.05  # a comparison of zeros proves nothing
    assert np.abs(got - expected).max() <= TOLERANCE


@pytest.fixture(scope="module", params=parameters(CASES))
def case(request, tmp_path_factory):
    """(a compiled folder, texts in tokens, the rows that transformers has for them)."""
    folder = tmp_path_factory.mktemp(request.param)
    model = save(folder, CASES[request.param])
    texts = [text[:120] for text in prompts_for(model.config.vocab_size)]
    with torch.no_grad():
        expected = [model(torch.tensor([text]))[0][0].numpy() for text in texts]
    return compiled(folder), texts, expected


class TestAgainstTransformers:
    @pytest.mark.by_day("modernbert", "embedding-gemma")
    def test_alone(self, case):
        folder, texts, expected = case
        for text, rows in zip(texts, expected, strict=True):
            got = Runner(folder).step({0: text}, "embed")[0]
            close(got[-1], rows.mean(0))

    @pytest.mark.by_day("modernbert", "embedding-gemma")
    def test_the_same_bits_in_any_batch(self, case):
        folder, texts, _ = case
        alone = [Runner(folder).step({0: text}, "embed")[0][-1] for text in texts]
        for order in ((0, 1, 2, 3), (3, 1, 0, 2)):
            batch = Runner(folder).step({i: texts[i] for i in order}, "embed")
            for i in order:
                assert np.array_equal(batch[i][-1], alone[i])


HEADS = (
    "bert",
    "roberta",
    "distilbert",
    "mpnet",
    "modernbert",
    "nomic_bert",
    "jina_embeddings_v3",
    "gte",
    "gte-of-older-code",
    "eurobert",
    "eurobert-heads",
)


def _rename(path: Path, own: str, published: str) -> None:
    """Give the tensors of a checkpoint another first part of their names."""
    tensors = {name.replace(f"{own}.", f"{published}."): t for name, t in load_file(path).items()}
    assert any(name.startswith(f"{published}.") for name in tensors)
    save_file(tensors, path, {"format": "pt"})


@pytest.mark.parametrize("name", parameters({name: CASES[name] for name in HEADS}))
@pytest.mark.by_day("gte")
def test_classes_against_transformers(name, tmp_path):
    kind = transformers.AutoModelForSequenceClassification
    model = save(tmp_path, CASES[name], kind, num_labels=3)
    if CASES[name].published:
        _rename(tmp_path / "model.safetensors", CASES[name].model_type, CASES[name].named)
    assert describe(read_folder(tmp_path)).head.labels == ("LABEL_0", "LABEL_1", "LABEL_2")
    folder = compiled(tmp_path)
    for text in prompts_for(model.config.vocab_size)[1:]:
        with torch.no_grad():
            expected = model(torch.tensor([text])).logits[0].numpy()
        got = Runner(folder).step({0: text}, "embed")[0][-1]
        close(got, expected)


ON_DEVICES = ("bert", "mpnet", "modernbert", "gte", "eurobert", "embedding-gemma")


@pytest.mark.gpu
@pytest.mark.nightly
@pytest.mark.parametrize("kind", ["opencl", "vulkan"])
@pytest.mark.parametrize("name", ON_DEVICES)
def test_four_bits_on_devices(name, kind, tmp_path):
    """The references, scheduled for a device, against CPU kernels on the same weights."""
    gpu.device(kind)
    save(tmp_path, CASES[name])
    texts = [text[:50] for text in prompts_for(300)]
    here = Runner(compiled(tmp_path, "q4f32_1", activations="float"))
    expected = here.step(dict(enumerate(texts)), "embed")
    folder = compiled(tmp_path, "q4f32_1", target=kind)
    got = Runner(folder, device=kind).step(dict(enumerate(texts)), "embed")
    for i, text in enumerate(texts):
        close(got[i][-1], expected[i][-1])
        alone = Runner(folder, device=kind).step({0: text}, "embed")[0]
        assert np.array_equal(alone[-1], got[i][-1])
