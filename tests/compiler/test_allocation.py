"""The choice of types for an average number of bits, and conversions to what was chosen."""

import importlib.util
import json
from itertools import product
from math import prod
from pathlib import Path

import numpy as np
import pytest

from wherry.compiler.allocation import Option, allocate, chosen, normal_rows, units_of
from wherry.compiler.choices import ArtifactSpec
from wherry.compiler.convert import convert
from wherry.compiler.weight_cache import load_state
from wherry.compiler.weight_marker import MARKER, label_of, own_of
from wherry.errors import UsageError
from wherry.quant.mix import mix_of
from wherry.quant.scheme import TYPES, find, record

_spec = importlib.util.spec_from_file_location(
    "convert_toy", Path(__file__).with_name("convert_toy.py")
)
toy = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(toy)

SIZE = {"d": 128, "layers": 3, "vocab": 160}
LAYERS = {
    f"layers.{i}.{name}.weight": shape
    for i in range(4)
    for name, shape in {
        "self_attn.qkv_proj": (384, 256),
        "self_attn.o_proj": (256, 256),
        "mlp.gate_up_proj": (1024, 256),
        "mlp.down_proj": (256, 512),
    }.items()
}
SHAPES = {"embed.weight": (2048, 256), **LAYERS}


def run(source, out, quant, types=TYPES, progress=None):
    weights = toy.weights(source, toy.parameters(**SIZE), scheme=quant, types=types)
    convert(weights, out, progress=progress)
    return load_state(out)


@pytest.fixture
def tensors():
    return toy.checkpoint(**SIZE)


@pytest.fixture
def source(tmp_path, tensors):
    return toy.write_folder(tmp_path / "hf", tensors, **SIZE)


def test_the_greedy_choice_is_near_the_best():
    rng = np.random.default_rng(0)
    scheme = find("q4f16_1")
    for _ in range(20):
        options = [
            [
                Option(scheme, n, float(rng.uniform(0.1, 5) * 4 ** -(n / 8)))
                for n in (10, 14, 18, 33)
            ]
            for _ in range(5)
        ]
        budget = int(rng.integers(55, 160))
        greedy = chosen(options, budget)
        assert sum(o.nbytes for o in greedy) <= budget
        every = [c for c in product(*options) if sum(o.nbytes for o in c) <= budget]
        best = min(sum(o.loss for o in c) for c in every)
        assert sum(o.loss for o in greedy) < 1.6 * best


def test_too_few_bytes_give_the_smallest():
    few = [[Option(find("q4f16_1"), 10, 2.0), Option(find("q8f16_1"), 20, 1.0)]]
    assert chosen(few, 3)[0].nbytes == 10


@pytest.mark.parametrize("bits", [3.5, 4.5, 5, 6.25])
def test_average_and_order(bits):
    plan = allocate(mix_of(f"auto:{bits}"), units_of(SHAPES), normal_rows, TYPES)
    schemes = {n: plan[n][0].scheme if n in plan else find("q4f16_1") for n in SHAPES}
    size = {n: sum(t.nbytes for t in s.stored(n, SHAPES[n])) * 8 for n, s in schemes.items()}
    average = sum(size.values()) / sum(map(prod, SHAPES.values()))
    assert bits - 0.35 < average <= bits
    each = {n: size[n] / prod(SHAPES[n]) for n in SHAPES}
    assert each["layers.1.mlp.down_proj.weight"] >= each["layers.1.mlp.gate_up_proj.weight"]
    assert each["layers.1.self_attn.qkv_proj.weight"] >= each["layers.1.self_attn.o_proj.weight"]


def test_without_kernels_of_block_types():
    plan = allocate(mix_of("auto:6"), units_of(SHAPES), normal_rows, ())
    assert plan and {p.scheme.name for parts in plan.values() for p in parts} == {"q8f16_1"}


@pytest.mark.parametrize("quant", ["auto:5", "q4_k", "q6_k"])
def test_conversion(source, tensors, tmp_path, quant):
    out = tmp_path / "out"
    state = run(source, out, quant)
    own, label = own_of(out), label_of(out)
    assert label == quant and own
    qkv = "model.layers.0.qkv_proj.weight"
    if quant == "auto:5":
        assert len(own[qkv]) == 2  # values count more than queries and keys
    joined = np.concatenate([tensors[f"model.layers.0.{n}_proj.weight"] for n in "qkv"])
    first = 0
    for part in own[qkv]:
        rows, base = joined[first : first + part.rows], part.name.removesuffix("weight")
        for suffix, array in part.scheme.encode(rows).items():
            np.testing.assert_array_equal(state[base + suffix], array)
        first += part.rows
    assert first == len(joined)
    nbytes = sum(a.nbytes for n, a in state.items() if ".q_" in n)
    numbers = sum(w.size for n, w in tensors.items() if w.ndim == 2)
    if quant == "auto:5":
        assert 4.5 < nbytes * 8 / numbers <= 5
    assert state["model.layers.0.norm.weight"].dtype == np.float16


def test_a_complete_conversion_is_not_measured_again(source, tmp_path):
    out, said = tmp_path / "out", []

    def progress(what, *_):
        said.append(what)

    run(source, out, "auto:4.5", progress=progress)
    assert {"measure", "convert"} == set(said)
    marker = json.loads((out / MARKER).read_text())
    said.clear()
    run(source, out, "auto:4.5", progress=progress)
    assert said == [] and json.loads((out / MARKER).read_text()) == marker
    run(source, out, "auto:4.5", types=("q4_k", "q6_k"), progress=progress)
    assert "measure" in said
    assert {p.scheme.name for parts in own_of(out).values() for p in parts} <= {
        *("Q4_K", "Q6_K", "q4f16_1", "q8f16_1")
    }


def test_what_a_target_has_kernels_for():
    assert ArtifactSpec(target="cpu", quant="q3_k").mix.type is record("Q3_K")
    assert ArtifactSpec(target="cpu", quant="auto:4.5").types == set(TYPES)
    of_4_bits = {"iq4_nl", "iq4_xs", "q4_k"}  # tensor cores read 2 and 3 bits as 4, 5 and 6 as 8
    known = r"for iq4_nl, iq4_xs, q4_k\. Type: --quant q8f16_1, or --quant auto:5\.6"
    with pytest.raises(UsageError, match=known):
        _ = ArtifactSpec(target="cuda", host="linux-x86_64", quant="q5_k").mix
    assert ArtifactSpec(target="cuda", host="linux-x86_64", quant="auto:5").types == of_4_bits
    kept = ArtifactSpec(
        target="cuda", host="linux-x86_64"
    ).kept_schemes  # of a file with such types
    expected = {"Q2_K", "Q3_K", "Q4_K", "Q5_K", "Q6_K", "Q8_0", "IQ4_XS", "IQ2_S", "TQ2_0"}
    assert kept and expected <= kept.matrices & kept.experts and "TCQ3" not in kept.matrices
    floats = {"FP8_ROW", "FP8_G128", "MXFP8", "MXFP4", "NVFP4"}
    assert floats <= kept.matrices & kept.experts and "TERNARY" not in kept.matrices
