"""A checkpoint with the tensors of others: linears after pooling, or a head that drafts tokens."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wherry.errors import ModelError, listing
from wherry.models.weights.plan import ParameterPlan

from .kept import KeptRows
from .tensors import Checkpoint


def with_others(main: Checkpoint, others: Mapping[str, Checkpoint]) -> Checkpoint:
    """Return `main` with the tensors of others, by the prefix that their names get.

    Raises:
        ModelError: `main` has such names, too.
    """
    if not others:
        return main
    sources = {
        prefix + name: (checkpoint, name)
        for prefix, checkpoint in others.items()
        for name in checkpoint.tensors
    }
    if both := sorted(sources.keys() & main.tensors.keys()):
        raise ModelError(f"{main.folder} has tensors twice:\n{listing(both)}")
    return _Joined(
        folder=main.folder,
        tensors={**main.tensors, **{n: c.tensors[own] for n, (c, own) in sources.items()}},
        files=(*main.files, *(file for c in others.values() for file in c.files)),
        fingerprint="-".join(c.fingerprint for c in (main, *others.values())),
        main=main,
        sources=sources,
    )


@dataclass(frozen=True, slots=True)
class _Joined(Checkpoint):
    main: Checkpoint | None = None
    # name -> the checkpoint that has the tensor, and its name there
    sources: Mapping[str, tuple[Checkpoint, str]] = field(default_factory=dict)

    def _source(self, name: str) -> tuple[Checkpoint, str]:
        assert self.main is not None
        return self.sources.get(name, (self.main, name))

    def require_floats(self, names: Iterable[str]) -> None:
        """See `Checkpoint.require_floats`."""
        for name in names:
            checkpoint, own = self._source(name)
            checkpoint.require_floats([own])

    def precision_note(self, scheme: str, kept: Collection[str] = ()) -> str | None:
        """See `Checkpoint.told`."""
        assert self.main is not None
        return self.main.precision_note(scheme, [name for name in kept if name not in self.sources])

    def loses(self, name: str, scheme: str) -> bool:
        """See `Checkpoint.loses`."""
        checkpoint, own = self._source(name)
        return checkpoint.loses(own, scheme)

    def kept(
        self, plan: ParameterPlan, schemes: Collection[str] | None = None
    ) -> Sequence[KeptRows]:
        """See `Checkpoint.kept`; the tensors of others are encoded."""
        assert self.main is not None
        is_main = all(piece.name not in self.sources for piece in plan.pieces)
        return self.main.kept(plan, schemes) if is_main else ()

    def read(self, name: str, start: int = 0, stop: int | None = None) -> NDArray[np.float32]:
        """See `Checkpoint.read`."""
        checkpoint, own = self._source(name)
        return checkpoint.read(own, start, stop)

    def read_raw(self, name: str, start: int = 0, stop: int | None = None) -> NDArray[Any]:
        """See `Checkpoint.read_raw`."""
        checkpoint, own = self._source(name)
        return checkpoint.read_raw(own, start, stop)
