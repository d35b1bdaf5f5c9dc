"""How many kernels a decode step launches, for a browser's limits: counted in the functions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from tvm import ir, relax, tirx
from tvm.ir.expr import Var
from tvm.sym import Analyzer
from tvm_ffi import structural_map

from wherry.compiler.library.build import Deployment
from wherry.compiler.library.export import export
from wherry.models.arch import RopeConfig
from wherry.models.families import llama, qwen3
from wherry.passes.kernels import is_tir_call
from wherry.passes.pipelines import PipelineInputs, phases
from wherry.quant.scheme import find as find_scheme
from wherry.targets import webgpu
from wherry.targets.target import find

from .test_gpu_sources import demands

pytestmark = pytest.mark.cpu
BROWSER, NATIVE = find("webgpu"), find("opencl")
MODELS = {  # module, config, hidden size, heads, head dim
    "llama": (llama, llama.ARCH.config, 2048, 32, 64),
    "qwen3": (qwen3, qwen3.ARCH.config, 1024, 16, 128),
}
LAYERS = 28
DECODE = {"n": 1, "r1": 2, "r2": 2, "p": 3, "m": 1, "pages_0": 9}
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
    bounds = program.bounds(Deployment(context=512).bounds())
    mod = program.mod
    for phase, passes in phases(
        PipelineInputs(
            quantization=program.quantization,
            cache=program.cache,
            kernels=preset.kernels,
            bounds=bounds,
            stored=program.stored,
        )
    ):
        if phase != "link":
            mod = ir.transform.Sequential(list(passes))(mod)
    return relax.transform.RewriteDataflowReshape()(mod)  # the first of the link phase: views


@pytest.fixture(scope="module")
def native():
    return lowered("llama", NATIVE)


def calls(mod) -> Iterator[tuple[Any, list[Any]]]:
    """Each call of a PrimFunc in `forward`: the function, and the types of all it is given."""
    for block in mod["forward"].body.blocks:
        for binding in block.bindings:
            call = binding.value
            if is_tir_call(call):
                given = [a.ty for a in call.args[1].fields]
                results = call.ty_args[0]
                results = (
                    list(results.fields) if isinstance(results, relax.TupleType) else [results]
                )
                if call.op.name.endswith("inplace"):
                    places = [int(i) for i in call.attrs.inplace_indices]
                    results = [t for t, place in zip(results, places, strict=True) if place < 0]
                yield mod[call.args[0]], given + results


def grids(func, types, sizes) -> list[tuple[int, ...]]:
    """Blocks along the axes of each kernel that a call launches.

    `sizes` are the values of the symbolic sizes of `forward`.
    """
    analyzer, known = Analyzer(), {}

    def value(expr: Any, of: Any) -> int:
        known_here = structural_map(expr, (Var, lambda v: tirx.IntImm(v.ty.dtype, of(v))))
        return int(analyzer.simplify(known_here))

    for param, ty in zip(func.params, types, strict=True):
        for dim, actual in zip(param.ty.shape, ty.shape, strict=True):
            if isinstance(dim, Var):
                known[dim] = value(actual, lambda v: sizes[v.name])

    def walk(stmt: Any) -> list[tuple[int, ...]]:
        kind = type(stmt).__name__
        if kind == "SeqStmt":
            return [grid for s in stmt.seq for grid in walk(s)]
        if kind == "SBlockRealize":
            return walk(stmt.block.body)
        assert kind == "For", stmt
        extent = value(stmt.extent, lambda v: known[v])
        if stmt.thread_binding is None:  # the host's choice
            return walk(stmt.body) * extent
        if "blockIdx" in stmt.thread_binding.thread_tag:
            return [(extent, *grid) for grid in walk(stmt.body)]
        return [()]

    return walk(func.body)


def total(mod, sizes):
    return sum(len(grids(func, types, sizes)) for func, types in calls(mod))


def attention_grids(mod, n, sequences, pages):
    """Of the fused attention of one layer."""
    sizes = DECODE | {"n": n, "r1": sequences + 1, "r2": sequences + 1, "p": pages}
    func, types = next(c for c in calls(mod) if any(len(t.shape) == 5 for t in c[1]))  # pages
    return grids(func, types, sizes)


# Rows, sequences, page ids; launches of: decode rows whole, rope and rows, splits and merge.
STEPS = {
    "a short row": (1, 1, 16, "whole"),
    "a long row": (1, 1, 17, "splits"),
    "a long row among nine": (9, 9, 100 + 8, "splits"),
    "many long rows": (32, 32, 32 * 40, "splits"),
    "more than there is memory for": (32, 32, 2048 * 16, "whole"),
    "a prompt": (40, 1, 30, "rows"),
    "a prompt and a row": (40, 2, 100, "rows splits"),
    "much more, with a prompt": (400, 32, 2048 * 16, "rows"),
}


@pytest.mark.parametrize("step", STEPS)
def test_rows_go_to_kernels_for_rows_like_them(step, native):
    """A grid says how many blocks share a step's work: one a split, whatever else is there."""
    n, sequences, pages, kinds = STEPS[step]
    slots = min(pages // 16 + sequences, 2048)
    across = {"whole": [(8, n)], "rows": [(48, n), (8, -(-n // 4))]}
    across["splits"] = [(slots, 8), (32, sequences)]
    expected = [grid for kind in kinds.split() for grid in across[kind]]
    assert attention_grids(native, n, sequences, pages) == expected


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.by_day("llama")
def test_a_token_takes_few_launches(name):
    mod = lowered(name, BROWSER)
    assert total(mod, DECODE) == 4 * LAYERS + 4 <= 120
    assert total(mod, PROMPT) > 4 * LAYERS + 4  # the count does see what the host chooses
    kernels = {hash(func): func for func, _ in calls(mod)}.values()
    launches = [part for func in kernels for part in demands(func)]
    assert len(launches) > 20
    assert max(buffers for buffers, _ in launches) <= webgpu.LIMITS.storage_buffers
    assert max(shared for _, shared in launches) <= webgpu.LIMITS.shared_memory_bytes


def test_where_launches_are_cheap_the_linear_stays_apart(native):
    assert total(native, DECODE) == 5 * LAYERS + 4
