"""Every scheme: layout, rounding, and the fast encoder against the slow one."""

import numpy as np
import pytest

from wherry.errors import UsageError
from wherry.quant.group import GROUPS, GroupQuant
from wherry.quant.scheme import find, finite, schemes, store

from ..support.slow_encoder import encode_slowly

NAME = "model.layers.0.mlp.up_proj.weight"


def random_weights(rows, columns, seed=0, scale=0.05):
    return (np.random.default_rng(seed).standard_normal((rows, columns)) * scale).astype("f4")


@pytest.mark.parametrize("scheme", schemes().values(), ids=lambda s: s.name)
@pytest.mark.parametrize("columns", [32, 64, 70, 8, 256])
def test_stored_tells_what_store_makes(scheme, columns):
    for name, shape in ((NAME, (5, columns)), ("model.norm.weight", (columns,)), ("a.bias", (3,))):
        w = random_weights(1, int(np.prod(shape))).reshape(shape)
        arrays = store(scheme, name, w)
        said = scheme.stored(name, shape)
        assert [(t.name, t.shape, t.dtype) for t in said] == [
            (n, a.shape, a.dtype.name) for n, a in arrays.items()
        ]
        assert [t.nbytes for t in said] == [a.nbytes for a in arrays.values()]


@pytest.mark.parametrize("scheme", schemes().values(), ids=lambda s: s.name)
@pytest.mark.parametrize("columns", [96, 70])
def test_decode_is_near(scheme, columns):
    w = random_weights(7, columns)
    decoded = scheme.decode(scheme.encode(w), columns)
    assert decoded.dtype == np.float32 and decoded.shape == w.shape
    if isinstance(scheme, GroupQuant):
        # A weight that the best scale clips is at most 0.8 of a level too large.
        scale = np.repeat(scheme.encode(w)["q_scale"].astype("f4"), 32, axis=1)[:, :columns]
        assert (np.abs(decoded - w) <= np.abs(scale) * (1 if scheme.bits == 4 else 2.5)).all()
        assert np.mean(np.abs(decoded - w) <= np.abs(scale) * 0.51) > 0.95
    else:
        np.testing.assert_allclose(decoded, w, rtol=2**-11 if "16" in scheme.name else 0)


# Where rounding is delicate: tiny (subnormal halves), huge, constant, few distinct values, zeros.
CASES = {
    "normal": random_weights(16, 256, 1),
    "odd width": random_weights(9, 100, 2),
    "narrow": random_weights(9, 5, 3),
    "tiny": random_weights(16, 128, 4, 1e-6),
    "vanishing": random_weights(16, 128, 5, 3e-8),
    "huge": random_weights(16, 128, 6, 9000.0),
    "zero": np.zeros((3, 64), "f4"),
    "half steps": (np.random.default_rng(7).integers(-14, 15, (16, 128)) / 2).astype("f4"),
    "mixed zeros": np.where(np.random.default_rng(8).random((16, 128)) < 0.9, 0, 0.3).astype("f4"),
    "bfloat16": (random_weights(16, 256, 9).view("u4") & 0xFFFF0000).view("f4"),
}


@pytest.mark.parametrize("scheme", GROUPS, ids=lambda s: s.name)
@pytest.mark.parametrize("case", CASES)
def test_fast_is_slow_bit_for_bit(scheme, case):
    fast, slow = scheme.encode(CASES[case]), encode_slowly(scheme, CASES[case])
    assert list(fast) == list(slow) == ["q_weight", "q_scale"]
    for suffix in fast:
        assert fast[suffix].dtype == slow[suffix].dtype
        np.testing.assert_array_equal(fast[suffix], slow[suffix])


@pytest.mark.parametrize("scheme", GROUPS, ids=lambda s: s.name)
def test_blocks_of_rows_and_stacks_of_matrices_give_the_same_bits(scheme):
    w = random_weights(600, 288, 3)  # more than one block of the encoder
    at_once = scheme.encode(w)
    for suffix, array in at_once.items():
        halves = [scheme.encode(part)[suffix] for part in (w[:123], w[123:])]
        np.testing.assert_array_equal(np.concatenate(halves), array)
        stack = scheme.encode(w.reshape(4, 150, 288))[suffix]
        np.testing.assert_array_equal(stack.reshape(array.shape), array)


def test_layout_by_hand():
    w = np.zeros((1, 40), "f4")
    w[0, :10] = [8, -7, 1, -1, 2, -2, 3, -3, 7, -7]
    w[0, 32] = -0.25
    encoded = find("q4f32_1").encode(w)
    assert [hex(x) for x in encoded["q_weight"][0]] == [
        "0x4a59680f",  # 15, 0, 8, 6, 9, 5, 10, 4 from the lowest bits
        "0x7777770e",
        "0x77777777",
        "0x77777777",
        "0x7777777f",  # -0.25 is 8 times the scale, as the first k that holds it exactly
        "0x0",  # past the last column
        "0x0",
        "0x0",
    ]
    assert encoded["q_scale"].tolist() == [[1.0, -0.03125]]


def test_layout_of_bytes_by_hand():
    w = np.zeros((1, 35), "f4")
    w[0, :5] = [127, -127, 1, -2, 64]
    w[0, 34] = -0.25
    encoded = find("q8f16_1").encode(w)
    assert [hex(x) for x in encoded["q_weight"][0]] == [
        "0x7d8000fe",  # 254, 0, 128, 125 from the lowest bits
        "0x7f7f7fbf",
        *["0x7f7f7f7f"] * 6,
        "0xfe7f7f",  # 0, 0 and -0.25 from the lowest bits, and past the last column
        *["0x0"] * 7,
    ]
    assert encoded["q_scale"].tolist() == [[1.0, np.float16(np.float32(-0.25) / 127)]]


@pytest.mark.parametrize("scheme", GROUPS, ids=lambda s: s.name)
def test_what_is_quantized(scheme):
    yes = {
        "model.embed_tokens.weight": (512, 64),
        "lm_head.weight": (512, 64),
        NAME: (128, 64),
        "model.layers.0.mlp.experts.gate_up_proj.weight": (8, 128, 64),
        "model.layers.0.mlp.gate_proj.weight": (8, 64),
    }
    no = {
        "model.norm.weight": (64,),
        "model.layers.0.self_attn.q_norm.weight": (8, 64),  # a norm for each head
        "model.layers.0.self_attn.qkv_proj.bias": (192,),
        "model.layers.0.A_log": (8, 64),
    }
    assert all(scheme.quantizes(n, s) for n, s in yes.items())
    assert not any(scheme.quantizes(n, s) for n, s in no.items())


@pytest.mark.parametrize("bad", [np.inf, np.nan, 1e6])
def test_what_a_half_cannot_hold_shows(bad):
    w = random_weights(4, 64)
    w[2, 40] = bad
    for scheme in (find("q4f16_1"), find("q0f16")):
        assert not all(finite(a) for a in store(scheme, NAME, w).values())


def test_find_lists_the_schemes():
    assert find("q4f16_1").float_dtype == "float16"
    with pytest.raises(UsageError, match="q4f32_1, q8f16_1, q8f32_1, q2_k"):
        find("q5_k_m")


@pytest.mark.parametrize(
    ("typed", "scheme", "why"),
    [
        ("q0bf16", "q0f16", "between 2^-14 and 65504 exactly"),
        ("q4bf16_1", "q4f16_1", "suits checkpoints in bfloat16"),
        ("Q4_0", "q4f16_1", "has 4 bits in groups of 32"),
        ("Q4_K_M", "auto:4.8", "chosen for the model"),
        ("IQ3_XS", "auto:3.9", "mixes of types"),
        ("Q8_0", "q8f16_1", "has 8 bits"),
        ("q4f16_0", "q4f16_1", "another program's"),
        ("q3f16_1", "q4f16_1", "another program's"),
        ("q4f16_autoawq", "q4f16_1", "as MODEL"),
        ("awq", "q4f16_1", "as MODEL"),
        ("int8", "q8f16_1", "has 8 bits"),
        ("fp8", "q8f16_1", "has 8 bits"),
        ("Q4F16_1", "q4f16_1", "lower case"),
        ("float16", "q0f16", "Type"),
        ("q4f16", "q4f16_1", "Type"),
        ("q4f32", "q4f32_1", "Type"),
        ("fast", "q4f16_1", "Type"),
    ],
)
def test_names_of_other_projects_lead_to_a_scheme(typed, scheme, why):
    with pytest.raises(UsageError, match=rf"Type: --quant {scheme}$") as caught:
        find(typed)
    assert why in str(caught.value) and repr(typed) in str(caught.value)


def test_a_half_holds_what_a_bfloat16_is():
    """What the advice on q0bf16 says, of every bfloat16 there is."""
    every = (np.arange(1 << 16, dtype="u4") << 16).view("f4")
    inside = every[(np.abs(every) >= 2**-14) & (np.abs(every) <= 65504)]
    assert len(inside) == 2 * 30 * 128  # signs, exponents -14 to 15, mantissas
    np.testing.assert_array_equal(find("q0f16").encode(inside)["weight"].astype("f4"), inside)
