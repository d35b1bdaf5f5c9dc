"""Multimodal RoPE (M-RoPE): which axis of a row's positions each frequency of a head takes.

The axes are time, height and width. A token of text has one position on all three, so models
without images ignore the axes. Source: transformers' `modeling_qwen3_vl.py`, and for sections that
are not interleaved `modeling_qwen2_vl.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from ..config import Range


@dataclass(frozen=True, kw_only=True)  # no slots, because families combine it with other fields
class RopeAxesConfig:
    """Configuration fields of M-RoPE, which config.json has among the parameters of RoPE."""

    # Frequencies of time, height and width; (): all positions of a row are equal.
    mrope_section: tuple[Annotated[int, Range(0, 2**12)], ...] = ()
    mrope_interleaved: bool = False

    @staticmethod
    def prepared(given: dict[str, Any]) -> dict[str, Any]:
        """Move the fields out of the parameters of RoPE."""
        moved = dict(given)
        for where in ("rope_parameters", "rope_scaling"):
            if isinstance(rope := given.get(where), Mapping):
                own = {n: v for n, v in rope.items() if n.startswith("mrope_")}
                moved |= {n: v for n, v in own.items() if v is not None}
                moved[where] = {n: v for n, v in rope.items() if n not in own}
        return moved

    def problems_of_axes(self) -> Iterator[str]:
        """Yield what is wrong with the fields."""
        if self.mrope_section and len(self.mrope_section) != 3:
            yield f"mrope_section: {len(self.mrope_section)} numbers found, expected 3"

    @property
    def image_inputs(self) -> tuple[str, ...]:
        """Return what a step of the model needs of images besides features and their rows."""
        return ("rope_positions",) if self.mrope_section else ()

    def axes(self, count: int) -> tuple[int, ...]:
        """Return the axis of each of `count` frequencies; (): they take a row's one position."""
        if not self.mrope_section:
            return ()
        return axes_of(self.mrope_section, count, interleaved=self.mrope_interleaved)


def axes_of(section: Sequence[int], count: int, *, interleaved: bool) -> tuple[int, ...]:
    """Return the axis of each frequency: 0 time, 1 height, 2 width.

    Args:
        section: frequencies of each axis.
        count: all frequencies; those beyond the sections are time's.
        interleaved: whether axes take turns, or have frequencies next to each other.
    """
    time, height, width = section
    if not interleaved:
        runs = (*[0] * time, *[1] * height, *[2] * width, *[0] * count)
        return runs[:count]
    turns = ((i, (0, height, width)[i % 3]) for i in range(count))
    return tuple(i % 3 if i < 3 * most else 0 for i, most in turns)
