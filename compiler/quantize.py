"""Swap a model's Linear and Embedding layers for those that compute with a scheme's stored tensors.

Models know nothing of schemes: they are written with `nn.Linear` and `Embedding`. The layers here
hold the tensors that a scheme stores ("q_weight", "q_scale", or "weight") and emit the operations
"linear" and "embedding", whose references unpack a weight where it is used.
"""

from __future__ import annotations

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


def quantize(model: nn.Module, scheme: Scheme, dtype: str) -> nn.Module:
    """Swap the layers of `model`, whose activations are `dtype`, in place; returns it."""
    return _Swap(scheme, dtype).visit("", model)


class _Swap(nn.Mutator):
    def __init__(self, scheme: Scheme, dtype: str) -> None:
        super().__init__()
        self.scheme = scheme
        self.dtype = dtype

    def visit_module(self, name: str, node: nn.Module) -> Any:
        if isinstance(node, Unquantized):
            return StoredLinear(node, EXACT, self.dtype)
        if isinstance(node, ExpertLinear):
            return StoredExpertLinear(node, self.scheme, self.dtype)
        if isinstance(node, nn.Linear):
            return StoredLinear(node, self.scheme, self.dtype)
        if isinstance(node, nn.Embedding):
            return StoredEmbedding(node, self.scheme, self.dtype)
        return super().visit(name, node)


class _Stored(nn.Module):
    """Holds the tensors that a scheme stores for one weight [rows, columns], or one an expert."""

    def __init__(self, shape: tuple[int, ...], scheme: Scheme, dtype: str) -> None:
        self.rows, self.columns = shape[-2:]
        self.scheme = scheme
        self.dtype = dtype
        self.suffixes = []
        for tensor in scheme.stored(LINEAR, shape):
            suffix = tensor.name.rpartition(".")[2]
            setattr(self, suffix, nn.Parameter(tensor.shape, tensor.dtype))
            self.suffixes.append(suffix)

    def stored(self) -> list[nn.Parameter]:
        """The tensors, in the scheme's order."""
        return [getattr(self, suffix) for suffix in self.suffixes]

    def linear(self, x: Tensor) -> Tensor:
        """x [m, columns] -> [m, rows]: x times the weight's transpose."""
        func = linear_reference(self.scheme, self.rows, self.columns, self.dtype)
        out = Tensor.placeholder([x.shape[0], self.rows], self.dtype)
        return op.tensor_ir_op(func, "linear", [x, *self.stored()], out)

    def lookup(self, tokens: Tensor) -> Tensor:
        """Tokens int32 [n] -> [n, columns]: rows of the weight."""
        func = embedding_reference(self.scheme, self.rows, self.columns, self.dtype)
        out = Tensor.placeholder([tokens.shape[0], self.columns], self.dtype)
        return op.tensor_ir_op(func, "embedding", [tokens, *self.stored()], out)


class StoredLinear(_Stored):
    """y = x W^T + b."""

    def __init__(self, layer: nn.Linear, scheme: Scheme, dtype: str) -> None:
        super().__init__((layer.out_features, layer.in_features), scheme, dtype)
        self.bias = layer.bias

    def forward(self, x: Tensor) -> Tensor:
        """x [m, columns] -> [m, rows]."""
        y = self.linear(x)
        return y if self.bias is None else y + self.bias


class StoredEmbedding(_Stored):
    """A token table, and the output head of models that tie the two."""

    def __init__(self, layer: Embedding, scheme: Scheme, dtype: str) -> None:
        super().__init__((layer.num, layer.dim), scheme, dtype)

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
