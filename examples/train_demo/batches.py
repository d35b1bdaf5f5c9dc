"""Packs documents, which are generated during training and tokenized, into the rows of batches."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from random import Random

import numpy as np
import torch
from corpus import ASSISTANT, BOS, EARLY, END, PAD, SYSTEM, USER, document
from tokenizers import Tokenizer
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

_IGNORE = -100  # target value that cross_entropy ignores


class Packer:
    """Generates the batch of a step; the same seed, step and shape always give the same batch."""

    def __init__(self, tokenizer: Tokenizer, seed: int) -> None:
        self.tokenizer, self.seed = tokenizer, seed
        self.ids = {
            token: tokenizer.token_to_id(token)
            for token in (BOS, END, SYSTEM, USER, ASSISTANT, PAD)
        }

    def batch(
        self, step: int, rows: int, length: int, mix: dict[str, int] = EARLY
    ) -> tuple[Tensor, Tensor]:
        """Return inputs and targets, each [rows, length] int64; -100 for targets left out."""
        rng = Random(self.seed * 1_000_003 + step)
        room = [length + 1] * rows
        content: list[list[int]] = [[] for _ in range(rows)]
        misses = 0
        while misses < 24:
            texts = [document(rng, mix) for _ in range(16)]
            for encoding in self.tokenizer.encode_batch_fast(texts, add_special_tokens=False):
                ids = encoding.ids[: length + 1]
                row = next((i for i in range(rows) if room[i] >= len(ids)), -1)
                if row < 0:
                    misses += 1
                    continue
                content[row] += ids
                room[row] -= len(ids)
        packed = np.full((rows, length + 1), self.ids[PAD], dtype=np.int64)
        for i, ids in enumerate(content):
            packed[i, : len(ids)] = ids
        return torch.from_numpy(packed[:, :-1].copy()), torch.from_numpy(self._targets(packed))

    def _targets(self, packed: np.ndarray) -> np.ndarray:
        """Return the targets, without the user's words; `packed` is [rows, length + 1]."""
        counts = np.zeros(packed.shape, dtype=bool)
        speaking = np.zeros(packed.shape[0], dtype=bool)
        ids = self.ids
        for t in range(packed.shape[1]):
            now = packed[:, t]
            counts[:, t] = speaking & (now != ids[USER]) & (now != ids[SYSTEM]) & (now != ids[PAD])
            speaking = np.where((now == ids[BOS]) | (now == ids[ASSISTANT]), True, speaking)
            speaking &= (
                (now != ids[USER]) & (now != ids[SYSTEM]) & (now != ids[END]) & (now != ids[PAD])
            )
        return np.where(counts, packed, _IGNORE)[:, 1:].copy()


class BatchOfStep(Dataset[tuple[Tensor, Tensor]]):
    """A data set of the batches `make(step)`.

    Processes of a DataLoader generate them in advance.
    """

    def __init__(self, make: Callable[[int], tuple[Tensor, Tensor]]) -> None:
        self.make = make

    def __getitem__(self, step: int) -> tuple[Tensor, Tensor]:
        return self.make(step)


def batches(
    make: Callable[[int], tuple[Tensor, Tensor]], steps: range, processes: int
) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield the batch of each step, in order; with 0 processes it is generated when needed."""
    return iter(
        DataLoader(
            BatchOfStep(make),
            batch_size=None,
            sampler=steps,
            num_workers=processes,
            prefetch_factor=8 if processes else None,
        )
    )
