"""Replaces a model's Linear and Embedding layers by layers over a scheme's stored tensors.

Models know nothing of schemes: they use `nn.Linear` and `Embedding`. The layers here have the
tensors that a scheme stores ("q_weight", "q_scale", or "weight") and emit the operations "linear"
and "embedding", whose references dequantize a weight where it is used.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from functools import cache
from typing import Any

from tvm import te, tirx
from tvm.relax.frontend import nn
from tvm.relax.frontend.nn import Tensor, op

from wherry.models.expert_reference import expert_linear
from wherry.models.experts import Chosen, ExpertLinear
from wherry.models.layers import Embedding, Unquantized
from wherry.ops import ExpertLinearSpec, GateName
from wherry.ops.tags import tag
from wherry.quant.scheme import EXACT, Scheme

LINEAR = "linear.weight"  # parameter name by which schemes are asked about a linear's weight


def quantize(
    model: nn.Module, scheme: Scheme, dtype: str, most_bytes: int | None = None
) -> nn.Module:
    """Replace the layers of `model` in place and return it; `dtype` is the dtype of activations.

    A matrix with a stored tensor larger than `most_bytes` is split into several tensors of fewer
    rows each, which carry the loader's names: "lm_head.q_weight[0:76032]".
    """
    return _Swap(scheme, dtype, most_bytes).visit("", model)


class _Swap(nn.Mutator):
    def __init__(self, scheme: Scheme, dtype: str, most_bytes: int | None) -> None:
        super().__init__()
        self.scheme = scheme
        self.dtype = dtype
        self.most_bytes = most_bytes

    def visit_module(self, name: str, node: nn.Module) -> Any:
        if isinstance(node, Unquantized):
            return StoredLinear(node, EXACT, self.dtype)
        if isinstance(node, ExpertLinear):
            return StoredExpertLinear(node, self.scheme, self.dtype)
        if isinstance(node, nn.Linear):
            return StoredLinear(node, self.scheme, self.dtype, self.most_bytes)
        if isinstance(node, nn.Embedding):
            return StoredEmbedding(node, self.scheme, self.dtype, self.most_bytes)
        return super().visit(name, node)


class _Stored(nn.Module):
    """Layer over the stored tensors of a weight [rows, columns] or [experts, rows, columns]."""

    def __init__(
        self, shape: tuple[int, ...], scheme: Scheme, dtype: str, most_bytes: int | None = None
    ) -> None:
        self.rows, self.columns = shape[-2:]
        self.scheme = scheme
        self.dtype = dtype
        tensors = scheme.stored(LINEAR, shape)
        self.parts = _parts(self.rows, max(t.nbytes for t in tensors), most_bytes)
        self.names: list[list[str]] = []  # tensor names of each part, in the scheme's order
        for first, stop in self.parts:
            self.names.append([])
            for tensor in tensors:
                name, size = tensor.name.rpartition(".")[2], tensor.shape
                if len(self.parts) > 1:
                    name, size = f"{name}[{first}:{stop}]", (stop - first, *size[1:])
                setattr(self, name, nn.Parameter(size, tensor.dtype))
                self.names[-1].append(name)

    def stored(self, part: int = 0) -> list[nn.Parameter]:
        """Return the stored tensors of one part, in the scheme's order."""
        return [getattr(self, name) for name in self.names[part]]

    def linear(self, x: Tensor) -> Tensor:
        """x [m, columns] -> [m, rows]: x times the weight's transpose."""
        made = []
        for part, (first, stop) in enumerate(self.parts):
            func = linear_reference(self.scheme, stop - first, self.columns, self.dtype)
            out = Tensor.placeholder([x.shape[0], stop - first], self.dtype)
            made.append(op.tensor_ir_op(func, "linear", [x, *self.stored(part)], out))
        return made[0] if len(made) == 1 else op.concat(made, dim=-1)

    def lookup(self, tokens: Tensor) -> Tensor:
        """Look up tokens int32 [n] -> [n, columns], one row of the weight per token."""
        found: Tensor | None = None
        for part, (first, stop) in enumerate(self.parts):
            own = tokens
            if len(self.parts) > 1:
                own = op.tensor_expr_op(_within(first, stop), "own_tokens", [tokens])
            func = embedding_reference(self.scheme, stop - first, self.columns, self.dtype)
            out = Tensor.placeholder([tokens.shape[0], self.columns], self.dtype)
            rows = op.tensor_ir_op(func, "embedding", [own, *self.stored(part)], out)
            if found is not None:
                rows = op.tensor_expr_op(_from(first), "own_rows", [tokens, rows, found])
            found = rows
        return found


def _parts(rows: int, nbytes: int, most_bytes: int | None) -> list[tuple[int, int]]:
    """Split rows into parts (first, end) of at most `most_bytes`, in tiles of 64 if possible."""
    if most_bytes is None or nbytes <= most_bytes:
        return [(0, rows)]
    each = max(most_bytes // -(-nbytes // rows), 1)
    each = each // 64 * 64 or each
    return [(first, min(first + each, rows)) for first in range(0, rows, each)]


def _within(first: int, stop: int) -> Callable[[te.Tensor], te.Tensor]:
    """Return a function: tokens [n] -> row indices in [first, stop), clamped for other tokens."""

    def rows(tokens: te.Tensor) -> te.Tensor:
        last = stop - first - 1
        return te.compute(
            tokens.shape, lambda i: tirx.max(tirx.min(tokens[i] - first, last), 0), "own_tokens"
        )

    return rows


def _from(first: int) -> Callable[[te.Tensor, te.Tensor, te.Tensor], te.Tensor]:
    """Return a function: (tokens [n], this part's rows [n, d], earlier parts' rows) -> [n, d]."""

    def rows(tokens: te.Tensor, own: te.Tensor, before: te.Tensor) -> te.Tensor:
        return te.compute(
            own.shape,
            lambda i, k: tirx.Select(tokens[i] >= first, own[i, k], before[i, k]),
            "own_rows",
        )

    return rows


class StoredLinear(_Stored):
    """Linear layer over stored tensors: y = x W^T + b."""

    def __init__(
        self, layer: nn.Linear, scheme: Scheme, dtype: str, most_bytes: int | None = None
    ) -> None:
        super().__init__((layer.out_features, layer.in_features), scheme, dtype, most_bytes)
        self.bias = layer.bias

    def forward(self, x: Tensor) -> Tensor:
        """x [m, columns] -> [m, rows]."""
        y = self.linear(x)
        return y if self.bias is None else y + self.bias


class StoredEmbedding(_Stored):
    """Token embedding table, which is also the LM head of models with tied embeddings."""

    def __init__(
        self, layer: Embedding, scheme: Scheme, dtype: str, most_bytes: int | None = None
    ) -> None:
        super().__init__((layer.num, layer.dim), scheme, dtype, most_bytes)

    def forward(self, tokens: Tensor) -> Tensor:
        """Look up tokens int32 [n] -> [n, d]."""
        return self.lookup(tokens)

    def logits(self, x: Tensor) -> Tensor:
        """Compute logits: x [m, d] -> [m, vocab]."""
        return self.linear(x)


class StoredExpertLinear(_Stored):
    """Linear layer of a mixture of experts: y = x W^T + b per slot, with its expert's W and b."""

    def __init__(self, layer: ExpertLinear, scheme: Scheme, dtype: str) -> None:
        self.experts = layer.experts
        super().__init__((layer.experts, layer.out_features, layer.in_features), scheme, dtype)
        self.bias = layer.bias

    def forward(
        self,
        x: Tensor,
        chosen: Chosen,
        *,
        gate: GateName | None = None,
        alpha: float = 0.0,
        limit: float = 0.0,
        combined: bool = False,
    ) -> Tensor:
        """x [n, columns] -> [n * K, rows], or half of the rows with a gate.

        With `combined`: x [n * K, columns] -> [n, rows], the weighted sum over a row's K experts.
        """
        top_k = int(chosen.ids.shape[1])
        spec = self._spec(
            top_k=top_k,
            gate=gate,
            alpha=alpha if gate == "clamped" else 1.0,
            limit=limit if gate == "clamped" else 0.0,
            bias=self.bias is not None,
            combined=combined,
        )
        func = expert_linear_reference(self.scheme, spec, self.dtype)
        width = self.rows // 2 if gate else self.rows
        rows = chosen.ids.shape[0] if combined else chosen.slots.shape[0]
        args = [x, *chosen.order, *([chosen.weights] if combined else [])]
        args += [*([] if self.bias is None else [self.bias]), *self.stored()]
        out = Tensor.placeholder([rows, width], self.dtype)
        return op.tensor_ir_op(func, "expert_linear", args, out)

    def each(self, x: Tensor) -> Tensor:
        """x [n * experts, columns] -> [n * experts, rows]: row i takes expert i % experts."""
        spec = self._spec(top_k=self.experts, routed=False)
        func = expert_linear_reference(self.scheme, spec, self.dtype)
        out = Tensor.placeholder([x.shape[0], self.rows], self.dtype)
        return op.tensor_ir_op(func, "expert_linear", [x, *self.stored()], out)

    def _spec(self, **fields: Any) -> ExpertLinearSpec:
        return ExpertLinearSpec(
            experts=self.experts,
            out_features=self.rows,
            in_features=self.columns,
            **self.scheme.kernel_spec(),
            **fields,
        )


@cache
def linear_reference(scheme: Scheme, rows: int, columns: int, dtype: str) -> tirx.PrimFunc:
    """Return a PrimFunc (x dtype [m, columns], *stored) -> dtype [m, rows]; float32 inside."""
    m = te.var("m", "int64")
    x = te.placeholder((m, columns), dtype, "x")
    stored = _placeholders(scheme, rows, columns)
    k = te.reduce_axis((0, columns), "k")
    y = te.compute(
        (m, rows),
        lambda i, o: te.sum(x[i, k].astype("float32") * scheme.element(stored, o, k), k),
        "y",
    )
    z = te.compute((m, rows), lambda i, o: y[i, o].astype(dtype), "z") if dtype != "float32" else y
    spec = {"out_features": rows, "in_features": columns, **scheme.kernel_spec()}
    func = te.create_prim_func([x, *stored, z]).without_attr("global_symbol")
    return tag(func, "linear", spec)


@cache
def embedding_reference(scheme: Scheme, rows: int, columns: int, dtype: str) -> tirx.PrimFunc:
    """Return a PrimFunc (tokens int32 [n], *stored) -> dtype [n, columns]."""
    n = te.var("n", "int64")
    tokens = te.placeholder((n,), "int32", "tokens")
    stored = _placeholders(scheme, rows, columns)
    y = te.compute(
        (n, columns),
        lambda i, k: scheme.element(stored, tokens[i], k).astype(dtype),
        "y",
    )
    spec = {"vocab": rows, "dim": columns, **scheme.kernel_spec()}
    func = te.create_prim_func([tokens, *stored, y]).without_attr("global_symbol")
    return tag(func, "embedding", spec)


@cache
def expert_linear_reference(scheme: Scheme, spec: ExpertLinearSpec, dtype: str) -> tirx.PrimFunc:
    """Return the PrimFunc of `expert_reference.expert_linear` over the scheme's stored tensors."""
    shape = (spec.experts, spec.out_features, spec.in_features)
    return expert_linear(asdict(spec), scheme, _placeholders(scheme, *shape), dtype)


def _placeholders(scheme: Scheme, *shape: int) -> list[te.Tensor]:
    stored = scheme.stored(LINEAR, shape)
    return [te.placeholder(t.shape, t.dtype, t.name.rpartition(".")[2]) for t in stored]
