"""GPT-J's configuration, and the weight rules with its names (GPT-J, CodeGen)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar

from .. import classic
from ..arch import Pairs, RopeConfig, WeightRule, drop, rename
from ..config import Positions, Range
from ..decoder import Biases


@dataclass(frozen=True, slots=True, kw_only=True)
class GPTJConfig(classic.ClassicConfig):
    """Fields of GPTJ's config.json that shape the computation."""

    # dimensions of a head that rotate; None: all
    rotary_dim: Annotated[int, Range(2, 2**20)] | None = 64
    max_position_embeddings: Positions = 2048
    HEAD_BIAS: ClassVar[bool] = True
    SPELLED: ClassVar[Mapping[str, str]] = classic.SPELLED
    IGNORED: ClassVar[tuple[str, ...]] = (
        "attn_pdrop",
        "n_ctx",
        "rotary",
        "gradient_checkpointing",
        "scale_attn_weights",
        "summary_type",
        "summary_use_proj",
        "summary_activation",
        "summary_proj_to_labels",
        "summary_first_dropout",
    )

    def problems(self) -> Iterator[str]:
        yield from classic.ClassicConfig.problems(self)
        if self.rope != RopeConfig():
            yield f"rope_parameters: found {self.rope}; this family has rotary_dim alone"
        if self.rotated > self.head_size or self.rotated % 2:
            yield f"rotary_dim: {self.rotated} of the {self.head_size} dimensions of a head"

    @property
    def rotated(self) -> int:
        """Return how many dimensions of a head rotate."""
        return self.rotary_dim or self.head_size

    def rope_of(self, layer: int) -> RopeConfig | None:
        return replace(self.rope, partial_rotary_factor=self.rotated / self.head_size)

    def biases(self) -> Biases:
        return Biases(mlp=True)


def pairs(cfg: GPTJConfig) -> Pairs:
    """Return the row order in which neighbouring dimensions (2i, 2i + 1) form a RoPE pair."""
    return Pairs(cfg.head_size, cfg.rotated)


NAMES: tuple[WeightRule, ...] = (
    rename("self_attn.o_proj.weight", "attn.out_proj.weight"),
    *(
        rename(f"{param}.{kind}", f"{source}.{kind}")
        for param, source in (
            ("mlp.up_proj", "mlp.fc_in"),
            ("mlp.down_proj", "mlp.fc_out"),
            ("input_layernorm", "ln_1"),
            ("model.norm", "transformer.ln_f"),
        )
        for kind in ("weight", "bias")
    ),
    rename("model.embed_tokens.weight", "transformer.wte.weight"),
    rename("model.layers.*", "transformer.h.*"),
    drop("attn.bias"),  # a stored causal mask
    drop("attn.masked_bias"),
    drop("attn.causal_mask"),
)
