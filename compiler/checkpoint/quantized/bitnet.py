"""Reads BitNet's ternary weights (`quant_method: bitnet`, transformers' `integrations/bitnet.py`).

Layout of a linear [out, in]:

    weight        uint8 [out / 4, in]   two bits a weight: bits 2i and 2i + 1 of row r have the
                                        row r + i * out / 4
    weight_scale  float [1]

    w[o, i] = (q[o, i] - 1) * s,   s = weight_scale for the `linear_class` "autobitlinear",
                                   1 / weight_scale for "bitlinear"

Models of this format round the inputs of their linears to 8 bits a row, too
(`relax_models/blocks/bit_linear.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wherry.errors import ModelError

from .matrix import AffineRows
from .pieces import SCALES, AffineModule, Pieces

METHOD = "bitnet"  # as `quant_method`
_PARTS = 4  # rows of a matrix in one of the file
# Fields of the settings -> values that are read; the first is what an absent one means.
_READ: Mapping[str, tuple[Any, ...]] = {
    "linear_class": ("bitlinear", "autobitlinear"),
    "quantization_mode": ("offline",),
    "use_rms_norm": (False,),
    # Others' inputs would not be rounded; None: transformers leaves out the LM head.
    "modules_to_not_convert": (None, ["lm_head"]),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class TernaryMatrix(AffineModule):
    """A matrix of -1, 0 and 1 with one scale."""

    divides: bool  # whether weights are divided by the stored scale

    @property
    def kind(self) -> str:
        """See `Matrix.kind`."""
        return "BitNet ternary"

    @property
    def scale(self) -> np.float32:
        """Return the one scale."""
        stored = self.checkpoint.read(f"{self.module}weight_scale").reshape(())
        with np.errstate(divide="ignore"):  # the conversion finds infinities
            return np.float32(1 / stored if self.divides else stored)

    def scales(self) -> tuple[NDArray[np.float32], NDArray[Any]]:
        """See `AffineMatrix.scales`."""
        shape = (self.shape[0], 1)
        return np.full(shape, self.scale, np.float32), np.ones(shape, np.uint8)

    def rows(self, start: int, stop: int) -> AffineRows:
        """See `AffineMatrix.rows`."""
        each = self.shape[0] // _PARTS
        parts = [np.empty((0, self.shape[1]), np.uint8)]
        for i in range(_PARTS):
            first, last = max(start - i * each, 0), min(stop - i * each, each)
            if first < last:
                raw = self.checkpoint.read_raw(f"{self.module}weight", first, last)
                parts.append(raw >> np.uint8(2 * i) & np.uint8(3))
        shape = (stop - start, 1)
        scale = np.full(shape, self.scale, np.float32)
        return AffineRows(np.concatenate(parts), scale, np.ones(shape, np.uint8))

    def floats(self, start: int, stop: int) -> NDArray[np.float32]:
        """See `Matrix.floats`."""
        return self.rows(start, stop).floats(self.groups())


def read_bitnet(pieces: Pieces) -> None:
    """Take the linears of a BitNet.

    Raises:
        ModelError: the settings are not read.
    """
    settings = {name: pieces.settings.get(name, known[0]) for name, known in _READ.items()}
    for name, value in settings.items():
        if value not in _READ[name]:
            raise ModelError(
                f"{pieces.checkpoint.folder}/config.json has BitNet weights of {name} "
                f"{repr(value)[:100]}; Wherry reads {' or '.join(map(repr, _READ[name]))}. Take "
                'the model\'s packed weights (quantization_mode "offline").'
            )
    for module in pieces.modules("weight_scale"):
        packed = pieces.take(f"{module}weight", ("U8",), (None, None))
        scale = pieces.take(f"{module}weight_scale", SCALES, _scale_shape(pieces, module))
        if packed is None or scale is None:
            continue
        out, columns = packed.shape
        pieces.matrices[f"{module}weight"] = TernaryMatrix(
            checkpoint=pieces.checkpoint,
            module=module,
            shape=(_PARTS * out, columns),
            bits=2,
            group=columns,
            scale_dtype=scale.dtype,
            divides=settings["linear_class"] == "bitlinear",
        )


def _scale_shape(pieces: Pieces, module: str) -> tuple[int, ...]:
    """Return the shape of a module's one scale: [] or [1]."""
    stored = pieces.checkpoint.tensors[f"{module}weight_scale"].shape
    return () if stored == () else (1,)
