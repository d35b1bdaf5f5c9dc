"""Granite mixtures of experts: Granite with experts in every layer, some also a shared expert."""

from __future__ import annotations

from ..arch import Architecture
from ..blocks.experts import CausalLM
from ..lineages import granite
from ..lineages.granite import GraniteMoeConfig

ARCH = Architecture(
    name="granitemoe",
    config=GraniteMoeConfig,
    model=CausalLM,
    weights=granite.EXPERTS,
    aliases=("granitemoeshared",),
)
