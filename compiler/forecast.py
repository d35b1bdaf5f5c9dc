"""Forecasts a compilation: the manifest's numbers, without weights and without code generation.

The memory of a run is known after the pass pipeline: parameters, their layouts, the memory plan of
a step. Code generation takes most of a compilation's time and changes none of these.
"""

from __future__ import annotations

import tempfile
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from math import prod
from pathlib import Path
from typing import Any

from typing_extensions import Unpack

from wherry.base import settings
from wherry.hub import download, names
from wherry.models.arch import Shape
from wherry.quant.mix import Mix
from wherry.quant.plan import to_json as own_to_json
from wherry.quant.scheme import Encoder, Scheme, floats_of
from wherry.targets.target import TargetPreset

from .allocation import allocate, matrices, normal_rows, of_checkpoint, units_of
from .api import name_of
from .checkpoint.folder import ModelFolder, WithHead, read_folder
from .checkpoint.kept import KeptSchemes
from .choices import ArtifactArguments, ArtifactSpec
from .draft_head import joined
from .encoding import Encoding, encoding_of, read_plan
from .library.build import Deployment, build_library
from .library.export import ProgramTraits, exact_parameters, export, export_tower, parameters
from .library.memory import declared, of_tower
from .load import Described, describe
from .model_folder import model_folder
from .towers import DescribedTower, on_target


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """The sizes that a compilation would write into the manifest."""

    name: str
    described: Described
    quantization: str
    target: dict[str, Any]
    kv_dtype: str
    deployment: dict[str, Any]
    memory: dict[str, int]  # bytes by purpose, as in the manifest's `memory`
    stored: int  # bytes of the weights on disk
    parameters: int  # number of parameters before quantization
    plan: dict[str, list[list[Any]]]  # as in the manifest
    shapes: Mapping[str, Shape]  # of all parameters

    @property
    def capabilities(self) -> tuple[str, ...]:
        """Return the manifest's capabilities on which memory depends."""
        return ("mtp",) if self.described.mtp else ()


@contextmanager
def described_folder(model: str, mmproj: str | None = None) -> Iterator[ModelFolder]:
    """Return a folder with all files of a model but its weights, which are not downloaded.

    Args:
        model: the model as the user typed it.
        mmproj: the projector file of a GGUF file; see `ArtifactSpec.mmproj`.
    """
    # The header of a GGUF file, which is all that is wanted, comes with its weights.
    parts = None if names.parse_gguf(model) else names.parse_hub(model)
    if parts is None or mmproj is not None:
        yield model_folder(model, mmproj=mmproj)
        return
    repo, revision = parts
    kept = download.kept(repo, revision, cache=settings.cache_dir() / "hub")
    if kept:
        yield read_folder(kept)
        return
    with tempfile.TemporaryDirectory(prefix="wherry-") as folder:
        download.fetch_side_files(repo, revision, Path(folder))
        yield read_folder(Path(folder))


def forecast(model: str, folder: ModelFolder, **choices: Unpack[ArtifactArguments]) -> Forecast:
    """Return the sizes that `ensure_artifact` would write for the same arguments.

    Args:
        model: the model as the user typed it.
        folder: the folder from `described_folder`.
        choices: the fields of `ArtifactSpec`.
    """
    choice = ArtifactSpec(**choices)
    if choice.draft_head is None or _has_weights(folder):
        return _forecast(model, joined(folder, choice.draft_head), choice)
    with tempfile.TemporaryDirectory(prefix="wherry-") as home:  # as `folder` is gone soon, too
        return _forecast(model, joined(folder, choice.draft_head, home=Path(home)), choice)


def _forecast(model: str, folder: ModelFolder, choice: ArtifactSpec) -> Forecast:
    keep = choice.kept_schemes
    described = describe(folder)
    choice = choice.in_scheme(described.default_scheme)
    scheme, preset = choice.scheme, choice.preset
    described = described.with_mtp(choice.drafts)
    deployment = choice.deployment(described)
    described = described.at(deployment.context)
    tower = on_target(described.tower, preset)
    shapes = parameters(described.arch, described.config, described.entries)
    if mix := choice.mix:
        encoding, label = _mixed(mix, described, shapes, choice.types), mix.name
    else:
        encoding, label = _encoding(described, shapes, scheme, keep)
    program = export(
        described.arch,
        described.config,
        scheme,
        dtype=preset.dtype,
        kv_dtype=preset.kv_dtype,
        entries=described.entries,
        traits=ProgramTraits(
            latents_once=preset.latents_once,
            cache_words=preset.cache_words,
            most_bytes=preset.binding_bytes,
            features=tower.shape.features if tower else 0,
        ),
        own=encoding.own,
    )
    planned = [
        build_library(
            program,
            level,
            deployment,
            None,
        )
        for level in (preset, *preset.variants)
    ]
    tensors = [t for name, shape in shapes.items() for t in encoding.tensors(name, shape)]
    of_tower = described.tower.parameters() if described.tower else {}
    floats = replace(encoding, tower=frozenset(of_tower))
    tensors += [t for name, shape in of_tower.items() for t in floats.tensors(name, shape)]
    return Forecast(
        name=name_of(model),
        described=described,
        quantization=label,
        target=preset.record(),
        kv_dtype=preset.kv_dtype,
        deployment=deployment.record(preset, described.config.longest),
        memory=declared(
            [library.metadata["params"] for library in planned],
            max(library.workspace for library in planned),
            program,
            deployment.page_size,
            _memory_of(tower, scheme, preset, deployment) if tower else None,
        ),
        stored=sum(tensor.nbytes for tensor in tensors),
        parameters=sum(map(prod, (*shapes.values(), *of_tower.values()))),
        plan=own_to_json(encoding.own),
        shapes=shapes,
    )


def _memory_of(
    tower: DescribedTower, scheme: Scheme, preset: TargetPreset, deployment: Deployment
) -> dict[str, int]:
    """Return the bytes that a model's tower adds to a run."""
    program = export_tower(
        tower.tower,
        tower.config,
        tower.shape,
        floats_of(scheme),
        dtype=preset.dtype,
        traits=ProgramTraits(most_bytes=preset.binding_bytes),
    )
    levels = (preset, *preset.variants)
    planned = [build_library(program, level, deployment, None) for level in levels]
    return of_tower(
        [library.metadata["params"] for library in planned],
        max(library.workspace for library in planned),
        tower.shape.features,
    )


def _mixed(
    mix: Mix,
    described: Described,
    shapes: Mapping[str, Shape],
    types: Collection[str],
) -> Encoding:
    """Return how a conversion with a mix would store the parameters.

    Of a model whose weights are not here, the types of matrices may differ, but hardly their bytes.
    """
    exact = exact_parameters(described.arch, described.config, described.entries)
    if mix.bits is None or not _has_weights(described.folder):
        weights = matrices(shapes, mix.base, exact)
        own = (
            mix.uniform(weights)
            if mix.type
            else allocate(mix, units_of(weights), normal_rows, types)
        )
    else:
        checkpoint, weight_plan, _ = read_plan(described, shapes)
        own = of_checkpoint(mix, weight_plan, checkpoint, exact, types)
    return Encoding(scheme=mix.base, exact=exact, own=own)


def _has_weights(folder: ModelFolder) -> bool:
    """Return whether a folder has more of a model than its small files."""
    if isinstance(folder.origin, WithHead):
        return _has_weights(folder.origin.model)
    weights = (path for kind in ("*.safetensors", "*.bin") for path in folder.path.glob(kind))
    return folder.origin is not None or any(weights)


def _encoding(
    described: Described,
    shapes: Mapping[str, Shape],
    scheme: Encoder,
    keep: KeptSchemes | None,
) -> tuple[Encoding, str]:
    """Return how a conversion would store the parameters, and the name that it shows for that."""
    exact = exact_parameters(described.arch, described.config, described.entries)
    label = described.folder.label if keep is None or keep else None
    if label is None:
        return Encoding(scheme=scheme, exact=exact), scheme.name
    checkpoint, weight_plan, _ = read_plan(described, shapes)
    encoding = encoding_of(checkpoint, weight_plan, scheme, exact, keep=keep)
    return encoding, label if encoding.kept else scheme.name
