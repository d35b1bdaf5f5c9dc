"""Offers matrices whose columns are in another order in the file: the blocks, and that order.

A block has columns of several heads, so the blocks of a row cannot be moved. They stay as they are,
and the compiled model reorders the input of the matrix (`quant/act_order.py`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from wherry.models.weights.plan import ParameterPlan
from wherry.models.weights.rules import Order
from wherry.quant.act_order import ORDER, ActOrderQuant

from .kept import GgufRows, kept


class _Blocks(Protocol):
    """The methods of `GgufCheckpoint` that this module calls."""

    def tensor(self, name: str) -> Any:
        """Return a `GgufTensor` by its Hugging Face name."""

    def read_blocks(self, name: str, start: int = 0, stop: int | None = None) -> NDArray[np.uint8]:
        """Return the bytes of rows [start, stop), in the file's order of columns."""


@dataclass(frozen=True, slots=True)
class _AsStored:
    """The same tensors with their columns in the file's order."""

    checkpoint: _Blocks

    def tensor(self, name: str) -> Any:
        return replace(self.checkpoint.tensor(name), columns=None)

    def read_blocks(self, name: str, start: int = 0, stop: int | None = None) -> NDArray[np.uint8]:
        return self.checkpoint.read_blocks(name, start, stop)


@dataclass(frozen=True, slots=True)
class RowsInOrder:
    """Rows of a parameter that are stored with an order of their columns; a `KeptRows`."""

    own: GgufRows
    order: NDArray[np.int32]  # column of the matrix that each column of the file is

    @property
    def rows(self) -> int:
        """Return the number of rows."""
        return self.own.rows

    @property
    def scheme(self) -> ActOrderQuant:
        """Return the scheme."""
        return ActOrderQuant(base=self.own.scheme)

    def stored(self, start: int, stop: int) -> Mapping[str, NDArray[Any]]:
        """Return rows [start, stop) as the scheme stores them; the first block has the order."""
        return {**self.own.stored(start, stop), ORDER: self.order[: None if start == 0 else 0]}


def kept_in_order(
    plan: ParameterPlan, checkpoint: _Blocks, columns: Order
) -> Sequence[RowsInOrder]:
    """Return a parameter's rows as `kept` does; all its tensors have this order of columns."""
    order = np.argsort(columns.source(np.arange(plan.shape[-1]))).astype(np.int32)
    return [RowsInOrder(rows, order) for rows in kept(plan, _AsStored(checkpoint))]
