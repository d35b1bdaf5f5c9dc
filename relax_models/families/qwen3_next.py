"""Qwen3-Next decoders: Qwen3.5 with experts, and projections whose rows are sorted by key heads.

Source: transformers' `modeling_qwen3_next.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..arch import Architecture, drop, reorder, split
from ..blocks.experts import STACKED, Experts
from ..config import Count, Size
from ..decoder import WEIGHTS
from ..drafts import mtp
from ..lineages import qwen3_5
from ..lineages.qwen import SparseConfig
from ..lineages.qwen3_5 import GATED, Qwen3_5Config


@dataclass(frozen=True, slots=True, kw_only=True)
class Qwen3NextConfig(SparseConfig, Qwen3_5Config):
    """Fields of Qwen3-Next's config.json that shape the computation."""

    intermediate_size: Size = 5632
    moe_intermediate_size: Size = 512
    shared_expert_intermediate_size: Size = 512
    num_experts_per_tok: Count = 10
    num_experts: Count = 512
    norm_topk_prob: bool = True

    def experts_of(self, layer: int) -> Experts | None:
        spec = SparseConfig.experts_of(self, layer)
        if spec is None:
            return None
        return replace(spec, shared=self.shared_expert_intermediate_size, shared_gate=True)


@dataclass(frozen=True, slots=True)
class ByKeyHead:
    """Row order of a projection that has, for each key head, `sizes` rows of each of its parts.

    The model has the first part of all heads, then the second, and so on.
    """

    heads: int
    sizes: tuple[int, ...]

    def source(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the checkpoint row of each row of the parameter."""
        each = np.array(self.sizes)
        ends = np.cumsum(each)
        part = np.searchsorted(self.heads * ends, rows, side="right")
        before = ends - each  # rows of a head before each part
        head, k = np.divmod(rows - self.heads * before[part], each[part])
        result: NDArray[np.int64] = head * ends[-1] + before[part] + k
        return result


def _by_key_head(sizes: Callable[[Any, int], tuple[int, ...]]) -> Callable[[Any], ByKeyHead]:
    def order(cfg: Any) -> ByKeyHead:
        heads = cfg.linear_num_key_heads
        return ByKeyHead(heads, sizes(cfg, cfg.linear_num_value_heads // heads))

    return order


def _qkvz(cfg: Any, shared: int) -> tuple[int, ...]:
    values = shared * cfg.linear_value_head_dim
    return (cfg.linear_key_head_dim, cfg.linear_key_head_dim, values, values)


ARCH = Architecture(
    name="qwen3_next",
    config=Qwen3NextConfig,
    model=qwen3_5.SparseLM,
    weights=(
        *GATED,
        split("in_proj_qkvz.weight", "in_proj_qkv.weight", "in_proj_z.weight"),
        reorder("in_proj_qkvz.weight", _by_key_head(_qkvz)),
        reorder("in_proj_ba.weight", _by_key_head(lambda _cfg, shared: (shared, shared))),
        *STACKED,
        *WEIGHTS,
        qwen3_5.SHARED,
        drop("mtp.*"),
    ),
    # config.json of the published checkpoints does not count the block that they have.
    drafts=mtp.beside_layers(qwen3_5.SparseBlock, lambda _cfg: None),
)
