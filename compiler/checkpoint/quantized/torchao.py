"""Reads torchao's weights, as transformers saves them from torchao 0.17 on (`TorchAoConfig`).

Layout of the weight [out, in] of a module with g groups a row, by torchao's class; all scales
multiply:

    Int8Tensor, IntxUnpackedToInt8Tensor
        _weight_qdata int8 [out, in], _weight_scale [out, g], _weight_zero_point int8 [out, g] if
        there is one: w = (q - z) s
    Float8Tensor
        _weight_qdata F8_E4M3 [out, in], _weight_scale [out, 1] or [1, 1]
    Int4Tensor (int4_packing_format "plain")
        _weight_qdata int8 [out, in / 2], two integers of -8 to 7, that of the even column first;
        _weight_scale and _weight_zero_point [g, out]: w = q s + z

How activations are rounded has no effect on weights.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wherry.errors import ModelError

from .matrix import AffineRows
from .pieces import SCALES, AffineModule, Pieces
from .scaled import FP8, ScaledMatrix

_Q, _SCALE, _ZERO = "_weight_qdata", "_weight_scale", "_weight_zero_point"
_FORMATS = ("plain", None)  # values of int4_packing_format


@dataclass(frozen=True, slots=True, kw_only=True)
class BytesMatrix(AffineModule):
    """A module of integers in bytes."""

    zeros: bool  # whether there are zero points

    @property
    def kind(self) -> str:
        """See `Matrix.kind`."""
        return f"torchao int{self.bits}"

    def scales(self) -> tuple[NDArray[np.float32], NDArray[np.uint8]]:
        """See `AffineMatrix.scales`."""
        shape = (self.shape[0], -(-self.shape[1] // self.group))
        scale = np.broadcast_to(self.checkpoint.read(self.module + _SCALE), shape)
        if not self.zeros:
            return scale, np.full(shape, 2 ** (self.bits - 1), np.uint8)
        zero = self._unsigned(self.checkpoint.read_raw(self.module + _ZERO))
        return scale, np.broadcast_to(zero, shape)

    def _unsigned(self, q: NDArray[Any]) -> NDArray[np.uint8]:
        """Return integers as the matrix numbers them, from 0.

        Raises:
            ModelError: one has more bits than the matrix.
        """
        half = 2 ** (self.bits - 1)
        if q.size and not -half <= int(q.min()) <= int(q.max()) < half:
            raise ModelError(
                f"{self.module}{_Q} has integers {q.min()} to {q.max()}, and int{self.bits} has "
                f"{-half} to {half - 1}: the file is damaged; download it again."
            )
        numbered: NDArray[np.uint8] = (q.astype(np.int16) + half).astype(np.uint8)
        return numbered

    def rows(self, start: int, stop: int) -> AffineRows:
        """See `AffineMatrix.rows`."""
        q = self._unsigned(self.checkpoint.read_raw(self.module + _Q, start, stop))
        scale, zero = self.scales()
        return AffineRows(q, scale[start:stop], zero[start:stop])

    def floats(self, start: int, stop: int) -> NDArray[np.float32]:
        """See `Matrix.floats`."""
        return self.rows(start, stop).floats(self.groups())


@dataclass(frozen=True, slots=True, kw_only=True)
class HalvesMatrix(AffineModule):
    """A module of integers of 4 bits, two a byte, with floats as zero points."""

    @property
    def kind(self) -> str:
        """See `Matrix.kind`."""
        return "torchao int4"

    def scales(self) -> tuple[NDArray[np.float32], None]:
        """See `AffineMatrix.scales`."""
        return np.ascontiguousarray(self.checkpoint.read(self.module + _SCALE).T), None

    def minima(self) -> NDArray[np.float32]:
        """Return the weights that stand for the integer 0 of each group [out, groups]."""
        zero = np.ascontiguousarray(self.checkpoint.read(self.module + _ZERO).T)
        least: NDArray[np.float32] = zero - 8 * self.scales()[0]  # the least integer is -8
        return least

    def rows(self, start: int, stop: int) -> AffineRows:
        """See `AffineMatrix.rows`."""
        codes = self.checkpoint.read_raw(self.module + _Q, start, stop).view(np.uint8)
        q = np.stack([codes & 15, codes >> 4], -1).reshape(len(codes), -1) ^ np.uint8(8)
        return AffineRows(q, self.scales()[0][start:stop], None, self.minima()[start:stop])

    def floats(self, start: int, stop: int) -> NDArray[np.float32]:
        """See `Matrix.floats`."""
        return self.rows(start, stop).floats(self.groups())


def read_torchao(pieces: Pieces) -> None:
    """Take the modules of a checkpoint in torchao's formats.

    Raises:
        ModelError: the packing of integers is not read, or inputs have scales of their own.
    """
    settings = list(_configs(pieces.settings))
    packing = {_value(own.get("int4_packing_format")) for own in settings} - set(_FORMATS)
    scaled = list(pieces.modules("_weight_act_pre_scale"))
    if packing or scaled:
        what = f"int4_packing_format {', '.join(sorted(map(repr, packing)))[:200]}"
        raise ModelError(
            f"{pieces.checkpoint.folder} has torchao weights of "
            f"{what if packing else 'linears whose inputs are scaled (act_pre_scale)'}; Wherry "
            "reads int8, float8, intx and int4_packing_format 'plain'. Save the model in one of "
            "them, or take the original one, and --quant."
        )
    known = {_bits(own.get("weight_dtype")) for own in settings} - {0}
    bits = next(iter(known)) if len(known) == 1 else 8
    for module in pieces.modules(_Q):
        dtype = pieces.dtype(module + _Q)
        if dtype in FP8:
            _floats(pieces, module)
        elif any("Int4Weight" in str(own.get("_type")) for own in settings):
            _halves(pieces, module)
        else:
            _bytes(pieces, module, bits)


def _configs(settings: Any) -> Iterator[Mapping[str, Any]]:
    """Yield the fields of each configuration in the settings, with its `_type`."""
    if not isinstance(settings, Mapping):
        return
    data = settings.get("_data")
    if isinstance(settings.get("_type"), str) and isinstance(data, Mapping):
        yield {**data, "_type": settings["_type"]}
    for value in settings.values():
        yield from _configs(value)


def _value(field: Any) -> Any:
    """Return the value of an enumeration's field."""
    value = field.get("_data") if isinstance(field, Mapping) else field
    return value.lower() if isinstance(value, str) else None if value is None else repr(value)


def _bits(field: Any) -> int:
    """Return the number of bits of a dtype "int1" to "int8", and 0 for another."""
    name = str(_value(field))
    return int(name[3:]) if name in {f"int{bits}" for bits in range(1, 9)} else 0


def _floats(pieces: Pieces, module: str) -> None:
    weight = pieces.take(module + _Q, ("F8_E4M3",), (None, None))
    if weight is None:
        return
    out, columns = weight.shape
    scales = pieces.checkpoint.tensors.get(module + _SCALE)
    per_tensor = scales is not None and scales.shape == (1, 1)
    if pieces.take(module + _SCALE, SCALES, (1 if per_tensor else out, 1)) is not None:
        pieces.matrices[f"{module}weight"] = ScaledMatrix(
            checkpoint=pieces.checkpoint,
            weight=module + _Q,
            scale=module + _SCALE,
            shape=(out, columns),
            block=(out if per_tensor else 1, columns),
            kind="FP8",
        )


def _bytes(pieces: Pieces, module: str, bits: int) -> None:
    weight = pieces.take(module + _Q, ("I8",), (None, None))
    if weight is None:
        return
    out, columns = weight.shape
    stored_scales = pieces.checkpoint.tensors.get(module + _SCALE)
    per_tensor = stored_scales is not None and stored_scales.shape == (1, 1)
    scales = pieces.take(module + _SCALE, SCALES, (1 if per_tensor else out, None))
    zeros = pieces.has(module + _ZERO)
    if scales is None:
        return
    if zeros and pieces.take(module + _ZERO, ("I8",), scales.shape) is None:
        return
    if not (group := pieces.group(module + _SCALE, scales.shape[1], columns)):
        return
    pieces.matrices[f"{module}weight"] = BytesMatrix(
        checkpoint=pieces.checkpoint,
        module=module,
        shape=(out, columns),
        bits=bits,
        group=group,
        scale_dtype=scales.dtype,
        zeros=zeros,
    )


def _halves(pieces: Pieces, module: str) -> None:
    weight = pieces.take(module + _Q, ("I8", "U8"), (None, None))
    if weight is None:
        return
    out, columns = weight.shape[0], 2 * weight.shape[1]
    scales = pieces.take(module + _SCALE, SCALES, (None, out))
    if scales is None or pieces.take(module + _ZERO, SCALES, scales.shape) is None:
        return
    if not (group := pieces.group(module + _SCALE, scales.shape[0], columns)):
        return
    pieces.matrices[f"{module}weight"] = HalvesMatrix(
        checkpoint=pieces.checkpoint,
        module=module,
        shape=(out, columns),
        bits=4,
        group=group,
        scale_dtype=scales.dtype,
    )
