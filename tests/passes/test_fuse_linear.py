"""FuseLinear: what goes into a linear, and what stays."""

from tvm import relax

from wherry.ops.tags import PACK
from wherry.passes.fuse_linear import FuseLinear

from .fused import Target, calls, function, specs

ROWS = relax.TensorType((5, 8), "float32")
SCRATCH = ((("m",), "float32"),)
NORM_EPS = 1e-5


def before(read_twice=False):
    """add(r, linear(swiglu(linear(rms_norm(x)))))."""
    wide = relax.TensorType((5, 16), "float32")
    x, r, w, first, second = (
        relax.Var(name, ty)
        for name, ty in {
            "x": ROWS,
            "r": ROWS,
            "w": relax.TensorType((8,), "float32"),
            "first": relax.TensorType((16, 8), "float32"),
            "second": relax.TensorType((8, 8), "float32"),
        }.items()
    )
    builder = relax.BlockBuilder()
    with builder.function("forward", [x, r, w, first, second]):
        with builder.dataflow():
            up = builder.add_func(function("linear", out=16), "up")
            gate = builder.add_func(function("swiglu", dim=8), "swiglu")
            down = builder.add_func(function("linear", out=8), "down")
            z = builder.emit(relax.op.nn.rms_norm(x, w, axes=[-1], epsilon=NORM_EPS))
            h = builder.emit(relax.call_tir(up, [z, first], out_ty=wide))
            g = builder.emit(relax.call_tir(gate, [h], out_ty=ROWS))
            y = builder.emit(relax.call_tir(down, [g, second], out_ty=ROWS))
            out = relax.op.add(r, y)
            if read_twice:
                out = relax.op.multiply(builder.emit(out), y)
            out = builder.emit_output(out)
        builder.emit_func_output(out)
    return builder.get()


def test_norm_gate_and_residual_go_into_their_linears():
    mod = FuseLinear(Target(fused_linear={"scratch": SCRATCH}))(before())
    (op, args, ty), (last, last_args, _) = calls(mod)
    assert (op, args) == ("fused_linear", ["x", "w", "first"])
    assert [tuple(map(int, t.shape)) for t in ty.fields] == [(5, 8), (5,)]  # and the scratch
    assert (last, last_args) == ("fused_linear", ["fused_linear[0]", "second", "r"])


def test_the_spec_says_what_was_fused():
    seen_specs = []

    def accepts(_op, spec):
        seen_specs.append(spec)
        return True

    FuseLinear(Target(accepts, fused_linear={}))(before())
    floats = {"x_dtype": "float32", "y_dtype": "float32"}
    gated = {"out": 16, "norm_eps": NORM_EPS, "gated": True, "residual": False} | floats
    summed = {"out": 8, "norm_eps": None, "gated": False, "residual": True} | floats
    assert seen_specs[1] == gated and seen_specs[-1] == summed


def test_a_result_that_is_read_elsewhere_stays():
    fused = calls(FuseLinear(Target(fused_linear={}))(before(read_twice=True)))
    assert [op for op, _, _ in fused] == ["fused_linear", "fused_linear", "add", "multiply"]


def test_what_the_target_has_not_stays():
    only_plain = Target(
        lambda _, spec: not spec["gated"] and spec["norm_eps"] is None, fused_linear={}
    )
    ops = [op for op, _, _ in calls(FuseLinear(only_plain)(before()))]
    assert ops == ["rms_norm", "fused_linear", "swiglu", "fused_linear"]
    nothing = FuseLinear(Target())(before())
    assert [op for op, _, _ in calls(nothing)] == ["rms_norm", "linear", "swiglu", "linear", "add"]
    assert [spec["out"] for spec in specs(nothing, "linear")] == [16, 8]


def test_weights_of_a_layout_of_their_own_are_packed_once_each():
    packed = {"packed": ((32,), "uint32"), "pack": function(), "scratch": SCRATCH}
    mod = FuseLinear(Target(fused_linear=packed))(before())
    listed = calls(mod)
    assert [(op, args) for op, args, _ in listed] == [
        ("pack_linear", ["first"]),  # one function of weights alone, because their shape is one
        ("fused_linear", ["x", "w", "pack_linear"]),
        ("pack_linear", ["second"]),
        ("fused_linear", ["fused_linear[0]", "pack_linear", "r"]),
    ]
    assert PACK in mod["pack_linear"].attrs
