"""Finds the capabilities of a model and gives them Ollama's names."""

from __future__ import annotations

import json
from pathlib import Path

from wherry.artifact.manifest import Manifest
from wherry.errors import ModelError

from ....text.chat_template import ChatTemplate
from ....text.fill_in import WAYS
from ....tools.dialect import Dialect

# Wherry's name of a capability -> Ollama's, where they differ; "": Ollama has no name for it.
_NAMES = {"chat": "completion", "score": "", "classify": ""}


def abilities(
    manifest: Manifest | None, template: str | None, folder: Path | None = None
) -> list[str]:
    """Return a model's capabilities from its manifest, its chat template and its vocabulary."""
    ours = manifest.capabilities if manifest else ("completion",)
    found = {_NAMES.get(name, name) for name in ours} - {""}
    # Ollama calls a model an embedding model only if it generates no text
    if "completion" in found:
        found.discard("embedding")
        found |= {"insert"} if folder and _fills(folder) else set()
    if template is not None:
        try:
            dialect = Dialect(ChatTemplate(template))
        except ModelError:  # the load of the model will report the error
            return sorted(found)
        found |= {"tools"} if dialect.native else set()
        found |= {"thinking"} if thinks(dialect) else set()
    return sorted(found)


def _fills(folder: Path) -> bool:
    """Tell whether a vocabulary has fill-in-the-middle tokens."""
    try:
        text = (folder / "tokenizer.json").read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):  # the load of the model will report the error
        return False

    def known(mark: str) -> bool:
        return json.dumps(mark, ensure_ascii=False) in text or json.dumps(mark) in text

    return any(all(map(known, way.marks)) for way in WAYS)


def thinks(dialect: Dialect | None) -> bool:
    """Tell whether a model reasons before it answers."""
    return dialect is not None and (
        dialect.thoughts is not None or dialect.family.name == "harmony"
    )
