"""Falcon Mamba: Mamba with norms of the steps, of B and of C, which have no weights.

Source: transformers' `modeling_falcon_mamba.py`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from ..arch import Architecture, constant
from ..blocks.mamba import MambaShape
from ..config import Epsilon
from ..lineages import mamba
from ..lineages.mamba import MambaConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class FalconMambaConfig(MambaConfig):
    """Fields of Falcon Mamba's config.json that shape the computation."""

    mixer_rms_eps: Epsilon = 1e-6
    IGNORED: ClassVar[tuple[str, ...]] = (*MambaConfig.IGNORED, "use_falcon_mambapy")

    def mamba(self) -> MambaShape:
        return replace(MambaConfig.mamba(self), norm_eps=self.mixer_rms_eps)


ARCH = Architecture(
    name="falcon_mamba",
    config=FalconMambaConfig,
    model=mamba.CausalLM,
    weights=(
        *(constant(f"{name}_layernorm.weight", 1.0) for name in ("dt", "b", "c")),
        *mamba.WEIGHTS,
    ),
)
