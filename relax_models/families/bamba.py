"""Bamba: Mamba-2 layers and some with attention, of which half of each head rotates.

Source: transformers' `modeling_bamba.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from ..arch import Architecture, rename
from ..blocks.mamba2 import MAMBA2, CausalLM, Mamba2Config
from ..config import Epsilon, Positions, Range
from ..decoder import WEIGHTS
from ..lineages.llama import LlamaConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class BambaConfig(Mamba2Config, LlamaConfig):
    """Fields of Bamba's config.json that shape the computation."""

    max_position_embeddings: Positions = 262144
    rms_norm_eps: Epsilon = 1e-5
    # layers with attention; the others are Mamba-2 layers
    attn_layer_indices: tuple[Annotated[int, Range(0, 2**12)], ...] = ()
    attn_rotary_emb: Annotated[int, Range(0, 2**12)] = 0  # dimensions that rotate; 0: not said
    DEFAULTS: ClassVar[Mapping[str, Any]] = {
        "num_key_value_heads": 8,
        "partial_rotary_factor": 0.5,
    }
    IGNORED: ClassVar[tuple[str, ...]] = (
        "mamba_chunk_size",
        "num_logits_to_keep",
        "z_loss_coefficient",
        "use_mamba_kernels",
    )

    def problems(self) -> Iterator[str]:
        yield from LlamaConfig.problems(self)
        yield from self.mamba_problems()
        beyond = [i for i in self.attn_layer_indices if i >= self.num_hidden_layers]
        if beyond:
            yield f"attn_layer_indices: found {beyond}, there are {self.num_hidden_layers} layers"
        rotary = self.rope.rotary_dim(self.head_size)
        if self.attn_rotary_emb not in (0, rotary):
            yield f"attn_rotary_emb: found {self.attn_rotary_emb}, supported is {rotary}"

    def attends(self, layer: int) -> bool:
        """Return whether a layer has attention; the others are Mamba-2 layers."""
        return layer in self.attn_layer_indices


ARCH = Architecture(
    name="bamba",
    config=BambaConfig,
    model=CausalLM,
    weights=(
        *MAMBA2,
        *WEIGHTS,
        rename("model.norm.weight", "model.final_layernorm.weight"),
        rename("model.layers.*.mlp.*", "model.layers.*.feed_forward.*"),
        rename(
            "model.layers.*.post_attention_layernorm.weight",
            "model.layers.*.pre_ff_layernorm.weight",
        ),
    ),
)
