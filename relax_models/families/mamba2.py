"""Mamba-2 models: every layer is a Mamba-2 layer, and there is no attention.

Source: transformers' `modeling_mamba2.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar

from tvm.relax.frontend import nn
from tvm.relax.frontend.nn import Tensor

from .. import decoder
from ..arch import Architecture
from ..blocks.mamba2 import BACKBONE, MAMBA2, Mamba2, Mamba2Config
from ..blocks.recurrent import RecurrentConfig
from ..config import Count, Size
from ..decoder import TIED
from ..step import Batch


@dataclass(frozen=True, slots=True, kw_only=True)
class Mamba2ModelConfig(Mamba2Config, RecurrentConfig):
    """Fields of Mamba-2's config.json that shape the computation."""

    mamba_d_head: Size = 64
    mamba_n_groups: Count = 8
    mamba_d_state: Size = 128
    SPELLED: ClassVar[Mapping[str, str]] = {
        "rms_norm_eps": "layer_norm_epsilon",
        "mamba_n_heads": "num_heads",
        "mamba_d_head": "head_dim",
        "mamba_n_groups": "n_groups",
        "mamba_d_state": "state_size",
        "mamba_d_conv": "conv_kernel",
        "mamba_expand": "expand",
        "mamba_conv_bias": "use_conv_bias",
        "mamba_proj_bias": "use_bias",
    }
    IGNORED: ClassVar[tuple[str, ...]] = (
        *RecurrentConfig.IGNORED,
        "chunk_size",
        "norm_before_gate",
        "rms_norm",
    )

    def problems(self) -> Iterator[str]:
        yield from self.mamba_problems()


class Block(nn.Module):
    """Pre-norm block with a Mamba-2 layer."""

    def __init__(self, cfg: Mamba2ModelConfig, layer: int) -> None:
        self.norm = cfg.norm()
        self.mixer = Mamba2(cfg.mamba2())

    def forward(self, x: Tensor, batch: Batch) -> Tensor:
        """Run the layer: x [n, d] -> [n, d]."""
        return x + self.mixer(self.norm(x), batch)


class Decoder(decoder.Decoder):
    block = Block


class CausalLM(decoder.CausalLM):
    decoder = Decoder


ARCH = Architecture(
    name="mamba2",
    config=Mamba2ModelConfig,
    model=CausalLM,
    weights=(*MAMBA2, TIED, *BACKBONE),
)
