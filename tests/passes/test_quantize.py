"""Quantize: linears, tables and experts of a plan with several schemes, parts of a matrix."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict

from tvm import relax, te, tirx
from tvm.ir import assert_structural_equal

from wherry.compiler.library.references import REFERENCES
from wherry.models.blocks.expert_reference import expert_linear
from wherry.models.blocks.experts import FLOATS
from wherry.ops import ExpertLinearSpec
from wherry.passes.quantize import Quantization, Quantize, stored_dtypes
from wherry.quant.plan import parts
from wherry.quant.scheme import EXACT, find, record

D, VOCAB, EXPERTS = 64, 96, 3
PLAN = {
    "embed.weight": find("q8f16_1"),
    "up.weight": find("q4f16_1"),
    "router.weight": EXACT,
    "experts.weight": find("q4f16_1"),
}
SHAPES = {
    "embed.weight": (VOCAB, D),
    "norm.weight": (D,),
    "up.weight": (D, D),
    "router.weight": (EXPERTS, D),
    "experts.weight": (EXPERTS, D, D),
}
# What the plan makes of them, in order.
STORED = {
    "embed.q_weight": ((VOCAB, 16), "uint32"),
    "embed.q_scale": ((VOCAB, 2), "float16"),
    "norm.weight": ((D,), "float32"),
    "up.q_weight": ((D, 8), "uint32"),
    "up.q_scale": ((D, 2), "float16"),
    "router.weight": ((EXPERTS, D), "float32"),
    "experts.q_weight": ((EXPERTS, D, 8), "uint32"),
    "experts.q_scale": ((EXPERTS, D, 2), "float16"),
}
EACH = {"experts": EXPERTS, "top_k": EXPERTS, "out_features": D, "in_features": D, "routed": False}
FLOAT = ExpertLinearSpec(scheme="f32", **EACH)


def variables(shapes: dict) -> dict[str, relax.Var]:
    return {n: relax.Var(n, relax.TensorType(s, d)) for n, (s, d) in shapes.items()}


class Function:
    """A function `forward` with the tied table as the head, too."""

    def __init__(self, weights: dict) -> None:
        n = tirx.Var("n", "int64")
        self.n, self.builder = n, relax.BlockBuilder()
        self.tokens = relax.Var("tokens", relax.TensorType([n], "int32"))
        self.v = variables(weights)

    def finished(self, emit: Callable[[Function], relax.Expr]) -> object:
        params = [self.tokens, *self.v.values()]
        with self.builder.function("forward", params, {"num_input": 1}):
            with self.builder.dataflow():
                out = self.builder.emit_output(emit(self))
            self.builder.emit_func_output(out)
        return self.builder.get()

    def call(self, name: str, func: tirx.PrimFunc, args: list, columns: int) -> relax.Expr:
        var = self.builder.add_func(func, name)
        ty = relax.TensorType([self.n, columns], "float32")
        return self.builder.emit(relax.call_tir(var, args, out_ty=ty))


def before(f: Function) -> relax.Expr:
    """Results of every kind of layer, of float weights."""

    def linear(x, name):
        return f.builder.emit(relax.op.matmul(x, relax.op.permute_dims(f.v[name])))

    x = f.builder.emit(relax.op.take(f.v["embed.weight"], f.tokens, axis=0))
    x = f.builder.emit(relax.op.multiply(x, f.v["norm.weight"]))
    y = linear(x, "up.weight")
    route = linear(y, "router.weight")
    weight = te.placeholder(SHAPES["experts.weight"], "float32", "weight")
    func = expert_linear(asdict(FLOAT), FLOATS, [weight], "float32")
    z = f.call("expert_linear", func, [y, f.v["experts.weight"]], D)
    return relax.Tuple([route, linear(z, "embed.weight")])


def after(f: Function) -> relax.Expr:
    """The same, of what the plan's schemes store."""

    def stored(name):
        return [var for own, var in f.v.items() if own.startswith(name)]

    def linear(x, name, rows):
        func = REFERENCES.linear(PLAN[f"{name}.weight"], rows, D, "float32")
        return f.call("linear", func, [x, *stored(name)], rows)

    func = REFERENCES.embedding(PLAN["embed.weight"], VOCAB, D, "float32")
    x = f.call("embedding", func, [f.tokens, *stored("embed")], D)
    x = f.builder.emit(relax.op.multiply(x, f.v["norm.weight"]))
    y = linear(x, "up", D)
    route = linear(y, "router", EXPERTS)
    spec = ExpertLinearSpec(**EACH, **PLAN["experts.weight"].kernel_spec())
    func = REFERENCES.expert_linear(PLAN["experts.weight"], spec.to_json(), "float32")
    z = f.call("expert_linear", func, [y, *stored("experts")], D)
    return relax.Tuple([route, linear(z, "embed", VOCAB)])


def quantization(**fields) -> Quantization:
    return Quantization(plan=PLAN, references=REFERENCES, **fields)


FLOATING = {name: (shape, "float32") for name, shape in SHAPES.items()}


def test_every_layer_reads_what_its_own_scheme_stores():
    quantized = Quantize(quantization())(Function(FLOATING).finished(before))
    assert_structural_equal(quantized, Function(STORED).finished(after), map_free_vars=True)
    assert [p.name for p in quantized["forward"].params] == ["tokens", *STORED]
    relax.analysis.well_formed(quantized)  # raises at the first violation


def test_the_dtypes_on_disk_are_known_before_the_pass():
    dtypes = stored_dtypes(Function(FLOATING).finished(before), quantization())
    expected = {name: dtype for name, (_, dtype) in STORED.items()} | {"norm.weight": None}
    assert list(dtypes.items()) == [(name, expected[name]) for name in STORED]


def test_a_matrix_that_a_target_cannot_bind_becomes_several():
    mod = Function(FLOATING).finished(before)
    quantized = Quantize(quantization(most_bytes=64 * 64))(mod)
    relax.analysis.well_formed(quantized)  # raises at the first violation
    names = [p.name for p in quantized["forward"].params]
    assert names[1:5] == [
        f"embed.q_{kind}[{rows}]" for rows in ("0:64", "64:96") for kind in ("weight", "scale")
    ]
    assert "up.q_weight" in names and "experts.q_weight" in names  # a stack is never cut
    functions = [v.name_hint for v in quantized.get_global_vars()]
    assert sum(name.startswith("embedding") for name in functions) == 2
    assert {"own_tokens", "own_rows"} <= {name.rstrip("0123456789") for name in functions}


def test_rows_of_a_matrix_in_several_schemes():
    """The results of a linear's parts are joined; of a table, each token reads its own part."""
    own = {
        "up.weight": parts("up.weight", [(32, find("q8f16_1")), (32, record("Q5_1"))]),
        "embed.weight": parts("embed.weight", [(64, find("q4f16_1")), (32, record("Q8_0"))]),
        "norm.weight": parts("norm.weight", [(D, EXACT)]),
    }
    quantized = Quantize(quantization(own=own))(Function(FLOATING).finished(before))
    relax.analysis.well_formed(quantized)  # raises at the first violation
    names = {p.name: p for p in quantized["forward"].params}
    parameters = [name for name in names if name.startswith(("up", "embed", "norm"))]
    assert parameters == [
        *("embed.0.q_weight", "embed.0.q_scale", "embed.1.q_weight", "embed.1.q_scale"),
        "norm.weight",
        *("up.0.q_weight", "up.0.q_scale"),
        *("up.1.q_weight", "up.1.q_high", "up.1.q_scale", "up.1.q_min"),
    ]
    assert [int(d) for d in names["up.1.q_high"].ty.shape] == [32, D // 32]
    text = quantized["forward"].script()
    assert text.count("R.concat") == 2  # `up`, and the table as the head
    dtypes = stored_dtypes(Function(FLOATING).finished(before), quantization(own=own))
    assert (dtypes["up.1.q_min"], dtypes["norm.weight"]) == ("float16", None)


def experts(names: dict, emit: Callable) -> object:
    """A function with experts of two matrices, a gate and biases, of which a row takes two."""
    f = Function(names)
    n, builder = f.n, f.builder
    given = {
        "ids": ([n, 2], "int32"),
        "starts": ([EXPERTS + 1], "int32"),
        "slots": ([2 * n], "int32"),
        "x": ([n, D], "float32"),
    }
    inputs = {name: relax.Var(name, relax.TensorType(*ty)) for name, ty in given.items()}
    with builder.function("forward", [*inputs.values(), *f.v.values()], {"num_input": 4}):
        with builder.dataflow():
            args = [inputs[name] for name in ("x", "ids", "starts", "slots")]
            out = builder.emit_output(emit(f, args))
        builder.emit_func_output(out)
    return builder.get()


def test_experts_whose_gate_is_in_another_scheme():
    """Each half is multiplied by itself, and the gate is computed from both."""
    common = {"experts": EXPERTS, "top_k": 2, "in_features": D, "bias": True}
    fused = ExpertLinearSpec(scheme="f32", out_features=2 * D, gate="silu", **common)
    bias = {"experts.bias": ((EXPERTS, 2 * D), "float32")}
    both = (find("q8f16_1"), find("q4f16_1"))

    def call(f, name, func, args, columns):
        var = f.builder.add_func(func, name)
        ty = relax.TensorType([2 * f.n, columns], "float32")
        return relax.call_tir(var, args, out_ty=ty)

    def floats(f, args):
        weight = te.placeholder((EXPERTS, 2 * D, D), "float32", "weight")
        func = expert_linear(asdict(fused), FLOATS, [weight], "float32")
        stored = [f.v["experts.bias"], f.v["experts.weight"]]
        return call(f, "expert_linear", func, [*args, *stored], D)

    def apart(f, args):
        results = []
        for i, scheme in enumerate(both):
            own = ExpertLinearSpec(out_features=D, **common, **scheme.kernel_spec())
            cut = relax.op.strided_slice(f.v["experts.bias"], [1], [i * D], [(i + 1) * D])
            stored = [f.builder.emit(cut)]
            stored += [v for name, v in f.v.items() if name.startswith(f"experts.{i}.")]
            func = REFERENCES.expert_linear(scheme, own.to_json(), "float32")
            one = call(f, "expert_linear", func, [*args, *stored], D)
            results.append(f.builder.emit(one))
        joined = f.builder.emit(relax.op.concat(results, axis=-1))
        return call(
            f, "expert_gate", REFERENCES.expert_gate(fused.to_json(), "float32"), [joined], D
        )

    stored = {
        f"experts.{i}.{t.name.rpartition('.')[2]}": (t.shape, t.dtype)
        for i, scheme in enumerate(both)
        for t in scheme.stored("x.weight", (EXPERTS, D, D))
    }
    before = experts(bias | {"experts.weight": ((EXPERTS, 2 * D, D), "float32")}, floats)
    own = parts("experts.weight", [(D, scheme) for scheme in both])
    rewrite = Quantize(Quantization(plan={}, references=REFERENCES, own={"experts.weight": own}))
    after = experts(bias | stored, apart)
    assert_structural_equal(rewrite(before), after, map_free_vars=True)
