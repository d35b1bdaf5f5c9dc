"""Decides how each parameter is stored: encoded, or in the checkpoint's own bits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from wherry.models.arch import Shape, WeightPlan, plan
from wherry.models.weights.plan import ParameterPlan
from wherry.quant.plan import Own, SchemeRows, parts
from wherry.quant.scheme import EXACT, Encoder, floats_of, store
from wherry.quant.stored import StoredTensor

from .checkpoint.assemble import BLOCK_BYTES, blocks
from .checkpoint.formats import open_checkpoint
from .checkpoint.kept import KeptRows, KeptSchemes
from .checkpoint.tensors import Checkpoint
from .checkpoint.text_part import text_names
from .load import Described
from .rounding import Rounding

# stored tensors by name, and the index of the first row of each
Stored = Iterator[tuple[int, NDArray[np.float32] | None, Mapping[str, NDArray[Any]]]]


@dataclass(frozen=True, slots=True)
class Keep:
    """Which weights of a quantized checkpoint stay as they are."""

    label: str  # the name of the encoding that users see, "Q4_K"
    schemes: KeptSchemes | None = None  # the checkpoint's schemes; None: all of them


@dataclass(frozen=True, slots=True, kw_only=True)
class Encoding:
    """How the parameters of a model are stored."""

    scheme: Encoder
    exact: frozenset[str]  # parameters that are stored in float32, whatever the scheme
    tower: frozenset[str] = frozenset()  # those of a vision tower, which are not quantized
    # Parameters that are stored in other schemes: kept bits, or the plan of a mix.
    own: Own = field(default_factory=dict)
    kept: Mapping[str, Sequence[KeptRows]] = field(default_factory=dict)  # their sources
    rounding: Rounding = field(default_factory=Rounding)  # of what `blocks` has encoded anew

    def parts(self, name: str, shape: Shape) -> tuple[SchemeRows, ...]:
        """Return the parts of a parameter, which has one unless several schemes store it."""
        if name in self.own and name not in self.exact:
            return self.own[name]
        rows = shape[-2] if len(shape) > 1 else 1
        if name in self.tower:
            return (SchemeRows(name, rows, floats_of(self.scheme)),)
        return (SchemeRows(name, rows, EXACT if name in self.exact else self.scheme),)

    def tensors(self, name: str, shape: Shape) -> list[StoredTensor]:
        """Return the tensors that store a parameter, in their order on disk."""
        own_parts = self.parts(name, shape)
        if len(own_parts) == 1 and name not in self.kept:
            return list(own_parts[0].scheme.stored(name, shape))
        return [
            tensor
            for part in own_parts
            for tensor in part.scheme.stored(part.name, (*shape[:-2], part.rows, shape[-1]))
        ]

    def blocks(self, parameter: ParameterPlan, checkpoint: Checkpoint) -> Stored:
        """Yield the stored tensors of a parameter, a block of rows at a time.

        An item is (index of the first row in each tensor, the rows float32 if they were encoded,
        arrays by the stored tensor's name).
        """
        if parameter.name not in self.kept:
            yield from self._encoded(parameter, checkpoint)
            return
        step = max(1, BLOCK_BYTES // (4 * parameter.shape[-1]))
        for part, source in zip(self.own[parameter.name], self.kept[parameter.name], strict=True):
            base = part.name.removesuffix("weight")
            for start in range(0, source.rows, step):
                arrays = source.stored(start, min(start + step, source.rows))
                yield start, None, {base + suffix: array for suffix, array in arrays.items()}

    def rows(
        self, parameter: ParameterPlan, checkpoint: Checkpoint
    ) -> Iterator[tuple[SchemeRows, NDArray[np.float32]]]:
        """Yield consecutive rows of a parameter in floats, with the part that they belong to."""
        for part, _, rows in self._cut(parameter, checkpoint):
            yield part, rows

    def _cut(
        self, parameter: ParameterPlan, checkpoint: Checkpoint
    ) -> Iterator[tuple[SchemeRows, int, NDArray[np.float32]]]:
        """Yield (part, index of the first row in it, rows) for all rows of a parameter."""
        own_parts = self.parts(parameter.name, parameter.shape)
        if len(own_parts) == 1:
            for start, rows in blocks(parameter, checkpoint):
                yield own_parts[0], start, rows
            return
        bounds = np.cumsum([0, *(part.rows for part in own_parts)]).tolist()
        for first, rows in blocks(parameter, checkpoint):
            for part, low, high in zip(own_parts, bounds[:-1], bounds[1:], strict=True):
                start, stop = max(first, low), min(first + len(rows), high)
                if start < stop:
                    yield part, start - low, rows[start - first : stop - first]

    def _encoded(self, parameter: ParameterPlan, checkpoint: Checkpoint) -> Stored:
        """Yield the stored tensors of a parameter that is encoded, as `blocks` does."""
        for part, start, rows in self._cut(parameter, checkpoint):
            alone = part.name == parameter.name
            shape = parameter.shape if alone else (part.rows, parameter.shape[-1])
            yield start, rows, self._stored(parameter, checkpoint, part, rows, shape)

    def _stored(
        self,
        parameter: ParameterPlan,
        checkpoint: Checkpoint,
        part: SchemeRows,
        rows: NDArray[np.float32],
        shape: Shape,
    ) -> Mapping[str, NDArray[Any]]:
        """Encode some rows of a part with a shape."""
        scheme, base = cast("Encoder", part.scheme), part.name.removesuffix("weight")
        stored = store(scheme, part.name, rows, shape)
        if scheme.quantizes(part.name, shape) and any(
            checkpoint.loses(piece.name, scheme.name) for piece in parameter.pieces
        ):
            own = {name.removeprefix(base): array for name, array in stored.items()}
            self.rounding.add(scheme, rows, own, shape[-1])
        return stored


def read_plan(
    described: Described, parameters: Mapping[str, Shape]
) -> tuple[Checkpoint, WeightPlan, dict[str, str]]:
    """Open a checkpoint and plan the parameters; return the names of the text model's tensors, too.

    Args:
        described: the model.
        parameters: unquantized shapes by name, in the order of storage.

    Returns: the names are {without prefix: in the file}.

    Raises:
        ModelError: the checkpoint does not match the model, or cannot be read.
    """
    checkpoint = open_checkpoint(described.folder)
    shapes = checkpoint.shapes
    alone = described.folder.text is None
    names = {name: name for name in shapes} if alone else text_names(shapes)
    stored = {name: shapes[source] for name, source in names.items()}
    headless = "forward" not in described.entries
    arch, config = described.arch, described.config
    weight_plan = plan(arch, parameters, stored, config, headless=headless).renamed(names)
    return checkpoint, weight_plan, names


def encoding_of(
    checkpoint: Checkpoint,
    weight_plan: WeightPlan,
    scheme: Encoder,
    exact: frozenset[str],
    *,
    keep: KeptSchemes | None,
) -> Encoding:
    """Return how the parameters are stored.

    Args:
        checkpoint: the checkpoint.
        weight_plan: the plan of the parameters.
        scheme: encodes what is not kept.
        exact: parameters that are stored in float32.
        keep: the checkpoint's schemes in which matrices stay; None: all of them. If any stay, all
            floats that no scheme quantizes are float32.
    """
    own: dict[str, tuple[SchemeRows, ...]] = {}
    kept: dict[str, Sequence[KeptRows]] = {}
    for p in weight_plan.parameters:
        if not scheme.quantizes(p.name, p.shape):
            own[p.name] = parts(p.name, [(p.shape[0] if p.shape else 1, EXACT)])
        elif p.name not in exact and (sources := _kept(checkpoint, p, keep)):
            kept[p.name] = sources
            each = [rows.rows // prod(p.shape[:-2]) for rows in sources]
            schemes = [rows.scheme for rows in sources]
            own[p.name] = parts(p.name, list(zip(each, schemes, strict=True)))
    return Encoding(scheme=scheme, exact=exact, own=own if kept else {}, kept=kept)


def _kept(
    checkpoint: Checkpoint, parameter: ParameterPlan, keep: KeptSchemes | None
) -> Sequence[KeptRows]:
    """Return the rows of a parameter that stay as they are; (): the parameter is encoded."""
    schemes = None if keep is None else keep.of(parameter.shape)
    sources = checkpoint.kept(parameter, schemes)
    stays = all(schemes is None or rows.scheme.name in schemes for rows in sources)
    return sources if stays else ()
