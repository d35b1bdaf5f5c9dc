"""Presents a quantized checkpoint as the float checkpoint that it was made of."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wherry.errors import ModelError
from wherry.models.weights.plan import ParameterPlan

from ..kept import KeptRows
from ..tensors import Checkpoint, TensorFile
from .matrix import Matrix
from .offered import offered
from .pieces import Pieces
from .recognise import QuantizationSettings

_EXACT = ("q0f32", "exact")  # names of schemes that have every value


@dataclass(frozen=True, slots=True)
class QuantizedCheckpoint(Checkpoint):
    """A checkpoint whose quantized modules appear as float32 matrices under their names.

    `read` dequantizes their rows. Other tensors are those of the files.
    """

    files_of: Checkpoint | None = None  # the checkpoint that reads the files
    matrices: Mapping[str, Matrix] = field(default_factory=dict)

    @property
    def raw(self) -> Checkpoint:
        """Return the checkpoint that reads the files."""
        assert self.files_of is not None
        return self.files_of

    def read(self, name: str, start: int = 0, stop: int | None = None) -> NDArray[np.float32]:
        """See `Checkpoint.read`."""
        if name not in self.matrices:
            return self.raw.read(name, start, stop)
        matrix = self.matrices[name]
        return matrix.floats(start, matrix.shape[0] if stop is None else stop)

    def read_raw(self, name: str, start: int = 0, stop: int | None = None) -> NDArray[Any]:
        """See `Checkpoint.read_raw`; the dtype of a quantized matrix is F32."""
        if name in self.matrices:
            return self.read(name, start, stop)
        return self.raw.read_raw(name, start, stop)

    def loses(self, name: str, scheme: str) -> bool:
        """See `Checkpoint.loses`."""
        return name in self.matrices and scheme not in _EXACT

    def kept(
        self, plan: ParameterPlan, schemes: Collection[str] | None = None
    ) -> Sequence[KeptRows]:
        """See `Checkpoint.kept`."""
        return offered(plan, self, schemes)

    def precision_note(self, scheme: str, kept: Collection[str] = ()) -> str | None:
        """See `Checkpoint.told`."""
        return precision_note(self, scheme, kept)


def open_quantized(raw: Checkpoint, quantized: QuantizationSettings) -> QuantizedCheckpoint:
    """Return the float view of a quantized checkpoint; only headers are read.

    Raises:
        ModelError: its layout is not supported, tensors are missing or do not fit, or none is
            quantized.
    """
    raw = quantized.spelled(raw)
    pieces = Pieces(raw, quantized.settings)
    quantized.read(pieces)
    if not pieces.matrices:
        raise ModelError(
            f"{raw.folder}/config.json describes {quantized.name} weights, and none of the "
            f"{len(raw.tensors)} tensors is one. Download the model again."
        )
    tensors = {n: t for n, t in raw.tensors.items() if n not in pieces.taken}
    of_module = {n.rpartition(".")[0]: n for n in pieces.taken}
    for name, matrix in pieces.matrices.items():
        # a matrix of an expert may come from a tensor of all
        some = raw.tensors[of_module.get(name.removesuffix(".weight"), next(iter(pieces.taken)))]
        size = 4 * prod(matrix.shape)
        tensors[name] = TensorFile(some.path, "F32", matrix.shape, some.offset, some.offset + size)
    return QuantizedCheckpoint(
        raw.folder,
        MappingProxyType(tensors),
        raw.files,
        f"{raw.fingerprint} {quantized.method} {sorted(map(repr, quantized.settings.items()))}",
        raw,
        MappingProxyType(pieces.matrices),
    )


def precision_note(
    checkpoint: QuantizedCheckpoint, scheme: str, kept: Collection[str]
) -> str | None:
    """Return one line on the formats that are re-encoded; None: there are none.

    Args:
        checkpoint: the checkpoint.
        scheme: name of the scheme that encodes what is not kept.
        kept: names of weights that keep their bits.
    """
    rounded: Counter[str] = Counter()
    for name, matrix in checkpoint.matrices.items():
        if name not in kept:
            rounded[matrix.kind] += prod(matrix.shape)
    if not rounded or scheme in _EXACT:
        return None
    total = sum(prod(matrix.shape) for matrix in checkpoint.matrices.values())
    text = ", ".join(f"{kind} ({100 * n / total:.0f}%)" for kind, n in rounded.most_common())
    return f"{checkpoint.folder.name}: {text} of the quantized weights are re-encoded as {scheme}."
