"""NarrowActivations: store activations between the target's own kernels in float16.

    h = fused_linear(x, norm, W1)   # float32        h = fused_linear(x, norm, W1)   # float16
    y = fused_linear(h, W2, x)      # float32        y = fused_linear(h, W2, x)      # float32

    qkv = fused_linear(x, norm, W)  # float32        qkv = fused_linear(x, norm, W)  # float16
    pages, o = paged_attention(qkv, pages)           pages, o = paged_attention(qkv, pages)
    y = fused_linear(o, Wo, x)      # o: float32     y = fused_linear(o, Wo, x)      # o: float16

Runs at the end of the fuse phase, for targets whose activations are float16. Kernels compute in
float32 whatever they read and write. The residual stream stays float32: it exceeds 65504 in some
models, and its small numbers matter next to its large ones. Results of `forward`, tensors that
other operations read, and linears of experts without a float16 kernel stay float32, too.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

from tvm import IRModule, ir, relax
from tvm.relax.expr_functor import PyExprMutator, mutator

from wherry.ops.tags import tag_of

from .kernels import Answers, Kernels, is_tir_call, rewritten, scratch_types, sizes_of
from .schedule_rest import IS_SCHEDULED

RESHAPE = ir.Op.get("relax.reshape")
HALF = "float16"


@dataclass(frozen=True, slots=True)
class _Floats:
    """Fields of a kernel's spec that give the dtypes of its first argument and of its result."""

    place: int  # index of the float16 result among the call's results
    read: tuple[str, ...]
    written: tuple[str, ...]
    inside: tuple[tuple[str, ...], ...] = ()  # spec fields with the dtypes of intermediate values


KERNELS = {
    "fused_linear": _Floats(0, ("x_dtype",), ("y_dtype",)),
    "expert_linear": _Floats(0, ("x_dtype",), ("y_dtype",)),
    "paged_attention": _Floats(1, ("qkv_dtype",), ("out_dtype",)),
    "qkv_attention": _Floats(
        1,
        ("linear", "x_dtype"),
        ("attention", "out_dtype"),
        (("linear", "y_dtype"), ("attention", "qkv_dtype")),
    ),
}


@ir.transform.module_pass(opt_level=0, name="NarrowActivations")
class NarrowActivations:
    """Pass that stores activations between the target's own kernels in float16."""

    def __init__(self, kernels: Kernels) -> None:
        self.kernels = kernels

    def transform_module(self, mod: IRModule, _ctx: ir.transform.PassContext) -> IRModule:
        """Rewrite every Relax function of `mod`."""
        return rewritten(mod, _Rewriter(mod, self.kernels))


def _has_half(answers: Answers, op: str, spec: dict[str, Any], path: tuple[str, ...]) -> bool:
    """Return whether the target has the kernel of `spec` with float16 at `path`.

    Only expert linears are asked: every other kernel has a float16 variant.
    """
    if op != "expert_linear":
        return True
    half = deepcopy(spec)
    _set(half, path, HALF)
    return answers.kernel(op, half) is not None


class _Flow:
    """The bindings that write and read each variable of a function."""

    def __init__(self, mod: IRModule, func: relax.Function, answers: Answers) -> None:
        self.mod = mod
        self.answers = answers
        self.bindings = [b for block in func.body.blocks for b in block.bindings]
        self.reads: dict[relax.Var, list[relax.VarBinding]] = {}
        self.counts = _occurrences(func.body.body)
        for binding in self.bindings:
            for var, count in _occurrences(binding.value).items():
                self.reads.setdefault(var, []).append(binding)
                self.counts[var] += count

    def kernel(self, expr: relax.Expr) -> tuple[str, dict[str, Any]] | None:
        """Return name and spec of the kernel that `expr` calls; None: it calls none."""
        return _kernel(self.mod, expr)

    def results(self) -> Iterator[tuple[relax.Var, relax.Var]]:
        """Yield (variable of the call, variable of its result) where a kernel can write float16."""
        for binding in self.bindings:
            kernel = self.kernel(binding.value)
            if kernel is None or kernel[1].get("residual"):
                continue
            if not _has_half(self.answers, *kernel, KERNELS[kernel[0]].written):
                continue
            if not isinstance(binding.var.ty, relax.TupleType):
                yield binding.var, binding.var
                continue
            for element in self.reads.get(binding.var, []):
                taken = element.value
                place = KERNELS[kernel[0]].place
                if isinstance(taken, relax.TupleGetItem) and taken.index == place:
                    yield binding.var, element.var

    def only_kernels_read(self, var: relax.Var) -> bool:
        """Return whether only kernels that accept float16 read `var`, directly or reshaped."""
        readers = self.reads.get(var, [])
        # the function returns the variable, or one call reads it twice
        if len(readers) != self.counts[var]:
            return False
        return all(self._takes(reader, var) for reader in readers)

    def _takes(self, reader: relax.VarBinding, var: relax.Var) -> bool:
        call = reader.value
        if isinstance(call, relax.Call) and call.op == RESHAPE:
            return self.only_kernels_read(reader.var)
        kernel = self.kernel(call)
        if kernel is None or not call.args[1].fields[0].same_as(var):
            return False
        return _has_half(self.answers, *kernel, KERNELS[kernel[0]].read)


@mutator
class _Rewriter(PyExprMutator):
    def __init__(self, mod: IRModule, kernels: Kernels) -> None:
        super().__init__(mod)
        self.mod = mod
        self.answers = Answers(self.builder_, kernels)
        self.writers: set[relax.Var] = set()  # variables of calls whose results become float16

    def visit_function_(self, func: relax.Function) -> relax.Expr:
        flow = _Flow(self.mod, func, self.answers)
        self.writers = {call for call, result in flow.results() if flow.only_kernels_read(result)}
        return super().visit_function_(func)

    def visit_var_binding_(self, binding: relax.VarBinding) -> None:
        kernel = _kernel(self.mod, binding.value)
        if kernel is None:
            super().visit_var_binding_(binding)
            return
        narrow = binding.var in self.writers
        call = self.builder_.normalize(self._call(*kernel, binding.value, narrow))
        if narrow or _several(call):  # the result's type changes
            self.set_var_remap(binding.var, self.builder_.emit(call))
        else:
            # an output variable must be rebound to one of the same class
            var = self.visit_var_def(binding.var)
            self.builder_.emit_normalized(relax.VarBinding(var, call))

    def _call(self, op: str, spec: dict[str, Any], call: relax.Call, narrow: bool) -> relax.Call:
        """Return the call with the new dtypes of its first argument and its result."""
        args = [self.visit_expr(a) for a in call.args[1].fields]
        floats, before = KERNELS[op], deepcopy(spec)
        _set(spec, floats.read, str(args[0].ty.dtype))
        _set(spec, floats.written, HALF if narrow else "float32")
        for path in floats.inside:
            _set(spec, path, HALF)
        if spec == before:
            callee = [call.args[0], relax.Tuple(args), *call.args[2:]]
            return relax.Call(call.op, callee, call.attrs, call.ty_args)
        known = self.answers.function(op, spec, f"half_{op}")
        assert known is not None, f"{op} {spec}: a target of float16 has kernels in both dtypes"
        var, kernel = known
        types = list(call.ty_args[0].fields) if _several(call) else [call.ty_args[0]]
        if narrow:
            types[floats.place] = relax.TensorType(types[floats.place].shape, HALF)
        first = len(types) - len(kernel.scratch)
        if op.endswith("linear"):  # scratch memory of linears depends on the dtypes
            types[first:] = scratch_types(kernel, sizes_of(args[0], types[0]))
        types[first:] = [
            relax.TensorType(ty.shape, dtype)
            for ty, (_, dtype) in zip(types[first:], kernel.scratch, strict=True)
        ]
        if call.op.name.endswith("inplace"):
            places = [int(i) for i in call.attrs.inplace_indices]
            return relax.call_tir_inplace(var, relax.Tuple(args), places, types)
        return relax.call_tir(var, args, out_ty=types if _several(call) else types[0])


def _kernel(mod: IRModule, expr: relax.Expr) -> tuple[str, dict[str, Any]] | None:
    tagged = tag_of(mod[expr.args[0]]) if is_tir_call(expr) else None
    if tagged is None or tagged[0] not in KERNELS:
        return None
    if tagged[0] == "expert_linear" and IS_SCHEDULED not in mod[expr.args[0]].attrs:
        return None  # a reference PrimFunc, which has no float16 variant
    return tagged[0], json.loads(tagged[1])


def _several(call: relax.Call) -> bool:
    return isinstance(call.ty_args[0], relax.TupleType)


def _set(spec: dict[str, Any], path: tuple[str, ...], dtype: str) -> None:
    for name in path[:-1]:
        spec = spec[name]
    spec[path[-1]] = dtype


def _occurrences(expr: relax.Expr) -> Counter[relax.Var]:
    """Count how often each variable occurs in an expression."""
    counts: Counter[relax.Var] = Counter()

    def count(part: relax.Expr) -> None:
        if isinstance(part, relax.Var):
            counts[part] += 1

    relax.analysis.post_order_visit(expr, count)
    return counts
