"""SelectKernels: replace references by the target's kernels, and pack weights for them.

    def forward(..., w_q, w_scale):                  def forward(..., w_packed):
      y = call_tir(linear, (x, w_q, w_scale))          y = call_tir(kernel, (x, w_packed))

                                                     def pack_0(w_q, w_scale):
                                                       return call_tir(pack, (w_q, w_scale))

Runs in the lower phase. A kernel has the reference's signature, so only the callee changes; where
the target packs weights, a parameter of `forward` changes too, and a function `pack_i` computes it
from the stored tensors (one function for each kind of packing, whatever the number of layers). A
weight that two operations share is packed once. A linear, the addition of its bias and an
activation of the sum become one kernel, where the target has it (`biased_linears.py`). The module's
attribute `wherry.params` lists the parameters of `forward` after the pass, in order, as the
metadata of a library does (docs/design/compiled-library.md).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, TypeGuard, cast

from tvm import IRModule, ir, relax, tirx
from tvm.relax.expr_functor import PyExprMutator, mutator
from tvm_ffi import structural_hash

from wherry.ops.tags import PACK, tag_of

from .biased_linears import BiasedLinears
from .kernels import Answers, Fused, Kernels, Packed, is_tir_call, sizes_of, with_scratch
from .schedule_rest import IS_SCHEDULED
from .uses import uses_of

PARAMS = "wherry.params"


@ir.transform.module_pass(opt_level=0, name="SelectKernels")
class SelectKernels:
    """Pass that replaces reference PrimFuncs by the target's kernels, and packs weights for them.

    Args:
        kernels: the target's kernels.
        stored: weight name -> dtype on disk; a weight that `forward` reads in another dtype gets a
            `pack_i` that casts it.
    """

    def __init__(self, kernels: Kernels, stored: Mapping[str, str]) -> None:
        self.kernels = kernels
        self.stored = stored

    def transform_module(self, mod: IRModule, _ctx: ir.transform.PassContext) -> IRModule:
        """Rewrite `forward`, add the `pack_i`, and drop unused functions."""
        rewriter = _Rewriter(mod, self.kernels)
        (var,) = [v for v in mod.get_global_vars() if v.name_hint == "forward"]
        forward = rewriter.visit_expr(mod[var])
        inputs = int(forward.attrs["num_input"])
        builder = relax.BlockBuilder(rewriter.builder_.get())
        packing = _Packing(builder, self.stored)
        params = list(forward.params[:inputs])
        used = {
            v.name
            for v in relax.analysis.free_vars(forward.body)
            if isinstance(v, relax.Var)  # free variables also include symbolic sizes
        }
        for param in forward.params[inputs:]:
            if param.name in used:
                params.append(packing.keep(param))
        for packed in rewriter.packed.values():
            params += packing.pack(packed)
        builder.update_func(
            var,
            relax.Function(params, forward.body, forward.ret_ty, forward.is_pure, forward.attrs),
        )
        mod = builder.get().with_attr(PARAMS, json.dumps(packing.entries))
        entries = ["forward", *packing.functions]
        return relax.transform.DeadCodeElimination(entries)(mod)


class _Computed:
    """A packing call from the fuse phase: it reads weights alone, and has one result."""

    def __init__(self, pack: tirx.PrimFunc, ty: relax.TensorType) -> None:
        self.weights = ((tuple(int(d) for d in ty.shape), str(ty.dtype)),)
        self.pack = pack
        self.compute = pack  # not called: the fused kernel reads the packed tensor
        self.inputs = 0


def _wants_memory(answer: Any) -> TypeGuard[Fused]:
    return hasattr(answer, "scratch")


class _PackedWeight:
    """Stored parameters of a weight, and the variables of `forward` that replace them."""

    def __init__(self, stored: list[relax.Var], how: Packed) -> None:
        self.stored = stored
        self.how = how
        base, _, name = stored[0].name.rpartition(".")
        # row range "[first:stop]" in the name of a matrix that was split
        rows = name[name.index("[") :] if "[" in name else ""
        self.variables = [
            relax.Var(f"{base}.packed_{i}{rows}", relax.TensorType(shape, dtype))
            for i, (shape, dtype) in enumerate(how.weights)
        ]


@mutator
class _Rewriter(PyExprMutator):
    def __init__(self, mod: IRModule, kernels: Kernels) -> None:
        super().__init__(mod)
        self.mod = mod
        self.answers = Answers(self.builder_, kernels)
        # names of stored tensors -> packed weight
        self.packed: dict[tuple[str, ...], _PackedWeight] = {}
        self.uses: dict[relax.Var, int] = {}
        self.linears = BiasedLinears(self.answers)

    def visit_function_(self, func: relax.Function) -> relax.Expr:
        self.uses = uses_of(func)
        return super().visit_function_(func)

    def visit_var_binding_(self, binding: relax.VarBinding) -> None:
        super().visit_var_binding_(binding)
        if self.uses.get(binding.var, 0) == 1:
            self.linears.bind(self.visit_expr(binding.var))

    def visit_call_(self, call: relax.Call) -> relax.Expr:
        ty, call = call.ty, super().visit_call_(call)
        tagged = tag_of(self.mod[call.args[0]]) if is_tir_call(call) else None
        biased = self.linears.visit(call, tagged)
        if biased is not None:
            how, args = biased
            args[how.inputs :] = self._packed(args[how.inputs :], how).variables
            var = self.builder_.add_func(how.compute, "biased_linear_kernel")
            return relax.call_tir(var, args, out_ty=ty)
        if not is_tir_call(call):
            return call
        name = call.args[0].name_hint
        args = list(call.args[1].fields)
        attrs = self.mod[name].attrs or {}
        if PACK in attrs:
            how = _Computed(self.mod[name].without_attr(PACK), call.ty_args[0])
            (variable,) = self._packed(args, how).variables
            return variable
        # Kernels from the fuse phase are scheduled and stay as they are.
        tagged = None if IS_SCHEDULED in attrs else tag_of(self.mod[name])
        answer = self.answers.kernel(*tagged) if tagged else None
        if answer is None:
            return call
        if _wants_memory(answer):
            var = self.builder_.add_func(answer.compute, f"{name}_kernel")
            if answer.pack is not None:
                assert answer.packed, "a packing makes something"
                how = _Computed(answer.pack, relax.TensorType(*answer.packed))
                args[answer.inputs :] = self._packed(args[answer.inputs :], how).variables
            ty = call.ty_args[0]
            sizes = sizes_of(args[0], ty)
            return with_scratch(self.builder_, var, answer, args, ty, sizes)
        if isinstance(answer, tirx.PrimFunc):
            compute = answer
        else:
            packed = cast("Packed", answer)
            args[packed.inputs :] = self._packed(args[packed.inputs :], packed).variables
            compute = packed.compute
        var = self.builder_.add_func(compute, f"{name}_kernel")
        return relax.Call(
            call.op, [var, relax.Tuple(args), *call.args[2:]], call.attrs, call.ty_args
        )

    def _packed(self, stored: list[relax.Var], how: Packed) -> _PackedWeight:
        key = tuple(v.name for v in stored)
        known = self.packed.setdefault(key, _PackedWeight(stored, how))
        assert known.how.weights == how.weights, f"{key} would be packed in two ways"
        return known


class _Packing:
    """Collects the parameters of `forward` and the functions that compute them."""

    def __init__(self, builder: relax.BlockBuilder, stored: Mapping[str, str]) -> None:
        self.builder = builder
        self.stored = stored
        self.entries: list[dict[str, Any]] = []
        # name of a `pack_i` function -> description of its packing
        self.functions: dict[str, str] = {}
        self._known: dict[Any, str] = {}

    def keep(self, param: relax.Var) -> relax.Var:
        """Return a parameter that is not packed, cast if it is stored in another dtype."""
        dtype = self.stored[param.name]
        entry = self._entry(param, [param.name])
        if dtype != param.ty.dtype:
            source = relax.Var("stored", relax.TensorType(param.ty.shape, dtype))
            key = (tuple(int(d) for d in param.ty.shape), dtype, str(param.ty.dtype))
            entry["pack"] = self._function(
                key, [source], lambda b: b.emit(relax.op.astype(source, param.ty.dtype))
            )
        return param

    def pack(self, weight: _PackedWeight) -> list[relax.Var]:
        """Return the parameters that replace a weight which the target packs."""
        how = weight.how
        dtypes = [self.stored[v.name] for v in weight.stored]
        sources = [
            relax.Var(f"stored_{i}", relax.TensorType(v.ty.shape, dtype))
            for i, (v, dtype) in enumerate(zip(weight.stored, dtypes, strict=True))
        ]
        types = [v.ty for v in weight.variables]

        def body(b: relax.BlockBuilder) -> relax.Var:
            var = b.add_func(how.pack, "pack")
            arguments = [
                s if v.ty.dtype == dtype else b.emit(relax.op.astype(s, v.ty.dtype))
                for s, v, dtype in zip(sources, weight.stored, dtypes, strict=True)
            ]
            return b.emit(relax.call_tir(var, arguments, types if len(types) > 1 else types[0]))

        name = self._function((structural_hash(how.pack), *dtypes), sources, body)
        for i, variable in enumerate(weight.variables):
            entry = self._entry(variable, [v.name for v in weight.stored])
            entry["pack"] = name
            if len(weight.variables) > 1:
                entry["index"] = i
        return weight.variables

    def _entry(self, param: relax.Var, sources: list[str]) -> dict[str, Any]:
        entry: dict[str, Any] = {
            "name": param.name,
            "shape": [int(d) for d in param.ty.shape],
            "dtype": str(param.ty.dtype),
            "from": sources,
        }
        self.entries.append(entry)
        return entry

    def _function(self, key: Any, params: list[relax.Var], body: Any) -> str:
        if key not in self._known:
            name = self._known[key] = f"pack_{len(self._known)}"
            with self.builder.function(name, params):
                with self.builder.dataflow():
                    result = self.builder.emit_output(body(self.builder))
                self.builder.emit_func_output(result)
            self.functions[name] = name
        return self._known[key]
