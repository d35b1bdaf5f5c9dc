"""Bytes that a plugin brings to the host early: what is read is what a later command left."""

from __future__ import annotations

import numpy as np
import pytest
import tvm
import tvm_ffi

from wherry.plugins import PLUGINS

from ..support.gpu import device

pytestmark = pytest.mark.gpu


@pytest.fixture(params=PLUGINS)
def started(request):
    """(device, the plugin's function)."""
    there = device(request.param)
    return there, tvm_ffi.get_global_func(f"wherry.{request.param}.start")


def numbers(seed, n=5000):
    return np.random.default_rng(seed).standard_normal(n).astype("float32")


def test_a_read_after_a_start_gives_the_bytes(started):
    there, start = started
    for n in (1, 5000, 3_000_000, 17):  # memory for it grows, and is used again
        tensor = tvm.runtime.tensor(numbers(n, n), there)
        start(tensor)
        assert np.array_equal(tensor.numpy(), numbers(n, n))
        assert np.array_equal(tensor.numpy(), numbers(n, n))
    start(tvm.runtime.tensor(numbers(0, 0), there))


def test_what_is_written_after_a_start_is_read(started):
    there, start = started
    first, second = (tvm.runtime.tensor(numbers(i), there) for i in (1, 2))
    start(first)
    first.copyfrom(numbers(3))
    assert np.array_equal(first.numpy(), numbers(3))
    start(first)
    second.copyto(first)
    assert np.array_equal(first.numpy(), numbers(2))
    start(first)  # and is not read: another takes its place, and its memory
    start(second)
    assert np.array_equal(second.numpy(), numbers(2))
    start(first)
    del first
    third = tvm.runtime.tensor(numbers(4), there)
    assert np.array_equal(third.numpy(), numbers(4))
