"""The KV cache that a model's attention needs: page tables, and the shape of each layer's pages."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from wherry.ops import AttentionShape, page_shape

PAGE_SIZE = 16  # tokens of a page


@dataclass(frozen=True, slots=True)
class Group:
    """Layers that share a page table."""

    window: int | None  # tokens that a row sees; None: all before it
    layers: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class State:
    """The layers of one group whose pages have the same shape."""

    group: int
    layers: tuple[int, ...]
    page_shape: tuple[int, ...]  # of one page of one layer


@dataclass(frozen=True, slots=True, kw_only=True)
class KVCache:
    """The cache of a whole model: one tensor [pages, *page_shape] for each layer that owns one."""

    dtype: str
    groups: tuple[Group, ...]  # the one without a window, if there is one, is the first
    state: tuple[State, ...]  # in the order of the arguments of `forward`

    @classmethod
    def of(
        cls, layers: Iterable[AttentionShape], dtype: str, *, latents_once: bool = False
    ) -> KVCache:
        """The cache that `layers` need; those that read another layer's cache own none.

        With `latents_once`, kernels read a latent as key and value from one place.
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
        """Names of the arrays of all page tables, two a group, and their symbolic sizes."""
        sizes: dict[str, str] = {}
        for g in range(len(self.groups)):
            sizes[f"page_indptr_{g}"] = f"r{g + 2}"
            sizes[f"page_ids_{g}"] = "p" if g == 0 else f"p{g}"
        return sizes
