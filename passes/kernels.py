"""The interface between passes and a target's kernels."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from tvm import IRModule, ir, relax, tirx
from tvm.relax.expr_functor import PyExprMutator

from wherry.ops.tags import PACK, tag

OPAQUE = 8  # TVM's kOpaque pattern: excluded from all fusion
# A size of scratch memory: a number, the name of one of the call's sizes, or a function of these.
Size = int | str | Callable[[Mapping[str, Any]], Any]


class Packed(Protocol):
    """Kernel of one operation, with a weight layout of the target's own."""

    @property
    def weights(self) -> tuple[tuple[tuple[int, ...], str], ...]:
        """Return shape and dtype of each packed tensor."""

    @property
    def pack(self) -> tirx.PrimFunc:
        """Return the packing PrimFunc (*stored, *packed), destination-passing.

        It runs once, at a model's first load.
        """

    @property
    def compute(self) -> tirx.PrimFunc:
        """Return the PrimFunc of the operation, with packed tensors in the place of stored ones."""

    @property
    def inputs(self) -> int:
        """Return the number of arguments before the weights."""


class Fused(Protocol):
    """Kernel of several fused operations."""

    @property
    def compute(self) -> tirx.PrimFunc:
        """Return the PrimFunc; its last parameters are the outputs, then the scratch tensors."""

    @property
    def scratch(self) -> tuple[tuple[tuple[Size, ...], str], ...]:
        """Return shape and dtype of each scratch tensor."""

    @property
    def joined(self) -> bool:
        """Return whether an attention takes the norms of q and k as one parameter [2, e]."""

    @property
    def packed(self) -> tuple[tuple[int, ...], str] | None:
        """Return shape and dtype of the packed weights; None: the kernel reads stored tensors."""

    @property
    def inputs(self) -> int:
        """Return the number of arguments before the weights."""

    @property
    def pack(self) -> tirx.PrimFunc | None:
        """Return the packing PrimFunc (*stored, packed), destination-passing; None: no packing.

        It runs once, at a model's first load.
        """


class Kernels(Protocol):
    """Interface of a target's own kernels."""

    def kernel(self, op: str, spec: str) -> Any:
        """Return the target's kernel for `op`; None: the target has none.

        For an operation with a reference, a PrimFunc of its signature or a `Packed`; for an
        operation without one ("fused_linear", ...), a `Fused`. `spec` is the JSON of the
        operation's tag. The weights of an operation that may be packed are its last inputs, after
        `Packed.inputs` others.
        """

    def schedule(self, func: tirx.PrimFunc) -> tirx.PrimFunc:
        """Schedule a PrimFunc that has no schedule yet."""


class Answers:
    """Cache of a target's kernels, and of the module's functions that call them.

    Each kernel is requested from the target once. A spec is the JSON of a tag, or the mapping that
    it is written from.
    """

    def __init__(self, builder: relax.BlockBuilder, kernels: Kernels) -> None:
        self._builder = builder
        self._kernels = kernels
        self._known: dict[tuple[str, str], Any] = {}
        self._functions: dict[tuple[str, str], ir.GlobalVar] = {}

    def kernel(self, op: str, spec: str | Mapping[str, Any]) -> Any:
        """Return the target's kernel for `op`, as `Kernels.kernel`, from the cache."""
        key = (op, _text(spec))
        if key not in self._known:
            self._known[key] = self._kernels.kernel(*key)
        return self._known[key]

    def function(
        self, op: str, spec: Mapping[str, Any], name: str = ""
    ) -> tuple[ir.GlobalVar, Fused] | None:
        """Add the target's kernel to the module as a function, tagged for later passes.

        Returns None if there is no kernel. The function is called `name`, or like the operation.
        """
        kernel, key = self.kernel(op, spec), (op, _text(spec))
        if kernel is None:
            return None
        if key not in self._functions:
            func = tag(kernel.compute, op, spec)
            self._functions[key] = self._builder.add_func(func, name or op)
        return self._functions[key], kernel


def _text(spec: str | Mapping[str, Any]) -> str:
    return spec if isinstance(spec, str) else json.dumps(spec, sort_keys=True)


TIR_CALLS = tuple(ir.Op.get(f"relax.{name}") for name in ("call_tir", "call_tir_inplace"))


def is_tir_call(expr: relax.Expr) -> bool:
    """Return whether `expr` calls a PrimFunc, in place or not."""
    return isinstance(expr, relax.Call) and expr.op in TIR_CALLS


def with_scratch(
    builder: relax.BlockBuilder,
    var: ir.GlobalVar,
    kernel: Fused,
    args: Sequence[relax.Expr],
    ty: relax.TensorType,
    sizes: Mapping[str, Any],
) -> relax.Expr:
    """Emit a call of `kernel`; return its result of type `ty`.

    `var` is the kernel's function in the builder's module; `sizes` are the values of the sizes that
    `kernel.scratch` names.
    """
    scratch = scratch_types(kernel, sizes)
    if not scratch:
        return relax.call_tir(var, list(args), out_ty=ty)
    results = builder.emit(relax.call_tir(var, list(args), out_ty=[ty, *scratch]))
    return relax.TupleGetItem(results, 0)


def scratch_types(kernel: Fused, sizes: Mapping[str, Any]) -> list[relax.TensorType]:
    """Return the tensor types of the scratch memory of `kernel`."""

    def value(size: Size) -> Any:
        if callable(size):
            return size(sizes)
        return sizes[size] if isinstance(size, str) else size

    return [relax.TensorType([*map(value, shape)], dtype) for shape, dtype in kernel.scratch]


def sizes_of(x: relax.Expr, ty: relax.TensorType) -> dict[str, Any]:
    """Return the sizes of a call whose first argument is `x` and whose result has type `ty`."""
    rows = ty.shape[0]
    return {"n": rows, "m": rows, "x": x.ty.shape[0]}


class Packings:
    """The calls that pack weights into a kernel's own layout, one per weight.

    The pass SelectKernels moves these calls out of the step.
    """

    def __init__(self, builder: relax.BlockBuilder) -> None:
        self._builder = builder
        self._known: dict[tuple[relax.Expr, ...], relax.Expr] = {}

    def packed(self, kernel: Fused, stored: Sequence[relax.Expr]) -> list[relax.Expr]:
        """Return the weights in the layout that `kernel` reads; emit a packing call if needed."""
        if kernel.pack is None:
            return list(stored)
        assert kernel.packed, "a packing makes something"
        key = tuple(stored)
        if key not in self._known:
            func = kernel.pack.with_attrs({PACK: True, "op_pattern": OPAQUE})
            var = self._builder.add_func(func, "pack_linear")
            call = relax.call_tir(var, list(stored), out_ty=relax.TensorType(*kernel.packed))
            self._known[key] = self._builder.emit(call)
        return [self._known[key]]


def rewritten(mod: IRModule, rewriter: PyExprMutator) -> IRModule:
    """Return `mod` with every Relax function rewritten, and without unused functions."""
    for var, func in mod.functions_items():
        if isinstance(func, relax.Function):
            rewriter.builder_.update_func(var, rewriter.visit_expr(func))
    return relax.transform.DeadCodeElimination()(rewriter.builder_.get())
