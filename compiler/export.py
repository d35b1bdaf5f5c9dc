"""From an architecture and its configuration to a Relax module with one function, `forward`.

A library may have several entries (ARCHITECTURE.md). They differ in what they do with the hidden
states of the last layer, so `forward` is exported with a result for each of them: passes go through
the layers once, and `SplitEntries` makes functions of it in the end.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any

from tvm import IRModule
from tvm.relax.frontend import nn
from tvm.relax.frontend.nn import Tensor, op, spec
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
    """A model as a module: `forward(*batch, *state, *parameters)` -> the results of `entries`."""

    mod: IRModule
    entries: tuple[str, ...]
    stored: dict[str, str]  # dtype on disk of each parameter, in order
    page_shape: Shape  # of one page of one layer, see models/state.py
    layers: int  # that have pages
    kv_dtype: str
    embedding_size: int  # numbers of a hidden state


def _step(model: Any, entries: tuple[str, ...]) -> Callable[..., Any]:
    """What is exported: takes plain tensors, calls the model with what it knows."""
    results: dict[str, Callable[[Tensor], Tensor]] = {
        "forward": lambda x: model.logits(x),
        "embed": lambda x: op.astype(x, "float32"),
    }

    def forward(*args: Any) -> Any:
        batch = Batch(*args[: len(SIZES)])
        x = model.hidden(batch, PagedKV(batch, list(args[len(SIZES) :])))
        made = tuple(results[entry](x) for entry in entries)
        return made if len(made) > 1 else made[0]

    return forward


def _model(arch: Architecture, config: Any, entries: tuple[str, ...]) -> Any:
    """Without the head where no entry needs it: checkpoints of embedding models have none."""
    model = arch.model(config)
    if "forward" not in entries:
        model.lm_head = None
    return model


def parameters(
    arch: Architecture, config: Any, entries: tuple[str, ...] = ("forward",)
) -> dict[str, Shape]:
    """Names and shapes of the parameters that `entries` have, before any quantization."""
    model = _model(arch, config, entries)
    return {name: tuple(int(d) for d in p.shape) for name, p in model.named_parameters()}


def export(
    arch: Architecture,
    config: Any,
    scheme: Scheme,
    *,
    dtype: str,
    kv_dtype: str,
    entries: tuple[str, ...] = ("forward",),
) -> Program:
    """Build the module of one model.

    Args:
        arch: the architecture.
        config: an instance of `arch.config`.
        scheme: how weights are stored.
        dtype: of activations and of what `scheme` does not quantize.
        kv_dtype: of the cache.
        entries: of the library: "forward", "embed".
    """
    model = _model(arch, config, entries)
    model.to(dtype)
    model = quantize(model, scheme, dtype)
    layers = [s for s in arch.state(config) if s.kind == "paged_kv" and s.window is None]
    assert len(layers) == len(arch.state(config)), "only full attention is exported yet"
    shape = config.attention_shape()
    page = page_shape(shape.kv_heads, shape.head_dim, kv_dtype)
    arguments: list[Any] = [spec.Tensor([size], "int32") for size in SIZES.values()]
    arguments += [spec.Tensor(["pages", *page], kv_dtype) for _ in layers]
    method = spec.MethodSpec(
        method=_step(model, entries),
        arg_names=[*SIZES, *(f"state_{i}" for i in range(len(layers)))],
        arg_specs=arguments,
        param_mode="plain",
        effect_mode="none",
    )
    mod, params, _ = Exporter(debug=False).build(spec.ModuleSpec(model, ["forward"], [method]))
    return Program(
        mod=mod,
        entries=entries,
        stored={name: _stored_dtype(param, scheme) for name, param in params},
        page_shape=page,
        layers=len(layers),
        kv_dtype=kv_dtype,
        embedding_size=config.hidden_size,
    )


def _stored_dtype(param: nn.Parameter, scheme: Scheme) -> str:
    """A float that the scheme does not quantize is stored as its `float_dtype`."""
    return scheme.float_dtype if param.dtype.startswith("float") else param.dtype
