"""Blocks: every type's values are gguf-py's, however rows are cut and ordered."""

from __future__ import annotations

from pathlib import Path
from types import MappingProxyType

import gguf
import numpy as np
import pytest

from wherry.compiler.checkpoint.gguf.architectures.changes import Tiled
from wherry.compiler.checkpoint.gguf.few_bits import FEW_BITS
from wherry.compiler.checkpoint.gguf.tensors import GgufCheckpoint, GgufTensor, parts
from wherry.compiler.checkpoint.gguf.types import READ, layout_of
from wherry.models.weights.rules import Pairs
from wherry.quant.scheme import find

from ...support.random_blocks import dequantized

ROWS, COLUMNS = 32, 512


def checkpoint(path: Path, kind: str, **changes) -> tuple[GgufCheckpoint, np.ndarray]:
    """Random bytes as a matrix "m", the experts "e.0" to "e.3" and, and gguf-py's values of it."""
    code = FEW_BITS[kind][0] if kind in FEW_BITS else gguf.GGMLQuantizationType[kind]
    layout = layout_of(code)
    width = layout.row_bytes(COLUMNS)
    raw = np.random.default_rng(0).integers(0, 256, (ROWS, width), np.uint8)
    path.write_bytes(bytes(64) + raw.tobytes())
    end = 64 + raw.size
    given = {"stored": "m", "layout": layout}
    matrix = GgufTensor(path, kind, (ROWS, COLUMNS), 64, end, **given, **changes)
    stack = GgufTensor(path, kind, (4, ROWS // 4, COLUMNS), 64, end, **given)
    tensors = {"m": matrix, "s": stack}
    tensors |= {f"e.{i}": part for i, part in enumerate(parts(stack, 4))}
    with np.errstate(all="ignore"):
        values = dequantized(kind, raw)
    return GgufCheckpoint(path.parent, MappingProxyType(tensors), (path,), ""), values


@pytest.mark.parametrize("kind", READ)
def test_values(kind, tmp_path):
    read, values = checkpoint(tmp_path / "x", kind)
    same = lambda a, b: np.testing.assert_array_equal(a, b)  # noqa: E731 - NaN equals NaN
    same(read.read("m"), values)
    same(read.read("m", 5, 18), values[5:18])
    same(read.read("e.2"), values[16:24])
    same(read.read("e.2", 3, 5), values[19:21])
    same(read.read("s", 1, 3), values.reshape(4, 8, COLUMNS)[1:3])
    read, _ = checkpoint(tmp_path / "x", kind, columns=Tiled(64, 7, 4, 16), undo=np.negative)
    same(read.read("m", 2, 9), -values[2:9, Tiled(64, 7, 4, 16).source(np.arange(COLUMNS))])
    assert not read.tensor("m").keeps_bits
    order = Pairs(16, 16)
    read, values = checkpoint(tmp_path / "x", kind, order=order)
    rows = order.source(np.arange(ROWS))
    same(read.read("m"), values[rows])
    same(read.read("m", 7, 29), values[rows[7:29]])
    assert read.tensor("m").keeps_bits
    assert read.read_blocks("m", 7, 29).shape == (22, read.tensor("m").layout.row_bytes(COLUMNS))


def test_value_heads_that_are_tiled():
    """[times, key heads, e] in the file are [key heads, times, e] in a checkpoint."""
    heads = np.arange(5 + 3 * 2 * 4)
    tiled = heads[5:].reshape(3, 2, 4).swapaxes(0, 1).reshape(-1)
    source = Tiled(5, 3, 2, 4).source(np.arange(5 + 24))
    np.testing.assert_array_equal(np.concatenate([heads[:5], tiled])[source], heads)


def test_a_vector_in_pairs(tmp_path):
    read, _ = checkpoint(tmp_path / "x", "F32")
    layout = layout_of(gguf.GGMLQuantizationType.F32)
    numbers = np.arange(32, dtype=np.float32)
    (tmp_path / "x").write_bytes(numbers.tobytes())
    vector = GgufTensor(
        tmp_path / "x", "F32", (32,), 0, 128, stored="v", layout=layout, order=Pairs(16, 16)
    )
    read = GgufCheckpoint(tmp_path, MappingProxyType({"v": vector}), (tmp_path / "x",), "")
    rows = Pairs(16, 16).source(np.arange(32))
    np.testing.assert_array_equal(read.read("v"), numbers[rows])
    np.testing.assert_array_equal(read.read("v", 3, 9), numbers[rows[3:9]])


def test_eight_bits_are_kept():
    """Q8_0's integers and scales are those of q8f16_1, but for the sign of both."""
    weights = np.random.default_rng(1).normal(size=(64, 256)).astype(np.float32)
    blocks = gguf.quants.quantize(weights, gguf.GGMLQuantizationType.Q8_0)
    values = gguf.quants.dequantize(blocks, gguf.GGMLQuantizationType.Q8_0)
    scheme = find("q8f16_1")
    stored = scheme.encode(values)
    np.testing.assert_array_equal(scheme.decode(stored), values)
    scales = blocks.reshape(64, -1, 34)[..., :2].copy().view(np.float16)[..., 0]
    np.testing.assert_array_equal(np.abs(stored["q_scale"]), scales)
    integers = blocks.reshape(64, -1, 34)[..., 2:].view(np.int8).reshape(64, -1)
    stored_integers = stored["q_weight"].view(np.uint8).astype(int) - 127
    signs = np.repeat(np.sign(stored["q_scale"]).astype(int), 32, axis=1)
    np.testing.assert_array_equal(stored_integers * signs, integers)
