"""Split-K attention of decode rows: a row's tokens are divided into splits, each with a slot.

A sequence is divided into splits of SPLIT tokens from its first token, see `attend`. Every split of
every sequence has a slot of memory for its state, at an index that needs no sum over the batch: a
sequence's slots begin at page_indptr[s] // (pages of a split) + s. There are enough slots up to the
next sequence's, so p page ids of r sequences need p // (pages of a split) + r slots, however long
the longest sequence is.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tvm import tirx

SPLIT = 256  # tokens of a split
# Maximum number of slots: half a million tokens in one step. Larger steps use no splits.
MOST_SLOTS = 2048


def pages_of(page_size: int) -> int:
    """Return the number of pages of a split."""
    assert SPLIT % page_size == 0, page_size
    return SPLIT // page_size


def needed(page_size: int, pages: Any, sequences: Any) -> Any:
    """Return the number of slots that a step needs, from its numbers of page ids and sequences."""
    return pages // pages_of(page_size) + sequences


def slots(page_size: int, sizes: Mapping[str, Any]) -> Any:
    """Return the number of slots that a step has memory for.

    `sizes` has the step's sizes by name.
    """
    return tirx.min(needed(page_size, sizes["p"], sizes["r"]), MOST_SLOTS)
