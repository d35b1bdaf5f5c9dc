"""PagedKV: page tables, caches, groups of layers, a shared cache; norms, sinks and latents."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tvm import relax, tirx
from tvm.ir import assert_structural_equal

from wherry.errors import UsageError
from wherry.ops import AttentionShape
from wherry.ops.tags import CACHED_ATTENTION
from wherry.passes.kv_cache import KVCache, KvGroup, State
from wherry.passes.paged_kv import PagedKV, cached_attentions, specs
from wherry.passes.references.paged import attention, rope_append

H, G, E = 4, 2, 8
SHAPE = AttentionShape(cache=0, heads=H, kv_heads=G, head_dim=E, scale=0.5, inv_freq=(1.0, 0.1))
NORMED = replace(SHAPE, cache=1, qk_norm_eps=1e-6)
WINDOWED = replace(SHAPE, window=9)
SHARING = replace(WINDOWED, kv="none")  # reads what layer 0 has written
ROWS = {"positions": "n", "sequences": "n", "query_indptr": "r1"}
TABLE_SIZES = {"page_indptr_0": "r2", "page_ids_0": "p", "page_indptr_1": "r3", "page_ids_1": "p1"}
PAGE = [2, G, 16, E]
HEADS = {"both": H + 2 * G, "none": H}
CACHE = KVCache.of([SHAPE], "float32")


class Function:
    """A function `forward` under construction, whose result is a tuple."""

    def __init__(self, arrays: dict[str, str], state: int, inputs: int) -> None:
        # here a group of layers has one state, and pages of its own number
        pages = [f"pages_{i}" for i in range(state)]
        self.sizes = {s: tirx.Var(s, "int64") for s in (*arrays.values(), *pages)}
        types = {name: relax.TensorType([self.sizes[s]], "int32") for name, s in arrays.items()}
        types |= {
            f"state_{i}": relax.TensorType([self.sizes[count], *PAGE], "float32")
            for i, count in enumerate(pages)
        }
        n = self.sizes["n"]
        types |= {
            f"{kv}_{i}": relax.TensorType([n, HEADS[kv] * E], "float32")
            for i, kv in enumerate(("both", "both", "none"))
        }
        types |= {name: relax.TensorType([E], "float32") for name in ("q_norm", "k_norm")}
        types["sinks"] = relax.TensorType([H], "float32")
        self.v = {name: relax.Var(name, ty) for name, ty in types.items()}
        self.inputs, self.builder = inputs, relax.BlockBuilder()
        self.out = relax.TensorType([n, H * E], "float32")

    def finished(self, layers) -> object:
        with self.builder.function("forward", list(self.v.values()), {"num_input": self.inputs}):
            with self.builder.dataflow():
                outputs = [layer(self) for layer in layers]
                out = self.builder.emit_output(relax.Tuple(outputs))
            self.builder.emit_func_output(out)
        return self.builder.get()


def unpaged(shape, qkv, *weights):
    def emit(f):
        from tvm.ir import StringImm

        args = [StringImm(shape.to_json()), *(f.v[a] for a in (qkv, *ROWS, *weights))]
        return f.builder.emit(relax.call_dps_packed(CACHED_ATTENTION, args, out_ty=f.out))

    return emit


def paged(shape, qkv, group, state, norms=(), sinks=()):
    def emit(f):
        v, b, n = f.v, f.builder, f.sizes["n"]
        pages = v[state]
        rope, spec = specs(shape, pages, CACHE, sinks=bool(sinks))
        table = [v[f"page_indptr_{group}"], v[f"page_ids_{group}"]]
        rows = [v["positions"], v["sequences"]]
        heads = b.emit(relax.op.reshape(v[qkv], (n, rope.qkv_heads, E)))
        args = [heads, *rows, *table, *(v[name] for name in norms), pages]
        var = b.add_func(rope_append(rope), "rope_append")
        types = [pages.ty, relax.TensorType([n, H, E], "float32")]
        places = [len(args) - 1, -1]
        both = b.emit(relax.call_tir_inplace(var, relax.Tuple(args), places, types))
        v[state] = b.emit(relax.TupleGetItem(both, 0))
        q = b.emit(relax.TupleGetItem(both, 1))
        args = [q, *rows, v["query_indptr"], *table, *(v[name] for name in sinks), v[state]]
        var = b.add_func(attention(spec), "attention")
        out = b.emit(relax.call_tir(var, args, out_ty=q.ty))
        return b.emit(relax.op.reshape(out, (n, H * E)))

    return emit


def test_before_and_after():
    before = Function(ROWS | {"logit_rows": "m"}, 0, 4).finished(
        [
            unpaged(WINDOWED, "both_0"),
            unpaged(NORMED, "both_1", "q_norm", "k_norm", "sinks"),
            unpaged(SHARING, "none_2"),
        ]
    )
    cache = KVCache.of(cached_attentions(before), "float32")
    # Layer 1 sees all tokens, so its page table is the first, and its cache.
    expected = Function(ROWS | TABLE_SIZES | {"logit_rows": "m"}, 2, 10).finished(
        [
            paged(WINDOWED, "both_0", 1, "state_1"),
            paged(NORMED, "both_1", 0, "state_0", ("q_norm", "k_norm"), ("sinks",)),
            paged(SHARING, "none_2", 1, "state_1"),
        ]
    )
    after = PagedKV(cache)(before)
    assert_structural_equal(after, relax.transform.DeadCodeElimination()(expected))


@pytest.mark.parametrize(("once", "planes"), [(False, 2), (True, 1)])
def test_latents_are_stored_once_where_kernels_read_them_so(once, planes):
    latent = replace(SHAPE, kv_heads=1, latent=True)
    cache = KVCache.of([latent, replace(latent, cache=1)], "float16", latents_once=once)
    assert cache.groups == (KvGroup(None, (0, 1)),)
    assert cache.state == (State(0, (0, 1), (planes, 1, 16, E), "float16"),)


@pytest.mark.parametrize(
    ("kv_dtype", "words", "width", "dtype"),
    [("int8", False, 28, "int8"), ("int4", False, 20, "uint8"), ("int4", True, 5, "uint32")],
)
def test_integers_are_bytes_or_words(kv_dtype, words, width, dtype):
    cache = KVCache.of([SHAPE], kv_dtype, words=words)
    assert cache.state == (State(0, (0,), (1, G, 16, width), dtype),)


def test_heads_that_int4_cannot_keep():
    with pytest.raises(UsageError, match=r"'int4'.*head_dim 12.*--kv-dtype auto"):
        KVCache.of([replace(SHAPE, head_dim=12)], "int4")
