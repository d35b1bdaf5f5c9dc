"""A model that is compiled and whose memory is known, so that it can be loaded."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from wherry.artifact.manifest import MANIFEST, Manifest, read_manifest
from wherry.base.locks import Use
from wherry.errors import ArtifactError, ModelError, ResourceError, WherryError, listing

from ...load import loading, memory
from ...load.memory import Room
from ...load.model import LoadedModel
from ...load.options import LoadOptions, Progress, for_compiler, for_engine
from .listing import Spec

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """The memory that a loaded model needs."""

    bytes: int
    # number of tokens in the KV cache; None: the bytes of a token are unknown
    kv_tokens: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """A compiled model of a server, with its memory plan.

    Attributes:
        folder: the compiled folder; `use` keeps other processes from removing it.
        device: the core's name of the model's device.
        draft: the draft model's compiled folder and manifest.
    """

    spec: Spec
    folder: Path
    manifest: Manifest
    device: str
    draft: tuple[Path, Manifest] | None = None
    use: Sequence[Use] = field(default=(), repr=False)

    @property
    def config(self) -> dict[str, int]:
        """Return the model's size limits: the requested ones, else the compiled ones."""
        options: Mapping[str, Any] = self.spec.options
        limits = {n: options.get(n) or self.manifest.deployment.get(n) for n in loading.LIMITS}
        return {n: v for n, v in limits.items() if v is not None}

    def least(self, alone: Room) -> Need:
        """Return the minimum memory: with a KV cache of the requested tokens, or of one context.

        Args:
            alone: the device's memory if no other model is loaded.

        Raises:
            ResourceError: the model does not fit even alone.
        """
        most = self.within(alone).kv_tokens
        if most is None or self.spec.options.get("kv_tokens") is not None:
            return self._of(most)
        return self._of(min(most, self.config["context"]))

    def within(self, free: Room) -> Need:
        """Return the memory that the model uses of free memory, by the rule of MLCEngine.

        Raises:
            ResourceError: the model does not fit.
        """
        draft = self.draft[1] if self.draft else None
        most = memory.kv_tokens(self.manifest, self.config, free, draft)
        requested = self.spec.options.get("kv_tokens")
        need = self._of(most if requested is None else requested)
        # The need is fixed if kv_tokens is an option, or if the model has no KV cache.
        if free.free is not None and need.bytes > free.free:
            raise ResourceError(
                f"{self.spec.name} needs {need.bytes / 1e6:,.1f} MB; {free.free / 1e6:,.1f} MB are "
                f"free on {free.where}. Close something, or give it fewer kv_tokens."
            )
        return need

    def _of(self, tokens: int | None) -> Need:
        models = [self.manifest, *([self.draft[1]] if self.draft else [])]
        fixed = sum(m.memory.get(part, 0) for m in models for part in ("weights", "workspace"))
        per_token = sum(m.memory.get("kv_per_token", 0) for m in models)
        sequences = self.config.get("max_batch", 1)
        state = sum(memory.recurrent(m, sequences, tokens or 0) for m in models)
        return Need(bytes=fixed + state + (tokens or 0) * per_token, kv_tokens=tokens)


def prepare(spec: Spec, progress: Progress | None = None) -> Prepared:
    """Return a model after its download, conversion and compilation, which may take minutes.

    Raises:
        WherryError: a step fails, or the model does not suit this machine.
    """
    compiling = for_compiler(cast(LoadOptions, {**spec.options, "progress": progress}))
    folder = loading.resolve(spec.model, **compiling)
    manifest = loading.verified(folder)
    draft_folder = loading.draft_of(cast(LoadOptions, {**spec.options, "progress": progress}))
    draft = (draft_folder, read_manifest(draft_folder)) if draft_folder else None
    prepared = Prepared(
        spec=spec,
        folder=folder,
        manifest=manifest,
        device=spec.options.get("device") or loading.device_of(manifest),
        draft=draft,
        use=[Use(f) for f in (folder, draft_folder) if f],
    )
    # The options are checked here; the memory is checked at the load.
    options = _for_engine(prepared, spec.options.get("kv_tokens", 1))
    loading.engine_config(manifest, options, prepared.device, draft_folder)
    return prepared


def prepare_all(specs: Sequence[Spec], progress: Progress | None = None) -> list[Prepared]:
    """Return each model prepared by `prepare`.

    Raises:
        ModelError: lists all models that fail.
    """
    prepared, problems = [], []
    for spec in specs:
        try:
            prepared.append(prepare(spec, progress))
        except WherryError as e:
            problems.append(f"{spec.name}: {e}")
    if problems:
        raise ModelError(f"Models that cannot be served:\n{listing(problems)}")
    return prepared


def load(prepared: Prepared, kv_tokens: int | None) -> LoadedModel:
    """Load the model; damaged files in the cache are replaced.

    Raises:
        WherryError: the load fails.
    """
    options = _for_engine(prepared, kv_tokens)
    try:
        return LoadedModel.load(prepared.folder, **options)
    except ArtifactError as e:
        if (Path(prepared.spec.model).expanduser() / MANIFEST).is_file():
            raise  # a compiled folder of the user's own is never changed
        _log.warning("%s\nThe cache is read through; what is damaged is built again.", e)
    sizes: Any = {} if kv_tokens is None else {"kv_tokens": kv_tokens}
    return LoadedModel.load(prepared.spec.model, **{**prepared.spec.options, **sizes})


def _for_engine(prepared: Prepared, kv_tokens: int | None) -> LoadOptions:
    """Return the load options of the engine of a prepared model."""
    options = for_engine(prepared.spec.options)
    if kv_tokens is not None:
        options["kv_tokens"] = kv_tokens
    if prepared.draft:
        options["draft"] = prepared.draft[0]
    return options
