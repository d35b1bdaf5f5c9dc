"""What a pass asks of a target: its own kernels, by the name of the operation."""

from __future__ import annotations

from typing import Protocol

from tvm import ir, relax, tirx


class Packed(Protocol):
    """How a target computes an operation whose weights it lays out anew."""

    @property
    def weights(self) -> tuple[tuple[tuple[int, ...], str], ...]:
        """Shape and dtype of each packed tensor."""

    @property
    def pack(self) -> tirx.PrimFunc:
        """(*stored, *packed), destination-passing; runs once, at a model's first load."""

    @property
    def compute(self) -> tirx.PrimFunc:
        """The operation, with the packed tensors in the place of the stored ones."""


class Kernels(Protocol):
    """A target's own kernels."""

    def kernel(self, op: str, spec: str) -> tirx.PrimFunc | Packed | None:
        """What computes `op` here, with the reference's signature; None: the reference does.

        `spec` is the JSON of the tag. The weights of an operation that may be packed ("linear",
        "embedding") are all its inputs but the first.
        """

    def schedule(self, func: tirx.PrimFunc) -> tirx.PrimFunc:
        """Order the loops of a PrimFunc that nothing else has scheduled."""


TIR_CALLS = tuple(ir.Op.get(f"relax.{name}") for name in ("call_tir", "call_tir_inplace"))


def is_tir_call(expr: relax.Expr) -> bool:
    """Whether `expr` calls a PrimFunc, in place or not."""
    return isinstance(expr, relax.Call) and expr.op in TIR_CALLS
