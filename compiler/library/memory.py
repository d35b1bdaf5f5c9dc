"""Computes the memory of a compiled model for its manifest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

from wherry.passes.recurrent_state import DTYPE

from .export import ExportedProgram

# bytes of one element
_SIZES = {"float32": 4, "float16": 2, "uint32": 4, "int32": 4, "int8": 1, "uint8": 1}


def bytes_of(shape: Sequence[int], dtype: str) -> int:
    """Return the bytes of a contiguous tensor."""
    return prod(shape) * _SIZES[dtype]


def declared(
    params: Sequence[Sequence[dict[str, Any]]],
    workspace: int,
    program: ExportedProgram,
    page_size: int,
    tower: Mapping[str, int] | None = None,
) -> dict[str, int]:
    """Return the bytes of a run by purpose, an upper bound for every library of the folder.

    Args:
        params: metadata of the parameters, one list per library.
        workspace: bytes of a step's intermediate tensors.
        program: the compiled program.
        page_size: tokens of one page of the KV cache.
        tower: from `of_tower`; None: the model takes no images.
    """
    pages = [bytes_of(own.page_shape, own.dtype) for own in program.cache.state for _ in own.layers]
    slots = [bytes_of(own.shape, DTYPE) * len(own.calls) for own in program.slots]
    weights = [[bytes_of(p["shape"], p["dtype"]) for p in each] for each in params]
    return {
        "weights": max(map(sum, weights)),
        "largest_weight": max(map(max, weights)),
        "kv_per_token": sum(pages) // page_size,
        # KV memory in units of the largest layer, because layers may differ
        "kv_layers": sum(pages) // max(pages) if pages else 0,
        "workspace": workspace,
        **({"slot": sum(slots)} if slots else {}),  # recurrent state of a sequence, or a snapshot
        **(tower or {}),
    }


def of_tower(
    params: Sequence[Sequence[dict[str, Any]]], workspace: int, features: int
) -> dict[str, int]:
    """Return the bytes that a model's tower adds to a run.

    Args:
        params: metadata of the tower's parameters, one list per library.
        workspace: bytes of the intermediate tensors of a tile.
        features: elements of a row of image features.
    """
    weights = (sum(bytes_of(p["shape"], p["dtype"]) for p in each) for each in params)
    return {"tower": max(weights) + workspace, "image_row": bytes_of([features], "float32")}
