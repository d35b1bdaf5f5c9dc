"""RWKV-7 against a reference in PyTorch, alone, in chunks and in a batch, and from a snapshot."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from wherry.compiler.load import families
from wherry.errors import ModelError
from wherry.models.arch import read_config
from wherry.quant.scheme import find

from ..support import gpu
from ..support.cores import greedy, started
from ..support.tiny_models import Runner, compiled
from ..support.web import require_core
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
SCHEME = "q4f32_1"


def model(folder, fields):
    weights = random_weights(fields)
    return save(folder, weights, fields), Reference(weights, fields)


@pytest.mark.cpu
@pytest.mark.parametrize("name", ["published", pytest.param("odd", marks=pytest.mark.nightly)])
def test_logits(name, tmp_path):
    folder, reference = model(tmp_path, CASES[name])
    artifact = compiled(folder)
    at_once = [Runner(artifact).step({0: p})[0] for p in PROMPTS]
    for got, prompt in zip(at_once, PROMPTS, strict=True):
        expected = reference.logits(prompt)
        assert np.abs(expected).max() > 0.5
        assert np.abs(got - expected).max() <= TOLERANCE
    # Chunks, and single rows in company: the same bits.
    run, first = Runner(artifact), PROMPTS[0]
    parts = [run.step({0: first[:9], 1: PROMPTS[1]})[0]]
    parts += [run.step({2: PROMPTS[2][:2], 0: first[a:b]})[0] for a, b in ((9, 10), (10, 50))]
    # The rest from a copy of the state, as the engine does with a snapshot.
    run.fork(0, 7, 48)
    run.sequences[7].length = 50
    run.copy_slot(0, 7)
    parts.append(run.step({7: first[50:]})[7])
    assert np.array_equal(np.concatenate(parts), at_once[0])


def rounded(weights, scheme):
    """The weights that a scheme leaves; the low-rank matrices of decays and of a stay exact."""
    left = dict(weights)
    for name, w in weights.items():
        exact = "w_lora" in name or "a_lora" in name
        if not exact and scheme.quantizes(name, tuple(w.shape)):
            left[name] = torch.from_numpy(scheme.decode(scheme.encode(w.numpy()), w.shape[-1]))
    return left


@pytest.fixture(scope="module")
def four_bits(tmp_path_factory):
    """A folder, and the logits of a prompt with the weights that 4 bits leave."""
    weights = random_weights(FIELDS)
    folder = save(tmp_path_factory.mktemp("rwkv7"), weights, FIELDS)
    return folder, Reference(rounded(weights, find(SCHEME)), FIELDS).logits(PROMPTS[0])


@pytest.mark.cpu
@pytest.mark.nightly
def test_four_bits(four_bits):
    """With floats the same numbers; int8 activations cost a little of the distribution."""
    folder, expected = four_bits
    exact = Runner(compiled(folder, quant=SCHEME, activations="float")).step({0: PROMPTS[0]})[0]
    assert np.abs(exact - expected).max() <= TOLERANCE
    got = Runner(compiled(folder, quant=SCHEME)).step({0: PROMPTS[0]})[0]
    assert 1e-4 < np.abs(got - expected).mean() <= 0.05 * expected.std()


@pytest.mark.gpu
@pytest.mark.nightly
@pytest.mark.parametrize("kind", [*gpu.KINDS, "webgpu"])
def test_devices(kind, four_bits):
    """For browsers the kernels are compiled only."""
    folder, expected = four_bits
    if kind == "webgpu":
        require_core()
        assert compiled(folder, quant=SCHEME, target=kind).is_dir()
        return
    gpu.device(kind)
    run = Runner(compiled(folder, quant=SCHEME, target=kind), device=kind)
    got = np.concatenate(
        [run.step({0: PROMPTS[0][a:b]})[0] for a, b in ((0, 9), (9, 10), (10, 70))]
    )
    assert np.abs(got - expected).max() <= 1e-3
    assert np.array_equal(got.argmax(-1), expected.argmax(-1))


@pytest.mark.cpu
@pytest.mark.nightly
def test_turns_of_a_chat_in_the_engine(tmp_path):
    """The next turn continues with a snapshot, and has the tokens of a whole computation."""
    folder, reference = model(tmp_path, FIELDS)

    def expected(prompt, count=12):
        tokens = list(prompt)
        for _ in range(count):
            tokens.append(int(reference.logits(tokens)[-1].argmax()))
        return tokens[len(prompt) :]

    with started(compiled(folder), max_batch=4, context=256, prefill_chunk=32) as core:
        first = PROMPTS[1]
        answer = expected(first)
        assert greedy(core, [first, PROMPTS[2]], 12) == [answer, expected(PROMPTS[2])]
        chat = [*first, *answer, 17, 4, 99]
        before = core.stats()
        assert greedy(core, [chat], 12) == [expected(chat)]
        computed = core.stats().prefill_tokens - before.prefill_tokens
        assert 0 < computed < len(chat) - len(first) + 16


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
