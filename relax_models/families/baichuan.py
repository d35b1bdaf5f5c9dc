"""Baichuan and Baichuan 2 decoders: Llama with q, k and v in one tensor; 13B with ALiBi."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar

from wherry.ops import AttentionShape

from .. import decoder
from ..arch import Architecture, RopeConfig, concat, drop, rename, unit_rows
from ..blocks.positions import alibi
from ..config import Positions, Range
from ..decoder import CausalLM


@dataclass(frozen=True, slots=True, kw_only=True)
class BaichuanConfig(decoder.DecoderConfig):
    """Fields of Baichuan's config.json that shape the computation.

    Models with ALiBi have `model_max_length` alone. Baichuan 2, which has `z_loss_weight`,
    normalizes the rows of its LM head.
    """

    max_position_embeddings: Positions = 4096
    model_max_length: Positions | None = None
    z_loss_weight: Annotated[float, Range(0.0, 1e3)] | None = None
    has_alibi: bool = False
    IGNORED: ClassVar[tuple[str, ...]] = ("_from_model_config",)

    @staticmethod
    def prepared(given: dict[str, Any]) -> dict[str, Any]:
        """Select ALiBi for a config.json that states no number of positions."""
        if "max_position_embeddings" in given or "model_max_length" not in given:
            return given
        return {
            **given,
            "max_position_embeddings": given["model_max_length"],
            "has_alibi": True,
        }

    def problems(self) -> Iterator[str]:
        yield from decoder.DecoderConfig.problems(self)
        if self.has_alibi and self.rope != RopeConfig():
            yield f"rope_parameters: found {self.rope} without max_position_embeddings"

    @property
    def normalised_head(self) -> bool:
        """Return whether the rows of the LM head are normalized to length one."""
        return self.z_loss_weight is not None

    def rope_of(self, layer: int) -> RopeConfig | None:
        return None if self.has_alibi else self.rope

    def attention_shape(self, layer: int = 0) -> AttentionShape:
        shape = decoder.DecoderConfig.attention_shape(self, layer)
        slopes = alibi(self.num_attention_heads) if self.has_alibi else ()
        return replace(shape, slopes=slopes)


ARCH = Architecture(
    name="baichuan",
    config=BaichuanConfig,
    model=CausalLM,
    weights=(
        concat("gate_up_proj.weight", "gate_proj.weight", "up_proj.weight"),
        unit_rows("lm_head.weight", when="normalised_head"),
        rename("qkv_proj.weight", "W_pack.weight"),
        drop("rotary_emb.inv_freq"),
    ),
)
