"""Encoders of block types: small errors, the fields that decoders read, rows on their own."""

import gguf
import numpy as np
import pytest

from wherry.errors import UsageError
from wherry.quant.mix import base_of, mix_of
from wherry.quant.scheme import TYPES, find, finite

# Bound of the squared error over squared weights, of normal weights.
BOUNDS = {
    "q2_k": 0.078,
    "q3_k": 0.024,
    "q4_k": 0.0057,
    "q5_k": 0.0014,
    "q6_k": 0.00036,
    "iq4_nl": 0.0062,
    "iq4_xs": 0.0064,
    "tcq2": 0.1,
    "tcq3": 0.024,
}
each = pytest.mark.parametrize("scheme", TYPES.values(), ids=list(TYPES))


def weights(rows, columns, seed=0):
    rng = np.random.default_rng(seed)
    return (rng.standard_normal((rows, columns)) * rng.gamma(4, 0.005, (rows, 1))).astype("f4")


def error_of(decoded, w):
    return float(((decoded - w) ** 2).sum() / (w**2).sum())


@each
@pytest.mark.parametrize("columns", [512, 576])  # whole blocks, and a last one that is cut
def test_errors_and_fields(scheme, columns):
    w = weights(128, columns)
    stored = scheme.encode(w)
    said = scheme.stored("x.weight", w.shape)
    assert [(f"x.{n}", a.shape, str(a.dtype)) for n, a in stored.items()] == [
        (t.name, t.shape, t.dtype) for t in said
    ]
    error = error_of(scheme.decode(stored), w)
    assert 0.5 * BOUNDS[scheme.name.lower()] < error < BOUNDS[scheme.name.lower()]
    part = scheme.encode(w[40:50])
    for name, array in stored.items():
        np.testing.assert_array_equal(part[name], array[40:50])


def test_types_of_4_bits_beat_llama_cpp_s_simple_ones():
    w = weights(64, 512)
    llama_cpp_errors = {}
    for name in ("Q4_0", "Q4_1"):
        kind = gguf.GGMLQuantizationType[name]
        llama_cpp_errors[name] = error_of(gguf.dequantize(gguf.quantize(w, kind), kind), w)
    errors = {name: error_of(s.decode(s.encode(w)), w) for name, s in TYPES.items()}
    assert (
        errors["iq4_nl"] < 0.75 * llama_cpp_errors["Q4_0"]
        and errors["iq4_xs"] < 0.77 * llama_cpp_errors["Q4_0"]
    )
    assert errors["q4_k"] < 0.85 * llama_cpp_errors["Q4_1"]


@pytest.mark.parametrize("scheme", [s for s in TYPES.values() if not s.format.trellis])
def test_what_a_type_holds_is_nearly_exact(scheme):
    """Weights on the grid of a type; the encoder may find other scales, of nearly the same grid."""
    own = scheme.format
    rng = np.random.default_rng(3)
    q = rng.integers(0, 2**own.bits, (32, 512 // own.group, own.group))
    q[..., 0], q[..., 1] = 0, 2**own.bits - 1
    values = np.array(own.codebook)[q] if own.codebook else q - own.zero
    w = values * rng.uniform(0.5, 1, (32, 512 // own.group, 1)) * 2e-3
    w = (w - (0.01 if own.minimum else 0)).reshape(32, 512).astype("f4")
    step = 2e-3 * np.abs(np.diff(np.sort(own.codebook or [0, 1]))).max()
    assert np.abs(scheme.decode(scheme.encode(w)) - w).max() < 0.5 * step


@each
def test_zeros_and_what_a_half_cannot_hold(scheme):
    w = weights(4, 256)
    w[1] = 0
    w[2, :32], w[2, 3] = 0, 1e-38
    w[2, 64:96] = -0.03
    decoded = scheme.decode(scheme.encode(w))
    assert not decoded[1].any() and np.isfinite(decoded).all()
    # paths of a trellis have no constant values
    most = {"tcq2": 0.25, "tcq3": 0.15}.get(scheme.name.lower(), 0.05)
    assert np.sqrt(np.square(decoded[2, 64:96] / -0.03 - 1).mean()) < most
    for bad in (np.inf, -np.inf, np.nan, 1e11):
        w[3, 100] = bad
        assert not all(map(finite, scheme.encode(w).values()))


def test_names_of_mixes():
    assert mix_of("Q4_K").name == "q4_k" and base_of("q4_k") is find("q4f16_1")
    assert base_of("q6_k") is find("q8f16_1")
    assert mix_of("auto:4.50").name == "auto:4.5" and mix_of("AUTO:4.5").bits == 4.5
    assert mix_of(None) is None and mix_of("q4f16_1") is None
    for wrong in ("auto", "auto:", "auto:2", "auto:9", "auto:4.5.1", "auto:nan", "auto:-4"):
        with pytest.raises(UsageError, match=r"--quant auto:4\.5"):
            mix_of(wrong)
