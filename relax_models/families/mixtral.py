"""Mixtral mixtures of experts: Mistral whose feed-forwards are experts in every layer."""

from __future__ import annotations

from ..arch import Architecture
from ..blocks.experts import CausalLM
from ..decoder import WEIGHTS
from ..lineages.mixtral import SPARSE_MOE, MixtralConfig

ARCH = Architecture(
    name="mixtral", config=MixtralConfig, model=CausalLM, weights=(*SPARSE_MOE, *WEIGHTS)
)
