"""Kinds of layers, as config.json lists them: `layer_types`, `mlp_layer_types`. Without TVM."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

FULL, WINDOWED, LINEAR = "full_attention", "sliding_attention", "linear_attention"
DENSE, SPARSE = "dense", "sparse"  # of feed-forwards, in `mlp_layer_types`
# Kinds as configurations before transformers 5.10 spell them -> as they are spelled now.
_OLDER = {"attention": FULL, "mamba": LINEAR}


def problems(kinds: Sequence[str], supported: Sequence[str], layers: int) -> Iterator[str]:
    """Yield unknown ones among `kinds`, and a wrong number of them; (): none are listed."""
    unknown = sorted(set(kinds) - set(supported))
    if unknown:
        *most, last = supported
        names = f"{', '.join(most)} and {last}"
        yield f"layer_types: found {', '.join(unknown)}, supported are {names}"
    elif kinds and len(kinds) != layers:
        yield f"layer_types: {len(kinds)} found for the {layers} of num_hidden_layers"


def respelled(given: Mapping[str, Any], field: str = "layer_types") -> dict[str, Any]:
    """Return the fields of config.json with today's names of kinds in a list of them."""
    kinds = given.get(field)
    if not isinstance(kinds, list):
        return dict(given)
    return {**given, field: [_OLDER.get(k, k) if isinstance(k, str) else k for k in kinds]}


def feed_forward_problems(kinds: tuple[str, ...], layers: int) -> Iterator[str]:
    """Yield errors in `mlp_layer_types`, the kind of each layer's feed-forward."""
    unknown = sorted(set(kinds) - {DENSE, SPARSE})
    if unknown:
        yield f"mlp_layer_types: found {', '.join(unknown)}, supported are {DENSE} and {SPARSE}"
    if kinds and len(kinds) != layers:
        yield f"mlp_layer_types: {len(kinds)} found for the {layers} of num_hidden_layers"
