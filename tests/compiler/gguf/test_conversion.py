"""Conversion of GGUF: the nearest scheme, and a line on what is rounded again."""

from __future__ import annotations

import json
import logging
import re

import numpy as np
import pytest

from wherry.compiler.api import convert_model, name_of
from wherry.compiler.checkpoint.gguf.opening import open_gguf
from wherry.compiler.checkpoint.kept import NOTHING, AllowedSchemes, KeptSchemes
from wherry.compiler.weight_cache import load_state
from wherry.compiler.weight_marker import label_of, own_of
from wherry.errors import ModelError
from wherry.hub.source import resolve

from . import writing


@pytest.mark.parametrize(
    ("kind", "scheme", "note"),
    [
        ("F32", "q0f32", ""),
        ("F16", "q0f16", ""),
        ("BF16", "q0f32", ""),
        ("Q8_0", "q8f16_1", ""),
        ("Q4_0", "q8f16_1", "m.gguf: Q4_0 (100% of the weights) is re-encoded as q8f16_1."),
        ("TQ2_0", "q8f16_1", "m.gguf: TQ2_0 (100% of the weights) is re-encoded as q8f16_1."),
    ],
)
def test_the_nearest_scheme(kind, scheme, note, tmp_path, caplog):
    sizes = {"size": 256, "inner": 256} if kind == "TQ2_0" else {}
    file = writing.llama(tmp_path / "m.gguf", kind=kind, layers=1, **sizes)
    with caplog.at_level(logging.WARNING):
        out = convert_model(str(file), tmp_path / "out", allowed=AllowedSchemes(NOTHING))
    assert json.loads((out / "wherry-weights.json").read_text())["scheme"] == scheme
    if note:
        assert caplog.messages[0] == note and "re-encoding changed" in caplog.messages[1]
        return
    assert caplog.messages == []
    values = open_gguf(file).read("model.layers.0.mlp.down_proj.weight")
    stored = load_state(out)
    if kind == "Q8_0":
        words = stored["model.layers.0.mlp.down_proj.q_weight"].view(np.uint8).astype(np.float32)
        scales = stored["model.layers.0.mlp.down_proj.q_scale"].astype(np.float32)
        integers = (words - 127) * np.repeat(scales, 32, axis=1)
    else:
        integers = stored["model.layers.0.mlp.down_proj.weight"].astype(np.float32)
    np.testing.assert_array_equal(integers, values)


SOME = KeptSchemes(frozenset({"Q4_K", "Q6_K"}))  # of a target that has not all kernels
MIXED = {"token_embd": "Q6_K", "attn_v": "Q6_K", "ffn_down": "IQ2_S", "": "Q4_K"}


def test_the_bits_of_the_file_are_kept(tmp_path, caplog):
    """Q, k in one type and v in another, a type that the target lacks, and vectors."""
    file = writing.llama(tmp_path / "m.gguf", kinds=MIXED, size=256, inner=512, layers=1)
    with caplog.at_level(logging.WARNING):
        out = convert_model(str(file), tmp_path / "out", allowed=AllowedSchemes(SOME))
    line, changed = caplog.messages
    assert "re-encoding changed" in changed
    assert re.fullmatch(
        r"m.gguf: IQ2_S \(\d+% of the weights\) is re-encoded as q8f16_1; "
        "Q4_K and Q6_K kept as in the file.",
        line,
    )
    own, stored, read = own_of(out), load_state(out), open_gguf(file)
    qkv = own["model.layers.0.self_attn.qkv_proj.weight"]
    assert [(part.rows, part.scheme.name) for part in qkv] == [(384, "Q4_K"), (128, "Q6_K")]
    names = [f"model.layers.0.self_attn.{x}_proj.weight" for x in "qkv"]
    parts = [decoded(stored, part) for part in qkv]
    expected = np.concatenate([read.read(name) for name in names])
    np.testing.assert_array_equal(np.concatenate(parts), expected)
    (embed,) = own["model.embed_tokens.weight"]
    assert embed.scheme.name == "Q6_K"
    np.testing.assert_array_equal(decoded(stored, embed), read.read("model.embed_tokens.weight"))
    norm = stored["model.norm.weight"]
    assert norm.dtype == np.float32
    assert "model.layers.0.mlp.down_proj.weight" not in own
    assert "model.layers.0.mlp.down_proj.q_scale" in stored
    assert label_of(out) == "Q4_K"
    convert_model(str(file), tmp_path / "other", quant="q8f16_1")
    assert (own_of(tmp_path / "other"), label_of(tmp_path / "other")) == ({}, "q8f16_1")


def decoded(stored, part):
    prefix = part.name.removesuffix("weight")
    names = [t.name for t in part.scheme.stored("x.weight", (part.rows, 256))]
    return part.scheme.decode({n[2:]: stored[prefix + n[2:]] for n in names})


def test_a_requested_scheme(tmp_path, caplog):
    file = writing.llama(tmp_path / "m.gguf", kind="Q8_0", layers=1)
    convert_model(str(file), tmp_path / "out", quant="q4f16_1")
    assert "Q8_0 (100% of the weights) is re-encoded as q4f16_1" in caplog.text


def test_a_file_that_has_changed_is_read_again(tmp_path):
    file = writing.llama(tmp_path / "m.gguf", layers=1)
    first = convert_model(str(file))
    before = json.loads((first / "wherry-weights.json").read_text())["job"]
    assert convert_model(str(file)) == first
    writing.llama(file, layers=2)
    assert convert_model(str(file)) == first
    assert json.loads((first / "wherry-weights.json").read_text())["job"] != before
    file.unlink()
    with pytest.raises(ModelError, match="cannot be read"):
        open_gguf(file)


def test_parts(tmp_path):
    """A split model is read by any of its parts, and has the name of the whole."""
    single = writing.llama(tmp_path / "whole.gguf", layers=1)
    names = [tmp_path / f"m-0000{i}-of-00002.gguf" for i in (1, 2)]
    writing.halves(single, *names)
    one, two = (open_gguf(name) for name in names)
    assert one.shapes == two.shapes == open_gguf(single).shapes
    for name in one.shapes:
        np.testing.assert_array_equal(two.read(name), open_gguf(single).read(name))
    assert name_of(str(names[1])) == "m"
    assert resolve(str(names[1]), cache=tmp_path) == names[1]
