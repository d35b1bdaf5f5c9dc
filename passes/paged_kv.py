"""PagedKV: store keys and values in pages, which the engine assigns.

    def forward(tokens, positions, sequences, query_indptr, logit_rows, w):
      o = call_dps_packed("wherry.attention", (spec, qkv, positions, sequences, query_indptr))

    def forward(tokens, ..., query_indptr, page_indptr_0, page_ids_0, logit_rows, state_0, w):
      pages, q = rope_append(qkv, positions, sequences, page_indptr_0, page_ids_0, state_0)
      o = attention(q, positions, sequences, query_indptr, page_indptr_0, page_ids_0, pages)

Runs first in the attach phase. Each group of layers gets a page table, each layer that owns a cache
a tensor of pages, updated in place; a layer that shares a cache reads its owner's (`kv_cache.py`).
The rows' positions on the axes of M-RoPE follow the page table of `rope_append`, the last ones that
rows attend to that of `attention`; weights of the norms of q and k go before the former's pages,
sinks and biases before the latter's. A layer's cross-attention reads the tensor of the arguments,
which another entry has filled. Pages of hidden states (`models/drafts/mtp.py`) are written and read
likewise.

In a module of several entries, an entry whose first use of the cache is `kept_hidden` starts with
the tensors of the arguments; the other entries' updates are not in its past.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tvm import IRModule, ir, relax, tirx
from tvm.relax.expr_functor import PyExprMutator, mutator

from wherry.ops import INTEGERS, AttentionShape, AttentionSpec, RopeAppendSpec
from wherry.ops.tags import CACHED_ATTENTION, KEEP_HIDDEN, KEPT_HIDDEN

from .kernels import rewritten
from .kv_cache import HIDDEN, PAGE_SIZE, KVCache
from .references.hidden import keep_hidden, kept_hidden
from .references.paged import attention, rope_append

CALL = ir.Op.get("relax.call_dps_packed")


def cached_attentions(mod: IRModule) -> Iterator[AttentionShape]:
    """Yield the spec of each attention of `forward`, in order."""
    for block in mod["forward"].body.blocks:
        for binding in block.bindings:
            if _extern(binding.value) == CACHED_ATTENTION:
                yield _shape(binding.value)


def kept_size(mod: IRModule) -> int:
    """Return the size of the hidden state that `forward` keeps of each token; 0: it keeps none."""
    for block in mod["forward"].body.blocks:
        for binding in block.bindings:
            if _extern(binding.value) == KEEP_HIDDEN:
                return int(binding.var.ty.shape[1])
    return 0


def _extern(expr: relax.Expr) -> str | None:
    """Return the name of the external function that `expr` calls; None: it calls none."""
    is_call = isinstance(expr, relax.Call) and expr.op == CALL
    return str(expr.args[0].global_symbol) if is_call else None


def _shape(call: relax.Call) -> AttentionShape:
    return AttentionShape.from_json(str(call.args[1].fields[0].value))


@ir.transform.module_pass(opt_level=0, name="PagedKV")
class PagedKV:
    """Pass that turns attention over whole sequences into attention over a paged KV cache."""

    def __init__(self, cache: KVCache) -> None:
        self.cache = cache

    def transform_module(self, mod: IRModule, _ctx: ir.transform.PassContext) -> IRModule:
        """Rewrite `forward`."""
        (var,) = [v for v in mod.get_global_vars() if v.name_hint == "forward"]
        arguments = _Arguments(self.cache)
        added = arguments.added(mod[var])
        # A variable of its own: `var` keeps its type, against which calls would be checked.
        forward = ir.GlobalVar(var.name_hint)
        relax.expr._update_type(forward, added.ty)
        others = {v: f for v, f in mod.functions_items() if v != var}
        mod = IRModule({**others, forward: added}, attrs=mod.attrs, global_infos=mod.global_infos)
        return rewritten(mod, _Rewriter(mod, self.cache, arguments))


class _Arguments:
    """Parameters that the pass adds to `forward`: page tables, then the KV cache tensors."""

    def __init__(self, cache: KVCache) -> None:
        tables = [
            relax.Var(name, relax.TensorType([tirx.Var(size, "int64")], "int32"))
            for name, size in cache.tables().items()
        ]
        self.tables = list(
            zip(tables[::2], tables[1::2], strict=True)
        )  # two arrays, indptr and ids, per cache group
        # Groups have different numbers of pages: those with a window need fewer.
        counts = {own.group: tirx.Var(f"pages_{own.group}", "int64") for own in cache.state}
        owners = [(layer, own) for own in cache.state for layer in own.layers]
        self.pages = {
            layer: relax.Var(
                f"state_{i}",
                relax.TensorType([counts[own.group], *own.page_shape], own.dtype),
            )
            for i, (layer, own) in enumerate(owners)
        }
        self.group_of = {layer: own.group for layer, own in owners}

    def added(self, func: relax.Function) -> relax.Function:
        """Return `func` with the page tables and cache tensors as additional parameters."""
        first_weight = int(func.attrs["num_input"])
        inputs = list(func.params[:first_weight])
        tables = [var for table in self.tables for var in table]
        if tables:
            (place,) = [i for i, param in enumerate(inputs) if param.name == "logit_rows"]
            inputs = [*inputs[:place], *tables, *inputs[place:], *self.pages.values()]
        params = [*inputs, *func.params[first_weight:]]
        extended = relax.Function(params, func.body, func.ret_ty, func.is_pure, func.attrs)
        return extended.with_attr("num_input", len(inputs))


@mutator
class _Rewriter(PyExprMutator):
    def __init__(self, mod: IRModule, cache: KVCache, arguments: _Arguments) -> None:
        super().__init__(mod)
        self.cache = cache
        self.tables, self.group_of = arguments.tables, arguments.group_of
        self.arguments = arguments
        # layer index -> its pages after the last append
        self.pages: dict[int, relax.Expr] = dict(arguments.pages)

    def visit_call_(self, call: relax.Call) -> relax.Expr:
        call = super().visit_call_(call)
        name = _extern(call)
        if name == KEEP_HIDDEN:
            return self._keep_hidden(call)
        if name == KEPT_HIDDEN:
            return self._kept_hidden(call)
        if name != CACHED_ATTENTION:
            return call
        shape = _shape(call)
        _, qkv, positions, sequences, query_indptr, *weights = call.args[1].fields
        axes, weights = (weights[:1], weights[1:]) if shape.axes else ([], weights)
        bounds, weights = (weights[:1], weights[1:]) if shape.last_visible else ([], weights)
        norms, extras = (
            (weights[:2], weights[2:]) if shape.qk_norm_eps is not None else ([], weights)
        )
        table = self.tables[self.group_of[shape.cache]]
        sinks = len(extras) > (shape.reach is not None)
        rope, spec = specs(shape, self.pages[shape.cache], self.cache, sinks=sinks)
        if shape.cross and not shape.appends:
            q = self._heads(rope, qkv)
        else:
            q = self._append(rope, qkv, [positions, sequences, *table, *axes, *norms], shape)
        if shape.appends:
            return relax.op.reshape(q, call.ty.shape)
        rows = [q, positions, sequences, query_indptr, *table]
        var = self.builder_.add_func(attention(spec, qkv.ty.dtype), "attention")
        args = [*rows, *bounds, *extras, self.pages[shape.cache]]
        out = self.builder_.emit(relax.call_tir(var, args, out_ty=q.ty))
        return relax.op.reshape(out, call.ty.shape)

    def _keep_hidden(self, call: relax.Call) -> relax.Expr:
        """Emit a write of hidden states; return them."""
        x, positions, sequences = call.args[1].fields
        args = [x, positions, sequences, *self.tables[0], self.pages[HIDDEN]]
        func = keep_hidden(int(x.ty.shape[1]), PAGE_SIZE, x.ty.dtype, args[-1].ty.dtype)
        var = self.builder_.add_func(func, "keep_hidden")
        places, types = [len(args) - 1, -1], [args[-1].ty, x.ty]
        both = self.builder_.emit(relax.call_tir_inplace(var, relax.Tuple(args), places, types))
        self.pages[HIDDEN] = self.builder_.emit(relax.TupleGetItem(both, 0))
        return relax.TupleGetItem(both, 1)

    def _kept_hidden(self, call: relax.Call) -> relax.Expr:
        """Return a read of the hidden states of the rows before those of the step."""
        positions, sequences, *after = call.args[1].fields
        if not after:
            self.pages = dict(self.arguments.pages)
        args = [positions, sequences, *self.tables[0], self.pages[HIDDEN]]
        (ty,) = call.ty_args
        func = kept_hidden(int(ty.shape[1]), PAGE_SIZE, ty.dtype, args[-1].ty.dtype)
        return relax.call_tir(self.builder_.add_func(func, "kept_hidden"), args, out_ty=ty)

    def _heads(self, rope: RopeAppendSpec, qkv: relax.Expr) -> relax.Expr:
        """Emit the reshape of qkv to heads, [n, qkv_heads, e]."""
        shape = (qkv.ty.shape[0], rope.qkv_heads, rope.head_dim)
        return self.builder_.emit(relax.op.reshape(qkv, shape))

    def _append(
        self, rope: RopeAppendSpec, qkv: relax.Expr, args: list[relax.Expr], shape: AttentionShape
    ) -> relax.Expr:
        """Emit `rope_append`; return the rotated Q [n, h, e].

        `self.pages` then has the pages with K and V of the new rows, which cross-attention in
        another entry does not have in its past.
        """
        n, dtype = qkv.ty.shape[0], qkv.ty.dtype
        args = [self._heads(rope, qkv), *args, self.pages[shape.cache]]
        types = [args[-1].ty, relax.TensorType([n, rope.heads, rope.head_dim], dtype)]
        var = self.builder_.add_func(rope_append(rope, dtype), "rope_append")
        places = [len(args) - 1, -1]
        both = self.builder_.emit(relax.call_tir_inplace(var, relax.Tuple(args), places, types))
        pages = self.builder_.emit(relax.TupleGetItem(both, 0))
        if not shape.cross:
            self.pages[shape.cache] = pages
        return self.builder_.emit(relax.TupleGetItem(both, 1))


def specs(
    shape: AttentionShape, pages: relax.Expr, cache: KVCache, *, sinks: bool
) -> tuple[RopeAppendSpec, AttentionSpec]:
    """Return the specs of RoPE-append and attention that replace `shape` over `pages`."""
    common: dict[str, Any] = {
        "heads": shape.heads,
        "kv_heads": shape.kv_heads,
        "head_dim": shape.head_dim,
        "page_size": PAGE_SIZE,
        "kv_dtype": cache.dtype,
        "planes": 2 if cache.dtype in INTEGERS else int(pages.ty.shape[1]),
        "words": cache.words and cache.dtype in INTEGERS,
    }
    rope = RopeAppendSpec(
        **common,
        rotary_dim=2 * len(shape.inv_freq),
        inv_freq=shape.inv_freq,
        axes=shape.axes,
        scaling=shape.rope_scaling,
        qk_norm_eps=shape.qk_norm_eps,
        norm_last=shape.norm_last,
        v_norm=shape.v_norm,
        kv=shape.kv,
    )
    return rope, AttentionSpec(
        **common,
        scale=shape.scale,
        window=shape.window,
        softcap=shape.softcap,
        slopes=shape.slopes,
        reach=shape.reach,
        sinks=sinks,
        last_visible=shape.last_visible,
    )
