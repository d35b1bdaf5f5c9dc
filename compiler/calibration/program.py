"""A model without the weights of its linears, which one step of a calibration text runs through.

The compiled program calls back for each linear, in the order of the layers. All windows of the text
are one batch, so a layer's inputs are known before its weights are encoded, and later layers see
what the encoded weights compute.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import tvm
import tvm_ffi
from numpy.typing import NDArray
from tvm import ir, relax

from wherry.passes.capture_linears import CAPTURED, CaptureLinears, linears
from wherry.passes.recurrent_state import SLOTS
from wherry.quant.scheme import Scheme
from wherry.targets.target import find as find_target

from ..choices import with_dtypes
from ..library.build import Deployment, build_library
from ..library.export import ExportedProgram, export
from ..library.opened import open_library
from ..load import Described

Floats = NDArray[np.float32]
# Chosen experts of each row [n, k]; None: of a linear, or slot i has expert i % experts.
Ids = NDArray[np.int32] | None
# Computes a linear: (name of the weight, x [n, in]) -> y [n, out]; of experts, all slots
# [n * k, out] from x [n or n * k, in] and the chosen experts.
Linear = Callable[[str, Floats, Ids], Floats]


@dataclass(frozen=True, slots=True)
class Captured:
    """The program of a model, and the names of the weights that it calls back for."""

    program: ExportedProgram
    weights: tuple[str, ...]

    @classmethod
    def of(cls, described: Described, scheme: Scheme) -> Captured:
        """Export a model; embeddings and other weights stay, in `scheme`."""
        program = export(
            described.arch,
            described.config,
            scheme,
            dtype="float32",
            kv_dtype="float32",
            entries=("embed",),  # the LM head's inputs are the results
        )
        plan = program.quantization.plan
        weights = tuple(name for name in linears(program.mod) if plan[name] is scheme)
        gate = program.quantization.references.expert_gate
        capture = ir.transform.Sequential([CaptureLinears(weights, gate)])
        return cls(replace(program, mod=capture(program.mod)), weights)


def run(
    captured: Captured,
    described: Described,
    scheme: Scheme,
    texts: Sequence[Sequence[int]],
    stored: Callable[[str], NDArray[Any]],
    linear: Linear,
) -> Floats:
    """Run all texts through the model in one step; return the last layer's results [tokens, d].

    Memory: the activations of a layer for all tokens, the weights that no linear reads, and one
    layer's KV cache.

    Args:
        captured: the program.
        described: the model that it was exported from.
        scheme: the scheme that it was exported with.
        texts: tokens of each sequence.
        stored: reads a stored tensor by name.
        linear: computes each linear, in the order of the layers.
    """
    with (
        _captured_by(linear),  # before the virtual machine, which looks the function up once
        _compiled(captured.program, scheme, texts) as vm,
    ):
        metadata = json.loads(str(vm["_metadata"]()))
        inputs = _inputs(metadata, texts)
        pages = sum(_pages(metadata, t) for t in texts)
        state = _state(metadata, described, pages, len(texts))
        params = [_parameter(vm, entry, stored) for entry in metadata["params"]]

        embedded: Floats = vm["embed"](*inputs, *state, *params).numpy()
    return embedded


@contextmanager
def _captured_by(linear: Linear) -> Iterator[None]:
    """Let the program call `linear`; its exceptions, which TVM replaces by its own, pass."""
    raised: list[BaseException] = []

    def captured_linear(name: str, x: Any, *rest: Any) -> None:
        try:
            *ids, y = rest
            y.copyfrom(linear(str(name), x.numpy(), ids[0].numpy() if ids else None))
        except BaseException as e:
            raised.append(e)
            raise

    tvm_ffi.register_global_func(CAPTURED, captured_linear, override=True)
    try:
        yield
    except BaseException as e:
        if raised:
            raise raised[0] from e
        raise
    finally:
        tvm_ffi.registry.remove_global_func(CAPTURED)


@contextmanager
def _compiled(
    program: ExportedProgram, scheme: Scheme, texts: Sequence[Sequence[int]]
) -> Iterator[Any]:
    """Compile the program for this machine's CPU and these texts; yield its virtual machine."""
    total = sum(map(len, texts))
    target = with_dtypes(find_target("cpu").in_format("auto"), scheme, "float32", "float")
    deployment = Deployment(
        context=max(map(len, texts)),
        max_batch=len(texts),
        prefill_chunk=total,
        logit_rows=total,
    )
    with tempfile.TemporaryDirectory(prefix="wherry-") as folder:
        library = Path(folder) / f"model.{target.library}"
        build_library(
            program,
            target,
            deployment,
            library,
        )
        yield relax.VirtualMachine(open_library(library), tvm.cpu())


def _pages(metadata: Mapping[str, Any], tokens: Sequence[int]) -> int:
    return -(-len(tokens) // int(metadata["page_size"]))


def _inputs(metadata: Mapping[str, Any], texts: Sequence[Sequence[int]]) -> list[Any]:
    """Return the batch arrays of one step over all texts, each from its first token."""
    starts = np.cumsum([0, *map(len, texts)])
    pages = np.cumsum([0, *(_pages(metadata, t) for t in texts)])
    tables = [pages, np.arange(pages[-1])] * len(metadata["groups"])
    slots = [np.arange(len(texts))] if SLOTS in metadata["inputs"] else []
    arrays = [
        np.concatenate([np.asarray(t) for t in texts]),
        np.concatenate([np.arange(len(t)) for t in texts]),
        np.repeat(np.arange(len(texts)), [len(t) for t in texts]),
        starts,
        *tables,
        *slots,
        np.arange(starts[-1]),
    ]
    return [tvm.runtime.tensor(np.ascontiguousarray(a, np.int32)) for a in arrays]


def _state(
    metadata: Mapping[str, Any], described: Described, pages: int, sequences: int
) -> list[Any]:
    """Return the KV cache tensors of all layers, and the recurrent states, which are zero.

    Layers run one after another and in one step, so the caches of one shape share a tensor, unless
    a layer reads the cache of an earlier one. Each recurrent state is a tensor of its own, because
    it must be zero before its layer runs.
    """
    if not metadata["state"]:  # of an encoder
        return []
    config = described.config
    paged = any(own["kind"] != "recurrent" for own in metadata["state"])
    layers = range(config.num_hidden_layers) if paged else ()
    shared = all(config.attention_shape(i).kv != "none" for i in layers)
    arrays: list[Any] = []
    for own in metadata["state"]:
        recurrent = own["kind"] == "recurrent"
        once = shared and not recurrent
        shape = (sequences if recurrent else pages, *own["shape"])
        tensors = [
            tvm.runtime.tensor(np.zeros(shape, own["dtype"]))
            for _ in range(1 if once else own["layers"])
        ]
        arrays += tensors * own["layers"] if once else tensors
    return arrays


def _parameter(vm: Any, entry: Mapping[str, Any], stored: Callable[[str], NDArray[Any]]) -> Any:
    sources = [tvm.runtime.tensor(np.asarray(stored(n), order="C")) for n in entry["from"]]
    if "pack" not in entry:
        return sources[0]
    packed = vm[entry["pack"]](*sources)
    return packed[entry["index"]] if "index" in entry else packed
