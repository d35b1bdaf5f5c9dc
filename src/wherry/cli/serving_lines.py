"""What `wherry serve` says as it begins to listen: where, which models, devices and memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from wherry.runtime.base_engine import BaseEngine
from wherry.runtime.load.loading import device_of
from wherry.runtime.load.memory import room

from .quantities import size

if TYPE_CHECKING:
    from wherry.runtime import MLCEngine
    from wherry.runtime.load.model import LoadedModel
    from wherry.runtime.server.catalog.catalog import Catalog
    from wherry.runtime.server.models import Listed

_SHOWN = 8  # models of a catalog that are listed


def lines(url: str, title: str, serving: MLCEngine | Catalog) -> Iterator[str]:
    """Yield the lines; a browser reaches no Unix socket, so there is no page at one.

    Args:
        url: the server's address.
        title: what the user has asked to be served.
        serving: a loaded model, or several.
    """
    has_page = url.startswith("http")
    yield f"Serving {title} at {url}{'/v1' if has_page else ''}"
    if has_page:
        yield f"  chat page  {url}/"
    if isinstance(serving, BaseEngine):
        yield from _of_model(serving.loaded)
    else:
        yield from _of_models(serving.listed())


def _of_model(loaded: LoadedModel) -> Iterator[str]:
    """Yield what a loaded model is, where it runs, and its memory."""
    yield f"  model      {loaded.name}, context of {loaded.context:,} tokens"
    if loaded.origin is None:
        return
    manifest, stats = loaded.origin.manifest, loaded.stats()
    memory = manifest.memory
    cache = stats.pages_total * stats.page_size * memory["kv_per_token"]
    device = device_of(manifest)
    where = "this machine's CPU" if device == "cpu" else f"{device}, {room(device).where}"
    yield f"  device     {where}: {manifest.target['name']}, {manifest.quantization}"
    yield (
        f"  memory     weights {size(memory['weights'])}, KV cache {size(cache)} for "
        f"{loaded.max_batch} requests, {size(memory['workspace'])} per step"
    )


def _of_models(models: Sequence[Listed]) -> Iterator[str]:
    """Yield the models of a catalog; each is loaded at its first request."""
    for model in models[:_SHOWN]:
        manifest = model.manifest
        about = f", {manifest.quantization} for {manifest.target['name']}" if manifest else ""
        weights = f", {size(manifest.memory['weights'])} of weights" if manifest else ""
        yield f"  model      {model.name}{about}{weights}"
    if len(models) > _SHOWN:
        yield f"  and        {len(models) - _SHOWN} more: wherry ps"
