"""Offers parameters in the quantized blocks of a GGUF file, in the row order of a weight plan."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from wherry.models.weights.plan import ParameterPlan, Piece, rows_of
from wherry.quant.blocks import BLOCKS, BlockQuant

from .types import Layout

_SCHEMES = {scheme.name: scheme for scheme in BLOCKS}


class _Tensor(Protocol):
    """The properties of a tensor of the file that this module reads."""

    @property
    def shape(self) -> tuple[int, ...]: ...

    @property
    def layout(self) -> Layout: ...

    @property
    def keeps_bits(self) -> bool: ...


class _Blocks(Protocol):
    """The methods of `GgufCheckpoint` that this module calls."""

    def tensor(self, name: str) -> Any:
        """Return a `_Tensor` by its Hugging Face name."""

    def read_blocks(self, name: str, start: int = 0, stop: int | None = None) -> NDArray[np.uint8]:
        """Return the bytes of rows [start, stop), uint8 [rows, bytes per row]."""


@dataclass(frozen=True, slots=True)
class GgufRows:
    """Rows of a parameter whose tensors have one block type; a `KeptRows`."""

    scheme: BlockQuant
    pieces: tuple[Piece, ...]
    checkpoint: _Blocks

    @property
    def rows(self) -> int:
        """Return the number of rows."""
        return sum(piece.stop - piece.start for piece in self.pieces)

    def stored(self, start: int, stop: int) -> Mapping[str, NDArray[Any]]:
        """Return rows [start, stop) as the scheme stores them."""
        return self.scheme.split(self.blocks(start, stop))

    def blocks(self, start: int, stop: int) -> NDArray[np.uint8]:
        """Return rows [start, stop) as raw blocks, uint8 [stop - start, bytes per row]."""
        return np.concatenate(
            [
                self.checkpoint.read_blocks(self.pieces[i].name, rows.start, rows.stop)[
                    rows.selected
                ]
                for i, rows in rows_of(self.pieces, start, stop)
            ]
        )


def kept(plan: ParameterPlan, checkpoint: _Blocks) -> Sequence[GgufRows]:
    """Return a parameter's rows, one item for each run of tensors of one type.

    The result is empty if blocks cannot be copied: the parameter is a vector, the conversion
    changes its values or cuts its rows, or a tensor has a type without a scheme. Files with mixed
    bit widths often store v with more bits than q and k, and all three form one parameter, which
    then has two runs. A stack of experts has an item for each run of an expert's tensors, with the
    rows of all experts.
    """
    tensors: list[_Tensor] = [checkpoint.tensor(piece.name) for piece in plan.pieces]
    changed = plan.transpose or plan.unpacked or plan.unit_rows or plan.constant is not None
    if changed or len(plan.shape) < 2 or (plan.axis and len(tensors) > 1):
        return ()
    if len(plan.shape) == 3 and not plan.stacked:
        return ()
    columns = plan.shape[-1]
    for tensor in tensors:
        if len(tensor.shape) != 2 or tensor.shape[-1] != columns or not tensor.keeps_bits:
            return ()
        if tensor.layout.name not in _SCHEMES:
            return ()
    own = plan.of_expert
    kinds = [tuple(t.layout.name for t in tensors[i::own]) for i in range(own)]
    if any(len(set(kind)) > 1 for kind in kinds):
        return ()
    runs = groupby(range(own), key=lambda i: kinds[i][0])
    return [
        GgufRows(_SCHEMES[name], plan.of_each_expert(list(which)), checkpoint)
        for name, which in runs
    ]
