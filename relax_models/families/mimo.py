"""MiMo decoders: Qwen2, with a block of multi-token prediction.

Source: the modeling_mimo.py that comes with XiaomiMiMo's checkpoints.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from .. import decoder
from ..arch import Architecture, drop
from ..config import CountOrZero
from ..decoder import WEIGHTS, CausalLM
from ..drafts import mtp
from ..lineages.qwen import Qwen2Config


@dataclass(frozen=True, slots=True, kw_only=True)
class MiMoConfig(Qwen2Config):
    """Fields of MiMo's config.json that shape the computation."""

    ACCEPTED: ClassVar[Mapping[str, tuple[Any, ...]]] = {
        "hidden_act": ("silu",),
        "attention_bias": (True,),
    }
    num_nextn_predict_layers: CountOrZero = 0  # blocks of multi-token prediction

    def windowed(self, layer: int) -> bool:
        """Return whether `layer` has the sliding window; the layer of a block has none."""
        return layer < self.num_hidden_layers and Qwen2Config.windowed(self, layer)


BLOCK = mtp.named(
    lambda cfg: decoder.Block(cfg, cfg.num_hidden_layers),
    lambda _cfg: {
        "eh_proj.*": "model.mtp_layers.0.input_proj.*",
        "enorm.*": "model.mtp_layers.0.token_layernorm.*",
        "hnorm.*": "model.mtp_layers.0.hidden_layernorm.*",
        "norm.*": "model.mtp_layers.0.final_layernorm.*",
        "layer.*": "model.mtp_layers.0.*",
    },
    mtp.Wiring(keeps_normed=True, hidden_first=True),
)
ARCH = Architecture(
    name="mimo",
    config=MiMoConfig,
    model=CausalLM,
    weights=(*WEIGHTS, drop("model.mtp_layers.*")),
    drafts=BLOCK,
)
