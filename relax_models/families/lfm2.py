"""LFM2 decoders: gated short convolutions, and attention with norms of q and k in some layers.

Source: transformers' `modeling_lfm2.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from ..arch import Architecture
from ..config import Range, Size
from ..decoder import FULL, WEIGHTS
from ..lineages import lfm2
from ..lineages.lfm2 import ConvConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class Lfm2Config(ConvConfig):
    """Fields of LFM2's config.json that shape the computation."""

    intermediate_size: Size = 12288  # before `feed_forward_size`
    block_multiple_of: Size = 256
    block_ffn_dim_multiplier: Annotated[float, Range(1e-3, 1e3)] = 1.0
    block_auto_adjust_ff_dim: bool = True
    full_attn_idxs: tuple[Annotated[int, Range(0, 2**12)], ...] | None = None
    ALIASES: ClassVar[Mapping[str, str]] = {
        **ConvConfig.ALIASES,
        "block_ff_dim": "intermediate_size",
    }
    ACCEPTED: ClassVar[Mapping[str, tuple[Any, ...]]] = {
        "block_use_swiglu": (True,),
        "use_pos_enc": (True,),
    }
    # Other names of fields above, and numbers of the initial weights.
    IGNORED: ClassVar[tuple[str, ...]] = (
        "block_dim",
        "block_mlp_init_scale",
        "block_norm_eps",
        "block_out_init_scale",
        "block_use_xavier_init",
        "conv_dim",
        "conv_dim_out",
        "conv_use_xavier_init",
        "num_heads",
    )

    def default_kind(self, layer: int) -> str:
        is_full = self.full_attn_idxs is None or layer in self.full_attn_idxs
        return FULL if is_full else lfm2.CONV

    @property
    def feed_forward_size(self) -> int:
        if not self.block_auto_adjust_ff_dim:
            return self.intermediate_size
        size = int(self.block_ffn_dim_multiplier * int(2 * self.intermediate_size / 3))
        return -(-size // self.block_multiple_of) * self.block_multiple_of


ARCH = Architecture(
    name="lfm2",
    config=Lfm2Config,
    model=lfm2.CausalLM,
    weights=(*lfm2.DENSE, *WEIGHTS, *lfm2.ATTENTION),
)
