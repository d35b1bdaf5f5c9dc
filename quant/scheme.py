"""The interface of quantization schemes, and the search for one by its name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from wherry.errors import UsageError

from .float import FLOATS, FloatScheme
from .group import GROUPS
from .other_names import advice
from .stored import FloatDtype, Shape, StoredTensor, cast


class Scheme(Protocol):
    """How parameters are stored. Implementations are frozen data; there is no state."""

    def __hash__(self) -> int:
        """Equal schemes are one."""

    @property
    def name(self) -> str:
        """The name for `--quant`; mlc-llm's name where the layout is mlc-llm's."""

    @property
    def float_dtype(self) -> FloatDtype:
        """Dtype of unquantized tensors, scales and activations."""

    def quantizes(self, name: str, shape: Shape) -> bool:
        """Whether parameter `name` is encoded; if not, it is stored as `float_dtype`."""

    def stored(self, name: str, shape: Shape) -> tuple[StoredTensor, ...]:
        """The tensors that hold parameter `name` of `shape`, in the order of `encode`."""

    def encode(self, w: NDArray[np.float32]) -> dict[str, NDArray[Any]]:
        """Encode w [..., in] float32, by suffix ("q_weight").

        Rows do not depend on each other: a matrix may be encoded in blocks of rows.
        """

    def decode(
        self, stored: Mapping[str, NDArray[Any]], columns: int | None = None
    ) -> NDArray[np.float32]:
        """Undo `encode` up to rounding; `columns` is `in`, if it is not a multiple of a group."""

    def element(self, stored: Sequence[Any], row: Any, column: Any) -> Any:
        """The float32 expression of a matrix's element in the graph.

        `stored` are TE tensors in the order of `stored`; row and column TIR expressions.
        """

    def kernel_spec(self) -> dict[str, Any]:
        """The scheme's fields in the tags "linear" and "embedding"."""


def store(
    scheme: Scheme, name: str, w: NDArray[np.float32], shape: Shape | None = None
) -> dict[str, NDArray[Any]]:
    """The arrays of `scheme.stored(name, shape)`, by full name.

    Args:
        scheme: how.
        name: of the parameter.
        w: the parameter, or some of its rows.
        shape: of the whole parameter, if w is not all of it.

    A value that `float_dtype` cannot hold becomes infinite, which `finite` finds.
    """
    if scheme.quantizes(name, w.shape if shape is None else shape):
        prefix = name.removesuffix("weight")
        return {prefix + suffix: array for suffix, array in scheme.encode(w).items()}
    return {name: cast(w, scheme.float_dtype)}


def finite(array: NDArray[Any]) -> bool:
    """Whether a stored array has neither infinities nor NaN."""
    return array.dtype.kind != "f" or bool(np.isfinite(array).all())


DEFAULT = "q4f16_1"
# For parameters that no scheme may round: routers, whose choices are discrete.
EXACT = FloatScheme(name="exact", float_dtype="float32")


def schemes() -> dict[str, Scheme]:
    """All schemes by name."""
    known: tuple[Scheme, ...] = (*FLOATS, *GROUPS)
    return {scheme.name: scheme for scheme in known}


def find(name: str) -> Scheme:
    """The scheme called `name`.

    Raises:
        UsageError: there is none; the message lists all schemes, and translates names of other
            projects.
    """
    known = schemes()
    if name not in known:
        meant, why = advice(name, known)
        raise UsageError(
            f"Unknown quantization {name!r}; there are {', '.join(known)}. "
            f"{why + ' ' if why else ''}Type: --quant {meant or DEFAULT}"
        )
    return known[name]
