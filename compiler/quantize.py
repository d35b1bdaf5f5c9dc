"""Swap a model's Linear and Embedding layers for those that compute with a scheme's stored tensors.

Models know nothing of schemes: they are written with `nn.Linear` and `Embedding`. The layers here
hold the tensors that a scheme stores ("q_weight", "q_scale", or "weight") and emit the operations
"linear" and "embedding", whose references unpack a weight where it is used.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from tvm import te, tirx
from tvm.relax.frontend import nn
from tvm.relax.frontend.nn import Tensor, op

from wherry.models.expert_reference import Gate, expert_linear
from wherry.models.experts import Chosen, ExpertLinear
from wherry.models.layers import Embedding, Unquantized
from wherry.ops.tags import tag
from wherry.quant.scheme import EXACT, Scheme

LINEAR = "linear.weight"  # what a scheme is asked about: a matrix of a Linear or an Embedding


def quantize(
    model: nn.Module, scheme: Scheme, dtype: str, most_bytes: int | None = None
) -> nn.Module:
    """Swap the layers of `model`, whose activations are `dtype`, in place; returns it.

    Matrices of which a stored tensor has more than `most_bytes` become several, of some rows each,
    named as the loader finds them: "lm_head.q_weight[0:76032]".
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
    """Holds the tensors that a scheme stores for one weight [rows, columns], or one an expert."""

    def __init__(
        self, shape: tuple[int, ...], scheme: Scheme, dtype: str, most_bytes: int | None = None
    ) -> None:
        self.rows, self.columns = shape[-2:]
        self.scheme = scheme
        self.dtype = dtype
        tensors = scheme.stored(LINEAR, shape)
        self.parts = _parts(self.rows, max(t.nbytes for t in tensors), most_bytes)
        self.names: list[list[str]] = []  # of the tensors of each part, in the scheme's order
        for first, stop in self.parts:
            self.names.append([])
            for tensor in tensors:
                name, size = tensor.name.rpartition(".")[2], tensor.shape
                if len(self.parts) > 1:
                    name, size = f"{name}[{first}:{stop}]", (stop - first, *size[1:])
                setattr(self, name, nn.Parameter(size, tensor.dtype))
                self.names[-1].append(name)

    def stored(self, part: int = 0) -> list[nn.Parameter]:
        """The tensors, in the scheme's order."""
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
        """Tokens int32 [n] -> [n, columns]: rows of the weight."""
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
    """First and last + 1 of the rows of each part; whole tiles of 64 where that can be."""
    if most_bytes is None or nbytes <= most_bytes:
        return [(0, rows)]
    each = max(most_bytes // -(-nbytes // rows), 1)
    each = each // 64 * 64 or each
    return [(first, min(first + each, rows)) for first in range(0, rows, each)]


def _within(first: int, stop: int) -> Callable[[te.Tensor], te.Tensor]:
    """Tokens [n] -> their rows in one part of a table; any row for tokens of another part."""

    def rows(tokens: te.Tensor) -> te.Tensor:
        last = stop - first - 1
        return te.compute(
            tokens.shape, lambda i: tirx.max(tirx.min(tokens[i] - first, last), 0), "own_tokens"
        )

    return rows


def _from(first: int) -> Callable[[te.Tensor, te.Tensor, te.Tensor], te.Tensor]:
    """(tokens [n], a part's rows [n, d], those of all before) -> [n, d]."""

    def rows(tokens: te.Tensor, own: te.Tensor, before: te.Tensor) -> te.Tensor:
        return te.compute(
            own.shape,
            lambda i, k: tirx.Select(tokens[i] >= first, own[i, k], before[i, k]),
            "own_rows",
        )

    return rows


class StoredLinear(_Stored):
    """y = x W^T + b."""

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
    """A token table, and the output head of models that tie the two."""

    def __init__(
        self, layer: Embedding, scheme: Scheme, dtype: str, most_bytes: int | None = None
    ) -> None:
        super().__init__((layer.num, layer.dim), scheme, dtype, most_bytes)

    def forward(self, tokens: Tensor) -> Tensor:
        """Tokens int32 [n] -> [n, d]."""
        return self.lookup(tokens)

    def logits(self, x: Tensor) -> Tensor:
        """x [m, d] -> [m, vocab]."""
        return self.linear(x)


class StoredExpertLinear(_Stored):
    """y = x W^T + b, of each slot with the weights of its expert."""

    def __init__(self, layer: ExpertLinear, scheme: Scheme, dtype: str) -> None:
        self.experts = layer.experts
        super().__init__((layer.experts, layer.out_features, layer.in_features), scheme, dtype)
        self.bias = layer.bias

    def forward(
        self,
        x: Tensor,
        chosen: Chosen,
        *,
        gate: Gate | None = None,
        alpha: float = 0.0,
        limit: float = 0.0,
        combined: bool = False,
    ) -> Tensor:
        """x [n, columns] -> [n * K, rows, or half of them with a gate].

        Combined: x [n * K, columns] -> [n, rows], a row's sum by the weights of its experts.
        """
        top_k = int(chosen.ids.shape[1])
        func = expert_linear_reference(
            self.scheme,
            (self.experts, self.rows, self.columns),
            self.dtype,
            top_k=top_k,
            gate=gate,
            alpha=alpha if gate == "clamped" else 1.0,
            limit=limit if gate == "clamped" else 0.0,
            bias=self.bias is not None,
            combined=combined,
        )
        width = self.rows // 2 if gate else self.rows
        rows = chosen.ids.shape[0] if combined else chosen.slots.shape[0]
        args = [x, *chosen.order, *([chosen.weights] if combined else [])]
        args += [*([] if self.bias is None else [self.bias]), *self.stored()]
        out = Tensor.placeholder([rows, width], self.dtype)
        return op.tensor_ir_op(func, "expert_linear", args, out)

    def each(self, x: Tensor) -> Tensor:
        """x [n * experts, columns] -> [n * experts, rows]: row i by the weights of i % experts."""
        func = expert_linear_reference(
            self.scheme,
            (self.experts, self.rows, self.columns),
            self.dtype,
            top_k=self.experts,
            routed=False,
        )
        out = Tensor.placeholder([x.shape[0], self.rows], self.dtype)
        return op.tensor_ir_op(func, "expert_linear", [x, *self.stored()], out)


@cache
def linear_reference(scheme: Scheme, rows: int, columns: int, dtype: str) -> tirx.PrimFunc:
    """(x dtype [m, columns], *stored) -> dtype [m, rows]; float32 inside."""
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
    """(tokens int32 [n], *stored) -> dtype [n, columns]."""
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
def expert_linear_reference(
    scheme: Scheme,
    shape: tuple[int, int, int],
    dtype: str,
    *,
    top_k: int,
    gate: Gate | None = None,
    alpha: float = 1.702,
    limit: float = 7.0,
    bias: bool = False,
    combined: bool = False,
    routed: bool = True,
) -> tirx.PrimFunc:
    """See `expert_reference.expert_linear`; `shape` is [experts, rows, columns]."""
    experts, rows, columns = shape
    spec = {
        "experts": experts,
        "top_k": top_k,
        "out_features": rows,
        "in_features": columns,
        **scheme.kernel_spec(),
        "gate": gate,
        "alpha": alpha,
        "limit": limit,
        "bias": bias,
        "combined": combined,
        "residual": False,
        "routed": routed,
        "x_dtype": "float32",  # a target may keep them otherwise
        "y_dtype": "float32",
    }
    return expert_linear(spec, scheme, _placeholders(scheme, *shape), dtype)


def _placeholders(scheme: Scheme, *shape: int) -> list[te.Tensor]:
    stored = scheme.stored(LINEAR, shape)
    return [te.placeholder(t.shape, t.dtype, t.name.rpartition(".")[2]) for t in stored]
