"""Split-K attention of decode rows: a row's tokens in splits, each with a slot.

A sequence is cut into splits of SPLIT tokens from its first token, see `attend`. Every split of
every sequence has a slot of memory for its state, at an index that needs no sum over the batch: a
sequence's slots begin at page_indptr[s] // (pages of a split) + s. There are enough slots up to the
next sequence's, so p page ids of r sequences need p // (pages of a split) + r slots, however long
the longest sequence is.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tvm import tirx

SPLIT = 256  # tokens
# Limit of slots: half a million tokens in one step. Larger steps have no splits.
MOST_SLOTS = 2048


def pages_of(page_size: int) -> int:
    """Pages of a split."""
    assert SPLIT % page_size == 0, page_size
    return SPLIT // page_size


def needed(page_size: int, pages: Any, sequences: Any) -> Any:
    """Slots of a step, from its numbers of page ids and sequences."""
    return pages // pages_of(page_size) + sequences


def slots(page_size: int, sizes: Mapping[str, Any]) -> Any:
    """Slots that a step has memory for; `sizes` as in `kernel_set.Size`."""
    return tirx.min(needed(page_size, sizes["p"], sizes["r"]), MOST_SLOTS)
