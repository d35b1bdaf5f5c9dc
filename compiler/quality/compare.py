"""Compares the next-token distributions of two models at every position of a text."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import IO

import numpy as np
from numpy.typing import NDArray

from wherry.base import settings

from .session import Session

Floats = NDArray[np.float64]
Seen = Callable[[int], None]  # receives the number of further tokens that are done


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """How far a model's distributions are from the reference's; KL divergences are in nats."""

    tokens: int  # number of distributions
    kl_mean: float
    kl_p99: float  # 99th percentile over positions
    top1_agreement: float  # share of positions with the same most likely token
    perplexity: float
    reference_perplexity: float


class Recorded:
    """The logits of the reference, in a file that is deleted at the end.

    The file is in the cache, because it has 4 bytes for each token of the text and of the
    vocabulary: hundreds of megabytes, and temporary folders may be in memory.
    """

    def __init__(self) -> None:
        folder = settings.cache_dir()
        folder.mkdir(parents=True, exist_ok=True)
        self._file: IO[bytes] = tempfile.TemporaryFile(dir=folder, prefix=".logits.")

    def __enter__(self) -> Recorded:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def write(self, logits: NDArray[np.float32]) -> None:
        """Append rows [n, vocab]."""
        self._file.write(np.ascontiguousarray(logits, "<f4").data)

    def rewind(self) -> None:
        """Read from the first row again."""
        self._file.seek(0)

    def read(self, rows: int, vocab_size: int) -> NDArray[np.float32]:
        """Return the next rows [rows, vocab]."""
        data = self._file.read(4 * rows * vocab_size)
        return np.frombuffer(data, "<f4").reshape(rows, vocab_size)


@dataclass(slots=True)
class _Sums:
    """What is kept of the positions that were compared so far."""

    divergences: list[Floats] = field(default_factory=list)
    agreements: int = 0
    predicted: int = 0  # positions whose next token is known
    surprise: float = 0.0  # of the known next tokens, in nats
    reference_surprise: float = 0.0

    def add(self, own: Floats, reference: Floats, following: NDArray[np.int64]) -> None:
        """Add positions: log-probabilities [n, vocab], ids of the next tokens [n or n - 1]."""
        self.divergences.append((np.exp(reference) * (reference - own)).sum(-1))
        self.agreements += int((own.argmax(-1) == reference.argmax(-1)).sum())
        rows = np.arange(len(following))
        self.predicted += len(following)
        self.surprise -= float(own[rows, following].sum())
        self.reference_surprise -= float(reference[rows, following].sum())

    def comparison(self) -> Comparison:
        """Return the statistics of all positions."""
        # A divergence is not negative, but its rounding errors may be.
        divergences = np.maximum(np.concatenate(self.divergences), 0.0)
        return Comparison(
            tokens=len(divergences),
            kl_mean=float(divergences.mean()),
            kl_p99=float(np.percentile(divergences, 99)),
            top1_agreement=self.agreements / len(divergences),
            perplexity=float(np.exp(self.surprise / self.predicted)),
            reference_perplexity=float(np.exp(self.reference_surprise / self.predicted)),
        )


def record(session: Session, texts: Sequence[Sequence[int]], into: Recorded, seen: Seen) -> None:
    """Write the reference's logits of all texts to a file."""
    for tokens in texts:
        for logits in session.logits(tokens):
            into.write(logits)
            seen(len(logits))
    into.rewind()


def compare(
    session: Session, texts: Sequence[Sequence[int]], recorded: Recorded, seen: Seen
) -> Comparison:
    """Compare a model with the recorded logits of the reference on the same texts."""
    sums = _Sums()
    for tokens in texts:
        done = 0
        for logits in session.logits(tokens):
            n = len(logits)
            following = np.asarray(tokens[done + 1 : done + n + 1], np.int64)
            reference = recorded.read(n, session.vocab_size)
            sums.add(_log_softmax(logits), _log_softmax(reference), following)
            done += n
            seen(n)
    return sums.comparison()


def _log_softmax(logits: NDArray[np.float32]) -> Floats:
    """Return log-probabilities float64 [n, vocab] for logits [n, vocab]."""
    shifted = logits.astype(np.float64) - logits.max(-1, keepdims=True)
    log_probabilities: Floats = shifted - np.log(np.exp(shifted).sum(-1, keepdims=True))
    return log_probabilities
