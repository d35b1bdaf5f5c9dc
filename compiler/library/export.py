"""Exports an architecture with its configuration as a Relax module with one function, `forward`.

A library may have several entries (docs/design/compiled-library.md). They differ in what they
compute from the last layer's hidden states, so `forward` is exported with a result for each: the
passes see the layers once, and `SplitEntries` makes functions of them at the end.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from tvm import IRModule
from tvm.relax.frontend.nn import Tensor, op, spec
from tvm.relax.frontend.nn.exporter import Exporter
from tvm.relax.transform import DeadCodeElimination

from wherry.models.arch import Architecture, Shape
from wherry.models.config import about_config
from wherry.models.layers.dense import EXACT
from wherry.models.step import Batch, WithImages, WithSource
from wherry.models.towers.tower import Patches, Tower, TowerShape
from wherry.passes.kv_cache import KVCache
from wherry.passes.paged_kv import cached_attentions, kept_size
from wherry.passes.quantize import Quantization, stored_dtypes
from wherry.passes.recurrent_state import SIZE, SLOTS, SlotState, slot_states
from wherry.quant.plan import Own
from wherry.quant.scheme import EXACT as EXACT_SCHEME
from wherry.quant.scheme import Scheme

from .references import REFERENCES

# Symbolic sizes of the batch arrays, in the order of Batch's fields.
SIZES = {
    "tokens": "n",
    "positions": "n",
    "sequences": "n",
    "query_indptr": "r1",
    "logit_rows": "m",
}
SOURCES = {"source_lengths": "rs"}  # of models that read a source, before the logit rows
# Of models that see: features of the rows of images, before the logit rows, and the store of
# features after them.
FEATURES = "image_features"
# Of those whose configuration has them in `image_inputs`, after "image_rows": the columns of each.
IMAGES: Mapping[str, tuple[int, ...]] = {
    "image_rows": (),
    "rope_positions": (3,),
    "last_visible": (),
}
# Inputs of a tower that are not int32.
FLOATS = ("patches", "position_weights")


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportedProgram:
    """A float model as a module: `forward(*batch, *parameters)` -> the results of `entries`.

    `Quantize` replaces weights by what `quantization` stores, `PagedKV` and `RecurrentState` add
    `cache` and `slots` to the arguments.
    """

    name: str  # the architecture's
    vocab_size: int  # number of logits
    mod: IRModule
    entries: tuple[str, ...]
    quantization: Quantization
    stored: dict[str, str]  # dtype on disk of each parameter, in order
    cache: KVCache
    slots: tuple[SlotState, ...]  # recurrent state of a sequence; (): the model has none
    embedding_size: int  # elements of a row of `embed`
    bidirectional: bool = False  # whether a step has to hold whole sequences, as encoders need
    features: int = 0  # elements of a feature of an image; 0: the model takes none
    image_inputs: tuple[str, ...] = ()  # names of `IMAGES` that the model takes
    tower: TowerShape | None = None  # of a library that computes features; None: of any other

    @property
    def inputs(self) -> tuple[str, ...]:
        """Return the engine's names of a step's inputs; a page table counts as two arrays."""
        if self.tower is not None:
            return self.tower.inputs
        *rows, logit_rows = _sizes(self.entries, self.image_inputs)
        pages = (f"pages.{g}" for g in range(len(self.cache.groups)))
        slots = (SLOTS,) if self.slots else ()
        images = (FEATURES,) if self.features else ()
        return (*rows, *pages, *slots, logit_rows, *images)

    def bounds(self, of: Mapping[str, int]) -> dict[str, int]:
        """Return upper bounds of all symbolic sizes, derived from the bounds `of` n, m, p and r."""
        if self.tower is not None:
            return {"n": self.tower.tile_patches, "r1": 2}
        names = (SIZES | SOURCES | self.cache.tables() | {SLOTS: SIZE}).values()
        return {name: of[name[0]] + (name[0] == "r") for name in names}


def _sizes(entries: tuple[str, ...], images: tuple[str, ...]) -> dict[str, str]:
    """Return the symbolic sizes of the arrays that `entries` take, in the order of arguments.

    Args:
        entries: the library's entries.
        images: names of `IMAGES` that the model takes.
    """
    *rows, last = SIZES.items()
    more = (SOURCES if "encode" in entries else {}) | dict.fromkeys(images, "n")
    return dict([*rows, *more.items(), last])


def _step(model: Any, entries: tuple[str, ...], images: tuple[str, ...]) -> Callable[..., Any]:
    """Return the function to export, which calls the model once for all `entries`.

    "draft" comes last: the state that it finds is not what the others leave (`passes/paged_kv.py`).
    """
    names: list[str] = [*_sizes(entries, images), *([FEATURES] if images else [])]
    kind = WithSource if "encode" in entries else WithImages if images else Batch
    assert "draft" not in entries[:-1]
    results: dict[str, Callable[[Tensor, Batch], Tensor]] = {
        "forward": lambda x, _batch: model.logits(x),
        "embed": lambda x, _batch: op.astype(x, "float32"),
        "encode": lambda _x, batch: model.encoded(batch),
        "draft": lambda _x, batch: model.drafted(batch),
    }

    def forward(*arrays: Any) -> Any:
        batch = kind(**dict(zip(names, arrays, strict=True)))
        x = model.hidden(batch)
        outputs = tuple(results[entry](x, batch) for entry in entries)
        return outputs if len(outputs) > 1 else outputs[0]

    return forward


def is_bidirectional(config: Any) -> bool:
    """Return whether a model's rows attend to later ones, so that a step holds whole sequences."""
    return bool(getattr(config, "bidirectional", False))


def reads_source(config: Any) -> bool:
    """Return whether a model is an encoder-decoder, which a request gives a source."""
    return bool(getattr(config, "reads_source", False))


def _model(arch: Architecture, config: Any, entries: tuple[str, ...]) -> Any:
    """Build the model, without the LM head if no entry needs it: embedding models have none.

    For the entry "draft" it has its block of multi-token prediction.
    """
    with about_config(arch.name):
        model = arch.model(config)
        if "draft" in entries:
            assert arch.drafts is not None
            model.draft = arch.drafts.make(config)
    if "forward" not in entries:
        model.lm_head = None
    return model


def parameters(
    arch: Architecture, config: Any, entries: tuple[str, ...] = ("forward",)
) -> dict[str, Shape]:
    """Return names and shapes of the parameters that `entries` need, before quantization."""
    model = _model(arch, config, entries)
    return {name: tuple(int(d) for d in p.shape) for name, p in model.named_parameters()}


def exact_parameters(
    arch: Architecture, config: Any, entries: tuple[str, ...] = ("forward",)
) -> frozenset[str]:
    """Return the names of parameters that stay float32 in every scheme."""
    return _exact(_model(arch, config, entries))


def _exact(model: Any) -> frozenset[str]:
    return frozenset(name for name, p in model.named_parameters() if EXACT in p.attrs)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramTraits:
    """What a target's kernels ask of the program, and what its runtime gives it."""

    latents_once: bool = False  # kernels read an MLA latent as key and as value from one plane
    cache_words: bool = False  # kernels read a KV cache of integers in words of four bytes
    most_bytes: int | None = None  # bytes of the largest tensor that can be bound; None: no limit
    # Elements of a feature of an image, in the place of a token's embedding; 0: the library takes
    # no images.
    features: int = 0


def export(
    arch: Architecture,
    config: Any,
    scheme: Scheme,
    *,
    dtype: str,
    kv_dtype: str,
    entries: tuple[str, ...] = ("forward",),
    traits: ProgramTraits = ProgramTraits(),
    own: Own | None = None,
) -> ExportedProgram:
    """Export one model as a Relax module.

    Args:
        arch: the architecture.
        config: an instance of `arch.config`.
        scheme: the quantization scheme of the weights.
        dtype: dtype of activations and of weights that `scheme` does not quantize.
        kv_dtype: dtype of the KV cache.
        entries: entries of the library: "forward", "embed", "encode", "draft", in this order.
        traits: what the target's kernels ask of the program.
        own: parameters that are stored in other schemes.
    """
    features = traits.features
    images = ("image_rows", *getattr(config, "image_inputs", ())) if features else ()
    model = _model(arch, config, entries)
    arrays = {
        name: spec.Tensor([size, *IMAGES.get(name, ())], "int32")
        for name, size in _sizes(entries, images).items()
    }
    if features:
        arrays[FEATURES] = spec.Tensor(["f", features], "float32")
    with about_config(arch.name):
        mod, quantization, stored = _built(
            model, _step(model, entries, images), arrays, scheme, dtype, traits, own or {}
        )
    return ExportedProgram(
        name=arch.name,
        vocab_size=config.vocab_size,
        mod=mod,
        entries=entries,
        quantization=quantization,
        stored=stored,
        cache=KVCache.of(
            cached_attentions(mod),
            kv_dtype,
            latents_once=traits.latents_once,
            words=traits.cache_words,
            hidden=kept_size(mod),
        ),
        slots=slot_states(mod),
        embedding_size=getattr(config, "embedding_size", config.hidden_size),
        bidirectional=is_bidirectional(config),
        features=features,
        image_inputs=images,
    )


def export_tower(
    tower: Tower,
    config: Any,
    shape: TowerShape,
    scheme: Scheme,
    *,
    dtype: str,
    traits: ProgramTraits = ProgramTraits(),
) -> ExportedProgram:
    """Export a vision tower, whose entry is "see"; arguments as of `export`."""
    entries = ("see",)
    arrays = {
        name: spec.Tensor(list(shape.sizes(name)), "float32" if name in FLOATS else "int32")
        for name in shape.inputs
    }
    with about_config(tower.name):
        model = tower.model(config)

        def forward(*inputs: Any) -> Any:
            rows = dict(zip(shape.inputs, inputs, strict=True))
            rows["patches"] = op.astype(rows["patches"], dtype)
            return op.astype(model.see(Patches(**rows)), "float32")

        mod, quantization, stored = _built(model, forward, arrays, scheme, dtype, traits, {})
    return ExportedProgram(
        name=tower.name,
        vocab_size=0,
        mod=mod,
        entries=entries,
        quantization=quantization,
        stored=stored,
        cache=KVCache.of((), "float32"),
        slots=(),
        embedding_size=shape.features,
        tower=shape,
    )


def _built(
    model: Any,
    step: Callable[..., Any],
    arrays: Mapping[str, Any],
    scheme: Scheme,
    dtype: str,
    traits: ProgramTraits,
    own: Own,
) -> tuple[IRModule, Quantization, dict[str, str]]:
    """Build the module of one function, `forward`, with `arrays` before its parameters.

    Returns: the module, the schemes of the parameters, and their dtypes on disk, in order.
    """
    exact = _exact(model)
    model.to(dtype)
    method = spec.MethodSpec(
        method=step,
        arg_names=list(arrays),
        arg_specs=list(arrays.values()),
        param_mode="plain",
        effect_mode="none",
    )
    mod, params, _ = Exporter(debug=False).build(spec.ModuleSpec(model, ["forward"], [method]))
    mod = DeadCodeElimination()(mod)  # what follows the block's append, see models/drafts/mtp.py
    quantization = Quantization(
        plan={n: EXACT_SCHEME if n in exact else scheme for n, _ in params},
        references=REFERENCES,
        own=own,
        most_bytes=traits.most_bytes,
    )
    floats = {n: "float32" if n in exact else scheme.float_dtype for n, _ in params}
    floats |= {name: parts[0].scheme.float_dtype for name, parts in own.items()}
    stored = stored_dtypes(mod, quantization)
    return mod, quantization, {n: dtype or floats[n] for n, dtype in stored.items()}
