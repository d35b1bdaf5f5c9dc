"""GTE's encoders (gte-multilingual, gte-en-v1.5): RoPE, gates, norms after additions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from tvm.relax.frontend import nn

from .. import encoder, rotary_encoder
from ..arch import Architecture, drop, rename, reorder
from ..encoder import EncoderConfig, dropped, named
from ..layers.activations import NAMES
from ..layers.dense import GatedMLP
from ..rotary_encoder import RotaryConfig

_MOST = 1e9  # of a number that takes part in RoPE


@dataclass(frozen=True, slots=True, kw_only=True)
class GteConfig(RotaryConfig):
    """Fields of Gte's config.json that shape the computation.

    The first version, whose code came with the weights, calls its `model_type` "new".
    """

    ACCEPTED: ClassVar[Mapping[str, tuple[Any, ...]]] = {
        "layer_norm_type": ("layer_norm",),
        "logn_attention_clip1": (False,),
        "logn_attention_scale": (False,),
        "pack_qkv": (True,),
        "position_embedding_type": ("rope",),
    }
    IGNORED: ClassVar[tuple[str, ...]] = (
        *EncoderConfig.IGNORED,
        "unpad_inputs",
        "use_memory_efficient_attention",
    )

    @staticmethod
    def prepared(given: dict[str, Any]) -> dict[str, Any]:
        """Return the fields with the family's base of RoPE, and its type "ntk" as "linear"."""
        if not {"rope_theta", "rope_parameters"} & given.keys():
            theta = 10000.0 if given.get("model_type") == "new" else 160000.0
            given = given | {"rope_theta": theta}
        return _without_ntk(given)


def _without_ntk(given: dict[str, Any]) -> dict[str, Any]:
    """Spell RoPE's type "ntk" as "linear", by which all frequencies have another factor.

    With a head of e elements, base b and factor k, the frequency i is (k b)^(-2i/e) / k^(2/e), for
    texts of any length: https://kexue.fm/archives/9706, equation 6. A `mixed_b`, equation 10, stays
    as an unknown field.
    """
    scaling = given.get("rope_scaling")
    if not isinstance(scaling, dict) or scaling.get("type") != "ntk":
        return given
    names = ("hidden_size", "num_attention_heads", "rope_theta")
    numbers: list[Any] = [*(given.get(name) for name in names), scaling.get("factor")]
    if not all(type(number) in (int, float) and 0 < number < _MOST for number in numbers):
        return given
    hidden, heads, theta, factor = numbers
    linear = {"type": "linear", "factor": factor ** (2 * heads / hidden)}
    return given | {"rope_theta": theta * factor, "rope_scaling": scaling | linear}


@dataclass(frozen=True, slots=True)
class GateFirst:
    """Row order of two matrices of `size` rows, of which the checkpoint has the second first."""

    size: int

    def source(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the checkpoint row of each row of the parameter."""
        return (rows + self.size) % (2 * self.size)


class FeedForward(GatedMLP):
    """Gated feed-forward whose last linear alone has a bias."""

    def __init__(self, cfg: GteConfig) -> None:
        super().__init__(cfg.hidden_size, cfg.intermediate_size, NAMES[cfg.hidden_act])
        self.down_proj = nn.Linear(cfg.intermediate_size, cfg.hidden_size, bias=True)


class Block(rotary_encoder.PostNormBlock):
    def feed_forward(self, cfg: Any) -> nn.Module:
        return FeedForward(cfg)


class Encoder(rotary_encoder.Encoder):
    block = Block


class GteModel(encoder.EncoderModel):
    encoder = Encoder


ARCH = Architecture(
    name="gte",
    config=GteConfig,
    model=GteModel,
    weights=(
        *named(
            {
                "attn.qkv_proj": "attention.qkv_proj",
                "attn.o_proj": "attention.o_proj",
                "attn_norm": "attn_ln",
                "mlp_norm": "mlp_ln",
                "head.dense": "gte.pooler.dense",
                "head.out": "classifier",
            }
        ),
        rename("mlp.gate_up_proj.weight", "mlp.up_gate_proj.weight"),
        reorder("mlp.up_gate_proj.weight", lambda cfg: GateFirst(cfg.intermediate_size)),
        *dropped("pooler.dense"),
        drop("lm_head.*"),
        rename("model.embeddings.*", "gte.embeddings.*"),
        rename("model.layers.*", "gte.encoder.layer.*"),
    ),
    aliases=("new",),
    base="gte",
    older_base="new",
)
