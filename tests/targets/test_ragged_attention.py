"""Attention and pooling over the rows of a step against NumPy: CPU kernels, and the references."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from wherry.models.layers.ragged import attention_reference, pool_reference
from wherry.ops import PoolSpec, RaggedAttentionSpec
from wherry.targets.kernels.cpu import CpuKernels

pytestmark = pytest.mark.cpu

LENGTHS = (1, 7, 40, 150, 16, 17)  # of the texts: tiles of several texts, blocks of keys
POINTERS = np.cumsum([0, *LENGTHS]).astype("int32")
SEQUENCES = np.repeat(np.arange(len(LENGTHS)), LENGTHS).astype("int32")
MODES = ("cls", "mean", "max", "last", "mean_sqrt_len", "weightedmean")
SPECS = {
    "shared": RaggedAttentionSpec(heads=4, kv_heads=2, head_dim=32, scale=0.2),
    "odd": RaggedAttentionSpec(heads=3, kv_heads=3, head_dim=20, scale=0.3, window=5),
    "window": RaggedAttentionSpec(heads=2, kv_heads=1, head_dim=64, scale=0.125, window=70),
    "bias": RaggedAttentionSpec(heads=2, kv_heads=2, head_dim=16, scale=0.25, reach=9),
}


def expected(spec, qkv, bias):
    """Softmax over each text by itself, float64 [n, h * e]."""
    h, g, e = spec.heads, spec.kv_heads, spec.head_dim
    out = np.zeros((len(qkv), h, e))
    for begin, end in pairwise(POINTERS):
        x = qkv[begin:end].astype("float64").reshape(end - begin, h + 2 * g, e)
        distance = np.arange(end - begin) - np.arange(end - begin)[:, None]
        for head in range(h):
            kv = head // (h // g)
            score = x[:, head] @ x[:, h + kv].T * spec.scale
            if spec.reach:
                score += bias[head][np.clip(distance, -spec.reach, spec.reach) + spec.reach]
            if spec.window:
                score[np.abs(distance) > spec.window] = -np.inf
            weight = np.exp(score - score.max(1, keepdims=True))
            weight /= weight.sum(1, keepdims=True)
            out[begin:end, head] = weight @ x[:, h + g + kv]
    return out.reshape(len(qkv), -1)


def values(spec):
    rng = np.random.default_rng(0)
    qkv = rng.standard_normal((len(SEQUENCES), spec.width)).astype("float32")
    bias = rng.standard_normal((spec.heads, 2 * (spec.reach or 0) + 1)).astype("float32")
    return qkv, bias


def compare(run, spec):
    """Run a kernel on all texts, and on each by itself, which gives the same bits."""
    qkv, bias = values(spec)
    more = [bias] if spec.reach else []

    def attend(rows, sequences, pointers):
        out = np.full((len(rows), spec.heads * spec.head_dim), np.nan, "float32")
        return run(rows, sequences, pointers, *more, out)[-1]

    together = attend(qkv, SEQUENCES, POINTERS)
    np.testing.assert_allclose(together, expected(spec, qkv, bias), atol=5e-6)
    for begin, end in pairwise(POINTERS):
        size = int(end - begin)
        one = attend(qkv[begin:end].copy(), np.zeros(size, "int32"), np.array([0, size], "int32"))
        assert np.array_equal(one, together[begin:end])


@pytest.mark.parametrize("spec", SPECS.values(), ids=SPECS)
def test_attention_on_cpus(any_machine, spec):
    compare(any_machine.build(CpuKernels(any_machine.isa).ragged_attention(spec)), spec)


@pytest.mark.parametrize("spec", SPECS.values(), ids=SPECS)
def test_attention_of_the_reference(any_machine, spec):
    compare(any_machine.build(attention_reference(spec)), spec)


def pooled(x, mode):
    """One text's vector, float64 [d]."""
    places = np.arange(1, len(x) + 1)[:, None]
    return {
        "cls": x[0],
        "last": x[-1],
        "max": x.max(0),
        "mean": x.mean(0),
        "mean_sqrt_len": x.sum(0) / np.sqrt(len(x)),
        "weightedmean": (x * places).sum(0) / places.sum(),
    }[mode]


@pytest.mark.parametrize("mode", MODES)
def test_pooling(any_machine, mode):
    spec = PoolSpec(dim=36, mode=mode)
    x = np.random.default_rng(1).standard_normal((len(SEQUENCES), 36)).astype("float32")
    rows = (POINTERS[[3, 1, 6]] - 1).astype("int32")  # of the texts 2, 0 and 5
    expected = [pooled(x[POINTERS[i] : POINTERS[i + 1]].astype("float64"), mode) for i in (2, 0, 5)]
    for func in (CpuKernels(any_machine.isa).pool(spec), pool_reference(spec)):
        out = np.full((3, 36), np.nan, "float32")
        got = any_machine.build(func)(x, SEQUENCES, POINTERS, rows, out)[-1]
        np.testing.assert_allclose(got, expected, atol=1e-5)


@pytest.mark.parametrize(
    "values",
    [{"heads": 3, "kv_heads": 2}, {"head_dim": 0}, {"window": 0}, {"reach": -1}],
)
def test_specs_that_cannot_be(values):
    with pytest.raises(ValueError, match=r"must be positive|do not share"):
        RaggedAttentionSpec(**{"heads": 2, "kv_heads": 2, "head_dim": 8, "scale": 1.0} | values)
    with pytest.raises(ValueError, match="not one of"):
        PoolSpec(dim=8, mode="median")
