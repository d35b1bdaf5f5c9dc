"""The interface between a vision tower and a step, and the record of a kind of models that see.

A tower computes the *features* of tiles, rows of the text model's width, which stand in the place
of token embeddings. A tile is an image, or the part of one that the tower sees by itself.

Axes: n patches, r tiles, c elements of a patch, f features, d hidden of the text model.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from tvm.relax.frontend.nn import Tensor

from ..weights.rules import WeightRule


@dataclass(frozen=True, slots=True)
class Patches:
    """The arrays of a step of a tower."""

    # float32 [n, c]: by channel, row and column; the patches of a feature follow each other
    patches: Tensor
    sequences: Tensor  # int32 [n], the tile of each patch
    query_indptr: Tensor  # int32 [r+1], where each tile's patches begin
    # Of towers that take them, see `TowerShape.inputs`.
    positions: Tensor = None  # int32 [n] or [n, taps], rows of the table of positions
    position_weights: Tensor = None  # float32 [n, taps], weight of each of these rows
    coordinates: Tensor = None  # int32 [n, 2], row and column of each patch in its tile


@dataclass(frozen=True, slots=True, kw_only=True)
class TowerShape:
    """Sizes of a tower, which its library's metadata has."""

    patch: int  # elements of a patch
    tile_patches: int  # the most patches of a tile
    patches_per_row: int  # patches of one feature
    features: int  # elements of a feature
    # The arrays of a step, in the order of arguments: those of `Patches` that the tower takes.
    inputs: tuple[str, ...] = ("patches", "positions", "sequences", "query_indptr")
    taps: int = 1  # rows of the table of positions that are summed for a patch

    def sizes(self, name: str) -> tuple[int | str, ...]:
        """Return the shape of an input; "n" patches and "r1", tiles + 1, are known in a step."""
        if name == "query_indptr":
            return ("r1",)
        taps = () if "position_weights" not in self.inputs else (self.taps,)
        columns = {"patches": (self.patch,), "positions": taps, "position_weights": taps}
        return ("n", *{"coordinates": (2,), **columns}.get(name, ()))


@dataclass(frozen=True, slots=True, kw_only=True)
class Tower:
    """A kind of models that see; the file is found by its name.

    Attributes:
        name: Hugging Face's `model_type`, and the name of the file.
        aliases: other values of `model_type` that mean the same, with the same fields.
        kind: what `wherry-vision.json` calls the image processor; "": `name`.
        fits: returns whether a complete config.json has this tower, where a `model_type` may have
            one of several.
        read: makes a configuration of the complete config.json and the text model's width.
        model: makes the `nn.Module` of a configuration: `see(Patches) -> float32 [f, d]`; its
            parameters begin with "vision.".
        shape: returns the sizes of a configuration's tower.
        bounded: returns the sizes for the tiles that an image processor's settings allow.
        sources: first parts of the names of the checkpoint's tensors.
        weights: the weight map from the checkpoint's tensors to parameters.
        processor: returns the settings of the image processor with the defaults of
            transformers, from those of the folder. Those without effect are left out.
        settings: returns what else `wherry-vision.json` says, from the complete config.json and
            the configuration; "processor" has settings in the place of the folder's.
    """

    name: str
    read: Callable[[Mapping[str, Any], int], Any]
    model: Callable[[Any], Any]
    shape: Callable[[Any], TowerShape]
    sources: tuple[str, ...]
    weights: tuple[WeightRule, ...]
    processor: Callable[[Mapping[str, Any]], dict[str, Any]]
    settings: Callable[[Mapping[str, Any], Any], dict[str, Any]]
    aliases: tuple[str, ...] = ()
    kind: str = ""
    fits: Callable[[Mapping[str, Any]], bool] = lambda _config: True
    bounded: Callable[[Any, TowerShape, Mapping[str, Any]], TowerShape] = lambda _, shape, _given: (
        shape
    )
