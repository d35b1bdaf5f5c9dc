"""A model that can be loaded at once: compiled, and its memory known."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from wherry.artifact import MANIFEST, Manifest, read_manifest
from wherry.errors import ArtifactError, ModelError, ResourceError, WherryError, listing
from wherry.locks import Use

from ...load import loading, memory
from ...load.memory import Room
from ...load.model import LoadedModel
from ...load.options import LoadOptions, Progress, for_compiler, for_engine
from .listing import Spec

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """Memory of a model that is loaded."""

    bytes: int
    kv_tokens: int | None  # of the cache; None: nobody knows what one takes


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """A compiled model that a server lists.

    Attributes:
        folder: compiled; `use` keeps others from removing it.
        device: the core's name of where it runs.
        draft: the compiled folder of its draft model, and what it says.
    """

    spec: Spec
    folder: Path
    manifest: Manifest
    device: str
    draft: tuple[Path, Manifest] | None = None
    use: Sequence[Use] = field(default=(), repr=False)

    @property
    def config(self) -> dict[str, int]:
        """Its limits: what is asked for, else what it was compiled with."""
        asked: Mapping[str, Any] = self.spec.options
        limits = {n: asked.get(n) or self.manifest.deployment.get(n) for n in loading.LIMITS}
        return {n: v for n, v in limits.items() if v is not None}

    def least(self, alone: Room) -> Need:
        """What it takes if it must: a cache for the tokens asked for, or for one whole context.

        Args:
            alone: all memory there is for models.

        Raises:
            ResourceError: it does not fit even there.
        """
        most = self.within(alone).kv_tokens
        if most is None or self.spec.options.get("kv_tokens") is not None:
            return self._of(most)
        return self._of(min(most, self.config["context"]))

    def within(self, free: Room) -> Need:
        """What it takes of memory that is free: what MLCEngine would.

        Raises:
            ResourceError: it does not fit.
        """
        beside = self.draft[1] if self.draft else None
        most = memory.kv_tokens(self.manifest, self.config, free, beside)
        asked = self.spec.options.get("kv_tokens")
        need = self._of(most if asked is None else asked)
        if free.free is not None and need.bytes > free.free:  # tokens asked for, or no cache at all
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
    """Download, convert and compile what is missing; takes as long.

    Raises:
        WherryError: it cannot be made, or not for this machine.
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
    # What is asked for is checked now, not when somebody waits for it. Memory is, then.
    asked = _for_engine(made, spec.options.get("kv_tokens", 1))
    loading.engine_config(manifest, asked, made.device, draft_folder)
    return made


def prepare_all(specs: Sequence[Spec], progress: Progress | None = None) -> list[Prepared]:
    """`prepare` each.

    Raises:
        ModelError: with all that cannot be made.
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
    """Bring it into memory. What is damaged in the cache is made again.

    Raises:
        WherryError: it cannot be loaded.
    """
    options = _for_engine(made, kv_tokens)
    try:
        return LoadedModel.load(made.folder, **options)
    except ArtifactError as e:
        if (Path(made.spec.model).expanduser() / MANIFEST).is_file():
            raise  # a compiled folder that somebody gave is left
        _log.warning("%s\nThe cache is read through; what is damaged is made again.", e)
    sizes: Any = {} if kv_tokens is None else {"kv_tokens": kv_tokens}
    return LoadedModel.load(made.spec.model, **{**made.spec.options, **sizes})


def _for_engine(made: Prepared, kv_tokens: int | None) -> LoadOptions:
    """The options that are not the compiler's."""
    options = for_engine(made.spec.options)
    if kv_tokens is not None:
        options["kv_tokens"] = kv_tokens
    if made.draft:
        options["draft"] = made.draft[0]
    return options
