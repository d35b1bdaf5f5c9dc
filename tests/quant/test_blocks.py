"""Block schemes: the values of random blocks are those of gguf-py, in NumPy and in TIR."""

from __future__ import annotations

import json

import ml_dtypes
import numpy as np
import pytest
import tvm
from tvm import te

from wherry.quant.blocks import BLOCKS, FLOATS_8, TERNARIES, TRELLISES
from wherry.quant.plan import from_json, parts, to_json
from wherry.quant.raw_grids import GRIDS
from wherry.quant.scheme import EXACT, record

from ..support.random_blocks import block_size, dequantized, random_blocks, random_stored

ROWS, COLUMNS = 6, 512


@pytest.mark.parametrize("scheme", BLOCKS, ids=lambda scheme: scheme.name)
def test_values(scheme):
    raw = random_blocks(scheme.name, ROWS, COLUMNS)
    expected = dequantized(scheme.name, raw)
    stored = scheme.split(raw)
    said = scheme.stored("x.weight", (ROWS, COLUMNS))
    assert [(f"x.{n}", a.shape, str(a.dtype)) for n, a in stored.items()] == [
        (t.name, t.shape, t.dtype) for t in said
    ]
    np.testing.assert_array_equal(scheme.decode(stored), expected)
    assert record(scheme.name) == scheme


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("name", GRIDS)
def test_random_bytes(name):
    """Scales of all kinds, of untrusted files: finite weights are gguf's, others are seen."""
    scheme, (_, nbytes) = record(name), block_size(name)
    raw = np.random.default_rng(4).integers(0, 256, (400, 2 * nbytes), np.uint8)
    raw[::7] = np.random.default_rng(5).choice([0, 255, 0x7C, 0x80], raw[::7].shape)
    with np.errstate(all="ignore"):
        expected = dequantized(name, raw)
    stored = scheme.split(raw)
    with np.errstate(all="ignore"):
        decoded = scheme.decode(stored)
    finite = np.isfinite(expected) & np.isfinite(decoded)
    np.testing.assert_array_equal(decoded[finite], expected[finite])
    bad = ~np.isfinite(expected).all(1)
    assert bad.any() and not np.isfinite(stored["q_scale"][bad]).all(1).any()


def test_numbers_of_fp8():
    """Of all codes, by the package that defines the dtype."""
    codes = np.delete(np.arange(256, dtype=np.uint8), (0x7F, 0xFF))[:252]
    stored = {"q_weight": codes.view("<u4")[None], "q_scale": np.full((1, 1), 0.5, np.float32)}
    expected = codes.view(ml_dtypes.float8_e4m3fn).astype(np.float32)[None] / 2
    np.testing.assert_array_equal(FLOATS_8[0].decode(stored), expected)


EACH = (*BLOCKS, *TRELLISES, *FLOATS_8, *TERNARIES)


@pytest.mark.parametrize("scheme", EACH, ids=lambda scheme: scheme.name)
def test_elements(scheme):
    stored = random_stored(scheme, ROWS, COLUMNS)
    tensors = [te.placeholder(a.shape, str(a.dtype), name) for name, a in stored.items()]
    y = te.compute((ROWS, COLUMNS), lambda i, k: scheme.element(tensors, i, k), "y")
    func = tvm.compile(te.create_prim_func([*tensors, y]), target="llvm")
    out = tvm.runtime.tensor(np.zeros((ROWS, COLUMNS), np.float32))
    func(*(tvm.runtime.tensor(a) for a in stored.values()), out)
    # the compiler may fuse the multiplication and the addition
    np.testing.assert_allclose(out.numpy(), scheme.decode(stored), rtol=1e-6, atol=1e-6)


def test_a_plan_is_written_and_read():
    own = {
        "a.qkv_proj.weight": parts("a.qkv_proj.weight", [(96, record("Q4_K")), (32, BLOCKS[0])]),
        "a.norm.weight": parts("a.norm.weight", [(64, EXACT)]),
    }
    assert [p.name for p in own["a.qkv_proj.weight"]] == [
        "a.qkv_proj.0.weight",
        "a.qkv_proj.1.weight",
    ]
    assert own["a.norm.weight"][0].name == "a.norm.weight"
    assert from_json(json.loads(json.dumps(to_json(own)))) == own
    with pytest.raises(ValueError, match="unknown part"):
        from_json({"a.weight": [[1, "Q9_9"]]})
