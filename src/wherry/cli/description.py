"""Describes a model from its small files and from the cache."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import yaml

from wherry.artifact.card import Card, read_card
from wherry.artifact.head import ClassHead, EmbeddingHead
from wherry.artifact.manifest import MANIFEST, read_manifest
from wherry.cache.entries import Entry, entries
from wherry.compiler.load import Described
from wherry.runtime.core.host_abi import answer_to
from wherry.runtime.load.options import LoadOptions
from wherry.runtime.text.chat_template import source_of

from .planned import Facts, look

_THINKING = ("enable_thinking", "thinking")  # variables of templates that switch reasoning
_LICENCES = ("LICENSE*", "LICENCE*", "COPYING*")
_LONGEST_LICENCE = 80  # characters of a licence's first line


def describe(model: str, options: LoadOptions) -> dict[str, Any]:
    """Describe a model, ready for JSON; "template" is its chat template, or None.

    Raises:
        UsageError: an option does not fit a compiled folder.
        ModelError: there is no such model.
    """
    with look(model, options) as (facts, folder):
        return _described(facts, folder, entries())


def _described(facts: Facts, folder: Path, entries: list[Entry]) -> dict[str, Any]:
    template = source_of(folder)
    name = facts.declared.name
    records = [e for e in entries if e.kind == "model" and e.manifest and e.name == name]
    traits = answer_to("wherry_template_traits", template) if template else None
    compiled = (folder / MANIFEST).is_file()
    return {
        "name": name,
        "architecture": facts.described.arch.name,
        "parameters": facts.parameters,
        "shape": _shape(facts.described),
        "context": facts.described.config.context,
        "licence": licence_of(folder),
        "capabilities": _capabilities(facts, template),
        "tools": traits["tool_format"] if traits and traits["tools"] else None,
        "thinking": any(name in (template or "") for name in _THINKING),
        "template": template,
        "quantization": facts.quantization,
        "schemes": dict(facts.shares),
        "target": facts.target["name"],
        "kv_dtype": facts.kv_dtype,
        "memory": dict(facts.declared.memory),
        "quality": _quality(read_card(folder, read_manifest(folder)) if compiled else None),
        "compiled": [_compiled(entry) for entry in records],
    }


def _quality(card: Card | None) -> dict[str, Any] | None:
    return None if card is None else asdict(card)


def _shape(described: Described) -> dict[str, int]:
    config, attention = described.config, described.config.attention_shape()
    return {
        "layers": config.num_hidden_layers,
        "hidden_size": config.hidden_size,
        "heads": config.num_attention_heads,
        "kv_heads": attention.kv_heads,
        "head_dim": attention.head_dim,
        "vocab_size": config.vocab_size,
    }


def _capabilities(facts: Facts, template: str | None) -> list[str]:
    described = facts.described
    if isinstance(described.head, ClassHead):
        return ["classify", *(["score"] if len(described.head.labels) == 1 else [])]
    if described.head is not None:
        return ["embedding" if isinstance(described.head, EmbeddingHead) else "score"]
    capabilities = {
        "forward": ["completion", *(["chat"] if template else [])],
        "embed": ["embedding"],
    }
    capabilities["draft"] = ["mtp"]
    named = [name for entry in described.entries for name in capabilities[entry]]
    sees = described.tower is not None or "vision" in facts.declared.capabilities
    return [*named, "vision"] if sees else named


def _compiled(entry: Entry) -> dict[str, Any]:
    assert entry.manifest is not None
    return {
        "quantization": entry.manifest.quantization,
        "target": entry.manifest.target["name"],
        "bytes": sum(file.size for file in entry.manifest.files.values()),
        "quality": _quality(read_card(entry.path, entry.manifest)),
        "folder": str(entry.path),
    }


def licence_of(folder: Path) -> str | None:
    """Return the licence from README.md's front matter, else the licence file's first line."""
    try:
        _, front, _ = (folder / "README.md").read_text(encoding="utf-8").split("---\n", 2)
        said = yaml.safe_load(front)
    except (OSError, ValueError, yaml.YAMLError):
        # yaml.YAMLError for bad front matter, ValueError for a file without any
        said = None
    if isinstance(said, dict) and said.get("license"):
        name = said.get("license_name") if said["license"] == "other" else said["license"]
        return str(name or said["license"])
    files = sorted(path for pattern in _LICENCES for path in folder.glob(pattern))
    for path in files:
        lines = path.read_text(encoding="utf-8", errors="replace").split("\n")
        if first := next((line.strip() for line in lines if line.strip()), None):
            return first[:_LONGEST_LICENCE]
    return None
