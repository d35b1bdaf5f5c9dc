"""Gemma 4 decoders, text: two kinds of heads, shared KV caches, per-layer embeddings.

Layers with a sliding window have many small heads; the others have large heads, few KV heads, and
may use their keys (before norm and rotation) as values. The last layers may read the KV cache of
the last earlier layer of the same kind. A layer may add an embedding from a token table of its own,
and run a mixture of experts in parallel with its feed-forward.
"""

from __future__ import annotations

from ..arch import Architecture
from ..lineages import gemma4
from ..lineages.gemma4 import Gemma4Config

ARCH = Architecture(
    name="gemma4_text", config=Gemma4Config, model=gemma4.CausalLM, weights=gemma4.WEIGHTS
)
