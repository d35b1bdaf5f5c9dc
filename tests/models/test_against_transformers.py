"""Every model file against Hugging Face transformers, on the configurations of families."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from ..support.tiny_models import Runner, compiled, save
from .families import CASES, PARAMETERS

TOLERANCE = 2e-4  # of a logit, float32
LENGTHS = (70, 37, 16)  # of the sequences: several pages, across their borders


@pytest.fixture(scope="module", params=PARAMETERS)
def case(request, tmp_path_factory):
    """(a compiled folder, prompts, the logits and embeddings that transformers has for them)."""
    case = CASES[request.param]
    folder = tmp_path_factory.mktemp(request.param)
    model = save(folder, case.model_type, **case.config)
    rng = np.random.default_rng(3)
    prompts = [
        rng.integers(0, model.config.get_text_config().vocab_size, n).tolist() for n in LENGTHS
    ]
    with torch.no_grad():
        expected = [model(torch.tensor([p])).logits[0].numpy() for p in prompts]
        # Llama 4 names its layers by another prefix than its own base model has.
        inner = model.model if model.base_model is model else model.base_model
        hidden = [inner(torch.tensor([p]))[0][0].numpy() for p in prompts]
    return compiled(folder), prompts, Expected(expected, hidden)


class Expected(list):
    """Logits [tokens, vocab] of each prompt."""

    def __init__(self, logits: list[np.ndarray], embeddings: list[np.ndarray]) -> None:
        super().__init__(logits)
        self.embeddings = embeddings  # [tokens, d] of each


def close(got: np.ndarray, expected: np.ndarray) -> None:
    assert got.shape == expected.shape
    assert np.abs(expected).max() > 0.5  # a comparison of zeros proves nothing
    assert np.abs(got - expected).max() <= TOLERANCE


@pytest.mark.cpu
class TestAgainstTransformers:
    @pytest.mark.by_day(
        "llama",
        "phi3",
        "gemma4",
        "qwen3_moe",
        "deepseek_v3",
        "qwen3_5_text",
        "lfm3",
        "opt",
    )
    def test_prefill(self, case):
        folder, prompts, expected = case
        close(Runner(folder).step({0: prompts[0]})[0], expected[0])

    def test_chunked_prefill(self, case):
        folder, prompts, expected = case
        run = Runner(folder)
        parts = [prompts[0][a:b] for a, b in ((0, 5), (5, 21), (21, 70))]
        close(np.concatenate([run.step({0: part})[0] for part in parts]), expected[0])

    def test_decode(self, case):
        folder, prompts, expected = case
        run = Runner(folder)
        close(np.concatenate([run.step({0: [token]})[0] for token in prompts[1]]), expected[1])

    def test_batched_decode_and_prefill(self, case):
        folder, prompts, expected = case
        run = Runner(folder)
        got = {
            i: [logits] for i, logits in run.step({i: p[:9] for i, p in enumerate(prompts)}).items()
        }
        for t in range(9, min(LENGTHS)):  # all decode; the longest also gets a chunk in between
            rows = {i: [p[t]] for i, p in enumerate(prompts)}
            for i, logits in run.step(rows).items():
                got[i].append(logits)
        rest = {i: p[min(LENGTHS) :] for i, p in enumerate(prompts[:2])}
        for i, logits in run.step(rest).items():
            got[i].append(logits)
        for i, parts in got.items():
            close(np.concatenate(parts), expected[i])

    def test_a_row_has_the_same_bits_in_any_batch(self, case):
        folder, prompts, _ = case
        alone = Runner(folder).step({0: prompts[1]})[0]
        run = Runner(folder)
        mixed = [run.step({2: prompts[2], 0: prompts[1][:7], 1: prompts[0]})[0]]
        mixed += [run.step({0: [t], 1: [5]})[0] for t in prompts[1][7:19]]
        mixed += [run.step({1: [3, 4, 5], 0: prompts[1][19:]})[0]]
        assert np.array_equal(np.concatenate(mixed), alone)

    def test_embed(self, case):
        folder, prompts, expected = case
        run = Runner(folder)
        first = run.step({0: prompts[0][:9], 1: prompts[1], 2: prompts[2][:3]}, "embed")
        rest = run.step({2: prompts[2][3:], 0: prompts[0][9:]}, "embed")
        got = [np.concatenate([first[i], rest[i]]) for i in (0, 2)]
        close(first[1], expected.embeddings[1])
        close(got[0], expected.embeddings[0])
        close(got[1], expected.embeddings[2])
        for prompt, rows in ((prompts[0], got[0]), (prompts[1], first[1]), (prompts[2], got[1])):
            assert np.array_equal(Runner(folder).step({0: prompt}, "embed")[0], rows)

    def test_entries_share_the_cache(self, case):
        folder, prompts, _ = case
        run = Runner(folder)
        run.step({0: prompts[0][:21]}, "embed")
        logits = run.step({0: prompts[0][21:]})[0]
        assert np.array_equal(logits, Runner(folder).step({0: prompts[0]})[0][21:])
