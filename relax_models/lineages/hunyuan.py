"""HunYuan's configuration, dense and with experts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar

from wherry.ops import AttentionShape

from .. import decoder
from ..arch import RopeConfig
from ..config import Epsilon, Positions, Range
from ..decoder import Biases


@dataclass(frozen=True, slots=True, kw_only=True)
class HunYuanDenseV1Config(decoder.DecoderConfig):
    """Fields of HunYuanDenseV1's config.json that shape the computation."""

    max_position_embeddings: Positions = 2048
    rms_norm_eps: Epsilon = 1e-5
    attention_bias: bool = False
    stretch: Annotated[float, Range(1.0, 1e6)] | None = None
    SPELLED: ClassVar[Mapping[str, str]] = {"stretch": "alpha"}
    ACCEPTED: ClassVar[Mapping[str, tuple[Any, ...]]] = {
        "hidden_act": ("silu",),
        "mlp_bias": (False,),
        "use_qk_norm": (True,),
        "use_cla": (False,),
    }
    IGNORED: ClassVar[tuple[str, ...]] = (
        "eod_token_id",
        "im_start_id",
        "im_end_id",
        "im_newline_id",
        "text_start_id",
        "text_end_id",
        "sep_token_id",
        "org_vocab_size",
        "attention_head_dim",  # the same as head_dim
        "cla_share_factor",
        "add_classification_head",
        "class_num",
        "pool_type",
        "norm_type",
        "mask_init_id",
    )

    @staticmethod
    def prepared(given: dict[str, Any]) -> dict[str, Any]:
        """Turn RoPE of type "dynamic" with a fixed `alpha` into plain RoPE with another base."""
        given = dict(given)
        for name in ("rope_scaling", "rope_parameters"):
            rope = given.get(name)
            if isinstance(rope, dict) and rope.get("alpha"):
                kind = rope.get("rope_type", rope.get("type"))
                if kind == "dynamic":
                    given["alpha"] = rope["alpha"]
                    kept = {"rope_theta", "partial_rotary_factor"} & set(rope)
                    given[name] = {"rope_type": "default"} | {k: rope[k] for k in kept}
        return given

    def rope_of(self, layer: int) -> RopeConfig | None:
        e = self.head_size
        return replace(self.rope, theta=self.rope.theta * (self.stretch or 1.0) ** (e / (e - 2)))

    def attention_shape(self, layer: int = 0) -> AttentionShape:
        shape = decoder.DecoderConfig.attention_shape(self, layer)
        eps = self.rms_norm_eps
        return replace(shape, qk_norm_eps=eps, norm_last=True, rope_scaling=1.0)

    def biases(self) -> Biases:
        return Biases(qkv=self.attention_bias, out=self.attention_bias)
