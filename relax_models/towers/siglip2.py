"""SigLIP 2 for images of any sides (NaFlex): a table of positions that is resized to each image.

A patch's position is a sum of weighted rows of the table: torch.nn.functional.interpolate with
antialias=True, which `taps` counts. Axes: n patches, c elements of a patch, d hidden.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import isqrt
from typing import Any

from tvm.relax.frontend.nn import Tensor, op

from ..config import Count, Positions, Size
from .siglip import Siglip, SiglipConfig
from .taps import with_taps
from .tower import Patches


@dataclass(frozen=True, slots=True, kw_only=True)
class Siglip2Config(SiglipConfig):
    """Fields of `vision_config`; their defaults are transformers' ones."""

    hidden_size: Size = 768
    patch_size: Size = 16
    num_attention_heads: Count = 12
    num_patches: Positions = 256  # of the square that the table has

    @staticmethod
    def prepared(given: dict[str, Any]) -> dict[str, Any]:
        """Replace the size of images, which may have any, by that of the table."""
        side = isqrt(given.get("num_patches", 256))
        return given | {"image_size": given.get("patch_size", 16) * side}

    def problems(self) -> Iterator[str]:
        """Yield contradictions between fields."""
        yield from SiglipConfig.problems(self)
        if isqrt(self.num_patches) ** 2 != self.num_patches:
            yield f"num_patches: {self.num_patches} is no square"


class Siglip2(Siglip):
    """Patches [n, c] -> rows of the last norm [n, d].

    The checkpoint's patch linear takes elements by row, column and channel.
    """

    def forward(self, tiles: Patches) -> Tensor:
        """Run the tower."""
        channels, elements = 3, int(tiles.patches.shape[1])
        apart = op.reshape(tiles.patches, [-1, channels, elements // channels])
        by_pixel = op.reshape(op.permute_dims(apart, [0, 2, 1]), [-1, elements])
        x = with_taps(self.patch_proj(by_pixel), self.positions.weight, tiles)
        return self.layers_of(x, tiles)


def taps(size: int, side: int) -> int:
    """Return the most rows that a bilinear filter joins in `size` places of a line of `side`.

    It is wider where the line shrinks, by the factor that it shrinks by.
    """
    scale = side / size
    support = max(scale, 1.0)

    def joined(place: int) -> int:
        centre = scale * (place + 0.5)
        first, stop = max(int(centre - support + 0.5), 0), min(int(centre + support + 0.5), side)
        return stop - first

    return max(joined(place) for place in range(size))
