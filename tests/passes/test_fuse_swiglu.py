"""FuseSwiGLU: before and after."""

from tvm import relax
from tvm.ir import assert_structural_equal
from tvm.script import ir as I
from tvm.script import relax as R

from wherry.passes.fuse_swiglu import FuseSwiGLU, reference


@I.ir_module
class Before:
    @R.function
    def forward(x: R.Tensor((5, 16), "float32")):
        with R.dataflow():
            halves = R.split(x, 2, axis=-1)
            gate = halves[0]
            up = halves[1]
            out = R.multiply(R.nn.silu(gate), up)
            R.output(out)
        return out


def expected():
    x = relax.Var("x", relax.TensorType((5, 16), "float32"))
    builder = relax.BlockBuilder()
    with builder.function("forward", [x]):
        with builder.dataflow():
            var = builder.add_func(reference(8, "float32"), "swiglu")
            call = relax.call_tir(var, [x], out_ty=relax.TensorType((5, 8), "float32"))
            out = builder.emit_output(call)
        builder.emit_func_output(out)
    return builder.get()


def test_the_halves_of_one_matrix():
    assert_structural_equal(FuseSwiGLU()(Before), expected(), map_free_vars=True)


def test_halves_of_two_matrices_are_left_alone():
    @I.ir_module
    class Two:
        @R.function
        def forward(x: R.Tensor((5, 16), "float32"), z: R.Tensor((5, 16), "float32")):
            with R.dataflow():
                a = R.split(x, 2, axis=-1)
                b = R.split(z, 2, axis=-1)
                gate = a[0]
                up = b[1]
                out = R.multiply(R.nn.silu(gate), up)
                R.output(out)
            return out

    assert [v.name_hint for v in FuseSwiGLU()(Two).get_global_vars()] == ["forward"]
