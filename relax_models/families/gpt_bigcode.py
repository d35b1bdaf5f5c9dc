"""GPT-BigCode decoders (StarCoder, SantaCoder): GPT-2 whose query heads share one KV head."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from .. import classic
from ..arch import Architecture, Groups, WeightRule, reorder
from ..config import Range
from ..decoder import TIED
from ..layers.activations import Name
from ..lineages import gpt2
from ..lineages.gpt2 import GPT2Config


@dataclass(frozen=True, slots=True, kw_only=True)
class GPTBigCodeConfig(GPT2Config):
    """Fields of GPTBigCode's config.json that shape the computation."""

    hidden_act: Name = "gelu_pytorch_tanh"
    multi_query: bool = True
    ACCEPTED: ClassVar[Mapping[str, tuple[Any, ...]]] = {"add_cross_attention": (False,)}
    IGNORED: ClassVar[tuple[str, ...]] = (
        *GPT2Config.IGNORED,
        "attention_softmax_in_fp32",
        "scale_attention_softmax_in_fp32",
        "runner_max_sequence_length",
        "inference_runner",
        "max_batch_size",
        "max_sequence_length",
        "pad_key_length",
        "pre_allocate_kv_cache",
        "validate_runner_input",
    )
    num_key_value_heads: Annotated[int, Range(1, 2**12)] | None = None

    @property
    def kv_heads(self) -> int:
        return 1 if self.multi_query else self.num_attention_heads


def _groups(cfg: GPTBigCodeConfig) -> Groups:
    """Return the row order of qkv: all q heads, k, v; or q, k, v of one head after another."""
    return Groups(cfg.num_attention_heads, cfg.kv_heads, cfg.head_size)


WEIGHTS: tuple[WeightRule, ...] = (
    TIED,
    *gpt2.NAMES,
    *(reorder(f"attn.c_attn.{kind}", _groups) for kind in ("weight", "bias")),
)
ARCH = Architecture(
    name="gpt_bigcode",
    config=GPTBigCodeConfig,
    model=classic.PositionedLM,
    weights=WEIGHTS,
    base="transformer",
)
