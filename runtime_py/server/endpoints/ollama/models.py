"""Ollama's paths about models: which there are, what they are, which are in memory."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict
from datetime import datetime, timezone
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from wherry.artifact import MANIFEST, Manifest, digest

from ....text.chat_template import source_of
from ...models import LATEST, Listed, Models, named, unknown_model
from ...pipeline import body_of
from ...wire.json_body import parse_json
from ..described import COUNT, TEXT, described, list_of, object_of
from ..routes import Routes
from .abilities import abilities
from .parsing import validated
from .requests import ShowRequest

# The version of Ollama whose API this is: its clients ask for one that is new enough.
VERSION = "0.12.6"
# Names of config.json -> of GGUF, which Ollama's clients know.
_INFO = {
    "hidden_size": "embedding_length",
    "num_hidden_layers": "block_count",
    "intermediate_size": "feed_forward_length",
    "num_attention_heads": "attention.head_count",
    "num_key_value_heads": "attention.head_count_kv",
    "head_dim": "attention.key_length",
    "rope_theta": "rope.freq_base",
    "vocab_size": "vocab_size",
}
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
    """The handlers.

    Args:
        models: what is served.
    """

    def __init__(self, models: Models) -> None:
        self._models = models

    def routes(self) -> Routes:
        """Path -> handler."""
        return {
            ("HEAD", "/"): self.alive,
            ("GET", "/api/version"): self.version,
            ("GET", "/api/tags"): self.tags,
            ("GET", "/api/ps"): self.running,
            ("POST", "/api/show"): self.show,
        }

    @described()
    async def alive(self) -> Response:
        """Says that the server is there, as Ollama's command line asks first of all."""
        return Response()

    @described(answer=object_of(version=TEXT))
    async def version(self) -> Response:
        """The version of the API."""
        return JSONResponse({"version": VERSION})

    @described(answer=object_of(models=list_of(LISTED)))
    async def tags(self) -> Response:
        """Lists the models."""
        return JSONResponse({"models": [_listed(m) for m in self._models.listed()]})

    @described(answer=object_of(models=list_of(RUNNING)))
    async def running(self) -> Response:
        """Lists those in memory."""
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
        """Describes one model."""
        fields = validated(ShowRequest, parse_json(await body_of(request)))
        listed = self._models.listed()
        found = named({m.name: m for m in listed}, fields.asked)
        if found is None:
            raise unknown_model(fields.asked, listed)
        manifest, entry = found.manifest, _listed(found)
        template = source_of(found.folder) if found.folder else None
        able = await asyncio.to_thread(abilities, manifest, template)
        return JSONResponse(
            {
                "license": "",
                "modelfile": f"FROM {found.name}\n",
                "parameters": "",
                "template": template or "",
                "details": entry["details"],
                "model_info": _info(manifest, found.context),
                "capabilities": able,
                "modified_at": entry["modified_at"],
            }
        )


def _listed(model: Listed) -> dict[str, Any]:
    name = model.name if ":" in model.name else model.name + LATEST
    manifest = model.manifest
    made: float = model.created
    if model.folder is not None:
        with suppress(OSError):  # a folder outside of the cache may have been removed
            made = (model.folder / MANIFEST).stat().st_mtime
    return {
        "name": name,
        "model": name,
        "modified_at": _time(made),
        "size": _size(manifest),
        "digest": digest(asdict(manifest)) if manifest else "",
        "details": _details(manifest),
    }


def _details(manifest: Manifest | None) -> dict[str, Any]:
    family = str(manifest.architecture.get("name", "")) if manifest else ""
    return {
        "parent_model": "",
        "format": "wherry",
        "family": family,
        "families": [family] if family else [],
        "parameter_size": "",  # not in a compiled folder
        "quantization_level": manifest.quantization if manifest else "",
    }


def _info(manifest: Manifest | None, context: int | None) -> dict[str, Any]:
    """Numbers of the architecture, under the names of GGUF."""
    if manifest is None:
        return {}
    kind = str(manifest.architecture.get("name", ""))
    config: Mapping[str, Any] = manifest.architecture.get("config", {})
    found = {f"{kind}.{gguf}": config[name] for name, gguf in _INFO.items() if name in config}
    return {"general.architecture": kind, f"{kind}.context_length": context, **found}


def _on_cpu(manifest: Manifest | None) -> bool:
    return manifest is None or manifest.target.get("kind") in ("llvm", "c")


def _size(manifest: Manifest | None) -> int:
    return sum(f.size for f in manifest.files.values()) if manifest else 0


def _time(seconds: float | None) -> str:
    """As RFC 3339 has it; None is never: far away, as Ollama says it."""
    if seconds is None:
        return "2318-01-01T00:00:00Z"
    return datetime.fromtimestamp(seconds, timezone.utc).isoformat().replace("+00:00", "Z")
