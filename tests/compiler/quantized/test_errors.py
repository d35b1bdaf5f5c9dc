"""Formats that are not read, and files that lie: a clear error, at once."""

from __future__ import annotations

import json
import random

import numpy as np
import pytest

from wherry.compiler.checkpoint.folder import read_folder
from wherry.compiler.checkpoint.formats import open_checkpoint
from wherry.compiler.load import describe
from wherry.errors import ModelError

from . import writing
from .formats import CASES, torchao
from .test_formats import MODULE, folder_of, kept, weights

FORMATS = {case.settings.get("quant_method", "mlx"): name for name, case in CASES.items()}
QUICK, ALL = 20, 500  # mutants of each format


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"quant_method": "quip#"}, "quant_method 'quip#'"),
        ({"quant_method": "hqq"}, "quant_method 'hqq'"),
        (
            torchao("Int4WeightOnlyConfig", int4_packing_format="TILE_PACKED_TO_4D"),
            "int4_packing_format 'tile_packed_to_4d'; Wherry reads",
        ),
        ({}, "quant_method None"),
        ([], r"quantization_config \[\]; it is an object"),
        ({"quant_method": "modelopt", "quant_algo": "W4A8_AWQ"}, "ModelOpt's 'W4A8_AWQ'"),
        ({"quant_method": "gptq", "checkpoint_format": "marlin"}, "checkpoint_format 'marlin'"),
        ({"quant_method": "awq", "version": "gemv"}, "AWQ weights of version 'gemv'"),
        ({"quant_method": "compressed-tensors", "format": "marlin-24"}, "format 'marlin-24'"),
        (
            {"quant_method": "compressed-tensors", "sparsity_config": {"format": "sparse-24"}},
            "sparse weights",
        ),
        (
            {"quant_method": "compressed-tensors", "transform_config": {"R1": {}}},
            "rotated weights",
        ),
        ({"quant_method": "gemma", "num_bits": 3}, r"num_bits \[3\]; they are 2, 4 or 8"),
        (
            {"quant_method": "gemma", "module_quant_configs": {"(a+)+": {"num_bits": 4}}},
            r"module_quant_configs .*at most 4 repetitions, and none of a group",
        ),
        (
            {"quant_method": "bitnet", "quantization_mode": "online"},
            "BitNet weights of quantization_mode 'online'; Wherry reads 'offline'",
        ),
        ({"quant_method": "bitnet", "use_rms_norm": True}, "use_rms_norm True"),
        (
            {"quant_method": "bitnet", "modules_to_not_convert": ["lm_head", "o_proj"]},
            "modules_to_not_convert .*; Wherry reads None or",
        ),
        ({"quant_method": "fp8", "weight_block_size": [0, 128]}, r"weight_block_size \[0, 128\]"),
    ],
)
def test_what_is_not_read_is_named(settings, named, tmp_path):
    folder = writing.save(tmp_path, {"a.weight": np.ones((4, 4), np.float32)}, settings)
    with pytest.raises(ModelError, match=named) as e:
        open_checkpoint(read_folder(folder))
    assert str(folder) in str(e.value)


def test_it_is_named_before_weights_are_downloaded(tmp_path):
    (tmp_path / "config.json").write_text(
        json.dumps({"model_type": "llama", "quantization_config": {"quant_method": "aqlm"}})
    )
    with pytest.raises(ModelError, match=r"'aqlm', a format of weights .* --quant q4f16_1"):
        describe(read_folder(tmp_path))


def test_a_folder_without_quantized_weights(tmp_path):
    writing.save(tmp_path, {"a.weight": np.ones((4, 4), np.float16)}, CASES["gptq"].settings)
    with pytest.raises(ModelError, match="describes GPTQ weights, and none of the 1 tensors"):
        open_checkpoint(read_folder(tmp_path))


@pytest.mark.parametrize("name", CASES)
def test_missing_tensors_are_listed(name, tmp_path):
    """Each tensor of a module but those that may be absent."""
    case = CASES[name]
    arrays, _ = case.write(weights())
    optional = {"g_idx", "weight_format", "weight_zero_point", "weight_g_idx"}
    optional |= {"input_activation_scale", "output_activation_scale"}
    if name in ("torchao-int8", "torchao-int4-bytes"):
        optional |= {"_weight_zero_point"}
    for number, suffix in enumerate(set(arrays) - optional):
        rest = {MODULE + s: a for s, a in arrays.items() if s != suffix}
        folder = tmp_path / str(number)
        writing.save(folder, rest, None, **case.config)
        try:
            shapes = open_checkpoint(read_folder(folder)).shapes
        except ModelError as e:
            assert MODULE in str(e) or "none of the" in str(e)
        else:  # what is left shows as tensors that no model has
            assert f"{MODULE}weight" not in shapes or len(shapes) > 1


def test_an_index_of_groups_that_do_not_exist(tmp_path):
    arrays, _ = writing.gptq(weights(), order=0)
    arrays["g_idx"][5] = 1000
    folder = writing.save(
        tmp_path, {MODULE + s: a for s, a in arrays.items()}, CASES["gptq"].settings
    )
    with pytest.raises(ModelError, match=r"g_idx has groups 0 to 1000, and 3 scales a column"):
        open_checkpoint(read_folder(folder)).read(f"{MODULE}weight")


@pytest.mark.parametrize(
    ("name", "axis"),
    [("awq-64", 0), ("gemma-4", 1), ("torchao-int4-bytes", 1), ("torchao-int4", 0)],
)
def test_groups_that_do_not_divide_the_columns(name, axis, tmp_path):
    case = CASES[name]
    arrays, _ = case.write(weights())
    for suffix in arrays:
        if arrays[suffix].ndim == 2 and any(word in suffix for word in ("scale", "zero")):
            array = np.repeat(arrays[suffix], 7, axis)
            arrays[suffix] = array[:7] if axis == 0 else array[:, :7]
    folder = tmp_path / "model"
    tensors = {MODULE + s: a for s, a in arrays.items()}
    writing.save(folder, tensors, None, **case.config)
    with pytest.raises(ModelError, match=r"scales? has 7 groups for \d+ columns"):
        open_checkpoint(read_folder(folder))


def test_a_lying_shape(tmp_path):
    arrays, _ = writing.compressed(weights())
    arrays["weight_shape"] = np.array([2**40, 2**40])
    folder = writing.save(
        tmp_path, {MODULE + s: a for s, a in arrays.items()}, CASES["compressed-4"].settings
    )
    with pytest.raises(ModelError, match=r"is no matrix \[1099511627776, 1099511627776\]"):
        open_checkpoint(read_folder(folder))


def _changed(value, rng):
    """A number of the header or the settings, or something else."""
    if isinstance(value, bool) or not isinstance(value, int):
        return rng.choice([None, -1, 0, 2**62, "x", [], {}])
    return rng.choice([0, 1, -1, value + 1, value * 2, 2**31, 2**62, value // 2, None, "x"])


def _mutate(tree, rng):
    """Change one value of a JSON object in place."""
    places = []

    def walk(node):
        items = node.items() if isinstance(node, dict) else enumerate(node)
        for key, value in list(items):
            places.append((node, key, value))
            if isinstance(value, dict | list):
                walk(value)

    walk(tree)
    node, key, value = rng.choice(places)
    if rng.random() < 0.2 and isinstance(node, dict):
        del node[key]
    else:
        node[key] = _changed(value, rng)


def _mutant(folder, out, seed):
    """A copy of a folder with one number of its JSON changed, or cut off."""
    rng, out = random.Random(seed), out
    out.mkdir(exist_ok=True)
    data = (folder / "model.safetensors").read_bytes()
    config = json.loads((folder / "config.json").read_text())
    length = int.from_bytes(data[:8], "little")
    header, body = json.loads(data[8 : 8 + length]), data[8 + length :]
    kind = rng.randrange(4)
    if kind == 0:
        _mutate(config, rng)
    elif kind == 1:
        _mutate(header, rng)
    elif kind == 2:
        body = bytearray(body)
        for _ in range(20):
            body[rng.randrange(len(body))] = rng.choice([0, 127, 128, 255])
    text = json.dumps(header).encode()
    contents = len(text).to_bytes(8, "little") + text + body
    if kind == 3:
        contents = contents[: rng.randrange(len(contents))]
    (out / "model.safetensors").write_bytes(contents)
    (out / "config.json").write_text(json.dumps(config))
    return out


def _survives(name, tmp_path, count):
    folder, _ = folder_of(CASES[name], tmp_path / "whole")
    refused = 0
    for seed in range(count):
        mutant = _mutant(folder, tmp_path / "mutant", seed)
        try:
            checkpoint = open_checkpoint(read_folder(mutant))
            for tensor in checkpoint.tensors:
                if len(checkpoint.tensors[tensor].shape) == 2:
                    checkpoint.require_floats([tensor])
                    checkpoint.read(tensor)
            if checkpoint.shapes.get(f"{MODULE}weight") == (136, 384):
                for rows in kept(checkpoint, MODULE):
                    rows.stored(0, rows.rows)
        except ModelError as e:
            refused += 1
            assert len(str(e)) < 5000
    assert count / 4 < refused < count


@pytest.mark.parametrize("name", FORMATS.values())
def test_mutants(name, tmp_path):
    _survives(name, tmp_path, QUICK)


@pytest.mark.nightly
@pytest.mark.parametrize("name", CASES)
def test_many_mutants(name, tmp_path):
    _survives(name, tmp_path, ALL)
