"""Memory is planned before a load."""

from types import SimpleNamespace

import pytest

from wherry.errors import ResourceError
from wherry.runtime import memory

MANIFEST = SimpleNamespace(
    name="small", memory={"weights": 1_000_000, "workspace": 0, "kv_per_token": 1000}
)
CONFIG = {"context": 512, "max_batch": 8}


def test_all_contexts_if_they_fit():
    assert memory.kv_tokens(MANIFEST, CONFIG, free=100_000_000) == 512 * 8


def test_half_of_what_is_left_otherwise():
    assert memory.kv_tokens(MANIFEST, CONFIG, free=3_000_000) == 1000 // 16 * 16


def test_too_little_says_the_numbers():
    with pytest.raises(ResourceError, match=r"needs 1\.0 MB .* 1\.0 MB are free"):
        memory.kv_tokens(MANIFEST, CONFIG, free=1_000_100)


def test_unknown_sizes_leave_it_to_the_core():
    unknown = SimpleNamespace(name="small", memory={})
    assert memory.kv_tokens(unknown, CONFIG, free=1) is None


def test_this_machine_has_some():
    assert memory.available() > 10_000_000
