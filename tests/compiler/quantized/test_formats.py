"""Each format: exact floats, and a scheme with the same bits where there is one."""

from __future__ import annotations

import json

import ml_dtypes
import numpy as np
import pytest

from wherry.compiler.checkpoint.folder import read_folder
from wherry.compiler.checkpoint.formats import open_checkpoint
from wherry.compiler.checkpoint.quantized import bits
from wherry.models.arch import Groups
from wherry.models.weights.plan import ParameterPlan, Piece
from wherry.quant.act_order import ORDER
from wherry.quant.scheme import portable, record

from . import writing
from .formats import CASES

OUT, IN = 136, 384
MODULE = "model.layers.0.mlp.down_proj."


def weights(seed=0, out=OUT):
    return np.random.default_rng(seed).standard_normal((out, IN)).astype(np.float32) * 0.05


def folder_of(case, folder, modules=(MODULE,)):
    """A folder with a module per name; returns what is left of each matrix, too."""
    tensors, left = {"model.norm.weight": np.ones(IN, np.float16)}, []
    for seed, module in enumerate(modules):
        arrays, matrix = case.write(weights(seed))
        tensors |= {module + suffix: array for suffix, array in arrays.items()}
        left.append(matrix)
    return writing.save(folder, tensors, None, **case.config), left


@pytest.fixture(params=CASES)
def case(request):
    return CASES[request.param]


def test_floats_are_exact_in_any_block_of_rows(case, tmp_path):
    folder, (left,) = folder_of(case, tmp_path)
    checkpoint = open_checkpoint(read_folder(folder))
    assert checkpoint.shapes == {"model.norm.weight": (IN,), f"{MODULE}weight": (OUT, IN)}
    name = f"{MODULE}weight"
    checkpoint.require_floats(checkpoint.tensors)
    np.testing.assert_array_equal(checkpoint.read(name), left)
    blocks = [checkpoint.read(name, a, b) for a, b in ((0, 5), (5, 50), (50, 131), (131, OUT))]
    np.testing.assert_array_equal(np.concatenate(blocks), left)


def kept(checkpoint, *names, order=None):
    pieces = tuple(Piece(f"{name}weight", 0, OUT, order) for name in names)
    return checkpoint.kept(ParameterPlan("x.weight", (OUT * len(names), IN), pieces))


def stored_of(rows):
    """The rows as they are stored, in blocks as a conversion writes them."""
    parts = [rows.stored(a, min(a + 50, rows.rows)) for a in range(0, rows.rows, 50)]
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def test_the_scheme_has_the_same_bits(case, tmp_path):
    folder, (left,) = folder_of(case, tmp_path)
    runs = kept(open_checkpoint(read_folder(folder)), MODULE)
    if case.scheme is None and not runs:
        return
    (rows,) = runs
    assert case.scheme in (None, rows.scheme.name)
    assert record(rows.scheme.name) == rows.scheme
    stored = stored_of(rows)
    specs = rows.scheme.stored("x.weight", (OUT, IN))
    assert [(t.name, t.shape, t.dtype) for t in specs] == [
        (f"x.{n}", a.shape, a.dtype.name) for n, a in stored.items()
    ]
    np.testing.assert_allclose(rows.scheme.decode(stored, IN), left, rtol=case.rtol, atol=0)


def test_a_parameter_of_several_matrices(tmp_path):
    """Matrices with one order of columns are stored together, others apart."""
    names = [f"model.layers.0.self_attn.{x}_proj." for x in "qkv"]
    for name, runs in (("gptq", 1), ("gptq-act-order", 1), ("awq", 1)):
        folder, left = folder_of(CASES[name], tmp_path / name, names)
        kept_runs = kept(open_checkpoint(read_folder(folder)), *names)
        assert len(kept_runs) == runs
        np.testing.assert_array_equal(
            kept_runs[0].scheme.decode(stored_of(kept_runs[0]), IN), np.concatenate(left)
        )
    tensors, left = {}, []
    for seed, name in enumerate(names):
        arrays, matrix = writing.gptq(weights(seed), order=min(seed, 1))
        tensors |= {name + suffix: array for suffix, array in arrays.items()}
        left.append(matrix)
    folder = writing.save(tmp_path / "orders", tensors, CASES["gptq-act-order"].settings)
    first, second = kept(open_checkpoint(read_folder(folder)), *names)
    assert (first.rows, second.rows) == (OUT, 2 * OUT)
    assert (stored_of(first)[ORDER] != stored_of(second)[ORDER]).any()
    np.testing.assert_array_equal(second.scheme.decode(stored_of(second)), np.concatenate(left[1:]))


@pytest.mark.parametrize("name", ["awq", "gptq-asymmetric-order", "mlx-4"])
def test_a_target_that_has_no_kernels_for_zero_points(name, tmp_path):
    """4 bits with zero points also fit into 8 bits of our own; minimums do not."""
    folder, (left,) = folder_of(CASES[name], tmp_path)
    plan = ParameterPlan("x.weight", (OUT, IN), (Piece(f"{MODULE}weight", 0, OUT, None),))
    (rows,) = open_checkpoint(read_folder(folder)).kept(plan, portable())
    expected = {"awq": "q8f16_1", "gptq-asymmetric-order": "q8f16_1_ordered"}
    assert rows.scheme.name == expected.get(name, CASES[name].scheme)
    np.testing.assert_array_equal(rows.scheme.decode(stored_of(rows), IN), left)


def experts(folder, *names, schemes=None):
    """What a checkpoint offers of a stack of experts, each of which has tensors `names`."""
    each = [f"experts.{e}.{name}_proj.weight" for e in range(2) for name in names]
    plan = ParameterPlan(
        "x.weight",
        (2, OUT * len(names), IN),
        tuple(Piece(name, 0, OUT, None) for name in each),
        stacked=True,
    )
    return open_checkpoint(read_folder(folder)).kept(plan, schemes)


@pytest.mark.parametrize(
    ("schemes", "scheme"), [(None, "affine4f16_g128"), (portable(), "q8f16_1")]
)
def test_experts(schemes, scheme, tmp_path):
    names = [f"experts.{e}.{n}_proj." for e in range(2) for n in ("gate", "up")]
    folder, left = folder_of(CASES["awq"], tmp_path, names)
    (rows,) = experts(folder, "gate", "up", schemes=schemes)
    assert (rows.scheme.name, rows.rows) == (scheme, 4 * OUT)
    np.testing.assert_array_equal(rows.scheme.decode(stored_of(rows), IN), np.concatenate(left))


def test_experts_have_one_scheme_for_each_of_their_tensors(tmp_path):
    """One expert's scales need float32, so those of all have it; gate and up are apart."""
    tensors, left = {}, {}
    for e, dtype in enumerate((np.float16, np.float32)):
        for name, count in (("gate", 4), ("up", 8)):
            how = {"bits": count, "dtype": dtype, "symmetric": count == 4}
            arrays, own = writing.compressed(weights(e), **how)
            tensors |= {f"experts.{e}.{name}_proj.{n}": array for n, array in arrays.items()}
            left.setdefault(name, []).append(own)
    groups = {str(n): {"targets": ["Linear"], "weights": {"num_bits": n}} for n in (4, 8)}
    settings = {**CASES["compressed-4"].settings, "config_groups": groups}
    folder = writing.save(tmp_path, tensors, settings)
    runs = experts(folder, "gate", "up")
    assert [rows.scheme.name for rows in runs] == ["q4f32_1", "affine8f32_g128"]
    for rows, name in zip(runs, ("gate", "up"), strict=True):
        expected = np.concatenate(left[name])
        np.testing.assert_array_equal(rows.scheme.decode(stored_of(rows), IN), expected)


def test_experts_with_an_order_of_columns_are_encoded(tmp_path):
    names = [f"experts.{e}.up_proj." for e in range(2)]
    folder, _ = folder_of(CASES["gptq-act-order"], tmp_path, names)
    assert experts(folder, "up") == ()


def test_rows_in_another_order(tmp_path):
    folder, (left,) = folder_of(CASES["gptq"], tmp_path)
    order = Groups(heads=13, kv_heads=2, head_dim=8)
    (rows,) = kept(open_checkpoint(read_folder(folder)), MODULE, order=order)
    expected = left[order.source(np.arange(OUT))]
    np.testing.assert_array_equal(rows.scheme.decode(stored_of(rows)), expected)


@pytest.mark.parametrize(
    ("dtype", "scheme"),
    [("float16", "q0f16"), ("float32", "q0f32"), (ml_dtypes.bfloat16, "q0f16")],
)
def test_floats_beside_stay_floats(dtype, scheme, tmp_path):
    """Of bfloat16 what is below 2^-14 is rounded to float16's subnormal numbers."""
    table = weights().astype(dtype)
    arrays, _ = writing.gptq(weights())
    tensors = {MODULE + suffix: array for suffix, array in arrays.items()}
    writing.save(tmp_path, tensors | {"embed.weight": table}, CASES["gptq"].settings)
    (rows,) = kept(open_checkpoint(read_folder(tmp_path)), "embed.")
    assert rows.scheme.name == scheme
    error = np.abs(stored_of(rows)["weight"].astype(np.float32) - table.astype(np.float32))
    assert error.max() <= 2**-25
    assert not error[np.abs(table.astype(np.float32)) >= 2**-14].any()


def test_bfloat16_that_float16_cannot_have_becomes_float32(tmp_path):
    table = weights().astype(ml_dtypes.bfloat16)
    table[3, 5] = 1e30
    arrays, _ = writing.gptq(weights())
    tensors = {MODULE + suffix: array for suffix, array in arrays.items()}
    writing.save(tmp_path, tensors | {"embed.weight": table}, CASES["gptq"].settings)
    (rows,) = kept(open_checkpoint(read_folder(tmp_path)), "embed.")
    assert rows.scheme.name == "q0f32"
    np.testing.assert_array_equal(stored_of(rows)["weight"], table.astype(np.float32))


def test_128_below_zero_keeps_8_bits_apart(tmp_path):
    """q8f16_1 has -127 to 127."""
    for least, scheme in ((-127, "q8f16_1"), (-128, "affine8f16_row")):
        q = np.random.default_rng(0).integers(-127, 128, (OUT, IN)).astype(np.int8)
        q[7, 9] = least
        scales = np.full((OUT, 1), 0.25, ml_dtypes.bfloat16)
        tensors = {f"{MODULE}weight": q, f"{MODULE}weight_scale": scales}
        folder = writing.save(tmp_path / scheme, tensors, CASES["compressed-int8"].settings)
        (rows,) = kept(open_checkpoint(read_folder(folder)), MODULE)
        assert rows.scheme.name == scheme
        np.testing.assert_array_equal(rows.scheme.decode(stored_of(rows), IN), q * np.float32(0.25))


def test_scales_of_activations_are_left_out(tmp_path):
    case = CASES["fp8-whole"]
    arrays, left = case.write(weights())
    tensors = {MODULE + suffix: array for suffix, array in arrays.items()}
    tensors[f"{MODULE}input_scale"] = np.ones(1, np.float32)
    tensors["model.layers.0.self_attn.k_scale"] = np.ones(1, np.float32)
    checkpoint = open_checkpoint(read_folder(writing.save(tmp_path, tensors, case.settings)))
    assert list(checkpoint.tensors) == [f"{MODULE}weight"]
    np.testing.assert_array_equal(checkpoint.read(f"{MODULE}weight"), left)


def test_modelopt_by_its_own_file(tmp_path):
    case = CASES["modelopt-nvfp4"]
    arrays, left = case.write(weights())
    tensors = {MODULE + suffix: array for suffix, array in arrays.items()}
    writing.save(tmp_path, tensors, None)
    text = {"producer": {"name": "modelopt"}, "quantization": {"quant_algo": "NVFP4"}}
    (tmp_path / "hf_quant_config.json").write_text(json.dumps(text))
    np.testing.assert_array_equal(
        open_checkpoint(read_folder(tmp_path)).read(f"{MODULE}weight"), left
    )


def test_8_bit_floats():
    """Every code, against another implementation."""
    codes = np.arange(256, dtype=np.uint8)
    names = {"F8_E4M3": "float8_e4m3fn", "F8_E5M2": "float8_e5m2", "F8_E8M0": "float8_e8m0fnu"}
    for name, numpy_name in names.items():
        expected = codes.view(getattr(ml_dtypes, numpy_name)).astype(np.float32)
        np.testing.assert_array_equal(bits.TABLES[name], expected)


@pytest.mark.parametrize("count", [1, 31, 32, 70])
@pytest.mark.parametrize("width", range(2, 9))
def test_streams_of_bits(width, count):
    values = np.random.default_rng(width).integers(0, 2**width, (3, count)).astype(np.uint8)
    words = writing.stream(values, width)
    assert words.shape[1] == bits.words_of(count, width)
    np.testing.assert_array_equal(bits.unpack(words, width, count), values)


def test_mlx_has_all_experts_in_one_tensor(tmp_path):
    arrays, left = zip(*(writing.mlx(weights(e)) for e in range(2)), strict=True)
    module = "model.layers.0.mlp.switch_mlp.up_proj."
    tensors = {module + name: np.stack([m[name] for m in arrays]) for name in arrays[0]}
    tensors["model.norm.weight"] = np.ones(IN, np.float16)
    one_key = {"quantization": CASES["mlx-4"].settings}  # as mlx-lm wrote in 2024
    folder = writing.save(tmp_path, tensors, None, **one_key)
    checkpoint = open_checkpoint(read_folder(folder))
    names = [f"model.layers.0.mlp.experts.{e}.up_proj.weight" for e in range(2)]
    assert checkpoint.shapes == {"model.norm.weight": (IN,)} | dict.fromkeys(names, (OUT, IN))
    pieces = tuple(Piece(name, 0, OUT, None) for name in names)
    (rows,) = checkpoint.kept(ParameterPlan("x.weight", (2, OUT, IN), pieces, stacked=True))
    assert rows.scheme.name == "affine4f16_g64_min"
    np.testing.assert_array_equal(rows.scheme.decode(stored_of(rows), IN), np.concatenate(left))
    for name, expected in zip(names, left, strict=True):
        np.testing.assert_array_equal(checkpoint.read(name, 3, 50), expected[3:50])
