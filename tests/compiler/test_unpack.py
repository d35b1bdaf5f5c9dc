"""Weights of all experts or heads in one tensor: transposed, in parts, in MXFP4."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from wherry.compiler.checkpoint.assemble import blocks
from wherry.compiler.checkpoint.formats import open_weights
from wherry.compiler.checkpoint.unpack import mxfp4
from wherry.errors import ModelError
from wherry.models.arch import Architecture, heads, plan, spare_layers, stack, unpack

E, ROWS, COLUMNS = 3, 8, 40


def arch(*words):
    return Architecture(name="toy", config=object, model=object, weights=words)


def arrays_of(tmp_path, words, shapes, tensors, config=None):
    """The parameters, by name, of a checkpoint of `tensors`."""
    save_file({k: torch.tensor(v) for k, v in tensors.items()}, tmp_path / "model.safetensors")
    checkpoint = open_weights(tmp_path)
    weight_plan = plan(arch(*words), shapes, checkpoint.shapes, config)
    result = {}
    for p in weight_plan.parameters:
        rows = np.full(p.rows, np.nan, np.float32)
        for start, some in blocks(p, checkpoint):
            rows[start : start + len(some)] = some
        result[p.name] = rows.reshape(p.shape)
    return result


def test_numbers_of_mxfp4():
    """By the format's definition, number by number."""
    rng = np.random.default_rng(0)
    blocks = rng.integers(0, 256, (2, 3, 16), "uint8")
    scales = np.array([[127, 1, 250], [126, 130, 255]], "uint8")
    got = mxfp4(blocks, scales).reshape(2, 3, 16, 2)
    for row, group, byte, half in np.ndindex(got.shape):
        bits = int(blocks[row, group, byte]) >> 4 * half & 15
        exponent, mantissa = bits >> 1 & 3, bits & 1
        size = (1 + mantissa / 2) * 2.0 ** (exponent - 1) if exponent else mantissa / 2
        expected = (-1) ** (bits >> 3) * size * 2.0 ** (int(scales[row, group]) - 127)
        number = got[row, group, byte, half]
        assert np.isnan(number) if scales[row, group] == 255 else number == np.float32(expected)


@pytest.mark.nightly
def test_numbers_of_mxfp4_are_those_of_transformers():
    """Agrees with what transformers makes of the same bytes."""
    mxfp4_of = pytest.importorskip("transformers.integrations.mxfp4").convert_moe_packed_tensors
    rng = np.random.default_rng(0)
    packed = rng.integers(0, 256, (2, ROWS, 3, 16), "uint8")
    scales = rng.integers(110, 140, (2, ROWS, 3), "uint8")
    expected = mxfp4_of(torch.tensor(packed), torch.tensor(scales), dtype=torch.float32)
    assert np.array_equal(mxfp4(packed, scales), expected.numpy().transpose(0, 2, 1))


NAME = "mlp.experts.gate_up_proj"
WORDS = (
    unpack(f"{NAME}.weight", NAME, interleaved=True),
    unpack(f"{NAME}.bias", f"{NAME}_bias", interleaved=True),
)
SHAPES = {f"{NAME}.weight": (E, ROWS, COLUMNS), f"{NAME}.bias": (E, ROWS)}


def test_transposed_and_interleaved(tmp_path):
    rng = np.random.default_rng(1)
    weight = rng.standard_normal((E, COLUMNS, ROWS)).astype("float32")
    bias = rng.standard_normal((E, ROWS)).astype("float32")
    got = arrays_of(tmp_path, WORDS, SHAPES, {NAME: weight, f"{NAME}_bias": bias})
    order = [0, 2, 4, 6, 1, 3, 5, 7]
    expected = weight.transpose(0, 2, 1)[:, order]
    assert np.array_equal(got[f"{NAME}.weight"], expected)
    assert np.array_equal(got[f"{NAME}.bias"], bias[:, order])


def test_mxfp4_of_a_checkpoint(tmp_path):
    rng = np.random.default_rng(2)
    tensors = {
        f"{NAME}_blocks": rng.integers(0, 256, (E, ROWS, 2, 16), "uint8"),
        f"{NAME}_scales": rng.integers(120, 130, (E, ROWS, 2), "uint8"),
        f"{NAME}_bias": np.zeros((E, ROWS), "float32"),
    }
    got = arrays_of(tmp_path, WORDS, SHAPES, tensors)[f"{NAME}.weight"]
    values = mxfp4(tensors[f"{NAME}_blocks"], tensors[f"{NAME}_scales"])[..., :COLUMNS]
    assert np.array_equal(got, values[:, [0, 2, 4, 6, 1, 3, 5, 7]])


def test_a_matrix_of_each_head(tmp_path):
    words = (
        heads("k.weight", "kv.weight", lambda _: (0, 5, 8), transposed=True),
        heads("v.weight", "kv.weight", lambda _: (5, 8, 8)),
    )
    kv = np.random.default_rng(3).standard_normal((2 * 8, 6)).astype("float32")
    got = arrays_of(
        tmp_path, words, {"k.weight": (2, 6, 5), "v.weight": (2, 3, 6)}, {"kv.weight": kv}
    )
    each = kv.reshape(2, 8, 6)
    assert np.array_equal(got["k.weight"], each[:, :5].transpose(0, 2, 1))
    assert np.array_equal(got["v.weight"], each[:, 5:])


def test_stacks_and_draft_layers(tmp_path):
    words = (
        stack("up.weight", "{}.a.weight", "{}.b.weight"),
        spare_layers("layers.*.*", "spare"),
    )
    rng = np.random.default_rng(4)
    tensors = {
        f"{e}.{n}.weight": rng.standard_normal((2, 3)).astype("f4") for e in "01" for n in "ab"
    }
    extra = {"layers.5.x": np.zeros(1, "f4")}
    config = SimpleNamespace(num_hidden_layers=5, spare=1)
    got = arrays_of(tmp_path, words, {"up.weight": (2, 4, 3)}, tensors | extra, config)["up.weight"]
    assert np.array_equal(got[1], np.concatenate([tensors["1.a.weight"], tensors["1.b.weight"]]))
    with pytest.raises(ModelError, match=r"surplus: layers\.6\.x"):
        arrays_of(
            tmp_path,
            words,
            {"up.weight": (2, 4, 3)},
            tensors | {"layers.6.x": extra["layers.5.x"]},
            config,
        )


def test_what_is_missing_is_named(tmp_path):
    with pytest.raises(ModelError) as caught:
        arrays_of(tmp_path, WORDS, SHAPES, {f"{NAME}_blocks": np.zeros((E, ROWS, 2, 16), "u1")})
    text = str(caught.value)
    assert f"{NAME}_scales [3, 8, 2]" in text and f"missing: {NAME}.bias expects" in text
    words = (stack("up.weight", "{}.a.weight"),)
    with pytest.raises(ModelError, match=r"missing: 1\.a\.weight"):
        arrays_of(tmp_path, words, {"up.weight": (2, 2, 3)}, {"0.a.weight": np.zeros((2, 3), "f4")})
