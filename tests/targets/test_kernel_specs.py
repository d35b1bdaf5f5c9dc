"""Specs: their JSON form, and what they refuse; instruction sets from feature names."""

from __future__ import annotations

import pytest

from wherry.targets.kernels import AttentionSpec, EmbeddingSpec, LinearSpec, RopeAppendSpec
from wherry.targets.kernels.cpu import Isa, isa_from_features

SPECS = [
    LinearSpec(out_features=4, in_features=8, scheme="q4", scale_dtype="float16"),
    EmbeddingSpec(vocab=4, dim=8, scheme="f32"),
    AttentionSpec(heads=4, kv_heads=2, head_dim=8, scale=0.1, kv_dtype="float16"),
    RopeAppendSpec(heads=4, kv_heads=2, head_dim=8, rotary_dim=4, inv_freq=(1.0, 0.1)),
]


@pytest.mark.parametrize("spec", SPECS, ids=lambda s: type(s).__name__)
def test_json_round_trip(spec):
    again = type(spec).from_json(spec.to_json())
    assert again == spec
    assert hash(again) == hash(spec)


def test_json_of_other_fields_is_refused():
    with pytest.raises(ValueError, match="vocab"):
        LinearSpec.from_json(SPECS[1].to_json())


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda: LinearSpec(out_features=0, in_features=8, scheme="f32"), "out_features"),
        (lambda: LinearSpec(out_features=4, in_features=8, scheme="q9"), "q9"),
        (lambda: LinearSpec(out_features=4, in_features=8, scheme="q4"), "scale_dtype"),
        (
            lambda: LinearSpec(out_features=4, in_features=8, scheme="f16", scale_dtype="float16"),
            "no scales",
        ),
        (lambda: AttentionSpec(heads=4, kv_heads=3, head_dim=8, scale=1.0), "share"),
        (
            lambda: RopeAppendSpec(heads=4, kv_heads=2, head_dim=8, rotary_dim=4, inv_freq=(1.0,)),
            "frequencies",
        ),
        (
            lambda: AttentionSpec(heads=4, kv_heads=2, head_dim=8, scale=1.0, kv_dtype="int3"),
            "'int3'",
        ),
        (
            lambda: AttentionSpec(heads=4, kv_heads=2, head_dim=12, scale=1.0, kv_dtype="int4"),
            "head_dim 12",
        ),
    ],
)
def test_impossible_specs_are_refused(wrong, message):
    with pytest.raises(ValueError, match=message):
        wrong()


@pytest.mark.parametrize("vnni", ["avx512vnni", "avx512_vnni"])
def test_linux_and_llvm_names_agree(vnni):
    isa = isa_from_features({"avx512f", "avx512bw", "avx512vl", "avx2", "fma", vnni})
    assert isa == Isa(lanes=16, registers=32, fma=True, dot="vnni512")


def test_lesser_machines():
    assert isa_from_features(["+avx2", "+fma", "-avx512f"]).lanes == 8
    assert isa_from_features(["asimd"]).registers == 32
    assert not isa_from_features([]).fma
