"""NarrowActivations: what kernels alone hand to each other is float16, all else is not."""

import json

import pytest
from tvm import relax

from wherry.passes.narrow_activations import NarrowActivations
from wherry.passes.schedule_rest import IS_SCHEDULED

from .fused import calls, function, specs

FLAT, HEADS = (5, 16), (5, 4, 4)
F32 = {"x_dtype": "float32", "y_dtype": "float32"}
ATTENTION = {"qkv_dtype": "float32", "out_dtype": "float32"}
PAGES = (9, 2, 1, 16, 4)


class Target:
    """Has every kernel, with memory of its own; `missing(op, spec)`: but this."""

    def __init__(self, missing=lambda op, spec: False):
        self.missing = missing

    def kernel(self, op, spec):
        fields = json.loads(spec)
        if self.missing(op, fields):
            return None
        inner = fields["linear"]["y_dtype"] if op == "qkv_attention" else "float32"
        scratch = ((("n", 3), inner),) if not op.endswith("linear") else ()
        return type("Kernel", (), {"compute": function(op, **fields), "scratch": scratch})()


def ty(shape, dtype="float32"):
    return relax.TensorType(shape, dtype)


def layer(builder, x, pages, *, joined=False, read=None):
    """x + W o(attention(W x)); `read` makes something else of qkv, too."""
    linear = builder.add_func(function("fused_linear", **F32, residual=False), "linear")
    last = builder.add_func(function("fused_linear", **F32, residual=True), "last")
    if joined:
        spec = {"linear": F32, "attention": ATTENTION}
        attend, given = builder.add_func(function("qkv_attention", **spec), "attend"), x
    else:
        attend = builder.add_func(function("paged_attention", **ATTENTION), "attend")
        qkv = builder.emit(relax.call_tir(linear, [x], out_ty=ty(FLAT)))
        given = builder.emit(relax.op.reshape(qkv, HEADS))
    out_types = [pages.ty, ty(HEADS), ty((5, 3))]
    call = relax.call_tir_inplace(attend, relax.Tuple([given, pages]), [1, -1, -1], out_types)
    out = builder.emit(relax.TupleGetItem(builder.emit(call), 1))
    out = builder.emit(relax.op.reshape(out, FLAT))
    y = builder.emit(relax.call_tir(last, [out, x], out_ty=ty(FLAT)))
    return builder.emit(relax.op.add(y, read(qkv))) if read else y


def narrowed(**options):
    x, pages = relax.Var("x", ty(FLAT)), relax.Var("pages", ty(PAGES, "float16"))
    builder = relax.BlockBuilder()
    with builder.function("forward", [x, pages]):
        with builder.dataflow():
            y = layer(builder, x, pages, **options)
            head = builder.add_func(function("fused_linear", **F32, residual=False), "head")
            y = builder.emit_output(relax.call_tir(head, [y], out_ty=ty((5, 20))))
        builder.emit_func_output(y)
    return NarrowActivations(Target())(builder.get())


def dtypes(result):
    return [t.dtype for t in (result.fields if isinstance(result, relax.TupleType) else [result])]


def test_between_kernels_is_float16_and_the_sum_is_not():
    mod = narrowed()
    written = [(op, dtypes(result)) for op, _, result in calls(mod)]
    assert written == [
        ("fused_linear", ["float16"]),
        ("paged_attention", ["float16", "float16", "float32"]),  # pages, result, its own memory
        ("fused_linear", ["float32"]),
        ("fused_linear", ["float32"]),  # is returned
    ]
    linears = [(s["x_dtype"], s["y_dtype"]) for s in specs(mod, "fused_linear")]
    single, half = "float32", "float16"
    assert linears == [(single, half), (half, single), (single, single)]
    assert specs(mod, "paged_attention") == [{"qkv_dtype": half, "out_dtype": half}]


def test_what_a_kernel_keeps_for_itself_is_float16_too():
    mod = narrowed(joined=True)
    (spec,) = specs(mod, "qkv_attention")
    half = {"qkv_dtype": "float16", "out_dtype": "float16"}
    assert spec == {"linear": {"x_dtype": "float32", "y_dtype": "float16"}, "attention": half}
    assert dtypes(calls(mod)[0][2]) == ["float16", "float16", "float16"]


@pytest.mark.parametrize("read", [relax.op.tanh, lambda qkv: qkv], ids=["operation", "view"])
def test_what_others_read_stays(read):
    mod = narrowed(read=read)
    assert specs(mod, "paged_attention") == [{"qkv_dtype": "float32", "out_dtype": "float16"}]
    assert dtypes(calls(mod)[0][2]) == ["float32"]


def experts(target, *, scheduled=True):
    """x + down(up(x)), linears of experts that the fuse phase has made kernels, or has not."""
    x = relax.Var("x", ty(FLAT))
    builder = relax.BlockBuilder()

    def expert_linear(**more):
        func = function("expert_linear", **F32, **more)
        return func.with_attr(IS_SCHEDULED, True) if scheduled else func

    with builder.function("forward", [x]):
        with builder.dataflow():
            up = builder.add_func(expert_linear(residual=False), "up")
            down = builder.add_func(expert_linear(residual=True), "down")
            h = builder.emit(relax.call_tir(up, [x], out_ty=ty((10, 4))))
            y = builder.emit_output(relax.call_tir(down, [h, x], out_ty=ty(FLAT)))
        builder.emit_func_output(y)
    return NarrowActivations(target)(builder.get())


def test_what_experts_hand_on():
    single, half = "float32", "float16"
    for scheduled, between in ((True, half), (False, single)):
        mod = experts(Target(), scheduled=scheduled)
        assert [dtypes(result) for _, _, result in calls(mod)] == [[between], [single]]
        linears = [(s["x_dtype"], s["y_dtype"]) for s in specs(mod, "expert_linear")]
        assert linears == [(single, between), (between, single)]


@pytest.mark.parametrize("where", ["x_dtype", "y_dtype"])
def test_experts_of_which_one_has_no_kernel_of_float16(where):
    missing = Target(lambda op, spec: op == "expert_linear" and spec[where] == "float16")
    assert [dtypes(result) for _, _, result in calls(experts(missing))] == [
        ["float32"],
        ["float32"],
    ]
