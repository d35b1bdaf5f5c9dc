"""How the attention of decode rows is dealt out: a row's tokens in splits, each with a slot.

A sequence is cut into splits of SPLIT tokens from its first token, see `attend`. Every split of
every sequence has a slot of memory for its state, without a sum over the batch: a sequence's slots
begin at page_indptr[s] // (pages of a split) + s. What lies between that and the next sequence's
is enough for its pages, so that p page ids of r sequences take p // (pages of a split) + r slots,
however long the longest of them is.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tvm import tirx

SPLIT = 256  # tokens
# Slots that there is memory for: half a million tokens in one step. Beyond, no row is split.
MOST_SLOTS = 2048


def pages_of(page_size: int) -> int:
    """Pages of a split."""
    assert SPLIT % page_size == 0, page_size
    return SPLIT // page_size


def needed(page_size: int, pages: Any, sequences: Any) -> Any:
    """Slots of a step of so many page ids and sequences."""
    return pages // pages_of(page_size) + sequences


def slots(page_size: int, sizes: Mapping[str, Any]) -> Any:
    """Slots that a step gets memory for; `sizes` are those of `kernel_set.Size`."""
    return tirx.min(needed(page_size, sizes["p"], sizes["r"]), MOST_SLOTS)
