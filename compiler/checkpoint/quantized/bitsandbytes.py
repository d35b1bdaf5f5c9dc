"""Reads bitsandbytes: nf4 and fp4 with 4 bits, and int8 (https://huggingface.co/docs/bitsandbytes).

Layout of a module [out, in]:

    nf4   weight uint8 [out * in / 2, 1]: indexes into quant_map, the first in the high half of a
          byte; weight.absmax: the scale of each block of consecutive weights, row after row, as
          floats, or as uint8 indexes into weight.nested_quant_map, whose numbers are multiplied by
          weight.nested_absmax of their block, and to which `nested_offset` is added;
          weight.quant_state.bitsandbytes__nf4: JSON in bytes with shape, blocksize and these
    int8  weight int8 [out, in], SCB float32 [out]: w = q * SCB / 127
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wherry.base.json_file import parse_object

from ..tensors import Checkpoint
from .pieces import Pieces

_STATE = "weight.quant_state.bitsandbytes__"
_LONGEST_STATE = 10_000  # bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class FourBitMatrix:
    """A module in nf4 or fp4."""

    checkpoint: Checkpoint
    module: str  # its name with a dot at the end
    shape: tuple[int, int]
    block: int  # consecutive weights that share a scale
    nested: tuple[int, float] | None  # block and offset of nested scales
    kind: str

    def _scales(self, first: int, stop: int) -> NDArray[np.float32]:
        """Return the scales of blocks [first, stop)."""
        name = f"{self.module}weight."
        if self.nested is None:
            return self.checkpoint.read(f"{name}absmax", first, stop)
        block, offset = self.nested
        codes = self.checkpoint.read_raw(f"{name}absmax", first, stop)
        outer = self.checkpoint.read(f"{name}nested_absmax")[np.arange(first, stop) // block]
        inner = self.checkpoint.read(f"{name}nested_quant_map")[codes]
        scales: NDArray[np.float32] = inner * outer + np.float32(offset)
        return scales

    def floats(self, start: int, stop: int) -> NDArray[np.float32]:
        """See `Matrix.floats`."""
        columns = self.shape[1]
        first, last = start * columns, stop * columns  # of the weights, row after row
        packed = self.checkpoint.read_raw(f"{self.module}weight", first // 2, -(-last // 2))
        codes = np.stack([packed >> 4, packed & 15], -1).reshape(-1)[first % 2 :][: last - first]
        table = self.checkpoint.read(f"{self.module}weight.quant_map")
        scales = self._scales(first // self.block, -(-last // self.block))
        of_weight = np.arange(first, last) // self.block - first // self.block
        # The conversion refuses weights that are not finite, so NumPy need not warn of them.
        with np.errstate(over="ignore", invalid="ignore"):
            return (table[codes] * scales[of_weight]).reshape(stop - start, columns)


@dataclass(frozen=True, slots=True, kw_only=True)
class ByteMatrix:
    """A module in int8."""

    checkpoint: Checkpoint
    module: str  # its name with a dot at the end
    shape: tuple[int, int]
    kind: str = "bitsandbytes int8"

    def floats(self, start: int, stop: int) -> NDArray[np.float32]:
        """See `Matrix.floats`."""
        q = self.checkpoint.read_raw(f"{self.module}weight", start, stop).astype(np.float32)
        scale = self.checkpoint.read(f"{self.module}SCB", start, stop)
        with np.errstate(over="ignore", invalid="ignore"):
            return q * scale[:, None] * np.float32(1 / 127)


def read_bitsandbytes(pieces: Pieces) -> None:
    """Take the modules of a bitsandbytes checkpoint."""
    for kind in ("nf4", "fp4"):
        for module in pieces.modules(_STATE + kind):
            _four_bits(pieces, module, kind)
    for module in pieces.modules("SCB"):
        weight = pieces.take(f"{module}weight", ("I8",), (None, None))
        rows = None if weight is None else weight.shape[0]
        scales = pieces.take(f"{module}SCB", ("F32",), (rows,))
        pieces.drop(f"{module}weight_format")
        if weight is not None and scales is not None:
            pieces.matrices[f"{module}weight"] = ByteMatrix(
                checkpoint=pieces.checkpoint,
                module=module,
                shape=(weight.shape[0], weight.shape[1]),
            )


def _four_bits(pieces: Pieces, module: str, kind: str) -> None:
    state = _state(pieces, module + _STATE + kind)
    if state is None:
        return
    (out, columns), block, nested = state
    count, name = -(-out * columns // block), f"{module}weight"
    taken = [
        pieces.take(name, ("U8",), (-(-out * columns // 2), 1)),
        pieces.take(f"{name}.quant_map", ("F32",), (16,)),
        pieces.take(f"{name}.absmax", ("U8",) if nested else ("F32",), (count,)),
    ]
    if nested:
        taken += [
            pieces.take(f"{name}.nested_quant_map", ("F32",), (256,)),
            pieces.take(f"{name}.nested_absmax", ("F32",), (-(-count // nested[0]),)),
        ]
    if all(tensor is not None for tensor in taken):
        pieces.matrices[name] = FourBitMatrix(
            checkpoint=pieces.checkpoint,
            module=module,
            shape=(out, columns),
            block=block,
            nested=nested,
            kind=f"bitsandbytes {kind}",
        )


_State = tuple[tuple[int, int], int, "tuple[int, float] | None"]


def _state(pieces: Pieces, name: str) -> _State | None:
    """Return shape, block size, and nested block size with offset, or record what is wrong."""
    tensor = pieces.take(name, ("U8",), (None,))
    if tensor is None or tensor.shape[0] > _LONGEST_STATE:
        pieces.wrong(f"{name} is no description of a module")
        return None
    try:
        state: dict[str, Any] = parse_object(pieces.checkpoint.read_raw(name).tobytes())
        out, columns = (_size(n) for n in state["shape"])
        nested = None
        if "nested_blocksize" in state:
            nested = _size(state["nested_blocksize"]), float(state["nested_offset"])
        return (out, columns), _size(state["blocksize"]), nested
    except (ValueError, KeyError, TypeError) as e:
        pieces.wrong(f"{name} is damaged ({str(e)[:100]})")
        return None


def _size(value: Any) -> int:
    if type(value) is not int or not 0 < value < 2**31:
        raise ValueError(f"{value!r} is no size")
    return value
