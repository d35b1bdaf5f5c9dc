"""The paths of Ollama's API that list and describe models."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import asdict
from datetime import datetime, timezone
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from wherry.artifact.manifest import MANIFEST, Manifest, digest

from ....text.chat_template import source_of
from ...models import LATEST, Listed, Models, named, unknown_model
from ...pipeline import body_of
from ...wire.json_body import parse_json
from ..described import COUNT, TEXT, described, list_of, object_of
from ..routes import Routes
from . import show
from .abilities import abilities
from .parsing import validated
from .requests import ShowRequest

# The version of Ollama's API that the server reports: clients require a recent one.
VERSION = "0.14.0"
DETAILS = object_of(
    parent_model=TEXT,
    format=TEXT,
    family=TEXT,
    families=list_of(TEXT),
    parameter_size=TEXT,
    quantization_level=TEXT,
)
_NAMED = {"name": TEXT, "model": TEXT, "size": COUNT, "digest": TEXT, "details": DETAILS}
LISTED = object_of(**_NAMED, modified_at=TEXT)
RUNNING = object_of(**_NAMED, size_vram=COUNT, context_length=COUNT, expires_at=TEXT)
SHOWN = object_of(
    license=TEXT,
    modelfile=TEXT,
    parameters=TEXT,
    template=TEXT,
    details=DETAILS,
    model_info={"type": "object"},
    capabilities=list_of(TEXT),
    modified_at=TEXT,
)


class OllamaModels:
    """Handlers of the paths that list and describe models.

    Args:
        models: the server's models.
    """

    def __init__(self, models: Models) -> None:
        self._models = models

    def routes(self) -> Routes:
        """Return the handler of each method and path."""
        return {
            ("HEAD", "/"): self.alive,
            ("GET", "/api/version"): self.version,
            ("GET", "/api/tags"): self.tags,
            ("GET", "/api/ps"): self.running,
            ("POST", "/api/show"): self.show,
        }

    @described()
    async def alive(self) -> Response:
        """Answers 200; Ollama's command line sends this first."""
        return Response()

    @described(answer=object_of(version=TEXT))
    async def version(self) -> Response:
        """Returns the version of the API."""
        return JSONResponse({"version": VERSION})

    @described(answer=object_of(models=list_of(LISTED)))
    async def tags(self) -> Response:
        """Lists the models."""
        return JSONResponse({"models": [_listed(m) for m in self._models.listed()]})

    @described(answer=object_of(models=list_of(RUNNING)))
    async def running(self) -> Response:
        """Lists the loaded models."""
        models = []
        for served in self._models.served():
            on_device = not _on_cpu(served.listed.manifest)
            size = served.bytes or _size(served.listed.manifest)
            entry = _listed(served.listed) | {
                "size": size,
                "size_vram": size if on_device else 0,
                "context_length": served.loaded.context,
                "expires_at": _time(served.expires),
            }
            del entry["modified_at"]
            models.append(entry)
        return JSONResponse({"models": models})

    @described(request=ShowRequest, answer=SHOWN)
    async def show(self, request: Request) -> Response:
        """Describes the model that the request names."""
        fields = validated(ShowRequest, parse_json(await body_of(request)))
        listed = self._models.listed()
        listed_model = named({m.name: m for m in listed}, fields.requested)
        if listed_model is None:
            raise unknown_model(fields.requested, listed)
        return JSONResponse(await asyncio.to_thread(_shown, listed_model))


def _shown(model: Listed) -> dict[str, Any]:
    """Return a model's description from its files; any thread may call this."""
    manifest, folder, entry = model.manifest, model.folder, _listed(model)
    template = source_of(folder) if folder else None
    chosen = show.parameters(folder)
    return {
        "license": "",  # a compiled folder contains no license
        "modelfile": show.modelfile(entry["name"], template, chosen),
        "parameters": show.as_lines(chosen),
        "template": template or "",
        "details": entry["details"],
        "model_info": show.model_info(manifest, folder, model.context),
        "capabilities": abilities(manifest, template, folder),
        "modified_at": entry["modified_at"],
    }


def _listed(model: Listed) -> dict[str, Any]:
    name = model.name if ":" in model.name else model.name + LATEST
    manifest = model.manifest
    created: float = model.created
    if model.folder is not None:
        with suppress(OSError):  # a folder outside of the cache may have been removed meanwhile
            created = (model.folder / MANIFEST).stat().st_mtime
    return {
        "name": name,
        "model": name,
        "modified_at": _time(created),
        "size": _size(manifest),
        "digest": digest(asdict(manifest)) if manifest else "",
        "details": _details(model),
    }


def _details(model: Listed) -> dict[str, Any]:
    manifest = model.manifest
    family = str(manifest.architecture.get("name", "")) if manifest else ""
    config = manifest.architecture.get("config", {}) if manifest else {}
    lengths = {"context_length": model.context, "embedding_length": config.get("hidden_size")}
    return {
        "parent_model": "",
        "format": "wherry",
        "family": family,
        "families": [family] if family else [],
        "parameter_size": show.in_words(show.parameter_count(model.folder)),
        "quantization_level": manifest.quantization if manifest else "",
        **{name: length for name, length in lengths.items() if length is not None},
    }


def _on_cpu(manifest: Manifest | None) -> bool:
    return manifest is None or manifest.target.get("kind") in ("llvm", "c")


def _size(manifest: Manifest | None) -> int:
    return sum(f.size for f in manifest.files.values()) if manifest else 0


def _time(seconds: float | None) -> str:
    """Return a time in RFC 3339; never (None) is a date far in the future, as in Ollama."""
    if seconds is None:
        return "2318-01-01T00:00:00Z"
    return datetime.fromtimestamp(seconds, timezone.utc).isoformat().replace("+00:00", "Z")
