"""The interface by which a checkpoint offers weights that are already encoded in a scheme.

A conversion without `--quant` copies what `Checkpoint.kept` offers. A parameter that is made of
several tensors may have rows in several schemes: files with mixed bit widths store v with more
bits than q and k, and the model reads all three as one parameter.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from numpy.typing import NDArray

from wherry.quant.scheme import TYPES, Scheme


@dataclass(frozen=True, slots=True)
class KeptSchemes:
    """Names of the schemes in which weights of a checkpoint stay."""

    matrices: frozenset[str] = frozenset()
    experts: frozenset[str] = frozenset()

    def of(self, shape: tuple[int, ...]) -> frozenset[str]:
        """Return the names for a parameter [rows, columns] or [experts, rows, columns]."""
        return self.experts if len(shape) > 2 else self.matrices

    def __bool__(self) -> bool:
        """Return whether any weights stay."""
        return bool(self.matrices or self.experts)


NOTHING = KeptSchemes()  # everything is encoded


@dataclass(frozen=True, slots=True)
class AllowedSchemes:
    """The schemes of a target that a conversion may use besides the one that was asked for."""

    keep: KeptSchemes | None = None  # the checkpoint's, in which weights stay; None: all
    types: Collection[str] = tuple(TYPES)  # names of the block types that a mix may choose from


ANY = AllowedSchemes()


class KeptRows(Protocol):
    """Consecutive rows of a parameter that the checkpoint stores in one scheme."""

    @property
    def rows(self) -> int:
        """Return the number of rows, along the first axis of `ParameterPlan.rows`."""

    @property
    def scheme(self) -> Scheme:
        """Return the scheme, which `wherry.quant.scheme.record` finds by its name."""

    def stored(self, start: int, stop: int) -> Mapping[str, NDArray[Any]]:
        """Return rows [start, stop) of these rows as the scheme stores them.

        The result has an array for each tensor of `scheme.stored`, by name suffix ("q_weight"),
        with its dtype and the shape [stop - start, ...].

        Raises:
            ModelError: the file is shorter than its header says.
        """
