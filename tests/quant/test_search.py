"""The search for a group's scale: near the best there is, and never worse than mlc-llm's rule."""

import numpy as np
import pytest

from wherry.quant.group import GROUPS
from wherry.quant.scheme import find
from wherry.quant.search import Levels, best_scales, folded, to_integers

DISTRIBUTIONS = {
    "normal": lambda rng, shape: rng.standard_normal(shape),
    "uniform": lambda rng, shape: rng.uniform(-1, 1, shape),
    "laplace": lambda rng, shape: rng.laplace(size=shape),
    "one outlier": lambda rng, shape: (
        np.where(np.arange(shape[1]) % 32 == 5, 6, 1) * rng.standard_normal(shape)
    ),
    "skewed": lambda rng, shape: rng.exponential(size=shape) - 0.5,
}


def error_of(scheme, w):
    """Squared error over squared weights."""
    return float(((scheme.decode(scheme.encode(w)) - w) ** 2).sum() / (w**2).sum())


def mlc_error(w, zero):
    """The same with mlc-llm's rule, scale = max |w| / zero."""
    groups = w.reshape(-1, 32)
    scale = np.abs(groups).max(1, keepdims=True) / zero
    return float(((np.rint(groups / scale) * scale - groups) ** 2).sum() / (w**2).sum())


@pytest.mark.parametrize("name", DISTRIBUTIONS)
@pytest.mark.parametrize(
    ("scheme", "share"), [("q4f16_1", 0.85), ("q4f32_1", 0.85), ("q8f16_1", 0.97)]
)
def test_a_search_beats_the_rule_of_the_largest_weight(name, scheme, share):
    w = DISTRIBUTIONS[name](np.random.default_rng(0), (128, 512)).astype("f4")
    assert error_of(find(scheme), w) < share * mlc_error(w, find(scheme).zero)


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_few_tries_find_nearly_the_best(name):
    """96 values of k, the tenth of a level apart, take a hundredth more of the error away."""
    w = DISTRIBUTIONS[name](np.random.default_rng(1), (64, 512)).astype("f4").reshape(-1, 32).T
    tried = [*np.arange(6.9, 9.3, 0.05), *-np.arange(6.0, 8.3, 0.05)]
    own = find("q4f32_1").levels
    errors = []
    for levels in (own, Levels(least=-7, most=8, tried=tuple(map(float, tried)))):
        scales = best_scales(w.copy(), levels)
        q = w / scales
        to_integers(q, levels)
        errors.append(((q * scales - w) ** 2).sum())
    assert errors[0] < 1.02 * errors[1]


def test_what_sixteen_levels_hold_is_exact():
    """Integers -7 to 8, and their negatives, times a scale."""
    rng = np.random.default_rng(2)
    q = rng.integers(-7, 9, (64, 128))
    q[:, ::32], q[:, 1::32] = 8, -7
    for sign in (1, -1):
        w = (sign * q * 0.125).astype("f4")
        encoded = find("q4f16_1").encode(w)
        assert (encoded["q_scale"] == sign * 0.125).all()
        np.testing.assert_array_equal(find("q4f16_1").decode(encoded), w)


@pytest.mark.parametrize("scheme", GROUPS, ids=lambda s: s.name)
def test_integers_fit_the_kernels(scheme):
    """8-bit kernels hold q - 127 in an int8, so 255 must not come; 4-bit ones take all levels."""
    w = np.random.default_rng(3).standard_normal((256, 256)).astype("f4")
    q = scheme.encode(w)["q_weight"].view("u1")
    if scheme.bits == 4:
        assert {*np.unique(q & 15), *np.unique(q >> 4)} == set(range(16))
    else:
        assert q.min() == 0 and q.max() == 254


@pytest.mark.parametrize("columns", [1, 2, 7, 64])
def test_sums_do_not_depend_on_the_number_of_columns(columns):
    x = np.random.default_rng(4).standard_normal((32, 64)).astype("f4")
    np.testing.assert_array_equal(folded(x[:, :columns].copy()), folded(x.copy())[:columns])


def test_a_weight_beyond_the_products_of_halves_shows():
    """8 times the scale must fit into a float16, which tensor cores multiply."""
    w = np.full((1, 32), 65504, "f4")
    assert np.isfinite(find("q4f16_1").encode(w / 2)["q_scale"]).all()
    for factor in (1.001, 2):
        assert np.isinf(find("q4f16_1").encode(w * np.float32(factor))["q_scale"]).all()
    assert np.isfinite(find("q4f32_1").encode(w * 2)["q_scale"]).all()
