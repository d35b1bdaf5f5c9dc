"""Describes the KV cache of a model: page tables, and the page shape of each layer."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from wherry.ops import AttentionShape, page_shape

PAGE_SIZE = 16  # tokens of one page


@dataclass(frozen=True, slots=True)
class Group:
    """A group of layers that share one page table."""

    window: int | None  # tokens of the sliding window; None: all earlier tokens
    layers: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class State:
    """Layers of one group whose pages have the same shape."""

    group: int
    layers: tuple[int, ...]
    page_shape: tuple[int, ...]  # shape of one page of one layer


@dataclass(frozen=True, slots=True, kw_only=True)
class KVCache:
    """The KV cache of a model: one tensor [pages, *page_shape] per layer that owns one."""

    dtype: str
    groups: tuple[Group, ...]  # a group without a sliding window comes first
    state: tuple[State, ...]  # in the order of the cache tensors among the arguments of `forward`

    @classmethod
    def of(
        cls, layers: Iterable[AttentionShape], dtype: str, *, latents_once: bool = False
    ) -> KVCache:
        """Return the cache that `layers` need; a layer that reads another layer's cache owns none.

        With `latents_once`, kernels read an MLA latent as key and as value from one plane.
        """
        owners = [layer for layer in layers if layer.kv != "none"]
        windows = sorted({own.window for own in owners}, key=lambda w: (w is not None, w))
        groups = [Group(w, tuple(own.cache for own in owners if own.window == w)) for w in windows]
        state: dict[tuple[int, tuple[int, ...]], list[int]] = {}
        for own in sorted(owners, key=lambda own: windows.index(own.window)):
            planes = 1 if own.latent and latents_once else 2
            page = page_shape(own.kv_heads, PAGE_SIZE, own.head_dim, dtype, planes)
            state.setdefault((windows.index(own.window), page), []).append(own.cache)
        return cls(
            dtype=dtype,
            groups=tuple(groups),
            state=tuple(State(g, tuple(layers), page) for (g, page), layers in state.items()),
        )

    def tables(self) -> dict[str, str]:
        """Return the arrays of all page tables, two per group: name -> symbolic size."""
        sizes: dict[str, str] = {}
        for g in range(len(self.groups)):
            sizes[f"page_indptr_{g}"] = f"r{g + 2}"
            sizes[f"page_ids_{g}"] = "p" if g == 0 else f"p{g}"
        return sizes
