"""What a host computes of images of any size: a NumPy reference of positions and patches.

A grid is (rows, columns), of patches or of features.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

Grid = tuple[int, int]


def rope_positions(parts: Sequence[int | Grid]) -> np.ndarray:
    """Positions on the axes of M-RoPE, int32 [n, 3].

    Each part is a number of tokens of text, or the grid of an image's features.
    """
    positions, current = [np.zeros((0, 3), int)], 0
    for part in parts:
        if isinstance(part, int):
            positions.append(np.repeat(np.arange(part)[:, None], 3, 1) + current)
            current += part
        else:
            rows, columns = (axis.reshape(-1) for axis in np.indices(part))
            positions.append(np.stack([np.zeros_like(rows), rows, columns], 1) + current)
            current += max(part)
    return np.concatenate(positions).astype(np.int32)


@dataclass(frozen=True)
class Tile:
    """An image of h x w patches, in blocks of merge x merge that follow each other."""

    pixels: np.ndarray  # float32 [3, h * p, w * p]
    patch: int
    merge: int

    @property
    def grid(self) -> Grid:
        """Rows and columns of patches."""
        _, height, width = self.pixels.shape
        return height // self.patch, width // self.patch

    @property
    def merged(self) -> Grid:
        """Rows and columns of features."""
        return self.grid[0] // self.merge, self.grid[1] // self.merge

    @property
    def features(self) -> int:
        """The number of features."""
        return self.merged[0] * self.merged[1]

    def blocks(self, array: np.ndarray) -> np.ndarray:
        """Order an array [h, w, ...] by blocks: [h * w, ...]."""
        (rows, columns), m = self.merged, self.merge
        cut = array.reshape(rows, m, columns, m, -1).swapaxes(1, 2)
        return np.ascontiguousarray(cut.reshape(rows * m * columns * m, -1))

    def patches(self) -> np.ndarray:
        """Patches by channel, row, column, float32 [n, 3 * p * p]."""
        (h, w), p = self.grid, self.patch
        cut = self.pixels.reshape(3, h, p, w, p).transpose(1, 3, 0, 2, 4)
        return self.blocks(cut.reshape(h, w, -1))

    def coordinates(self) -> np.ndarray:
        """Row and column of each patch, int32 [n, 2]."""
        return self.blocks(np.stack(np.indices(self.grid), -1).astype(np.int32))

    def taps(self, side: int) -> tuple[np.ndarray, np.ndarray]:
        """Rows of a table of side x side positions, int32 [n, 4], and weights of them [n, 4].

        It is stretched over the image, corner to corner, and read bilinearly.
        """
        rows, columns = (_between(size, side) for size in self.grid)
        places = rows[0][:, None, :, None] * side + columns[0][None, :, None, :]
        weights = rows[1][:, None, :, None] * columns[1][None, :, None, :]
        shape = (*self.grid, 4)
        return (
            self.blocks(places.reshape(shape).astype(np.int32)),
            self.blocks(weights.reshape(shape).astype(np.float32)),
        )

    def arrays(self, side: int) -> dict[str, np.ndarray]:
        """The inputs of a tower of Qwen3-VL's kind."""
        positions, weights = self.taps(side)
        more = {"position_weights": weights, "coordinates": self.coordinates()}
        return {"patches": self.patches(), "positions": positions, **more}


def _between(size: int, side: int) -> tuple[np.ndarray, np.ndarray]:
    """The two places of an axis of a table between which each of `size` lies, and their weights."""
    place = np.arange(size, dtype=np.float32) * np.float32(side - 1) / np.float32(max(size - 1, 1))
    low = np.floor(place)
    taps = np.minimum(np.stack([low, low + 1], -1).astype(int), side - 1)
    return taps, np.stack([1 - (place - low), place - low], -1)
