"""RWKV-7 against a reference in PyTorch, alone, in chunks and in a batch, and from a snapshot."""

from __future__ import annotations

import numpy as np
import pytest

from wherry.compiler.load import families
from wherry.errors import ModelError
from wherry.models.arch import read_config

from ..support import gpu
from ..support.tiny_models import Runner, compiled
from .rwkv7_reference import FIELDS, Reference, random_weights, save

ODD = {
    **FIELDS,
    "fuse_norm": True,
    "head_dim": 20,
    "hidden_size": 60,
    "norm_bias": False,
    "norm_first": False,
    "num_heads": None,
    "num_hidden_layers": 2,
    "tie_word_embeddings": True,
    "value_dim": None,
}
CASES = {"published": FIELDS, "odd": ODD}
RNG = np.random.default_rng(3)
PROMPTS = [RNG.integers(0, 320, n).tolist() for n in (70, 37, 16)]
TOLERANCE = 2e-4  # of a logit


def model(folder, fields):
    weights = random_weights(fields)
    return save(folder, weights, fields), Reference(weights, fields)


@pytest.mark.cpu
@pytest.mark.parametrize("name", ["published", pytest.param("odd", marks=pytest.mark.nightly)])
def test_logits(name, tmp_path):
    folder, reference = model(tmp_path, CASES[name])
    made = compiled(folder)
    whole = [Runner(made).step({0: p})[0] for p in PROMPTS]
    for got, prompt in zip(whole, PROMPTS, strict=True):
        expected = reference.logits(prompt)
        assert np.abs(expected).max() > 0.5
        assert np.abs(got - expected).max() <= TOLERANCE
    # Chunks, and single rows in company: the same bits.
    run, first = Runner(made), PROMPTS[0]
    parts = [run.step({0: first[:9], 1: PROMPTS[1]})[0]]
    parts += [run.step({2: PROMPTS[2][:2], 0: first[a:b]})[0] for a, b in ((9, 10), (10, 50))]
    # The rest from a copy of the state, as the engine does with a snapshot.
    run.fork(0, 7, 48)
    run.sequences[7].length = 50
    run.copy_slot(0, 7)
    parts.append(run.step({7: first[50:]})[7])
    assert np.array_equal(np.concatenate(parts), whole[0])


@pytest.mark.gpu
@pytest.mark.nightly
@pytest.mark.parametrize("kind", gpu.KINDS)
@pytest.mark.parametrize("quant", ["q0f32", "q4f32_1"])
def test_devices(kind, quant, tmp_path):
    """Floats against the reference; 4 bits against the CPU's kernels with the same weights."""
    gpu.device(kind)
    folder, reference = model(tmp_path, FIELDS)
    got = Runner(compiled(folder, quant=quant, target=kind), device=kind).step({0: PROMPTS[0]})[0]
    if quant == "q0f32":
        expected = reference.logits(PROMPTS[0])
    else:
        expected = Runner(compiled(folder, quant=quant, activations="float")).step({0: PROMPTS[0]})[
            0
        ]
    assert np.abs(got - expected).max() <= 5e-4


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"num_heads": 3}, "head_dim: 3 heads of 16 found, for the 64 of a row"),
        ({"value_dim": [64, 64, 128]}, r"value_dim: found \[64, 64, 128\], supported is"),
        ({"attn": {"layers": [1]}}, "attn: found"),
        ({"decay_low_rank_dim": None}, "decay_low_rank_dim: missing"),
    ],
)
def test_what_it_cannot_be(changes, said):
    with pytest.raises(ModelError, match=said):
        read_config(families()["rwkv7"].config, {**FIELDS, **changes})
