"""Granite 4: Mamba-2 layers and some with attention; GraniteMoe's feed-forward, or a dense one.

Source: transformers' `modeling_granitemoehybrid.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

from tvm.relax.frontend import nn

from .. import layer_kinds
from ..arch import Architecture, RopeConfig, concat, rename
from ..blocks import mamba2
from ..blocks.experts import Experts, SparseMLP
from ..blocks.mamba2 import MAMBA2, Mamba2Config
from ..config import Range, Size
from ..layer_kinds import FULL, LINEAR
from ..layers.dense import GatedMLP
from ..lineages import granite
from ..lineages.granite import GraniteMoeConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class GraniteMoeHybridConfig(Mamba2Config, GraniteMoeConfig):
    """Fields of Granite 4's config.json that shape the computation."""

    num_local_experts: Annotated[int, Range(0, 2**12)] = 8  # 0: the shared expert alone
    num_experts_per_tok: Annotated[int, Range(0, 2**12)] = 2
    shared_intermediate_size: Size = 1024
    layer_types: tuple[str, ...] = ()  # kind of each layer; (): all are Mamba-2 layers
    position_embedding_type: Literal["rope", "nope"] | None = None  # None: as "nope"
    ALIASES: ClassVar[Mapping[str, str]] = {
        "num_experts": "num_local_experts",
        "layers_block_type": "layer_types",
    }
    ACCEPTED: ClassVar[Mapping[str, tuple[Any, ...]]] = {
        "hidden_act": ("silu",),
        "normalization_function": ("rmsnorm",),
    }
    IGNORED: ClassVar[tuple[str, ...]] = ("init_method", "mamba_chunk_size")

    prepared = staticmethod(layer_kinds.respelled)

    def problems(self) -> Iterator[str]:
        yield from GraniteMoeConfig.problems(self)
        yield from layer_kinds.problems(self.layer_types, (FULL, LINEAR), self.num_hidden_layers)
        yield from self.mamba_problems()

    def attends(self, layer: int) -> bool:
        """Return whether a layer has attention; the others are Mamba-2 layers."""
        return bool(self.layer_types) and self.layer_types[layer] == FULL

    def rope_of(self, layer: int) -> RopeConfig | None:
        return self.rope if self.position_embedding_type == "rope" else None

    def experts_of(self, layer: int) -> Experts | None:
        if not self.num_local_experts:
            return None
        return GraniteMoeConfig.experts_of(self, layer)


class Block(mamba2.Block):
    def feed_forward(self, cfg: Any, layer: int) -> nn.Module:
        spec = cfg.experts_of(layer)
        if spec is None:
            return GatedMLP(cfg.hidden_size, cfg.shared_intermediate_size)
        return SparseMLP(cfg.hidden_size, spec)


class Decoder(mamba2.Decoder):
    block = Block


class CausalLM(mamba2.CausalLM):
    decoder = Decoder


ARCH = Architecture(
    name="granitemoehybrid",
    config=GraniteMoeHybridConfig,
    model=CausalLM,
    weights=(
        *MAMBA2,
        concat(
            "mlp.gate_up_proj.weight",
            "shared_mlp.gate_proj.weight",
            "shared_mlp.up_proj.weight",
            fused="shared_mlp.input_linear.weight",
        ),
        *granite.EXPERTS,
        rename("mlp.down_proj.weight", "shared_mlp.output_linear.weight"),
    ),
)
