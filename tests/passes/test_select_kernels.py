"""SelectKernels: kernels in place of references, weights packed once."""

import json

import pytest
from tvm import relax, tirx
from tvm.ir import assert_structural_equal
from tvm.script import tirx as T

from wherry.ops.tags import tag
from wherry.passes.kernels import is_tir_call
from wherry.passes.select_kernels import PARAMS, SelectKernels

X = relax.TensorType((4, 2), "float32")
W = relax.TensorType((2, 2), "float16")
PACKED = relax.TensorType((2, 2), "float32")


@T.prim_func(private=True, s_tir=True)
def plain(x: T.Buffer((4, 2)), w: T.Buffer((2, 2), "float16"), y: T.Buffer((4, 2))):
    for i, j, k in T.grid(4, 2, 2):
        with T.sblock("y"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                y[vi, vj] = T.float32(0)
            y[vi, vj] = y[vi, vj] + x[vi, vk] * T.Cast("float32", w[vj, vk])


@T.prim_func(private=True, s_tir=True)
def fast(x: T.Buffer((4, 2)), w: T.Buffer((2, 2)), y: T.Buffer((4, 2))):
    for i, j, k in T.grid(4, 2, 2):
        with T.sblock("y"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                y[vi, vj] = T.float32(0)
            y[vi, vj] = y[vi, vj] + x[vi, vk] * w[vk, vj]


@T.prim_func(private=True, s_tir=True)
def transpose(w: T.Buffer((2, 2), "float16"), packed: T.Buffer((2, 2))):
    for i, j in T.grid(2, 2):
        with T.sblock("packed"):
            vi, vj = T.axis.remap("SS", [i, j])
            packed[vi, vj] = T.Cast("float32", w[vj, vi])


class Packed:
    weights = (((2, 2), "float32"),)
    pack = transpose
    compute = fast
    inputs = 1


class Kernels:
    """A target with one kernel."""

    def kernel(self, op, spec):
        assert op == "linear" and json.loads(spec) == {"k": 2}
        return Packed()

    def schedule(self, func):
        return func


REFERENCE = tag(plain, "linear", {"k": 2})


def before(weights=("a.weight", "b.weight")):
    """Two layers; the same weight twice if the names are equal."""
    x = relax.Var("x", X)
    params = {name: relax.Var(name, W) for name in weights}
    builder = relax.BlockBuilder()
    with builder.function("forward", [x, *params.values()], attrs={"num_input": 1}):
        with builder.dataflow():
            var = builder.add_func(REFERENCE, "linear")
            y = x
            for name in weights:
                y = builder.emit(relax.call_tir(var, [y, params[name]], out_ty=X))
            out = builder.emit_output(y)
        builder.emit_func_output(out)
    return builder.get()


def expected():
    x = relax.Var("x", X)
    params = [relax.Var(n, PACKED) for n in ("a.packed_0", "b.packed_0")]
    builder = relax.BlockBuilder()
    with builder.function("forward", [x, *params], attrs={"num_input": 1}):
        with builder.dataflow():
            var = builder.add_func(fast, "linear_kernel")
            y = x
            for param in params:
                y = builder.emit(relax.call_tir(var, [y, param], out_ty=X))
            out = builder.emit_output(y)
        builder.emit_func_output(out)
    stored = relax.Var("stored_0", W)
    with builder.function("pack_0", [stored]):
        with builder.dataflow():
            var = builder.add_func(transpose, "pack")
            packed = builder.emit(relax.call_tir(var, [stored], out_ty=PACKED))
            out = builder.emit_output(packed)
        builder.emit_func_output(out)
    return builder.get()


STORED = {"a.weight": "float16", "b.weight": "float16"}


def test_before_and_after():
    after = SelectKernels(Kernels(), STORED)(before())
    params = json.loads(str(after.attrs[PARAMS]))
    assert_structural_equal(after.without_attr(PARAMS), expected(), map_free_vars=True)
    assert params == [
        {
            "name": f"{layer}.packed_0",
            "shape": [2, 2],
            "dtype": "float32",
            "from": [f"{layer}.weight"],
            "pack": "pack_0",
        }
        for layer in "ab"
    ]


def test_a_shared_weight_is_packed_once():
    after = SelectKernels(Kernels(), STORED)(before(("a.weight", "a.weight")))
    assert [p["name"] for p in json.loads(str(after.attrs[PARAMS]))] == ["a.packed_0"]
    assert len(after["forward"].params) == 2


def test_without_a_kernel_the_reference_stays_and_the_weight_is_cast():
    class None_(Kernels):
        def kernel(self, op, spec):
            return None

    stored = {"a.weight": "float32", "b.weight": "float16"}
    after = SelectKernels(None_(), stored)(before())
    first, second = json.loads(str(after.attrs[PARAMS]))
    assert first["pack"] == "pack_0" and "pack" not in second  # float32 on disk, float16 wanted
    assert isinstance(after["linear"], tirx.PrimFunc)


@pytest.mark.cpu
def test_the_result_is_the_same():
    import numpy as np
    import tvm

    def run(mod, *arrays):
        vm = relax.VirtualMachine(tvm.compile(mod, "llvm"), tvm.cpu())
        return vm["forward"](*[tvm.runtime.tensor(a) for a in arrays]).numpy()

    rng = np.random.default_rng(0)
    x, a, b = (rng.normal(size=s).astype("float32") for s in ((4, 2), (2, 2), (2, 2)))
    a, b = a.astype("float16"), b.astype("float16")
    slow = run(before(), x, a, b)
    after = SelectKernels(Kernels(), STORED)(before()).without_attr(PARAMS)
    quick = run(after, x, a.T.astype("float32"), b.T.astype("float32"))
    np.testing.assert_allclose(quick, slow, rtol=1e-6)


BIAS = relax.TensorType((2,), "float32")
RELU = {"dim": 2, "kind": "relu", "gated": False}


@T.prim_func(private=True, s_tir=True)
def relu(x: T.Buffer((4, 2)), y: T.Buffer((4, 2))):
    for i, j in T.grid(4, 2):
        with T.sblock("y"):
            vi, vj = T.axis.remap("SS", [i, j])
            y[vi, vj] = T.max(x[vi, vj], T.float32(0))


@T.prim_func(private=True, s_tir=True)
def biased(x: T.Buffer((4, 2)), b: T.Buffer((2,)), w: T.Buffer((2, 2)), y: T.Buffer((4, 2))):
    for i, j, k in T.grid(4, 2, 2):
        with T.sblock("y"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                y[vi, vj] = b[vj]
            y[vi, vj] = y[vi, vj] + x[vi, vk] * w[vk, vj]


class RecordingTarget:
    """A target with a biased linear, without an activation; `specs` are those that it heard of."""

    def __init__(self, activations=(None,)):
        self.activations, self.specs = activations, []

    def kernel(self, op, spec):
        if op != "biased_linear":
            return Packed() if op == "linear" else None
        self.specs.append(json.loads(spec))
        if self.specs[-1]["activation"] not in self.activations:
            return None
        return type("Biased", (Packed,), {"compute": biased, "inputs": 2})()


def layer(*, reads_twice=False, bias=BIAS):
    """relu(x W + b), whose first sum may have another reader."""
    x, w, b = relax.Var("x", X), relax.Var("a.weight", W), relax.Var("a.bias", bias)
    builder = relax.BlockBuilder()
    with builder.function("forward", [x, w, b], attrs={"num_input": 1}):
        with builder.dataflow():
            linear = builder.add_func(REFERENCE, "linear")
            activation = builder.add_func(tag(relu, "activation", RELU), "activation")
            h = builder.emit(relax.call_tir(linear, [x, w], out_ty=X))
            y = builder.emit(relax.op.add(h, b))
            y = builder.emit(relax.call_tir(activation, [y], out_ty=X))
            out = builder.emit_output(relax.op.add(y, h) if reads_twice else y)
        builder.emit_func_output(out)
    return builder.get()


def called(mod):
    """The functions that `forward` calls, in order."""
    values = [b.value for block in mod["forward"].body.blocks for b in block.bindings]
    return [v.args[0].name_hint for v in values if is_tir_call(v)]


BOTH = {"a.weight": "float16", "a.bias": "float32"}


def test_a_bias_and_an_activation_go_into_the_kernel():
    kernels = RecordingTarget((None, "relu"))
    after = SelectKernels(kernels, BOTH)(layer())
    assert called(after) == ["biased_linear_kernel"]
    assert kernels.specs == [{"k": 2, "activation": a} for a in (None, "relu")]
    names = [p["name"] for p in json.loads(str(after.attrs[PARAMS]))]
    assert names == ["a.bias", "a.packed_0"]


def test_an_activation_without_such_a_kernel_stays():
    after = SelectKernels(RecordingTarget(), BOTH)(layer())
    assert called(after) == ["biased_linear_kernel", "activation"]


@pytest.mark.parametrize(
    "mod", [layer(reads_twice=True), layer(bias=relax.TensorType((1,), "float32"))]
)
def test_what_is_no_bias_or_has_another_reader_stays(mod):
    kernels = RecordingTarget()
    after = SelectKernels(kernels, BOTH)(mod)
    assert called(after)[0] == "linear_kernel" and not kernels.specs
