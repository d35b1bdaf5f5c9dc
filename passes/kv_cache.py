"""Describes the KV cache of a model: page tables, and the page shape of each layer."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from wherry.errors import UsageError
from wherry.ops import AttentionShape, page_dtype, page_shape

PAGE_SIZE = 16  # tokens of one page
HIDDEN = -1  # stands for a layer where pages hold hidden states, see models/drafts/mtp.py


@dataclass(frozen=True, slots=True)
class KvGroup:
    """A group of layers that share one page table."""

    window: int | None  # tokens of the sliding window; None: all earlier tokens
    layers: tuple[int, ...]
    cross: bool = False  # whether the pages hold the source's tokens (cross-attention)


@dataclass(frozen=True, slots=True)
class State:
    """Layers of one group whose pages have the same shape."""

    group: int
    layers: tuple[int, ...]
    page_shape: tuple[int, ...]  # shape of one page of one layer
    dtype: str


def _page_shape(
    own: AttentionShape, dtype: str, planes: int, words: bool
) -> tuple[int, int, int, int]:
    try:
        return page_shape(own.kv_heads, PAGE_SIZE, own.head_dim, dtype, planes, words=words)
    except ValueError as e:
        raise UsageError(f"A cache of {dtype!r} was asked for: {e}. Type: --kv-dtype auto") from e


@dataclass(frozen=True, slots=True, kw_only=True)
class KVCache:
    """The KV cache of a model: one tensor [pages, *page_shape] per layer that owns one."""

    dtype: str  # of keys and values: "float32", "float16", "int8", "int4"
    words: bool  # whether integers are in words of four bytes
    groups: tuple[KvGroup, ...]  # a group without a sliding window comes first
    state: tuple[State, ...]  # in the order of the cache tensors among the arguments of `forward`

    @classmethod
    def of(
        cls,
        layers: Iterable[AttentionShape],
        dtype: str,
        *,
        latents_once: bool = False,
        words: bool = False,
        hidden: int = 0,
    ) -> KVCache:
        """Return the cache that `layers` need; a layer that reads another layer's cache owns none.

        Args:
            layers: the attentions of all entries.
            dtype: dtype of keys and values.
            latents_once: kernels read an MLA latent as key and as value from one plane.
            words: kernels read integers in words of four bytes.
            hidden: elements of a hidden state that is kept of each token; 0: none is. Float16
                suffices, because it decides on draft tokens alone.

        Raises:
            UsageError: a head has a size that `dtype` cannot keep.
        """
        owners = [layer for layer in layers if not layer.appends]
        owners = [layer for layer in owners if layer.kv != "none" or layer.cross]
        kinds = sorted({(own.cross, own.window is not None, own.window) for own in owners})

        def kind(own: AttentionShape) -> int:
            return kinds.index((own.cross, own.window is not None, own.window))

        groups = [
            KvGroup(window, tuple(own.cache for own in owners if kind(own) == i), cross)
            for i, (cross, _, window) in enumerate(kinds)
        ]
        state: dict[tuple[int, tuple[int, ...]], list[int]] = {}
        for own in sorted(owners, key=kind):
            planes = 1 if own.latent and latents_once else 2
            page = _page_shape(own, dtype, planes, words)
            state.setdefault((kind(own), page), []).append(own.cache)
        states = [
            State(g, tuple(layers), page, page_dtype(dtype, words=words))
            for (g, page), layers in state.items()
        ]
        if hidden:
            kept = "float32" if dtype == "float32" else "float16"
            states.append(State(0, (HIDDEN,), (PAGE_SIZE, hidden), kept))
        return cls(dtype=dtype, words=words, groups=tuple(groups), state=tuple(states))

    def tables(self) -> dict[str, str]:
        """Return the arrays of all page tables, two per group: name -> symbolic size."""
        sizes: dict[str, str] = {}
        for g in range(len(self.groups)):
            sizes[f"page_indptr_{g}"] = f"r{g + 2}"
            sizes[f"page_ids_{g}"] = "p" if g == 0 else f"p{g}"
        return sizes
