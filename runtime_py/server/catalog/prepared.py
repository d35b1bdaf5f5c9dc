"""A model that is compiled and whose memory is known, ready to be loaded."""

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
    """The memory of a loaded model."""

    bytes: int
    kv_tokens: int | None  # tokens of the KV cache; None: the bytes of a token are unknown


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """A compiled model of a server.

    Attributes:
        folder: the compiled folder; `use` keeps other processes from removing it.
        device: the core's name of its device.
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
        """Its limits: the requested ones, else the compiled ones."""
        asked: Mapping[str, Any] = self.spec.options
        limits = {n: asked.get(n) or self.manifest.deployment.get(n) for n in loading.LIMITS}
        return {n: v for n, v in limits.items() if v is not None}

    def least(self, alone: Room) -> Need:
        """The least memory: with a KV cache of the requested tokens, or of one context.

        Args:
            alone: the memory if no other model is loaded.

        Raises:
            ResourceError: it does not fit even alone.
        """
        most = self.within(alone).kv_tokens
        if most is None or self.spec.options.get("kv_tokens") is not None:
            return self._of(most)
        return self._of(min(most, self.config["context"]))

    def within(self, free: Room) -> Need:
        """The memory that it uses of free memory, by MLCEngine's rule.

        Raises:
            ResourceError: it does not fit.
        """
        draft = self.draft[1] if self.draft else None
        most = memory.kv_tokens(self.manifest, self.config, free, draft)
        asked = self.spec.options.get("kv_tokens")
        need = self._of(most if asked is None else asked)
        # the tokens are fixed, or there is no KV cache
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
        return Need(bytes=fixed + (tokens or 0) * per_token, kv_tokens=tokens)


def prepare(spec: Spec, progress: Progress | None = None) -> Prepared:
    """Download, convert and compile what is missing; this may take minutes.

    Raises:
        WherryError: that fails, or the model does not suit this machine.
    """
    compiling = for_compiler(cast(LoadOptions, {**spec.options, "progress": progress}))
    folder = loading.resolve(spec.model, **compiling)
    manifest = loading.verified(folder)
    draft_folder = loading.draft_of(cast(LoadOptions, {**spec.options, "progress": progress}))
    draft = (draft_folder, read_manifest(draft_folder)) if draft_folder else None
    made = Prepared(
        spec=spec,
        folder=folder,
        manifest=manifest,
        device=spec.options.get("device") or loading.device_of(manifest),
        draft=draft,
        use=[Use(f) for f in (folder, draft_folder) if f],
    )
    # The options are checked now; memory is checked at the load.
    asked = _for_engine(made, spec.options.get("kv_tokens", 1))
    loading.engine_config(manifest, asked, made.device, draft_folder)
    return made


def prepare_all(specs: Sequence[Spec], progress: Progress | None = None) -> list[Prepared]:
    """Call `prepare` for each.

    Raises:
        ModelError: lists all models that fail.
    """
    made, problems = [], []
    for spec in specs:
        try:
            made.append(prepare(spec, progress))
        except WherryError as e:
            problems.append(f"{spec.name}: {e}")
    if problems:
        raise ModelError(f"Models that cannot be served:\n{listing(problems)}")
    return made


def load(made: Prepared, kv_tokens: int | None) -> LoadedModel:
    """Load the model; damaged files in the cache are made again.

    Raises:
        WherryError: the load fails.
    """
    options = _for_engine(made, kv_tokens)
    try:
        return LoadedModel.load(made.folder, **options)
    except ArtifactError as e:
        if (Path(made.spec.model).expanduser() / MANIFEST).is_file():
            raise  # a compiled folder of the user is never changed
        _log.warning("%s\nThe cache is read through; what is damaged is made again.", e)
    sizes: Any = {} if kv_tokens is None else {"kv_tokens": kv_tokens}
    return LoadedModel.load(made.spec.model, **{**made.spec.options, **sizes})


def _for_engine(made: Prepared, kv_tokens: int | None) -> LoadOptions:
    """The options for the engine."""
    options = for_engine(made.spec.options)
    if kv_tokens is not None:
        options["kv_tokens"] = kv_tokens
    if made.draft:
        options["draft"] = made.draft[0]
    return options
