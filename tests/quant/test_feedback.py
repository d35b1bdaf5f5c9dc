"""Error feedback: the textbook's algorithm, less error in results, the layout of each scheme."""

from __future__ import annotations

import numpy as np
import pytest

from wherry.quant.feedback import DAMPING, Feedback
from wherry.quant.scheme import TYPES, find
from wherry.quant.search import best_scales, weighted
from wherry.quant.search_minimum import best_lines

RNG = np.random.default_rng
COLUMNS = 96


def inputs(columns: int = COLUMNS, rank: int = 24) -> np.ndarray:
    """Inputs of a layer that are correlated, and of very different sizes."""
    rng = RNG(1)
    mixed = rng.standard_normal((600, rank)) @ rng.standard_normal((rank, columns))
    sizes = np.exp(rng.standard_normal(columns))
    return ((mixed + 0.3 * rng.standard_normal((600, columns))) * sizes).astype(np.float32)


def weights(rows: int = 64, columns: int = COLUMNS) -> np.ndarray:
    return (RNG(2).standard_normal((rows, columns)) * 0.05).astype(np.float32)


def scheme_of(name: str):
    return TYPES.get(name) or find(name)


def error(x: np.ndarray, w: np.ndarray, decoded: np.ndarray) -> float:
    """Squared error of a layer's results."""
    return float(((x @ (w - decoded).T) ** 2).sum())


def textbook(w: np.ndarray, products: np.ndarray, scales: np.ndarray) -> np.ndarray:
    """GPTQ as its paper has it, with the inverse of H, for given scales [rows, groups]."""
    n = len(products)
    damped = products.astype(np.float64) + DAMPING * np.diag(products).mean() * np.eye(n)
    upper = np.linalg.cholesky(np.linalg.inv(damped)).T
    left, q = w.astype(np.float64), np.zeros(w.shape)
    for j in range(n):
        scale = scales[:, j // 32].astype(np.float64)
        q[:, j] = np.clip(np.rint(left[:, j] / scale), -7, 8)
        wrong = (left[:, j] - q[:, j] * scale) / upper[j, j]
        left[:, j:] -= np.outer(wrong, upper[j, j:])
    return q


@pytest.mark.parametrize("name", ["q4f16_1", "q4f32_1"])
def test_it_is_gptq(name):
    scheme, x, w = find(name), inputs(), weights()
    encoded = Feedback(x).encode(scheme.grid, w)
    scales = encoded["q_scale"].astype(np.float32)
    integers = scheme.decode(encoded) / np.repeat(scales, 32, axis=1)
    same = np.rint(integers) == textbook(w, x.T @ x, scales)
    # A weight between two levels may fall to the other side, and changes its row from there on.
    assert same.all(axis=1).mean() > 0.9


@pytest.mark.parametrize("columns", [576, 64])  # with a last block that is cut
@pytest.mark.parametrize("name", ["q4f16_1", "q4f32_1", "q8f16_1", *TYPES])
def test_results_have_less_error_than_by_search(name, columns):
    scheme, x, w = scheme_of(name), inputs(columns), weights(64, columns)
    encoded, plain = Feedback(x).encode(scheme.grid, w), scheme.encode(w)
    assert {n: (a.shape, a.dtype) for n, a in encoded.items()} == {
        n: (a.shape, a.dtype) for n, a in plain.items()
    }
    decoded, searched = scheme.decode(encoded, columns), scheme.decode(plain, columns)
    assert error(x, w, decoded) < 0.6 * error(x, w, searched)


def test_without_correlations_it_is_as_good_as_the_search():
    scheme, w = find("q4f32_1"), weights()
    decoded = scheme.decode(Feedback(np.eye(COLUMNS, dtype=np.float32)).encode(scheme.grid, w))
    searched = scheme.decode(scheme.encode(w))
    assert ((decoded - w) ** 2).sum() == pytest.approx(((searched - w) ** 2).sum(), rel=1e-3)


def test_the_scale_of_equal_importance_is_the_search_s():
    w = RNG(3).standard_normal((32, 500)).astype(np.float32)
    levels = find("q4f16_1").levels
    weighted_scales = best_scales(w, levels, weighted(np.ones(32, np.float32)))
    plain_scales = best_scales(w.copy(), levels)
    # The order of summing differs, so two equally good ways may swap.
    assert np.isclose(weighted_scales, plain_scales, rtol=1e-5).mean() > 0.99


def test_the_line_of_equal_importance_is_the_search_s():
    w = RNG(3).standard_normal((32, 500)).astype(np.float32)
    tried = (15.0, 14.5, 15.5)
    weighted_lines = best_lines(w, 15, tried, weighted(np.full(32, 0.7, np.float32)))
    for own, other in zip(weighted_lines, best_lines(w, 15, tried), strict=True):
        assert np.isclose(own, other, rtol=1e-4, atol=1e-6).mean() > 0.99


def test_an_important_column_is_nearly_exact():
    w = RNG(4).standard_normal((32, 200)).astype(np.float32)
    levels = find("q4f16_1").levels
    importance = np.full(32, 1e-3, np.float32)
    importance[7] = 1e3

    def wrong(scales: np.ndarray) -> float:
        q = np.clip(np.rint(w / scales), levels.least, levels.most)
        return float(((w - q * scales)[7] ** 2).mean())

    plain = best_scales(w, levels, weighted(np.ones(32, np.float32)))
    assert wrong(best_scales(w, levels, weighted(importance))) < 0.5 * wrong(plain)


@pytest.mark.parametrize("name", ["q4f16_1", "q8f16_1", "q4_k"])
def test_weights_make_up_for_inputs_that_are_not_exact(name):
    """Half of what the best weights would."""
    scheme, exact, w = scheme_of(name), inputs(128), weights(64, 128)
    x = exact * np.float32(0.8)  # as if the layers before it lost a fifth
    products = exact @ w.T

    def wrong(feedback: Feedback) -> float:
        return float(((x @ scheme.decode(feedback.encode(scheme.grid, w)).T - products) ** 2).sum())

    assert wrong(Feedback(x, exact)) < 0.5 * wrong(Feedback(x))
    same = Feedback(x, x.copy()).encode(scheme.grid, w)
    for suffix, array in Feedback(x).encode(scheme.grid, w).items():
        np.testing.assert_array_equal(same[suffix], array)


def test_the_layout_is_that_of_the_scheme():
    scheme, columns = find("q4f16_1"), 80  # the last group has 16 columns
    x, w = inputs(columns), weights(3000, columns)  # more rows than one block
    encoded, searched = Feedback(x).encode(scheme.grid, w), scheme.encode(w)
    for suffix, array in searched.items():
        assert (encoded[suffix].shape, encoded[suffix].dtype) == (array.shape, array.dtype)
    assert not encoded["q_weight"][:, 10:].any()
    decoded = scheme.decode(encoded, columns)
    assert error(x, w, decoded) < 0.6 * error(x, w, scheme.decode(searched, columns))
    alone = Feedback(x).encode(scheme.grid, w[2500:2510])
    assert np.abs(scheme.decode(alone, columns) - decoded[2500:2510]).max() < 0.1


def test_inputs_that_never_come_and_weights_of_zero():
    scheme, x, w = find("q4f16_1"), inputs(), weights()
    x[:, 40:] = 0
    w[5] = 0
    encoded = Feedback(x).encode(scheme.grid, w)
    decoded = scheme.decode(encoded)
    assert not decoded[5].any()
    assert np.abs(decoded[:, 64:] - w[:, 64:]).max() < 0.02  # a group of its own, rounded alone
    silent = Feedback(np.zeros((8, COLUMNS), np.float32)).encode(scheme.grid, w)
    assert np.array_equal(scheme.decode(silent)[5], w[5])


@pytest.mark.parametrize("name", ["q4f16_1", *TYPES])
@pytest.mark.parametrize("value", [np.inf, np.nan])
def test_weights_that_are_not_finite_show_in_the_scale(name, value):
    w, x = weights(4, 128), inputs(128)
    w[2, 50] = value
    encoded = Feedback(x).encode(scheme_of(name).grid, w)
    assert not np.isfinite(encoded["q_scale"][2]).all()
    assert np.isfinite(encoded["q_scale"][[0, 1, 3]]).all()
