"""Reads MLX's quantization (https://ml-explore.github.io/mlx, `mlx.core.quantize`).

Layout of a matrix [out, in] with b bits and groups of consecutive columns:

    weight  uint32 [out, in * b / 32]   lowest bits first, a stream of bits
    scales  float [out, in / group]
    biases  float [out, in / group]

    w[o, i] = q[o, i] * scales[o, i // group] + biases[o, i // group]

In the modes mxfp4, nvfp4 and mxfp8 the integers are floats of 4 or 8 bits, scales are bytes, and
there are no biases. A module "switch_mlp" has the matrices of all experts, [experts, out, ...].
Embeddings are quantized, too. config.json has `quantization` with bits, group_size, and entries for
modules with others.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import prod
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wherry.errors import ModelError

from ..tensors import Checkpoint
from .bits import unpack
from .matrix import AffineRows
from .pieces import SCALES, AffineModule, Pieces
from .scaled import ScaledMatrix

BITS = (2, 3, 4, 5, 6, 8)


@dataclass(frozen=True, slots=True, kw_only=True)
class MlxMatrix(AffineModule):
    """A matrix in MLX's affine layout."""

    first: int = 0  # its first row in the tensors

    @property
    def kind(self) -> str:
        """See `Matrix.kind`."""
        return f"MLX {self.bits}-bit"

    def scales(self) -> tuple[NDArray[np.float32], None]:
        """See `AffineMatrix.scales`."""
        return self._read("scales", 0, self.shape[0]), None

    def minima(self) -> NDArray[np.float32]:
        """Return all minima [out, groups]."""
        return self._read("biases", 0, self.shape[0])

    def rows(self, start: int, stop: int) -> AffineRows:
        """See `AffineMatrix.rows`."""
        first, last = self.first + start, self.first + stop
        words = self.checkpoint.read_raw(f"{self.module}weight", first, last)
        scale, minimum = (self._read(name, start, stop) for name in ("scales", "biases"))
        return AffineRows(unpack(words, self.bits, self.shape[1]), scale, None, minimum)

    def _read(self, name: str, start: int, stop: int) -> NDArray[np.float32]:
        """Return rows of a tensor of the module."""
        return self.checkpoint.read(self.module + name, self.first + start, self.first + stop)

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


# Families whose norms mlx-lm stores as 1 + weight, while the original checkpoints have the weight.
_OFFSET_NORMS = ("qwen3_next", "qwen3_5")


def spelled(checkpoint: Checkpoint, model_type: object) -> Checkpoint:
    """Return an MLX checkpoint with convolutions as PyTorch has them: [n, 1, k], not [n, k, 1].

    Raises:
        ModelError: mlx-lm stores other tensors of this family in a form of its own.
    """
    if isinstance(model_type, str) and model_type.startswith(_OFFSET_NORMS):
        raise ModelError(
            f"{checkpoint.folder} is an MLX model of the family {model_type}, whose norms mlx-lm "
            "stores in another form than the original model. Take that one, and --quant, or GGUF."
        )
    tensors = {
        name: replace(tensor, shape=(tensor.shape[0], 1, tensor.shape[1]))
        if ".conv" in name and len(tensor.shape) == 3 and tensor.shape[2] == 1
        else tensor
        for name, tensor in checkpoint.tensors.items()
    }
    return replace(checkpoint, tensors=MappingProxyType(tensors))


def read_mlx(pieces: Pieces) -> None:
    """Take the modules of an MLX model.

    Raises:
        ModelError: the mode of a module is unknown.
    """
    for module in pieces.modules("scales"):
        own = pieces.settings.get(module.removesuffix("."))
        settings = dict(pieces.settings) | (dict(own) if isinstance(own, Mapping) else {})
        mode = settings.get("mode", "affine")
        if mode == "affine":
            _affine(pieces, module, _size(settings.get("bits")), _size(settings.get("group_size")))
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
    """Take a module of integers; one of all experts has tensors [experts, out, ...]."""
    stored = pieces.checkpoint.tensors.get(f"{module}weight")
    several = stored is not None and len(stored.shape) == 3
    lead: tuple[None, ...] = (None, None) if several else (None,)
    words = pieces.take(f"{module}weight", ("U32",), (*lead, None))
    if words is None:
        return
    scales = pieces.take(f"{module}scales", SCALES, (*words.shape[:-1], None))
    if scales is None:
        return
    pieces.take(f"{module}biases", SCALES, scales.shape)
    if bits not in BITS or words.shape[-1] * 32 != scales.shape[-1] * group * bits:
        pieces.wrong(
            f"{module}weight {list(words.shape)} with scales {list(scales.shape)} has no "
            f"integers of {bits} bits in groups of {group}"
        )
        return
    names = [f"{module}weight"]
    if several:
        names = [_of_expert(module, expert) for expert in range(words.shape[0])]
    out = words.shape[-2]
    checkpoint = _flat(pieces.checkpoint, module) if several else pieces.checkpoint
    for number, name in enumerate(names):
        pieces.matrices[name] = MlxMatrix(
            checkpoint=checkpoint,
            module=module,
            shape=(out, scales.shape[-1] * group),
            bits=bits,
            group=group,
            scale_dtype=scales.dtype,
            first=number * out,
        )


def _flat(checkpoint: Checkpoint, module: str) -> Checkpoint:
    """Return a checkpoint in which a module's tensors are the rows of all experts."""
    names = [f"{module}{name}" for name in ("weight", "scales", "biases")]
    tensors = {name: checkpoint.tensors[name] for name in names if name in checkpoint.tensors}
    rows = {
        name: replace(tensor, shape=(prod(tensor.shape[:-1]), tensor.shape[-1]))
        for name, tensor in tensors.items()
    }
    return Checkpoint(checkpoint.folder, rows, checkpoint.files, checkpoint.fingerprint)


# Names of Mixtral's matrices in the original checkpoint.
_MIXTRAL = {"gate_proj": "w1", "up_proj": "w3", "down_proj": "w2"}


def _of_expert(module: str, expert: int) -> str:
    """Return the name of an expert's weight in the checkpoint that MLX has converted.

    "layers.0.mlp.switch_mlp.up_proj." has those of "layers.0.mlp.experts.7.up_proj.weight".
    """
    before, _, matrix = module.removesuffix(".").rpartition(".switch_mlp.")
    if before.endswith("block_sparse_moe"):
        matrix = _MIXTRAL.get(matrix, matrix)
    return f"{before}.experts.{expert}.{matrix}.weight"


def _size(value: Any) -> int:
    """Return a number of the settings, and 0 for what is none."""
    return value if type(value) is int else 0
