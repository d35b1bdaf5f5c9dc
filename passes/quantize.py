"""Rewrites a float model to read its weights in the layouts of their quantization schemes.

    def forward(tokens, x, w, table):            def forward(tokens, x, w_q, w_scale, table_q, ...):
      t = R.permute_dims(w)
      y = R.matmul(x, t)                           y = linear(x, w_q, w_scale)
      e = R.take(table, tokens, axis=0)            e = embedding(tokens, table_q, table_scale)

It is the first pass. A plan maps each weight to a scheme, so a model may mix schemes, including
unquantized ones. Expert weights are the last argument of an "expert_linear", which the pass
replaces by the reference for the scheme. If a stored tensor of a matrix exceeds the largest buffer
that the target can bind, the pass splits the matrix into ranges of rows, whose names the loader
understands: "lm_head.q_weight[0:76032]". A matrix of which several schemes store different rows has
a part for each, too, whose stored tensors have names of their own; so have experts whose gates are
stored in another scheme than their up projections. Parameters that are not read as
matrices (norms, biases) remain unchanged.

A matrix whose columns are stored in another order (act-order) has that order as its last stored
tensor, and `base`, the scheme of the reordered matrix. The pass reorders x:

      y = linear(take(x, w_order, axis=-1), w_q, w_scale)
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from tvm import IRModule, ir, relax, te, tirx
from tvm.relax.expr_functor import PyExprMutator, mutator

from wherry.ops.tags import tag_of

from .kernels import is_tir_call

# A parameter name for which `Scheme.stored` returns the layout of a matrix.
MATRIX = "linear.weight"
_PERMUTE, _MATMUL, _TAKE = (
    ir.Op.get(f"relax.{name}") for name in ("permute_dims", "matmul", "take")
)


class Scheme(Protocol):
    """The part of the interface of quantization schemes that this pass uses."""

    def stored(self, name: str, shape: tuple[int, ...]) -> Sequence[Any]:
        """Return the tensors that store parameter `name`, as `quant.stored.StoredTensor`."""

    def kernel_spec(self) -> dict[str, Any]:
        """Return the fields of an operation's tag that depend on the scheme."""


class Rows(Protocol):
    """Consecutive rows of a weight that one scheme stores."""

    @property
    def name(self) -> str:
        """Return the name from which the names of the stored tensors are made."""

    @property
    def rows(self) -> int:
        """Return the number of rows."""

    @property
    def scheme(self) -> Any:
        """Return the scheme."""


class References(Protocol):
    """Factory of tagged reference PrimFuncs that read a scheme's stored tensors [rows, ...]."""

    def linear(self, scheme: Any, rows: int, columns: int, dtype: str) -> tirx.PrimFunc:
        """Return a PrimFunc (x dtype [m, columns], *stored) -> dtype [m, rows]."""

    def embedding(self, scheme: Any, rows: int, columns: int, dtype: str) -> tirx.PrimFunc:
        """Return a PrimFunc (tokens int32 [n], *stored) -> dtype [n, columns]."""

    def expert_linear(self, scheme: Any, spec: str, dtype: str) -> tirx.PrimFunc:
        """Return a PrimFunc whose last arguments are the stored tensors.

        `spec` is the JSON of an `ExpertLinearSpec`, which describes the other arguments.
        """

    def expert_gate(self, spec: str, dtype: str) -> tirx.PrimFunc:
        """Return a PrimFunc (y dtype [n, 2 width]) -> dtype [n, width]: the gate of a spec."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantization:
    """The parameters of the pass."""

    plan: Mapping[str, Any]  # scheme of each weight, by parameter name
    references: References
    # Matrices whose rows are stored apart, or in other schemes than the plan's.
    own: Mapping[str, Sequence[Rows]] = field(default_factory=dict)
    # Size of the largest tensor that the target can bind; None: no limit.
    most_bytes: int | None = None

    def tensors(self, name: str, shape: tuple[int, ...]) -> list[_Part]:
        """Return the parts of a matrix [rows, columns] or of experts [experts, rows, columns]."""
        if name not in self.own:
            return self._parts(name, shape, self.plan[name], 0)
        parts: list[_Part] = []
        for own in self.own[name]:
            first = parts[-1].stop if parts else 0
            parts += self._parts(own.name, (*shape[:-2], own.rows, shape[-1]), own.scheme, first)
        assert parts[-1].stop == shape[-2], f"the parts of {name} are not its rows"
        return parts

    def _parts(self, name: str, shape: tuple[int, ...], scheme: Any, first: int) -> list[_Part]:
        """Return the parts of a matrix `name` in one scheme; `first`: its row in the weight."""
        base, stored = name.removesuffix("weight"), scheme.stored(MATRIX, shape)
        matrix_bytes = max(t.nbytes for t in stored)
        ranges = _ranges(shape[-2], matrix_bytes, self.most_bytes if len(shape) == 2 else None)
        shared = {t.name: _variable(t, base, 0, 0, 1) for t in stored if t.shared}

        def variables(start: int, stop: int) -> list[relax.Var]:
            own = {
                t.name: _variable(t, base, start, stop, len(ranges))
                for t in stored
                if t.name not in shared
            }
            return [(shared | own)[t.name] for t in stored]

        return [
            _Part(first + start, first + stop, scheme, variables(start, stop))
            for start, stop in ranges
        ]


@dataclass(frozen=True, slots=True)
class _Part:
    """A range of rows of a matrix, and the variables that store them, in the scheme's order."""

    first: int
    stop: int
    scheme: Any
    stored: list[relax.Var]


def _variable(tensor: Any, base: str, first: int, stop: int, parts: int) -> relax.Var:
    """Return the variable for rows [first, stop) of a stored tensor."""
    name, shape = base + tensor.name.rpartition(".")[2], tuple(tensor.shape)
    if parts > 1:
        name, shape = f"{name}[{first}:{stop}]", (stop - first, *shape[1:])
    return relax.Var(name, relax.TensorType(shape, tensor.dtype))


def _ranges(rows: int, nbytes: int, most_bytes: int | None) -> list[tuple[int, int]]:
    """Return the row ranges [first, stop) of a matrix's parts, in whole tiles of 64 if possible."""
    if most_bytes is None or nbytes <= most_bytes:
        return [(0, rows)]
    each = max(most_bytes // -(-nbytes // rows), 1)
    each = each // 64 * 64 or each
    return [(first, min(first + each, rows)) for first in range(0, rows, each)]


def matrices(mod: IRModule) -> set[str]:
    """Return the names of the parameters that `forward` reads as matrices."""
    func = mod["forward"]
    weights = set(func.params[int(func.attrs["num_input"]) :])
    return {read.name for block in func.body.blocks for read in _read(mod, block, weights)}


def _read(mod: IRModule, block: Any, weights: set[relax.Var]) -> Iterator[relax.Var]:
    """Yield the weights that linear layers, embeddings and experts in a block read."""
    for binding in block.bindings:
        call = binding.value
        if not isinstance(call, relax.Call):
            continue
        if call.op in (_PERMUTE, _TAKE):
            weight = call.args[0]
        elif is_tir_call(call) and _is_of_experts(mod[call.args[0].name_hint]):
            weight = call.args[1].fields[-1]
        else:
            continue
        if weight in weights:
            yield weight


def _is_of_experts(func: Any) -> bool:
    """Return whether a function is the reference of an "expert_linear"."""
    tagged = tag_of(func)
    return tagged is not None and tagged[0] == "expert_linear"


def stored_dtypes(mod: IRModule, quantization: Quantization) -> dict[str, str | None]:
    """Return the parameters of the rewritten `forward`, in order.

    Values are the dtypes of stored tensors, and None for parameters that remain unchanged.
    """
    func, read = mod["forward"], matrices(mod)
    dtypes: dict[str, str | None] = {}
    for param in func.params[int(func.attrs["num_input"]) :]:
        if param.name in read:
            for part in quantization.tensors(param.name, _shape(param)):
                dtypes |= {var.name: str(var.ty.dtype) for var in part.stored}
        else:
            dtypes[param.name] = None
    return dtypes


def _shape(var: relax.Var) -> tuple[int, ...]:
    return tuple(int(d) for d in var.ty.shape)


@ir.transform.module_pass(opt_level=0, name="Quantize")
class Quantize:
    """The pass that the module's docstring describes."""

    def __init__(self, quantization: Quantization) -> None:
        self.quantization = quantization

    def transform_module(self, mod: IRModule, _ctx: ir.transform.PassContext) -> IRModule:
        """Return the module with `forward` rewritten for quantized weights."""
        read, func = matrices(mod), mod["forward"]
        weights = {
            param: self.quantization.tensors(param.name, _shape(param))
            for param in func.params[int(func.attrs["num_input"]) :]
            if param.name in read
        }
        (var,) = [v for v in mod.get_global_vars() if v.name_hint == "forward"]
        rewriter = _Rewriter(mod, weights, self.quantization)
        rewritten = rewriter.visit_expr(func)
        params = [new for old in func.params for new in _replaced(old, weights)]
        rewriter.builder_.update_func(
            var,
            relax.Function(
                params, rewritten.body, rewritten.ret_ty, rewritten.is_pure, rewritten.attrs
            ),
        )
        return relax.transform.DeadCodeElimination()(rewriter.builder_.get())


def _replaced(param: relax.Var, weights: Mapping[relax.Var, list[_Part]]) -> list[relax.Var]:
    """Return the parameters that replace one parameter of `forward`."""
    if param not in weights:
        return [param]
    return list(dict.fromkeys(var for part in weights[param] for var in part.stored))


@mutator
class _Rewriter(PyExprMutator):
    def __init__(
        self, mod: IRModule, weights: dict[relax.Var, list[_Part]], quantization: Quantization
    ) -> None:
        # The float references of experts are removed first, so that the new ones get their names.
        kept = {v: f for v, f in mod.functions_items() if not _is_of_experts(f)}
        super().__init__(IRModule(kept, attrs=mod.attrs))
        self.mod = mod
        self.weights = weights
        self.quantization = quantization
        self.transposed: dict[relax.Var, relax.Var] = {}  # transposed variable -> weight

    def visit_var_binding_(self, binding: relax.VarBinding) -> None:
        value = binding.value
        if isinstance(value, relax.Call) and value.op == _PERMUTE and value.args[0] in self.weights:
            self.transposed[binding.var] = value.args[0]
        else:
            super().visit_var_binding_(binding)

    def visit_call_(self, call: relax.Call) -> relax.Expr:
        weight = self._matrix(call)
        if weight is None:
            return super().visit_call_(call)
        parts = self.weights[weight]
        if call.op == _MATMUL:
            return self._linear(self.visit_expr(call.args[0]), parts, _shape(weight))
        if call.op == _TAKE:
            return self._lookup(self.visit_expr(call.args[1]), parts, _shape(weight), call.ty)
        return self._expert_linear(call, parts)

    def _matrix(self, call: relax.Call) -> relax.Var | None:
        """Return the weight that a linear, embedding or expert call reads; None for other calls."""
        if call.op == _MATMUL:
            return self.transposed.get(call.args[1])
        if call.op == _TAKE:
            read = call.args[0]
        elif is_tir_call(call) and _is_of_experts(self.mod[call.args[0].name_hint]):
            read = call.args[1].fields[-1]
        else:
            return None
        return read if read in self.weights else None

    def _linear(self, x: relax.Expr, parts: list[_Part], shape: tuple[int, ...]) -> relax.Expr:
        """Return x times the transposed weight; the results of its parts are concatenated."""
        dtype, products = str(x.ty.dtype), []
        for part in parts:
            rows = part.stop - part.first
            own, scheme, stored = self._in_order(x, part)
            func = self.quantization.references.linear(scheme, rows, shape[1], dtype)
            var = self.builder_.add_func(func, "linear")
            ty = relax.TensorType([x.ty.shape[0], rows], dtype)
            call = relax.call_tir(var, [own, *stored], out_ty=ty)
            products.append(call if len(parts) == 1 else self.builder_.emit(call))
        return products[0] if len(products) == 1 else relax.op.concat(products, axis=-1)

    def _in_order(self, x: relax.Expr, part: _Part) -> tuple[relax.Expr, Any, list[relax.Var]]:
        """Return x with its columns in the order of a part, and what stores the part's matrix."""
        scheme = getattr(part.scheme, "base", None)
        if scheme is None:
            return x, part.scheme, part.stored
        *stored, order = part.stored
        # with the mode "fast" TVM warns on stderr of indices that are out of bounds
        of_order = relax.op.take(x, order, axis=len(x.ty.shape) - 1, mode="clip")
        taken = self.builder_.emit(of_order)
        return taken, scheme, stored

    def _lookup(
        self, tokens: relax.Expr, parts: list[_Part], shape: tuple[int, ...], ty: Any
    ) -> relax.Expr:
        """Return the embeddings of tokens; each part contributes those of its own rows."""
        embeddings: relax.Expr | None = None
        for part in parts:
            own = tokens
            if len(parts) > 1:
                own = self.builder_.emit(self._computed(_within(part), "own_tokens", tokens))
            rows = part.stop - part.first
            func = self.quantization.references.embedding(
                part.scheme, rows, shape[1], str(ty.dtype)
            )
            var = self.builder_.add_func(func, "embedding")
            call = relax.call_tir(var, [own, *part.stored], out_ty=ty)
            if embeddings is not None:
                args = [tokens, self.builder_.emit(call), embeddings]
                call = self._computed(_from(part.first), "own_rows", *args)
            embeddings = call if part is parts[-1] else self.builder_.emit(call)
        return embeddings

    def _computed(self, func: Callable[..., te.Tensor], name: str, *args: relax.Expr) -> relax.Expr:
        """Return a call to a PrimFunc that is created from a TE function."""
        return self.builder_.call_te(func, *args, primfunc_name_hint=name)

    def _expert_linear(self, call: relax.Call, parts: list[_Part]) -> relax.Expr:
        """Return the calls for the schemes that replace the float reference.

        The results of several parts are concatenated, and a gate is computed from both halves.
        """
        _, text = tag_of(self.mod[call.args[0].name_hint]) or ("", "{}")
        spec, ty = json.loads(text), call.ty_args[0]
        *args, _ = [self.visit_expr(arg) for arg in call.args[1].fields]
        if len(parts) == 1:
            return self._experts_of(spec, args, parts[0], ty)
        products = []
        for part in parts:
            own = {**spec, "gate": None, "out_features": part.stop - part.first}
            given = [*args[:-1], self._columns(args[-1], part)] if spec["bias"] else args
            result = relax.TensorType([ty.shape[0], part.stop - part.first], ty.dtype)
            products.append(self.builder_.emit(self._experts_of(own, given, part, result)))
        joined = relax.op.concat(products, axis=-1)
        if spec["gate"] is None:
            return joined
        func = self.quantization.references.expert_gate(text, str(ty.dtype))
        var = self.builder_.add_func(func, "expert_gate")
        return relax.call_tir(var, [self.builder_.emit(joined)], out_ty=ty)

    def _columns(self, bias: relax.Expr, part: _Part) -> relax.Expr:
        """Return the bias [experts, rows] of a part."""
        return self.builder_.emit(relax.op.strided_slice(bias, [1], [part.first], [part.stop]))

    def _experts_of(
        self, spec: dict[str, Any], args: list[relax.Expr], part: _Part, ty: relax.TensorType
    ) -> relax.Expr:
        """Return a call to the reference for a part's scheme."""
        fields = json.dumps({**spec, **part.scheme.kernel_spec()}, sort_keys=True)
        dtype = str(args[0].ty.dtype)
        func = self.quantization.references.expert_linear(part.scheme, fields, dtype)
        var = self.builder_.add_func(func, "expert_linear")
        return relax.call_tir(var, [*args, *part.stored], out_ty=ty)


def _within(part: _Part) -> Callable[[te.Tensor], te.Tensor]:
    """Return a TE function: tokens int32 [n] -> row indexes within one part of a table [n].

    Tokens of other parts are clamped to the first or last row of the part.
    """

    def rows(tokens: te.Tensor) -> te.Tensor:
        last = part.stop - part.first - 1
        return te.compute(
            tokens.shape,
            lambda i: tirx.max(tirx.min(tokens[i] - part.first, last), 0),
            "own_tokens",
        )

    return rows


def _from(first: int) -> Callable[..., te.Tensor]:
    """Return a TE function that merges the rows of one part with those of earlier parts.

    (tokens int32 [n], own rows [n, d], earlier rows [n, d]) -> [n, d]; tokens from `first` on take
    the part's own rows.
    """

    def rows(tokens: te.Tensor, own: te.Tensor, before: te.Tensor) -> te.Tensor:
        return te.compute(
            own.shape,
            lambda i, k: tirx.Select(tokens[i] >= first, own[i, k], before[i, k]),
            "own_rows",
        )

    return rows
