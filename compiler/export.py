"""From an architecture and its configuration to a Relax module with one function, `forward`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any

from tvm import IRModule
from tvm.relax.frontend import nn
from tvm.relax.frontend.nn import Tensor, spec
from tvm.relax.frontend.nn.exporter import Exporter

from wherry.models.arch import Architecture, Shape
from wherry.models.state import Batch, PagedKV, page_shape
from wherry.quant.scheme import Scheme

from .quantize import quantize

# Symbolic sizes of the batch arrays, in the order of Batch's fields.
SIZES = {
    "tokens": "n",
    "positions": "n",
    "sequences": "n",
    "query_indptr": "r1",
    "page_indptr": "r2",
    "page_ids": "p",
    "logit_rows": "m",
}
assert list(SIZES) == [f.name for f in fields(Batch)]
# The same as the core's names of a step's arrays; a group's pages are two of them.
INPUTS = ("tokens", "positions", "sequences", "query_indptr", "pages.0", "logit_rows")


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """A model as a module: `forward(*batch, *state, *parameters) -> logits`."""

    mod: IRModule
    stored: dict[str, str]  # dtype on disk of each parameter, in order
    page_shape: Shape  # of one page of one layer, see models/state.py
    layers: int  # that have pages
    kv_dtype: str


def _step(model: nn.Module) -> Callable[..., Tensor]:
    """What is exported: takes plain tensors, calls the model with what it knows."""

    def forward(*args: Any) -> Tensor:
        batch = Batch(*args[: len(SIZES)])
        return model(batch, PagedKV(batch, list(args[len(SIZES) :])))

    return forward


def parameters(arch: Architecture, config: Any) -> dict[str, Shape]:
    """Names and shapes of a model's parameters before any quantization."""
    model = arch.model(config)
    return {name: tuple(int(d) for d in p.shape) for name, p in model.named_parameters()}


def export(
    arch: Architecture, config: Any, scheme: Scheme, *, dtype: str, kv_dtype: str
) -> Program:
    """Build the module of one model.

    Args:
        arch: the architecture.
        config: an instance of `arch.config`.
        scheme: how weights are stored.
        dtype: of activations and of what `scheme` does not quantize.
        kv_dtype: of the cache.
    """
    model = arch.model(config)
    model.to(dtype)
    model = quantize(model, scheme, dtype)
    layers = [s for s in arch.state(config) if s.kind == "paged_kv" and s.window is None]
    assert len(layers) == len(arch.state(config)), "only full attention is exported yet"
    shape = config.attention_shape()
    page = page_shape(shape.kv_heads, shape.head_dim, kv_dtype)
    arguments: list[Any] = [spec.Tensor([size], "int32") for size in SIZES.values()]
    arguments += [spec.Tensor(["pages", *page], kv_dtype) for _ in layers]
    method = spec.MethodSpec(
        method=_step(model),
        arg_names=[*SIZES, *(f"state_{i}" for i in range(len(layers)))],
        arg_specs=arguments,
        param_mode="plain",
        effect_mode="none",
    )
    mod, params, _ = Exporter(debug=False).build(spec.ModuleSpec(model, ["forward"], [method]))
    return Program(
        mod=mod,
        stored={name: _stored_dtype(param, scheme) for name, param in params},
        page_shape=page,
        layers=len(layers),
        kv_dtype=kv_dtype,
    )


def _stored_dtype(param: nn.Parameter, scheme: Scheme) -> str:
    """A float that the scheme does not quantize is stored as its `float_dtype`."""
    return scheme.float_dtype if param.dtype.startswith("float") else param.dtype
