"""How many kernels a decode step launches, for a browser's limits: counted in the functions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from tvm import ir, relax, tirx
from tvm.ir.expr import Var
from tvm.sym import Analyzer
from tvm_ffi import structural_map

from wherry.compiler.build import Deployment
from wherry.compiler.export import export
from wherry.models import llama, qwen3
from wherry.models.arch import RopeConfig
from wherry.passes.kernels import is_tir_call
from wherry.passes.pipelines import PipelineInputs, phases
from wherry.quant.scheme import find as find_scheme
from wherry.targets import webgpu
from wherry.targets.target import find

from .test_gpu_sources import demands

pytestmark = pytest.mark.cpu
BROWSER, NATIVE = find("webgpu"), find("opencl")
MODELS = {  # module, config, hidden size, heads, head dim
    "llama": (llama, llama.LlamaConfig, 2048, 32, 64),
    "qwen3": (qwen3, qwen3.Qwen3Config, 1024, 16, 128),
}
LAYERS = 28
DECODE = {"n": 1, "r1": 2, "r2": 2, "p": 3, "m": 1, "pages": 9}
PROMPT = DECODE | {"n": 40}


def lowered(name, preset):
    """The module before the link phase."""
    module, config, hidden, heads, head_dim = MODELS[name]
    cfg = config(
        hidden_size=hidden,
        intermediate_size=96,
        num_hidden_layers=LAYERS,
        num_attention_heads=heads,
        num_key_value_heads=8,
        head_dim=head_dim,
        vocab_size=100,
        rope=RopeConfig(),
        tie_word_embeddings=True,
    )
    scheme = find_scheme("q4f16_1")
    program = export(module.ARCH, cfg, scheme, dtype="float32", kv_dtype="float32")
    bounds = Deployment(context=512).bounds()
    mod = program.mod
    for phase, passes in phases(
        PipelineInputs(kernels=preset.kernels, bounds=bounds, stored=program.stored)
    ):
        if phase != "link":
            mod = ir.transform.Sequential(list(passes))(mod)
    return relax.transform.RewriteDataflowReshape()(mod)  # the first of the link phase: views


def calls(mod) -> Iterator[tuple[Any, list[Any]]]:
    """Each call of a PrimFunc in `forward`: the function, and the types of all it is given."""
    for block in mod["forward"].body.blocks:
        for binding in block.bindings:
            call = binding.value
            if is_tir_call(call):
                given = [a.ty for a in call.args[1].fields]
                made = call.ty_args[0]
                made = list(made.fields) if isinstance(made, relax.TupleType) else [made]
                if call.op.name.endswith("inplace"):
                    places = [int(i) for i in call.attrs.inplace_indices]
                    made = [t for t, place in zip(made, places, strict=True) if place < 0]
                yield mod[call.args[0]], given + made


def launches(func, types, sizes) -> int:
    """Kernels that a call launches; `sizes` are the values of the symbolic sizes of `forward`."""
    analyzer, known = Analyzer(), {}

    def value(expr: Any, of: Any) -> int:
        known_here = structural_map(expr, (Var, lambda v: tirx.IntImm(v.ty.dtype, of(v))))
        return int(analyzer.simplify(known_here))

    for param, ty in zip(func.params, types, strict=True):
        for dim, actual in zip(param.ty.shape, ty.shape, strict=True):
            if isinstance(dim, Var):
                known[dim] = value(actual, lambda v: sizes[v.name])

    def count(stmt: Any) -> int:
        kind = type(stmt).__name__
        if kind == "SeqStmt":
            return sum(count(s) for s in stmt.seq)
        if kind == "SBlockRealize":
            return count(stmt.block.body)
        assert kind == "For", stmt
        if stmt.thread_binding is None:  # the host's choice
            return value(stmt.extent, lambda v: known[v]) * count(stmt.body)
        assert "Idx" in stmt.thread_binding.thread_tag, stmt
        return 1

    return count(func.body)


def total(mod, sizes):
    return sum(launches(func, types, sizes) for func, types in calls(mod))


@pytest.mark.parametrize("name", MODELS)
def test_a_token_takes_few_launches(name):
    mod = lowered(name, BROWSER)
    assert total(mod, DECODE) == 4 * LAYERS + 4 <= 120
    assert total(mod, PROMPT) > 4 * LAYERS + 4  # the count does see what the host chooses
    kernels = {hash(func): func for func, _ in calls(mod)}.values()
    found = [part for func in kernels for part in demands(func)]
    assert len(found) > 20
    assert max(buffers for buffers, _ in found) <= webgpu.LIMITS.storage_buffers
    assert max(shared for _, shared in found) <= webgpu.LIMITS.shared_memory_bytes


def test_where_launches_are_cheap_the_linear_stays_apart():
    assert total(lowered("llama", NATIVE), DECODE) == 5 * LAYERS + 4
