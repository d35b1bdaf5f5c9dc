"""FuseNorm: before and after."""

from tvm import relax
from tvm.ir import assert_structural_equal
from tvm.script import ir as I
from tvm.script import relax as R

from wherry.passes.fuse_norm import FuseNorm, reference


@I.ir_module
class Before:
    @R.function
    def forward(
        x: R.Tensor((5, 8), "float32"),
        r: R.Tensor((5, 8), "float32"),
        w: R.Tensor((8,), "float32"),
    ):
        with R.dataflow():
            first = R.nn.rms_norm(x, w, axes=[-1], epsilon=1e-5)
            total = R.add(first, r)
            second = R.nn.rms_norm(total, w, axes=[-1], epsilon=1e-5)
            out = R.multiply(total, second)
            R.output(out)
        return out


def expected():
    rows = relax.TensorType((5, 8), "float32")
    x, r = relax.Var("x", rows), relax.Var("r", rows)
    w = relax.Var("w", relax.TensorType((8,), "float32"))
    builder = relax.BlockBuilder()
    with builder.function("forward", [x, r, w]):
        with builder.dataflow():
            alone = builder.add_func(reference(8, 1e-5, "float32", residual=False), "rms_norm")
            first = builder.emit(relax.call_tir(alone, [x, w], out_ty=rows))
            added = builder.add_func(reference(8, 1e-5, "float32", residual=True), "add_rms_norm")
            both = builder.emit(relax.call_tir(added, [first, r, w], out_ty=[rows, rows]))
            total = builder.emit(relax.TupleGetItem(both, 0))
            second = builder.emit(relax.TupleGetItem(both, 1))
            out = builder.emit_output(relax.op.multiply(total, second))
        builder.emit_func_output(out)
    return builder.get()


def test_alone_and_after_a_residual_add():
    assert_structural_equal(FuseNorm()(Before), expected(), map_free_vars=True)


def test_an_add_that_broadcasts_is_left_alone():
    @I.ir_module
    class Bias:
        @R.function
        def forward(x: R.Tensor((5, 8), "float32"), w: R.Tensor((8,), "float32")):
            with R.dataflow():
                total = R.add(x, w)
                out = R.nn.rms_norm(total, w, axes=[-1], epsilon=1e-5)
                R.output(out)
            return out

    names = [v.name_hint for v in FuseNorm()(Bias).get_global_vars()]
    assert sorted(names) == ["forward", "rms_norm"]
