"""Mamba models: every layer is a selective scan, and there is no attention."""

from __future__ import annotations

from ..arch import Architecture
from ..lineages import mamba
from ..lineages.mamba import MambaConfig

ARCH = Architecture(name="mamba", config=MambaConfig, model=mamba.CausalLM, weights=mamba.WEIGHTS)
