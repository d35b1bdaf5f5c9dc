"""The numbers of a card, of logits that are written down here."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pytest

from wherry.compiler.quality.compare import Recorded, compare, record

VOCAB = 7
TEXTS = [[1, 4, 2, 6, 0], [3, 3, 5]]


class Fixed:
    """A model whose logits depend on the token and its position; two rows a step."""

    vocab_size = VOCAB

    def __init__(self, seed: int, moved: float = 0.0) -> None:
        self.table = np.random.default_rng(seed).normal(size=(8, VOCAB, VOCAB)).astype(np.float32)
        self.table[..., 3] += np.float32(moved)

    def rows(self, tokens: Sequence[int]) -> np.ndarray:
        return np.stack([self.table[i, token] for i, token in enumerate(tokens)])

    def logits(self, tokens: Sequence[int]) -> Iterator[np.ndarray]:
        all_rows = self.rows(tokens)
        for start in range(0, len(tokens), 2):
            yield all_rows[start : start + 2]


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("WHERRY_CACHE", str(tmp_path))


def compared(reference: Fixed, own: Fixed):
    seen: list[int] = []
    with Recorded() as recorded:
        record(reference, TEXTS, recorded, seen.append)
        comparison = compare(own, TEXTS, recorded, seen.append)
    assert sum(seen) == 2 * sum(map(len, TEXTS))
    return comparison


def probabilities(model: Fixed) -> np.ndarray:
    rows = np.concatenate([model.rows(tokens) for tokens in TEXTS]).astype(np.float64)
    exp = np.exp(rows)
    return exp / exp.sum(-1, keepdims=True)


def test_a_model_is_equal_to_itself(tmp_path):
    result = compared(Fixed(0), Fixed(0))
    assert (result.tokens, result.kl_mean, result.kl_p99, result.top1_agreement) == (
        8,
        0.0,
        0.0,
        1.0,
    )
    assert result.perplexity == result.reference_perplexity > 1
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]  # the logits are gone


def test_each_number_is_its_definition():
    reference, own = Fixed(0), Fixed(0, moved=1.5)
    result = compared(reference, own)
    p, q = probabilities(reference), probabilities(own)
    divergences = (p * np.log(p / q)).sum(-1)
    assert result.kl_mean == pytest.approx(divergences.mean())
    assert result.kl_p99 == pytest.approx(np.percentile(divergences, 99))
    assert result.top1_agreement == (p.argmax(-1) == q.argmax(-1)).mean() < 1
    # The last position of a text predicts a token that is not there.
    known = [(0, 4), (1, 2), (2, 6), (3, 0), (5, 3), (6, 5)]
    for probability, perplexity in ((q, result.perplexity), (p, result.reference_perplexity)):
        surprise = -np.mean([np.log(probability[row, token]) for row, token in known])
        assert perplexity == pytest.approx(np.exp(surprise))
