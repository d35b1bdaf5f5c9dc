"""Offers gpt-oss' experts in their published encoding, MXFP4 (`weights.rules.Unpack` of models).

A checkpoint has two tensors for all experts of a layer: `_blocks` uint8 [experts, rows, groups, 16]
and `_scales` uint8 [experts, rows, groups]. The bits are those of the scheme MXFP4; only rows that
alternate between gate and up change places.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wherry.errors import ModelError
from wherry.models.weights.plan import ParameterPlan
from wherry.models.weights.rules import Unpack
from wherry.quant.blocks import BLOCKS, BlockQuant

from ..kept import KeptRows
from ..tensors import Checkpoint
from .offered import offered

MXFP4: BlockQuant = next(scheme for scheme in BLOCKS if scheme.name == "MXFP4")
GROUP = 32  # weights that share a scale
_UNIT = np.float32(0.5)  # the scheme's integers are twice the numbers
_NAN = 255  # a scale that is no number
_EXACT = ("q0f32", "exact")  # names of schemes that have every value


@dataclass(frozen=True, slots=True)
class Mxfp4Checkpoint(Checkpoint):
    """A checkpoint whose experts are in MXFP4; its other tensors are floats."""

    @property
    def raw(self) -> Checkpoint:
        """Return the checkpoint that reads the files."""
        return self

    @property
    def matrices(self) -> Mapping[str, Any]:
        """Return the quantized matrices that are not experts: there are none."""
        return {}

    def kept(
        self, plan: ParameterPlan, schemes: Collection[str] | None = None
    ) -> Sequence[KeptRows]:
        """See `Checkpoint.kept`."""
        if isinstance(plan.unpacked, Unpack) and len(plan.pieces) == 2:
            return [PackedExperts.of(plan, self)] if plan.shape[-1] % GROUP == 0 else ()
        return offered(plan, self, schemes)

    def loses(self, name: str, scheme: str) -> bool:
        """See `Checkpoint.loses`."""
        return name.endswith("_blocks") and scheme not in _EXACT

    def precision_note(self, scheme: str, kept: Collection[str] = ()) -> str | None:
        """See `Checkpoint.told`."""
        blocks = {n: 2 * prod(t.shape) for n, t in self.tensors.items() if n.endswith("_blocks")}
        rounded = sum(size for name, size in blocks.items() if name not in kept)
        if not rounded or scheme in _EXACT:
            return None
        share = 100 * rounded / sum(blocks.values())
        return (
            f"{self.folder.name}: MXFP4 ({share:.0f}%) of the quantized weights are re-encoded as "
            f"{scheme}."
        )


def open_mxfp4(raw: Checkpoint) -> Mxfp4Checkpoint:
    """Return a checkpoint that keeps the bits of gpt-oss' experts; only headers have been read.

    Raises:
        ModelError: tensors of blocks or scales have another dtype than bytes, or another size.
    """
    for name, tensor in raw.tensors.items():
        size = tensor.stop - tensor.offset
        packed = name.endswith(("_blocks", "_scales"))
        if packed and (tensor.dtype != "U8" or size != prod(tensor.shape)):
            raise ModelError(
                f"{raw.folder}: {name} is {tensor.dtype} {list(tensor.shape)} in {size} bytes, and "
                "MXFP4 has bytes (U8). Download the model again."
            )
    return Mxfp4Checkpoint(raw.folder, raw.tensors, raw.files, f"{raw.fingerprint} mxfp4")


@dataclass(frozen=True, slots=True)
class PackedExperts:
    """The rows of all experts of a layer; a `KeptRows`."""

    plan: ParameterPlan
    flat: Checkpoint  # both tensors as [experts * rows, bytes of a row]

    @property
    def scheme(self) -> BlockQuant:
        """Return the scheme."""
        return MXFP4

    @property
    def rows(self) -> int:
        """Return the number of rows of all experts."""
        return self.plan.rows[0]

    @staticmethod
    def of(plan: ParameterPlan, checkpoint: Checkpoint) -> PackedExperts:
        """Return the rows of an unpacked parameter."""
        flat = {}
        for piece in plan.pieces:
            tensor = checkpoint.tensors[piece.name]
            experts, rows, *rest = tensor.shape
            flat[piece.name] = replace(tensor, shape=(experts * rows, prod(rest)))
        files, fingerprint = checkpoint.files, checkpoint.fingerprint
        return PackedExperts(plan, Checkpoint(checkpoint.folder, flat, files, fingerprint))

    def stored(self, start: int, stop: int) -> Mapping[str, NDArray[Any]]:
        """Return rows [start, stop) as the scheme stores them."""
        source_rows = self._source(np.arange(start, stop))
        first, last = int(source_rows.min()), int(source_rows.max()) + 1
        blocks, scales = (
            self.flat.read_raw(piece.name, first, last)[source_rows - first]
            for piece in self.plan.pieces
        )
        unit = np.where((scales == _NAN).any(axis=1, keepdims=True), np.float32(np.nan), _UNIT)
        spare = -scales.shape[1] % 4
        return {
            "q_weight": np.ascontiguousarray(blocks).view("<u4").astype(np.uint32, copy=False),
            "q_scale": unit.astype(np.float32),
            "q_sub": np.pad(scales, ((0, 0), (0, spare))).view("<u4").astype(np.uint32, copy=False),
        }

    def _source(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the rows of the file that rows of the parameter are."""
        assert isinstance(self.plan.unpacked, Unpack)
        if not self.plan.unpacked.interleaved:
            return rows
        of_expert = self.plan.shape[1]
        expert, row = rows // of_expert, rows % of_expert
        half = -(-of_expert // 2)  # the first half has rows 0, 2, 4, ...
        return expert * of_expert + np.where(row < half, 2 * row, 2 * (row - half) + 1)
