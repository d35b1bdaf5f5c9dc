"""The tensors of a GGUF file under the names and in the shapes of Hugging Face's checkpoints."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wherry.errors import ModelError
from wherry.models.weights import Order

from ..tensors import FLOATS, Checkpoint, TensorFile
from .reencoding import told
from .types import Layout


@dataclass(frozen=True, slots=True)
class GgufTensor(TensorFile):
    """A tensor, or a part of one: consecutive rows of the file's, in an order of their own.

    `dtype` is llama.cpp's name of the type. Rows are whole blocks, so code that keeps the file's
    bits may join, cut and reorder rows of `GgufCheckpoint.read_blocks` as a plan of weights says,
    where `keeps_bits`.
    """

    stored: str  # the file's name
    layout: Layout
    order: Order | None = None  # of rows: for each of ours, the file's
    shift: float = 0.0  # is added to the values of a vector

    @property
    def nbytes(self) -> int:
        """Size in the file."""
        return self.stop - self.offset

    @property
    def rows(self) -> int:
        """Length of the first axis; a vector is one row."""
        return self.shape[0] if len(self.shape) > 1 else 1

    @property
    def keeps_bits(self) -> bool:
        """Whether the blocks of `read_blocks` are this tensor, rather than something near it."""
        return not self.shift and (len(self.shape) > 1 or self.order is None)


@dataclass(frozen=True, slots=True)
class GgufCheckpoint(Checkpoint):
    """The tensors of a model in GGUF, in one file or several. `tensors` are all `GgufTensor`."""

    def tensor(self, name: str) -> GgufTensor:
        """Return what `tensors` has of this name."""
        tensor = self.tensors[name]
        assert isinstance(tensor, GgufTensor)
        return tensor

    def require_floats(self, names: Iterable[str]) -> None:
        """Accept all: every type that is read has values."""

    def told(self, scheme: str) -> str | None:
        """Say what is rounded again."""
        return told(self.files[0].name, map(self.tensor, self.tensors), scheme)

    def read_blocks(self, name: str, start: int = 0, stop: int | None = None) -> NDArray[np.uint8]:
        """Rows [start, stop) of a tensor as the file has them: uint8 [rows, bytes of a row].

        A row of a tensor [a, b, c] is b rows of c values, one behind the other; a vector is one
        row, in the file's order.

        Raises:
            ModelError: the file has become shorter.
        """
        tensor = self.tensor(name)
        stop = tensor.rows if stop is None else stop
        if tensor.order is None or len(tensor.shape) == 1:
            return _bytes(tensor, start, stop)
        theirs = tensor.order.source(np.arange(start, stop))
        first = int(theirs.min())
        return _bytes(tensor, first, int(theirs.max()) + 1)[theirs - first]

    def read(self, name: str, start: int = 0, stop: int | None = None) -> NDArray[np.float32]:
        """See `Checkpoint.read`; the values of blocks are those that gguf-py computes."""
        tensor = self.tensor(name)
        if len(tensor.shape) == 1:
            values = tensor.layout.floats(self.read_blocks(name)).reshape(-1)
            if tensor.order is not None:
                values = values[tensor.order.source(np.arange(len(values)))]
            return values[start:stop] + np.float32(tensor.shift)
        blocks = self.read_blocks(name, start, stop)
        matrix = blocks.reshape(-1, tensor.layout.row_bytes(tensor.shape[-1]))
        return tensor.layout.floats(matrix).reshape(len(blocks), *tensor.shape[1:])

    def read_raw(self, name: str, start: int = 0, stop: int | None = None) -> NDArray[Any]:
        """See `Checkpoint.read_raw`; of blocks, the values."""
        tensor = self.tensor(name)
        if tensor.dtype not in FLOATS or not tensor.keeps_bits:
            return self.read(name, start, stop)
        if len(tensor.shape) == 1:
            whole: NDArray[Any] = self.read_blocks(name).reshape(-1).view(FLOATS[tensor.dtype])
            return whole[start:stop]
        raw = self.read_blocks(name, start, stop)
        return raw.view(FLOATS[tensor.dtype]).reshape(len(raw), *tensor.shape[1:])


def _bytes(tensor: GgufTensor, start: int, stop: int) -> NDArray[np.uint8]:
    """Rows of the file, in its order: uint8 [rows, bytes]."""
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


def parts(tensor: GgufTensor, count: int) -> list[GgufTensor]:
    """Cut a tensor [count, ...] into `count` of shape [...], such as the matrices of experts."""
    size = tensor.nbytes // count
    return [
        GgufTensor(
            tensor.path,
            tensor.dtype,
            tensor.shape[1:],
            start,
            start + size,
            stored=tensor.stored,
            layout=tensor.layout,
        )
        for start in range(tensor.offset, tensor.stop, size)
    ]
