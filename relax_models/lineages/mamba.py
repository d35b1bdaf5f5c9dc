"""Mamba's decoder, which Falcon Mamba has, too.

Source: transformers' `modeling_mamba.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from tvm.relax.frontend import nn
from tvm.relax.frontend.nn import Tensor

from wherry.ops import MambaSpec

from .. import decoder
from ..blocks.mamba import MAMBA, Expand, Mamba, MambaShape, Rank, rank_of
from ..blocks.mamba2 import BACKBONE
from ..blocks.recurrent import RecurrentConfig
from ..config import Count, Size
from ..decoder import TIED
from ..step import Batch


@dataclass(frozen=True, slots=True, kw_only=True)
class MambaConfig(RecurrentConfig):
    """Fields of Mamba's config.json that shape the computation."""

    tie_word_embeddings: bool = True
    intermediate_size: Size | None = None  # number of channels; None: expand * hidden_size
    expand: Expand = 2
    state_size: Size = 16
    conv_kernel: Count = 4
    time_step_rank: Rank = "auto"
    use_bias: bool = False
    use_conv_bias: bool = True
    SPELLED: ClassVar[Mapping[str, str]] = {"rms_norm_eps": "layer_norm_epsilon"}
    ACCEPTED: ClassVar[Mapping[str, tuple[Any, ...]]] = {
        **RecurrentConfig.ACCEPTED,
        "rms_norm": (True,),
    }
    IGNORED: ClassVar[tuple[str, ...]] = (
        *RecurrentConfig.IGNORED,
        "d_inner",
        "d_model",
        "fused_add_norm",
        "n_layer",
        "pad_vocab_size_multiple",
        "ssm_cfg",
        "time_step_init_scheme",
        "time_step_scale",
        "use_associative_scan",
        "use_mambapy",
    )

    def problems(self) -> Iterator[str]:
        if problem := self.mamba().problem():
            yield f"conv_kernel: {problem}"

    def mamba(self) -> MambaShape:
        """Return the static shape of a layer."""
        channels = self.intermediate_size or int(self.expand * self.hidden_size)
        return MambaShape(
            spec=MambaSpec(channels=channels, state_dim=self.state_size),
            hidden_size=self.hidden_size,
            rank=rank_of(self.time_step_rank, self.hidden_size),
            taps=self.conv_kernel,
            conv_bias=self.use_conv_bias,
            bias=self.use_bias,
        )


class Block(nn.Module):
    """Pre-norm block with a Mamba layer."""

    def __init__(self, cfg: MambaConfig, layer: int) -> None:
        self.norm = cfg.norm()
        self.mixer = Mamba(cfg.mamba())

    def forward(self, x: Tensor, batch: Batch) -> Tensor:
        """Run the layer: x [n, d] -> [n, d]."""
        return x + self.mixer(self.norm(x), batch)


class Decoder(decoder.Decoder):
    block = Block


class CausalLM(decoder.CausalLM):
    decoder = Decoder


WEIGHTS = (*MAMBA, TIED, *BACKBONE)
