"""Parameters in the file's own bits: blocks in a plan's order have the values of the floats."""

from __future__ import annotations

import numpy as np
import pytest

from wherry.compiler.checkpoint.assemble import blocks
from wherry.compiler.checkpoint.gguf.kept import kept
from wherry.compiler.checkpoint.gguf.opening import open_gguf
from wherry.models.weight_plan import plan_weights
from wherry.models.weights import Pairs, concat, reorder

from . import writing

OURS = {
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
    wanted = [*NAMES, "model.layers.0.input_layernorm.weight"]
    shapes = {name: checkpoint.shapes[name] for name in wanted}
    joined, norm = plan_weights(WORDS, OURS, shapes, None).parameters
    assert kept(norm, checkpoint) == ()
    (found,) = kept(joined, checkpoint)
    assert (found.scheme.name, found.rows) == (kind, 128)
    values = np.concatenate([rows for _, rows in blocks(joined, checkpoint)])
    decode = found.scheme.decode
    np.testing.assert_array_equal(decode(found.stored(0, 128)), values)
    np.testing.assert_array_equal(decode(found.stored(50, 107)), values[50:107])


def test_floats_are_encoded(tmp_path):
    checkpoint = open_gguf(writing.llama(tmp_path / "m.gguf", kind="F32"))
    shapes = {name: checkpoint.shapes[name] for name in NAMES}
    ours = {name: shape for name, shape in OURS.items() if len(shape) == 2}
    (joined,) = plan_weights(WORDS, ours, shapes, None).parameters
    assert kept(joined, checkpoint) == ()


def test_several_types_are_several_runs(tmp_path):
    checkpoint = open_gguf(writing.llama(tmp_path / "m.gguf", kind="Q4_0"))
    tensors = dict(checkpoint.tensors)
    other = open_gguf(writing.llama(tmp_path / "o.gguf", kind="Q8_0"))
    tensors[NAMES[2]] = other.tensor(NAMES[2])
    mixed = type(checkpoint)(checkpoint.folder, tensors, checkpoint.files, "")
    shapes = {name: mixed.shapes[name] for name in NAMES}
    ours = {name: shape for name, shape in OURS.items() if len(shape) == 2}
    (joined,) = plan_weights(WORDS, ours, shapes, None).parameters
    runs = kept(joined, mixed)
    assert [(run.scheme.name, run.rows) for run in runs] == [("Q4_0", 96), ("Q8_0", 32)]
    values = np.concatenate([rows for _, rows in blocks(joined, mixed)])
    found = [run.scheme.decode(run.stored(0, run.rows)) for run in runs]
    np.testing.assert_array_equal(np.concatenate(found), values)
