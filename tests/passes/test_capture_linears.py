"""CaptureLinears: linears of the named weights become calls; others, and other readers, stay."""

from __future__ import annotations

from tvm import relax, tirx
from tvm.ir import StringImm, assert_structural_equal

from wherry.passes.capture_linears import CAPTURED, CaptureLinears, linears

D = 64


def built(emit) -> object:
    """A function `forward` of rows x, weights up, down and tied, by `emit(builder, x, weights)`."""
    n, builder = tirx.Var("n", "int64"), relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType([n, D], "float32"))
    weights = [relax.Var(w, relax.TensorType([D, D], "float32")) for w in ("up", "down", "tied")]
    with builder.function("forward", [x, *weights], {"num_input": 1}):
        with builder.dataflow():
            out = builder.emit_output(emit(builder, x, *weights))
        builder.emit_func_output(out)
    return builder.get()


def linear(builder, x, w):
    return builder.emit(relax.op.matmul(x, builder.emit(relax.op.permute_dims(w))))


def read(builder, y, down, tied):
    other = builder.emit(relax.op.multiply(tied, tied))
    return relax.Tuple([linear(builder, y, down), linear(builder, y, tied), other])


def before(builder, x, up, down, tied):
    return read(builder, linear(builder, x, up), down, tied)


def after(builder, x, up, down, tied):
    args = relax.Tuple([StringImm("up"), x])
    ty = relax.TensorType([x.ty.shape[0], D], "float32")
    return read(builder, builder.emit(relax.call_dps_packed(CAPTURED, args, ty)), down, tied)


def no_gate(spec: str, dtype: str) -> object:
    raise AssertionError("there are no experts")


def test_a_named_weight_is_captured_and_others_stay():
    captured = CaptureLinears(["up"], gate=no_gate)(built(before))
    assert_structural_equal(captured, built(after), map_free_vars=True)


def test_linears_are_listed_in_order_without_what_others_read():
    assert linears(built(before)) == ["up", "down"]
