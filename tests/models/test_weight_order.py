"""Rows of q and k in another order: what a rotation of neighbours becomes, and fused heads."""

from __future__ import annotations

import numpy as np
import pytest

from wherry.models.arch import Groups, Pairs


@pytest.mark.parametrize(("head_dim", "rotary"), [(8, 8), (8, 4), (6, 2), (4, 0)])
def test_pairs_become_halves(head_dim, rotary):
    source = Pairs(head_dim, rotary).source(np.arange(3 * head_dim))
    first = [*range(0, rotary, 2), *range(1, rotary, 2), *range(rotary, head_dim)]
    assert source.tolist() == [h * head_dim + k for h in range(3) for k in first]


def test_any_block_of_rows_is_that_of_all_rows():
    for order in (Pairs(8, 4), Groups(6, 2, 8)):
        all_rows = order.source(np.arange(80))
        assert sorted(all_rows) == list(range(80))
        assert np.array_equal(order.source(np.arange(13, 37)), all_rows[13:37])


def test_groups_become_q_k_and_v():
    names = [f"{n}{g}{i}" for g in range(2) for n, i in (("q", 0), ("q", 1), ("k", ""), ("v", ""))]
    order = Groups(heads=4, kv_heads=2, head_dim=1).source(np.arange(8))
    expected = ["q00", "q01", "q10", "q11", "k0", "k1", "v0", "v1"]
    assert [names[i] for i in order] == expected
