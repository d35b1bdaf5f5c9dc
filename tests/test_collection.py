"""Garbage collections that do not visit what stays."""

from __future__ import annotations

import gc

import pytest

from wherry.base.collection import frozen


@pytest.fixture(autouse=True)
def thawed():
    """The tests' own freeze (conftest.py) is undone meanwhile."""
    gc.unfreeze()
    yield
    gc.freeze()


def test_what_is_loaded_is_frozen_during_the_block():
    with pytest.raises(KeyError), frozen():
        assert gc.get_freeze_count() > 10_000
        raise KeyError
    assert gc.get_freeze_count() == 0


def test_the_outer_block_decides():
    with frozen():
        with frozen():
            pass
        assert gc.get_freeze_count() > 10_000
