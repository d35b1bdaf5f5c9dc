"""Bytes that a plugin brings to the host early: as they were then, whatever comes later."""

from __future__ import annotations

import numpy as np
import pytest
import tvm
import tvm_ffi

from wherry.machine.plugins import PLUGINS

from ..support.gpu import device

pytestmark = pytest.mark.gpu


@pytest.fixture(params=PLUGINS)
def started(request):
    """(device, the plugin's `start`, and `take` as a function that returns an array)."""
    there = device(request.param)
    start, take = (
        tvm_ffi.get_global_func(f"wherry.{request.param}.{n}") for n in ("start", "take")
    )

    def taken(tensor):
        host = tvm.runtime.empty(tensor.shape, "float32")
        take(tensor, host)
        return host.numpy()

    return there, start, taken


def numbers(seed, n=5000):
    return np.random.default_rng(seed).standard_normal(n).astype("float32")


def test_what_is_taken_after_a_start_are_the_bytes(started):
    there, start, take = started
    for n in (1, 5000, 3_000_000, 17):  # memory for it grows, and is used again
        tensor = tvm.runtime.tensor(numbers(n, n), there)
        start(tensor)
        assert np.array_equal(take(tensor), numbers(n, n))
        assert np.array_equal(take(tensor), numbers(n, n))  # was not started
        assert np.array_equal(tensor.numpy(), numbers(n, n))
    empty = tvm.runtime.tensor(numbers(0, 0), there)
    start(empty)
    assert take(empty).size == 0


def test_later_commands_do_not_change_what_is_taken(started):
    there, start, take = started
    first, second = (tvm.runtime.tensor(numbers(i), there) for i in (1, 2))
    start(first)
    first.copyfrom(numbers(3))
    assert np.array_equal(first.numpy(), numbers(3))
    assert np.array_equal(take(first), numbers(1))
    start(first)
    second.copyto(first)
    assert np.array_equal(first.numpy(), numbers(2))
    assert np.array_equal(take(first), numbers(3))


def test_two_can_be_on_their_way(started):
    there, start, take = started
    tensors = [tvm.runtime.tensor(numbers(i), there) for i in range(3)]
    start(tensors[0])
    start(tensors[1])
    assert np.array_equal(take(tensors[0]), numbers(0))
    start(tensors[2])
    assert np.array_equal(take(tensors[1]), numbers(1))
    assert np.array_equal(take(tensors[2]), numbers(2))
    for tensor in tensors:  # the first gives way, and is read now
        start(tensor)
    tensors[0].copyfrom(numbers(9))
    for tensor, seed in zip(tensors, (9, 1, 2), strict=True):
        assert np.array_equal(take(tensor), numbers(seed))


def test_memory_that_was_freed_is_forgotten(started):
    there, start, take = started
    first = tvm.runtime.tensor(numbers(1), there)
    start(first)
    del first
    again = tvm.runtime.tensor(numbers(4), there)  # perhaps where the first was
    assert np.array_equal(take(again), numbers(4))


def test_many_small_writes_are_done_in_their_order(started):
    there, *_ = started
    tensor = tvm.runtime.tensor(np.zeros(16, "float32"), there)
    for i in range(500):
        tensor.copyfrom(np.full(16, i, "float32"))
    assert np.array_equal(tensor.numpy(), np.full(16, 499, "float32"))
