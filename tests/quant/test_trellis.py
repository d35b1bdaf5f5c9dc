"""The search of paths through a trellis, against all paths and against NumPy."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from wherry.machine.cpu import cpu_features
from wherry.ops.blocks import TRELLIS, TRELLIS_FACTORS
from wherry.quant import search
from wherry.quant.trellis import compiled
from wherry.quant.trellis.kernels import TrellisKernels
from wherry.quant.trellis.paths import GroupFeedback, best_path, best_trellis_scales, windows
from wherry.quant.trellis.vectors import SimdVectors
from wherry.targets.kernels.cpu import Isa

from ..support.aarch64 import require_tools
from ..support.arm_kernels import ArmMachine
from . import trellis_reference as reference

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
    path = best_path(w, scale, importance, bits)
    decoded = VALUES[path] * scale
    _, every = paths(bits, 5)
    errors = ((every[:, :, None] * scale - w) ** 2 * importance[:, None]).sum(1)
    np.testing.assert_allclose(
        ((decoded - w) ** 2 * importance[:, None]).sum(0), errors.min(0), 1e-5
    )
    np.testing.assert_array_equal(path.T, windows(path.T % 2**bits, bits, 5))


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

    def error(decoded):
        e = w - decoded
        return np.einsum("...in,ij,...jn->...n", e, products, e)

    feedback = GroupFeedback(w, (factor / own).astype(np.float32))
    passed = error(VALUES[best_path(w, scale, own.astype(np.float32) ** 2, bits, feedback)] * scale)
    alone = error(VALUES[best_path(w, scale, np.ones(5, np.float32), bits)] * scale)
    best = error(every[:, :, None] * scale).min(0)
    assert (passed > 0.999 * best).all()
    assert passed.mean() < 1.35 * best.mean() < 0.8 * alone.mean()


@pytest.fixture(params=[*compiled.LEVELS, ""])
def level(request, monkeypatch):
    """The search for each width of vectors that this CPU has."""
    if request.param and not cpu_features() >= compiled.LEVELS[request.param][1]:
        pytest.skip(f"this CPU is not {request.param}")
    monkeypatch.setattr(compiled, "_level", lambda: request.param)


def groups(n):
    """Weights [32, n] with scales and importance."""
    rng = np.random.default_rng(n)
    w = (rng.standard_t(4, (32, n)) * 0.02).astype(np.float32)
    scale = np.abs(w).max(0) / 127 * rng.uniform(0.6, 1.2, n).astype(np.float32)
    return w, scale, rng.uniform(0.2, 2, 32).astype(np.float32)


@each
def test_the_paths_are_those_of_numpy(bits, level):
    """Also where groups do not fill the last vector, and where a thread searches few of them."""
    w, scale, importance = groups(301)
    w[:, 7], scale[9], w[3, 11], w[4, 12] = 0, 0, np.inf, np.nan
    one = np.ones(32, np.float32)
    with np.errstate(invalid="ignore", over="ignore"):
        for weights in (one, importance):
            expected = reference.best_path(w, scale, weights, bits)
            np.testing.assert_array_equal(best_path(w, scale, weights, bits), expected)


@each
def test_the_paths_with_feedback_are_those_of_numpy(bits, level):
    """Sums of errors are rounded in another order, so a few paths may differ."""
    w, scale, importance = groups(301)
    rng = np.random.default_rng(2)
    ratios = np.triu(rng.standard_normal((32, 32)) * 0.3, 1).astype(np.float32)
    feedback = GroupFeedback(w * np.float32(0.98), ratios)
    fast = best_path(w, scale, importance, bits, feedback)
    expected = reference.best_path(w, scale, importance, bits, feedback)
    assert (fast == expected).all(0).mean() > 0.98

    def error(path):
        e = feedback.w - VALUES[path] * scale
        return float((np.square(w - feedback.w + e + ratios.T @ e).T @ importance).sum())

    np.testing.assert_allclose(error(fast), error(expected), 1e-6)


@each
def test_the_scales_are_those_of_numpy(bits, level, monkeypatch):
    """Without importance they have the same bits, so that conversions are alike everywhere."""
    w, _, importance = groups(301)
    w[:, 7], w[3, 11] = 0, np.nan
    scales = [best_trellis_scales(w, each, bits) for each in (None, importance)]

    def best_ratios(unit, tried, importance, bits):
        total = search.folded if (importance == 1).all() else search.weighted(importance)
        ways = (VALUES[reference.best_path(unit, own, importance, bits)] for own in tried)
        return search.best_ratios(ways, unit, total)

    monkeypatch.setattr(compiled, "best_ratios", best_ratios)
    np.testing.assert_array_equal(scales[0], best_trellis_scales(w, None, bits))
    np.testing.assert_allclose(scales[1], best_trellis_scales(w, importance, bits), 1e-5)


@each
def test_arm_finds_the_same(bits, tmp_path):
    require_tools()
    w, scale, _ = groups(16)
    one = np.ones(32, np.float32)
    machine = ArmMachine(Isa(lanes=4, registers=32, fma=True), (), "cortex-a53", tmp_path)
    path = machine.build(TrellisKernels(SimdVectors(4), bits, 32).path())
    best = path(w, scale, one, np.empty(w.shape, np.uint8))[-1]
    np.testing.assert_array_equal(best, reference.best_path(w, scale, one, bits))
    ratios = machine.build(TrellisKernels(SimdVectors(4), bits, 32).ratios())
    tried = np.stack([scale, scale * np.float32(1.1)])
    best = ratios(w, tried, one, VALUES, np.empty(16, np.float32))[-1]
    np.testing.assert_array_equal(best, compiled.best_ratios(w, tried, one, bits))
