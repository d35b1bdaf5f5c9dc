"""FuseExperts: the addition after a row's experts, and what stays."""

from __future__ import annotations

import pytest
from tvm import relax

from wherry.passes.fuse_experts import FuseExperts

from .fused import Target, calls, function, specs

ROWS = relax.TensorType((5, 8), "float32")
SLOTS = relax.TensorType((10, 4), "float32")
SCRATCH = (((lambda sizes: sizes["n"] * 2, 8), "float32"),)


def before(*, combined=True, read_twice=False, right=False):
    """add(r, expert_linear(g, w)), or the other way round."""
    r, g, w = (
        relax.Var(name, ty)
        for name, ty in {
            "r": ROWS,
            "g": SLOTS,
            "w": relax.TensorType((3, 8, 4), "float32"),
        }.items()
    )
    builder = relax.BlockBuilder()
    with builder.function("forward", [r, g, w]):
        with builder.dataflow():
            func = function("expert_linear", combined=combined, residual=False)
            down = builder.add_func(func, "down")
            y = builder.emit(relax.call_tir(down, [g, w], out_ty=ROWS))
            out = relax.op.add(y, r) if right else relax.op.add(r, y)
            if read_twice:
                out = relax.op.multiply(builder.emit(out), y)
            out = builder.emit_output(out)
        builder.emit_func_output(out)
    return builder.get()


TARGET = Target(expert_linear={"scratch": SCRATCH})


@pytest.mark.parametrize("right", [False, True])
def test_the_residual_goes_into_the_sum(right):
    mod = FuseExperts(TARGET)(before(right=right))
    ((op, args, ty),) = calls(mod)
    assert (op, args) == ("expert_linear", ["g", "w", "r"])
    assert [tuple(map(int, t.shape)) for t in ty.fields] == [(5, 8), (10, 8)]  # and the scratch
    (spec,) = specs(mod, "expert_linear")
    assert spec["residual"]


PACKED = Target(
    expert_linear={"scratch": SCRATCH, "pack": function(), "packed": ((7,), "uint32"), "inputs": 1}
)


def test_weights_are_packed_apart():
    mod = FuseExperts(PACKED)(before(combined=False))
    pack, linear, add = calls(mod)
    assert pack[:2] == ("pack_linear", ["w"]) and pack[2].dtype == "uint32"
    assert linear[:2] == ("expert_linear", ["g", "pack_linear"]) and add[0] == "add"


def test_a_sum_reads_the_same_packed_weights():
    mod = FuseExperts(PACKED)(before())
    assert [call[:2] for call in calls(mod)] == [
        ("pack_linear", ["w"]),
        ("expert_linear", ["g", "pack_linear", "r"]),
    ]
    (spec,) = specs(mod, "expert_linear")
    assert spec["residual"]


@pytest.mark.parametrize(
    ("target", "given"),
    [
        (Target(), {}),  # that has no such kernel
        (TARGET, {"combined": False}),
        (TARGET, {"read_twice": True}),
    ],
)
def test_what_stays(target, given):
    mod = FuseExperts(target)(before(**given))
    assert [op for op, _, _ in calls(mod)][:2] == ["expert_linear", "add"]
