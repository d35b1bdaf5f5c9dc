"""Parameters in the file's own bits: blocks in a plan's order have the values of the floats."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from wherry.compiler.checkpoint.assemble import blocks
from wherry.compiler.checkpoint.gguf.architectures.changes import Tiled
from wherry.compiler.checkpoint.gguf.kept import kept
from wherry.compiler.checkpoint.gguf.opening import open_gguf
from wherry.models.weights.plan import plan_weights
from wherry.models.weights.rules import Pairs, concat, reorder
from wherry.quant.scheme import record

from . import writing

SHAPES = {
    "model.layers.0.self_attn.qkv_proj.weight": (128, 64),
    "model.layers.0.input_layernorm.weight": (64,),
}
NAMES = [f"model.layers.0.self_attn.{x}_proj.weight" for x in "qkv"]
WORDS = (
    concat("qkv_proj.weight", *(f"{x}_proj.weight" for x in "qkv")),
    reorder("k_proj.weight", lambda config: Pairs(8, 8)),
)


@pytest.mark.parametrize("kind", ["Q8_0", "Q4_0", "Q5_1"])
def test_rows_that_are_joined_and_ordered(kind, tmp_path):
    checkpoint = open_gguf(writing.llama(tmp_path / "m.gguf", kind=kind))
    names = [*NAMES, "model.layers.0.input_layernorm.weight"]
    shapes = {name: checkpoint.shapes[name] for name in names}
    joined, norm = plan_weights(WORDS, SHAPES, shapes, None).parameters
    assert kept(norm, checkpoint) == ()
    (kept_rows,) = kept(joined, checkpoint)
    assert (kept_rows.scheme.name, kept_rows.rows) == (kind, 128)
    values = np.concatenate([rows for _, rows in blocks(joined, checkpoint)])
    decode = kept_rows.scheme.decode
    np.testing.assert_array_equal(decode(kept_rows.stored(0, 128)), values)
    np.testing.assert_array_equal(decode(kept_rows.stored(50, 107)), values[50:107])


@pytest.mark.parametrize("kind", ["Q8_0", "Q4_K", "IQ4_XS"])
def test_columns_in_an_order_of_their_own(kind, tmp_path):
    """Blocks are copied, and the scheme has the order; whole and in parts, with the values."""
    sizes = {"size": 256, "inner": 256, "layers": 1}
    original = open_gguf(writing.llama(tmp_path / "m.gguf", kinds={"": kind}, **sizes))
    name = "model.layers.0.self_attn.o_proj.weight"
    tensor = replace(original.tensor(name), columns=Tiled(0, 4, 4, 16))
    checkpoint = replace(original, tensors={name: tensor})
    assert not checkpoint.tensor(name).keeps_bits
    (plan,) = plan_weights((), {name: (256, 256)}, checkpoint.shapes, None).parameters
    (rows,) = checkpoint.kept(plan)
    assert rows.scheme.name == f"{kind}_ordered" and record(rows.scheme.name) == rows.scheme
    values = checkpoint.read(name)
    np.testing.assert_array_equal(rows.scheme.decode(rows.stored(0, 256)), values)
    parts = [rows.stored(0, 100), rows.stored(100, 256)]
    joined = {key: np.concatenate([part[key] for part in parts]) for key in parts[0]}
    np.testing.assert_array_equal(rows.scheme.decode(joined), values)
    assert not np.array_equal(values, original.read(name))


def test_floats_are_encoded(tmp_path):
    checkpoint = open_gguf(writing.llama(tmp_path / "m.gguf", kind="F32"))
    shapes = {name: checkpoint.shapes[name] for name in NAMES}
    matrices = {name: shape for name, shape in SHAPES.items() if len(shape) == 2}
    (joined,) = plan_weights(WORDS, matrices, shapes, None).parameters
    assert kept(joined, checkpoint) == ()


def test_several_types_are_several_runs(tmp_path):
    checkpoint = open_gguf(writing.llama(tmp_path / "m.gguf", kind="Q4_0"))
    tensors = dict(checkpoint.tensors)
    other = open_gguf(writing.llama(tmp_path / "o.gguf", kind="Q8_0"))
    tensors[NAMES[2]] = other.tensor(NAMES[2])
    mixed = type(checkpoint)(checkpoint.folder, tensors, checkpoint.files, "")
    shapes = {name: mixed.shapes[name] for name in NAMES}
    matrices = {name: shape for name, shape in SHAPES.items() if len(shape) == 2}
    (joined,) = plan_weights(WORDS, matrices, shapes, None).parameters
    runs = kept(joined, mixed)
    assert [(run.scheme.name, run.rows) for run in runs] == [("Q4_0", 96), ("Q8_0", 32)]
    values = np.concatenate([rows for _, rows in blocks(joined, mixed)])
    decoded = [run.scheme.decode(run.stored(0, run.rows)) for run in runs]
    np.testing.assert_array_equal(np.concatenate(decoded), values)
