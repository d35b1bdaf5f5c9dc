"""Work in several threads."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from wherry.base.parallel import mapped, threads
from wherry.quant.scheme import TYPES


@pytest.fixture(params=["1", "3"])
def count(request, monkeypatch):
    monkeypatch.setenv("WHERRY_THREADS", request.param)
    return int(request.param)


def test_results_are_in_order_and_by_all_threads(count):
    together = threading.Barrier(count, timeout=30)

    def work(item):
        together.wait()
        return item * item, threading.current_thread()

    results = mapped(work, range(count))
    assert [square for square, _ in results] == [i * i for i in range(count)]
    assert len({thread for _, thread in results}) == count == threads()


def test_work_has_the_context_of_its_caller(count):
    with np.errstate(divide="raise"), pytest.raises(FloatingPointError):
        mapped(lambda x: np.ones(2) / x, [np.ones(2), np.zeros(2)])
    with np.errstate(divide="ignore"):
        results = mapped(lambda x: np.ones(2) / x, [np.ones(2), np.zeros(2)])
    assert np.isinf(results[1]).all()


def test_work_inside_of_work_stays_in_its_thread(count):
    """Otherwise all threads could wait for each other."""

    def inside(_):
        return threading.current_thread()

    def work(_):
        return {threading.current_thread(), *mapped(inside, range(5))}

    assert all(len(seen) == 1 for seen in mapped(work, range(9)))
    assert len(mapped(work, range(9))) == 9


@pytest.mark.parametrize("name", ["tcq3", "q4_k"])
def test_weights_do_not_depend_on_the_number_of_threads(name, monkeypatch):
    w = np.random.default_rng(0).standard_normal((300, 2112)).astype(np.float32)
    encoded = []
    for count in ("1", "3"):
        monkeypatch.setenv("WHERRY_THREADS", count)
        encoded.append(TYPES[name].encode(w))
    for field, array in encoded[0].items():
        np.testing.assert_array_equal(encoded[1][field], array)
