"""GEMM of experts in bfloat16, by the tiles of `bf16_tiles`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tvm.script import tirx as T

from wherry.ops import ExpertLinearSpec

from . import bf16_weights
from .bf16_linear import LEAST
from .bf16_tiles import BLOCK, Bf16Rows, Strip, Unpack
from .expert_layout import units
from .int_layout import LAYOUTS

# function: expert -> its first slot (None: not routed), its number of rows
RowsOf = Callable[[Any], tuple[Any, Any]]


@dataclass(frozen=True, slots=True)
class Bf16Experts:
    """The rows of all slots in bfloat16, in the order of their experts, and the weights.

    Each expert's rows begin with a block: expert e, whose first place among all slots is s, with
    the block s // 32 + e.
    """

    rows: Bf16Rows
    slots: Any  # their number
    unpack: Unpack  # by panels of all experts
    panels: int  # of an expert

    @classmethod
    def of(cls, spec: ExpertLinearSpec, b: dict[str, Any]) -> Bf16Experts:
        """Allocate the rows of a kernel with the buffers `b`."""
        if spec.scheme in LAYOUTS:
            unpack = bf16_weights.integers(b["W"], b["S"], LAYOUTS[spec.scheme])
        else:
            unpack = bf16_weights.floats(b["W"])
        slots = (b["slots"] if spec.routed else b["x"]).shape[0]
        blocks = T.floordiv(slots, BLOCK) + spec.experts
        return cls(Bf16Rows.of(blocks, spec.in_features), slots, unpack, 2 * units(spec))

    def fill(self, experts: int, X: Any, rows_of: RowsOf, source_of: Callable[..., Any]) -> None:
        """Emit the rounding of all rows that are multiplied; `source_of(first, expert, i)`."""
        some = T.If(self.slots >= LEAST)  # a small batch saves a launch
        with some, T.Then(), T.parallel(experts) as expert, T.sblock("rows"):
            T.reads()
            T.writes()
            first, rows = rows_of(expert)
            with T.If(rows >= LEAST), T.Then(), T.serial(rows) as i, T.sblock("row"):
                T.reads()
                T.writes()
                place = self._block(first, expert, rows) * BLOCK + i
                source = source_of(first, expert, i)
                self.rows.store_row(lambda at: X[source, at], int(X.shape[1]), place)

    def strip(self, panels: int) -> Strip:
        """Allocate the buffers of a task with `panels` panels."""
        return Strip.of(panels, self.rows.groups, self.rows.blocks)

    def multiply(self, strip: Strip, begin: Any, first: Any, expert: Any, rows: Any) -> None:
        """Emit the sums of an expert's rows and the panels of it from `begin` on."""

        def unpack(p: Any, g: Any, store: Any) -> None:
            own = T.min(begin + p, self.panels - 1)
            self.unpack(expert * self.panels + own, g, store)

        blocks = T.ceildiv(rows, BLOCK)
        strip.multiply(self.rows, self._block(first, expert, rows), blocks, unpack)

    @staticmethod
    def _block(first: Any, expert: Any, rows: Any) -> Any:
        return T.floordiv(expert * rows if first is None else first, BLOCK) + expert
