"""What a compilation of a model would be, without its weights and without making code.

Everything that decides how much memory a run needs is known after the pipeline: parameters, their
layouts, the plan of a step's memory. Making code of it, which takes most of a compilation's time,
changes none of that.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

from wherry import settings
from wherry.quant.scheme import DEFAULT as DEFAULT_QUANT
from wherry.quant.scheme import EXACT
from wherry.quant.scheme import find as find_scheme
from wherry.targets.target import find as find_target

from . import hub, source
from .api import Limits, name_of, with_dtypes
from .build import build_library
from .export import exact_parameters, export, parameters
from .load import Described, describe
from .memory import declared


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """What the manifest of a compilation would say; the fields have its names."""

    name: str
    described: Described
    quantization: str
    target: dict[str, Any]
    kv_dtype: str
    deployment: dict[str, Any]
    memory: dict[str, int]  # bytes
    stored: int  # bytes of the weights on disk
    parameters: int  # numbers, before quantization


@contextmanager
def described_folder(model: str) -> Iterator[Path]:
    """A folder with all of a model's files but weights; a model of the hub is not downloaded."""
    parts = source.parse_hub(model)
    if parts is None:
        yield source.resolve(model, cache=settings.cache_dir() / "hub")
        return
    repo, revision = parts
    kept = hub.kept(repo, revision, cache=settings.cache_dir() / "hub")
    if kept:
        yield kept
        return
    with tempfile.TemporaryDirectory(prefix="wherry-") as folder:
        hub.fetch_side_files(repo, revision, Path(folder))
        yield Path(folder)


def forecast(
    model: str,
    folder: Path,
    *,
    target: str = "auto",
    quant: str | None = None,
    kv_dtype: str = "auto",
    activations: str = "auto",
    limits: Limits | None = None,
    max_batch: int | None = None,
    prefill_chunk: int | None = None,
) -> Forecast:
    """What `ensure_artifact` would make of the same arguments.

    Args:
        model: what the person has typed.
        folder: of `described_folder`.
        target: a preset's name, or "auto" for the best of this machine.
        quant: a scheme's name; None: q4f16_1.
        kv_dtype: of the cache.
        activations: what weights are multiplied by.
        limits: of the deployment.
        max_batch: what an engine will ask for: without `limits` the deployment has no less.
        prefill_chunk: the same.
    """
    scheme = find_scheme(quant or DEFAULT_QUANT)
    preset = with_dtypes(find_target(target), scheme, kv_dtype, activations)
    described = describe(folder)
    deployment = (limits or Limits.holding(max_batch, prefill_chunk)).deployment(described)
    described = described.at(deployment.context)
    program = export(
        described.arch,
        described.config,
        scheme,
        dtype=preset.dtype,
        kv_dtype=preset.kv_dtype,
        entries=described.entries,
        latents_once=preset.latents_once,
        most_bytes=preset.binding_bytes,
    )
    planned = [
        build_library(
            program,
            level,
            deployment,
            None,
            name=described.arch.name,
            vocab_size=described.config.vocab_size,
        )
        for level in (preset, *preset.variants)
    ]
    shapes = parameters(described.arch, described.config, described.entries)
    exact = exact_parameters(described.arch, described.config, described.entries)
    tensors = [
        tensor
        for name, shape in shapes.items()
        for tensor in (EXACT if name in exact else scheme).stored(name, shape)
    ]
    return Forecast(
        name=name_of(model),
        described=described,
        quantization=scheme.name,
        target=preset.record(),
        kv_dtype=preset.kv_dtype,
        deployment=deployment.record(preset, described.config.longest),
        memory=declared(
            [library.metadata["params"] for library in planned],
            max(library.workspace for library in planned),
            program,
            deployment.page_size,
        ),
        stored=sum(tensor.nbytes for tensor in tensors),
        parameters=sum(map(prod, shapes.values())),
    )
