"""CodeGen decoders: GPT-J whose q, v and k are stored in four parts, one per training device."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .. import classic
from ..arch import Architecture, Pairs, rename, reorder
from ..lineages import gptj
from ..lineages.gptj import GPTJConfig

PARTS = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeGenConfig(GPTJConfig):
    """Fields of CodeGen's config.json that shape the computation."""

    def problems(self) -> Iterator[str]:
        yield from GPTJConfig.problems(self)
        if self.num_attention_heads % PARTS:
            yield f"n_head: {self.num_attention_heads} is not divisible by the {PARTS} stored parts"


@dataclass(frozen=True, slots=True)
class Parts:
    """Row order [4, 3 (q, v, k), h / 4, e] of qkv in checkpoints, with rotated pairs as neighbours.

    The model has all rows of q, then of k, then of v, with rotated pairs as halves.
    """

    heads: int
    pairs: Pairs

    def source(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the checkpoint row of each qkv row of the model."""
        size = self.heads * self.pairs.head_dim
        part = size // PARTS
        which, row = rows // size, rows % size  # 0, 1 or 2 for q, k, v; row inside of it
        row = np.where(which < 2, self.pairs.source(row), row)
        place = np.array([0, 2, 1])[which]
        result: NDArray[np.int64] = row // part * 3 * part + place * part + row % part
        return result


def _parts(cfg: CodeGenConfig) -> Parts:
    return Parts(cfg.num_attention_heads, gptj.pairs(cfg))


ARCH = Architecture(
    name="codegen",
    config=CodeGenConfig,
    model=classic.BiasedLM,
    weights=(
        rename("self_attn.qkv_proj.weight", "attn.qkv_proj.weight"),
        *gptj.NAMES,
        reorder("attn.qkv_proj.weight", _parts),
    ),
    base="transformer",
)
