"""The memory of a compiled model, for its manifest."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from .export import Program

_SIZES = {"float32": 4, "float16": 2, "uint32": 4, "int32": 4, "int8": 1, "uint8": 1}  # bytes


def bytes_of(shape: Sequence[int], dtype: str) -> int:
    """Bytes of a compact tensor."""
    return prod(shape) * _SIZES[dtype]


def declared(
    params: Sequence[Sequence[dict[str, Any]]], workspace: int, program: Program, page_size: int
) -> dict[str, int]:
    """The bytes of a run, known before it starts; they hold for each of the libraries.

    Args:
        params: metadata of each library.
        workspace: bytes of a step's intermediate tensors.
        program: the compiled program.
        page_size: tokens.
    """
    pages = [
        bytes_of(own.page_shape, program.cache.dtype)
        for own in program.cache.state
        for _ in own.layers
    ]
    weights = [[bytes_of(p["shape"], p["dtype"]) for p in each] for each in params]
    return {
        "weights": max(map(sum, weights)),
        "largest_weight": max(map(max, weights)),
        "kv_per_token": sum(pages) // page_size,
        "kv_layers": sum(pages) // max(pages),  # layers may differ: in units of the largest one
        "workspace": workspace,
    }
