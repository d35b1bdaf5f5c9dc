"""Reads MLX's quantization (https://ml-explore.github.io/mlx, `mlx.core.quantize`).

Layout of a matrix [out, in] with b bits and groups of consecutive columns:

    weight  uint32 [out, in * b / 32]   lowest bits first, a stream of bits
    scales  float [out, in / group]
    biases  float [out, in / group]

    w[o, i] = q[o, i] * scales[o, i // group] + biases[o, i // group]

In the modes mxfp4, nvfp4 and mxfp8 the integers are floats of 4 or 8 bits, scales are bytes, and
there are no biases. Embeddings are quantized, too. config.json has `quantization` with bits,
group_size, and entries for modules with others.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wherry.errors import ModelError

from .bits import unpack
from .matrix import AffineRows
from .pieces import SCALES, AffineModule, Pieces
from .scaled import ScaledMatrix

BITS = (2, 3, 4, 5, 6, 8)


@dataclass(frozen=True, slots=True, kw_only=True)
class MlxMatrix(AffineModule):
    """A matrix in MLX's affine layout."""

    @property
    def kind(self) -> str:
        """See `Matrix.kind`."""
        return f"MLX {self.bits}-bit"

    def scales(self) -> tuple[NDArray[np.float32], None]:
        """See `AffineMatrix.scales`."""
        return self.checkpoint.read(f"{self.module}scales"), None

    def minima(self) -> NDArray[np.float32]:
        """Return all minima [out, groups]."""
        return self.checkpoint.read(f"{self.module}biases")

    def rows(self, start: int, stop: int) -> AffineRows:
        """See `AffineMatrix.rows`."""
        words = self.checkpoint.read_raw(f"{self.module}weight", start, stop)
        scale, minimum = (
            self.checkpoint.read(self.module + name, start, stop) for name in ("scales", "biases")
        )
        return AffineRows(unpack(words, self.bits, self.shape[1]), scale, None, minimum)

    def floats(self, start: int, stop: int) -> NDArray[np.float32]:
        """See `Matrix.floats`."""
        return self.rows(start, stop).floats(self.groups())


@dataclass(frozen=True, slots=True)
class _Floats:
    """How a mode of floats encodes matrices: scales are bytes, and there are no biases."""

    kind: str
    bits: int
    group: int
    number: str  # safetensors name of the numbers' dtype
    scale: str


# Modes of `mlx.core.quantize` besides "affine".
_FLOATS = {
    "mxfp4": _Floats("MXFP4", 4, 32, "F4", "F8_E8M0"),
    "nvfp4": _Floats("NVFP4", 4, 16, "F4", "F8_E4M3"),
    "mxfp8": _Floats("MXFP8", 8, 32, "F8_E4M3", "F8_E8M0"),
}


def read_mlx(pieces: Pieces) -> None:
    """Take the modules of an MLX model.

    Raises:
        ModelError: the mode of a module is unknown.
    """
    for module in pieces.modules("scales"):
        own = pieces.settings.get(module.removesuffix("."))
        found = dict(pieces.settings) | (dict(own) if isinstance(own, Mapping) else {})
        mode = found.get("mode", "affine")
        if mode == "affine":
            _affine(pieces, module, _size(found.get("bits")), _size(found.get("group_size")))
        elif isinstance(mode, str) and mode in _FLOATS:
            _of_floats(pieces, module, _FLOATS[mode])
        else:
            raise ModelError(
                f"{pieces.checkpoint.folder} is an MLX model with mode {repr(mode)[:100]}; Wherry "
                f"reads affine, {', '.join(_FLOATS)}. Take such a model, or the original one, and "
                "--quant."
            )


def _of_floats(pieces: Pieces, module: str, mode: _Floats) -> None:
    """Take a module of numbers of 4 or 8 bits with a byte of scale for each group."""
    words = pieces.take(f"{module}weight", ("U32",), (None, None))
    if words is None:
        return
    out, columns = words.shape[0], words.shape[1] * 32 // mode.bits
    if pieces.take(f"{module}scales", ("U8",), (out, -(-columns // mode.group))) is not None:
        pieces.matrices[f"{module}weight"] = ScaledMatrix(
            checkpoint=pieces.checkpoint,
            weight=f"{module}weight",
            scale=f"{module}scales",
            shape=(out, columns),
            block=(1, mode.group),
            kind=mode.kind,
            number_dtype=mode.number,
            scale_dtype=mode.scale,
        )


def _affine(pieces: Pieces, module: str, bits: int, group: int) -> None:
    """Take a module of integers."""
    words = pieces.take(f"{module}weight", ("U32",), (None, None))
    if words is None:
        return
    out = words.shape[0]
    scales = pieces.take(f"{module}scales", SCALES, (out, None))
    if scales is None:
        return
    pieces.take(f"{module}biases", SCALES, scales.shape)
    if bits not in BITS or words.shape[1] * 32 != scales.shape[1] * group * bits:
        pieces.wrong(
            f"{module}weight {list(words.shape)} with scales {list(scales.shape)} has no "
            f"integers of {bits} bits in groups of {group}"
        )
        return
    pieces.matrices[f"{module}weight"] = MlxMatrix(
        checkpoint=pieces.checkpoint,
        module=module,
        shape=(out, scales.shape[1] * group),
        bits=bits,
        group=group,
        scale_dtype=scales.dtype,
    )


def _size(value: Any) -> int:
    """Return a number of the settings, and 0 for what is none."""
    return value if type(value) is int else 0
