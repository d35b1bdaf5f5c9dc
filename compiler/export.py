"""From an architecture and its configuration to a Relax module with one function, `forward`.

A library may have several entries (docs/design/compiled-library.md). They differ in what they do
with the hidden states of the last layer, so `forward` is exported with a result for each of them:
the passes see the layers once, and `SplitEntries` makes functions of it at the end.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from tvm import IRModule
from tvm.relax.frontend import nn
from tvm.relax.frontend.nn import Tensor, op, spec
from tvm.relax.frontend.nn.exporter import Exporter

from wherry.models.arch import Architecture, LayerState, Shape
from wherry.models.layers import EXACT
from wherry.models.state import Batch, PagedKV, Pages, page_shape
from wherry.quant.scheme import Scheme

from .quantize import quantize


def sizes(groups: int) -> dict[str, str]:
    """Symbolic sizes of the batch arrays, in the order of Batch's fields."""
    own = [(f"page_indptr_{g}", f"r{g + 2}") for g in range(groups)]
    ids = [(f"page_ids_{g}", "p" if g == 0 else f"p{g}") for g in range(groups)]
    return {
        "tokens": "n",
        "positions": "n",
        "sequences": "n",
        "query_indptr": "r1",
        **dict(array for both in zip(own, ids, strict=True) for array in both),
        "logit_rows": "m",
    }


def _batch(arrays: list[Tensor]) -> Batch:
    tokens, positions, sequences, query_indptr, *pages, logit_rows = arrays
    tables = tuple(Pages(*pages[i : i + 2]) for i in range(0, len(pages), 2))
    return Batch(tokens, positions, sequences, query_indptr, tables, logit_rows)


@dataclass(frozen=True, slots=True)
class Group:
    """Layers whose sequences own the same pages."""

    window: int | None  # tokens that a row sees; None: all before it
    layers: tuple[int, ...]

    @classmethod
    def of(cls, state: tuple[LayerState, ...]) -> tuple[Group, ...]:
        """The groups of all layers; the one without a window, if there is one, is the first.

        Layers that keep nothing, because they read another's pages, are in none.
        """
        own = [(i, s.window) for i, s in enumerate(state) if s.kind == "paged_kv"]
        windows = sorted({window for _, window in own}, key=lambda w: (w is not None, w))
        return tuple(cls(w, tuple(i for i, window in own if window == w)) for w in windows)


@dataclass(frozen=True, slots=True)
class State:
    """The cache of layers of one group whose pages are alike."""

    group: int
    layers: tuple[int, ...]
    page_shape: Shape  # of one page of one layer, see models/state.py


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """A model as a module: `forward(*batch, *state, *parameters)` -> the results of `entries`."""

    mod: IRModule
    entries: tuple[str, ...]
    stored: dict[str, str]  # dtype on disk of each parameter, in order
    groups: tuple[Group, ...]
    state: tuple[State, ...]  # in the order of the arguments
    kv_dtype: str
    embedding_size: int  # numbers of a hidden state

    @property
    def inputs(self) -> tuple[str, ...]:
        """The core's names of a step's arrays; a group's pages are two of them."""
        pages = [f"pages.{g}" for g in range(len(self.groups))]
        return ("tokens", "positions", "sequences", "query_indptr", *pages, "logit_rows")

    def bounds(self, of: Mapping[str, int]) -> dict[str, int]:
        """Upper bounds of all symbolic sizes, of those of n, m, p and r."""
        names = sizes(len(self.groups)).values()
        return {name: of[name[0]] + (name[0] == "r") for name in names}


def _step(
    model: Any, entries: tuple[str, ...], groups: int, state: tuple[State, ...]
) -> Callable[..., Any]:
    """What is exported: takes plain tensors, calls the model with what it knows."""
    results: dict[str, Callable[[Tensor], Tensor]] = {
        "forward": lambda x: model.logits(x),
        "embed": lambda x: op.astype(x, "float32"),
    }

    group_of = {layer: own.group for own in state for layer in own.layers}
    arrays = len(sizes(groups))

    def forward(*args: Any) -> Any:
        batch = _batch(list(args[:arrays]))
        pages = dict(zip(group_of, args[arrays:], strict=True))
        x = model.hidden(batch, PagedKV(batch, pages, group_of))
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


def exact_parameters(
    arch: Architecture, config: Any, entries: tuple[str, ...] = ("forward",)
) -> frozenset[str]:
    """Names of those that every scheme stores in float32."""
    return _exact(_model(arch, config, entries))


def _exact(model: Any) -> frozenset[str]:
    return frozenset(name for name, p in model.named_parameters() if EXACT in p.attrs)


def export(
    arch: Architecture,
    config: Any,
    scheme: Scheme,
    *,
    dtype: str,
    kv_dtype: str,
    entries: tuple[str, ...] = ("forward",),
    latents_once: bool = False,
    most_bytes: int | None = None,
) -> Program:
    """Build the module of one model.

    Args:
        arch: the architecture.
        config: an instance of `arch.config`.
        scheme: how weights are stored.
        dtype: of activations and of what `scheme` does not quantize.
        kv_dtype: of the cache.
        entries: of the library: "forward", "embed".
        latents_once: whether kernels read a latent as key and value from one place.
        most_bytes: of a tensor that the target's kernels can bind; None: any number.
    """
    model = _model(arch, config, entries)
    exact = _exact(model)
    model.to(dtype)
    model = quantize(model, scheme, dtype, most_bytes)
    groups = Group.of(arch.state(config))
    state = _state(config, groups, kv_dtype, latents_once)
    names = sizes(len(groups))
    arguments: list[Any] = [spec.Tensor([size], "int32") for size in names.values()]
    pages = [own.page_shape for own in state for _ in own.layers]
    arguments += [spec.Tensor(["pages", *page], kv_dtype) for page in pages]
    method = spec.MethodSpec(
        method=_step(model, entries, len(groups), state),
        arg_names=[*names, *(f"state_{i}" for i in range(len(pages)))],
        arg_specs=arguments,
        param_mode="plain",
        effect_mode="none",
    )
    mod, params, _ = Exporter(debug=False).build(spec.ModuleSpec(model, ["forward"], [method]))
    return Program(
        mod=mod,
        entries=entries,
        stored={n: _stored_dtype(param, scheme, n in exact) for n, param in params},
        groups=groups,
        state=state,
        kv_dtype=kv_dtype,
        embedding_size=getattr(config, "embedding_size", config.hidden_size),
    )


def _state(
    config: Any, groups: tuple[Group, ...], kv_dtype: str, latents_once: bool
) -> tuple[State, ...]:
    """The caches of all layers that have one; of a group's, alike ones beside each other."""
    found: dict[tuple[int, Shape], list[int]] = {}
    for g, group in enumerate(groups):
        for layer in group.layers:
            shape = config.attention_shape(layer)
            planes = 1 if shape.latent and latents_once else 2
            page = page_shape(shape.kv_heads, shape.head_dim, kv_dtype, planes)
            found.setdefault((g, page), []).append(layer)
    return tuple(State(g, tuple(layers), page) for (g, page), layers in found.items())


def _stored_dtype(param: nn.Parameter, scheme: Scheme, exact: bool) -> str:
    """A float that the scheme does not quantize is stored as its `float_dtype`."""
    if exact:
        return "float32"
    return scheme.float_dtype if param.dtype.startswith("float") else param.dtype
