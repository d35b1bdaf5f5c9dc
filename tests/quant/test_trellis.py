"""The search of paths through a trellis, against all paths."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from wherry.ops.blocks import TRELLIS, TRELLIS_FACTORS
from wherry.quant.trellis import Feedback, best_path, windows

VALUES = np.array(TRELLIS, np.float32)
each = pytest.mark.parametrize("bits", [2, 3])


def paths(bits, columns):
    """All integers of a group, [paths, columns], and their values."""
    q = np.array(list(product(range(2**bits), repeat=columns)))
    return q, VALUES[windows(q, bits, columns)]


def test_levels():
    """Each level is one window's, and rounding errors of a device cannot change a value."""
    u = np.arange(-63, 64, 2) / 63
    one, three, seventeen = TRELLIS_FACTORS
    exact = 127 * (one * u + three * u**3 + seventeen * u**17)
    assert sorted(TRELLIS) == np.rint(exact).tolist()
    assert np.abs(np.abs(exact - np.floor(exact)) - 0.5).min() > 1e-3
    assert min(TRELLIS) == -127 and len(set(TRELLIS)) > 60


def test_windows_begin_anew_in_each_group():
    q = np.array([[1, 2, 3, 4, 5, 6, 7, 1]])
    assert windows(q, 3, 4).tolist() == [[1, 10, 19, 28, 5, 46, 55, 57]]
    assert windows(q % 4, 2, 4).tolist() == [[1, 6, 27, 44, 1, 6, 27, 45]]


@each
def test_the_best_path_is_the_best_of_all(bits):
    rng = np.random.default_rng(0)
    w = rng.standard_normal((5, 30)).astype(np.float32)
    scale = rng.uniform(0.01, 0.03, 30).astype(np.float32)
    importance = rng.uniform(0.2, 2, 5).astype(np.float32)
    q, values = best_path(w, scale, importance, bits)
    made = values * scale
    _, every = paths(bits, 5)
    errors = ((every[:, :, None] * scale - w) ** 2 * importance[:, None]).sum(1)
    np.testing.assert_allclose(((made - w) ** 2 * importance[:, None]).sum(0), errors.min(0), 1e-5)
    np.testing.assert_array_equal(values.T, VALUES[windows(q.T, bits, 5)])


@each
def test_errors_are_passed_on_along_each_path(bits):
    """The error of the results is close to that of the best of all paths."""
    rng = np.random.default_rng(1)
    x = rng.standard_normal((64, 5)) @ rng.standard_normal((5, 5))
    products = x.T @ x
    factor = np.linalg.cholesky(products[::-1, ::-1])[::-1, ::-1]
    own = factor.diagonal()
    w = rng.standard_normal((5, 40)).astype(np.float32)
    scale = np.full(40, 0.02, np.float32)
    _, every = paths(bits, 5)

    def error(made):
        e = w - made
        return np.einsum("...in,ij,...jn->...n", e, products, e)

    feedback = Feedback(w, (factor / own).astype(np.float32))
    passed = error(best_path(w, scale, (own**2).astype(np.float32), bits, feedback)[1] * scale)
    alone = error(best_path(w, scale, np.ones(5, np.float32), bits)[1] * scale)
    best = error(every[:, :, None] * scale).min(0)
    assert (passed > 0.999 * best).all()
    assert passed.mean() < 1.35 * best.mean() < 0.8 * alone.mean()
