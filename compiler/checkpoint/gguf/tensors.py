"""Reads GGUF tensors under the names and in the shapes of Hugging Face checkpoints."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wherry.errors import ModelError
from wherry.models.weights.plan import ParameterPlan
from wherry.models.weights.rules import Order

from ..tensors import FLOATS, Checkpoint, TensorFile
from .in_order import RowsInOrder, kept_in_order
from .kept import GgufRows, kept
from .reencoding import loses, precision_note
from .types import Layout


@dataclass(frozen=True, slots=True)
class GgufTensor(TensorFile):
    """A tensor of a GGUF file, or some consecutive rows of one, possibly in another order.

    `dtype` is llama.cpp's name of the type. Each row consists of whole blocks. If `keeps_bits`,
    code that copies quantized blocks may therefore concatenate, cut and reorder the rows that
    `GgufCheckpoint.read_blocks` returns.
    """

    stored: str  # name in the GGUF file
    layout: Layout
    order: Order | None = None  # row order; None: the order of the file
    columns: Order | None = None  # order of the elements of a row; None: the order of the file
    # function that the values go through; None: the values of the file
    undo: Callable[[NDArray[np.float32]], NDArray[np.float32]] | None = None

    @property
    def nbytes(self) -> int:
        """Return the size in the file, in bytes."""
        return self.stop - self.offset

    @property
    def rows(self) -> int:
        """Return the length of the first axis; a vector counts as one row."""
        return self.shape[0] if len(self.shape) > 1 else 1

    @property
    def keeps_bits(self) -> bool:
        """Return whether the blocks from `read_blocks` encode the values that `read` returns."""
        same = self.undo is None and self.columns is None
        return same and (len(self.shape) > 1 or self.order is None)


@dataclass(frozen=True, slots=True)
class GgufCheckpoint(Checkpoint):
    """The tensors of a model in one or several GGUF files; `tensors` contains only `GgufTensor`."""

    def tensor(self, name: str) -> GgufTensor:
        """Return a tensor by its Hugging Face name."""
        tensor = self.tensors[name]
        assert isinstance(tensor, GgufTensor)
        return tensor

    def require_floats(self, names: Iterable[str]) -> None:
        """Accept all tensors, because `read` dequantizes every supported type."""

    def precision_note(self, scheme: str, kept: Collection[str] = ()) -> str | None:
        """Return one line on the types that the scheme re-encodes; None: there are none."""
        tensors = [self.tensor(name) for name in self.tensors if name not in kept]
        same = [self.tensor(name) for name in kept]
        return precision_note(self.files[0].name, tensors, scheme, same)

    def loses(self, name: str, scheme: str) -> bool:
        """See `Checkpoint.loses`."""
        return loses(self.tensor(name), scheme)

    def kept(
        self, plan: ParameterPlan, schemes: Collection[str] | None = None
    ) -> Sequence[GgufRows | RowsInOrder]:
        """See `Checkpoint.kept`."""
        orders = {self.tensor(piece.name).columns for piece in plan.pieces}
        columns = orders.pop() if len(orders) == 1 else None
        return kept(plan, self) if columns is None else kept_in_order(plan, self, columns)

    def read_blocks(self, name: str, start: int = 0, stop: int | None = None) -> NDArray[np.uint8]:
        """Return the bytes of rows [start, stop) of a tensor, uint8 [rows, bytes per row].

        A row is a slice along the first axis: for a tensor [a, b, c], b * c values. A vector is
        one row, whose elements have the order of the file.

        Raises:
            ModelError: the file is shorter than its header says.
        """
        tensor = self.tensor(name)
        stop = tensor.rows if stop is None else stop
        if tensor.order is None or len(tensor.shape) == 1:
            return _bytes(tensor, start, stop)
        source_rows = tensor.order.source(np.arange(start, stop))
        first = int(source_rows.min())
        return _bytes(tensor, first, int(source_rows.max()) + 1)[source_rows - first]

    def read(self, name: str, start: int = 0, stop: int | None = None) -> NDArray[np.float32]:
        """See `Checkpoint.read`; blocks are dequantized as gguf-py does it."""
        tensor = self.tensor(name)
        if len(tensor.shape) == 1:
            values = tensor.layout.floats(self.read_blocks(name)).reshape(-1)
            if tensor.order is not None:
                values = values[tensor.order.source(np.arange(len(values)))]
            values = values[start:stop]
        else:
            blocks = self.read_blocks(name, start, stop)
            matrix = blocks.reshape(-1, tensor.layout.row_bytes(tensor.shape[-1]))
            values = tensor.layout.floats(matrix).reshape(len(blocks), *tensor.shape[1:])
            if tensor.columns is not None:
                values = values[..., tensor.columns.source(np.arange(tensor.shape[-1]))]
        return values if tensor.undo is None else tensor.undo(values)

    def read_raw(self, name: str, start: int = 0, stop: int | None = None) -> NDArray[Any]:
        """See `Checkpoint.read_raw`; quantized or changed tensors are returned as float32."""
        tensor = self.tensor(name)
        if tensor.dtype not in FLOATS or not tensor.keeps_bits:
            return self.read(name, start, stop)
        if len(tensor.shape) == 1:
            values: NDArray[Any] = self.read_blocks(name).reshape(-1).view(FLOATS[tensor.dtype])
            return values[start:stop]
        raw = self.read_blocks(name, start, stop)
        return raw.view(FLOATS[tensor.dtype]).reshape(len(raw), *tensor.shape[1:])


def _bytes(tensor: GgufTensor, start: int, stop: int) -> NDArray[np.uint8]:
    """Read rows [start, stop) in the order of the file, uint8 [stop - start, bytes per row]."""
    row_bytes = tensor.nbytes // tensor.rows
    out = np.empty((stop - start, row_bytes), np.uint8)
    with tensor.path.open("rb", buffering=0) as f:
        f.seek(tensor.offset + start * row_bytes)
        view = out.reshape(-1).data
        done = 0
        while done < len(view):
            count = f.readinto(view[done:])
            if not count:
                raise ModelError(f"{tensor.path} ends inside {tensor.stored}; download it again.")
            done += count
    return out


def parts(tensor: GgufTensor, count: int, each: int = 1) -> list[GgufTensor]:
    """Split a tensor [count, rows, ...] into tensors [rows / each, ...].

    Such a tensor has the matrices of `count` experts, `each` of every expert.
    """
    size = tensor.nbytes // (count * each)
    _, rows, *columns = tensor.shape
    return [
        GgufTensor(
            tensor.path,
            tensor.dtype,
            (rows // each, *columns),
            start,
            start + size,
            stored=tensor.stored,
            layout=tensor.layout,
        )
        for start in range(tensor.offset, tensor.stop, size)
    ]
