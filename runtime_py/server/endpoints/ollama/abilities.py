"""What a model can do, in Ollama's words."""

from __future__ import annotations

import json
from pathlib import Path

from wherry.artifact import Manifest
from wherry.errors import ModelError

from ....text.chat_template import ChatTemplate
from ....text.fill_in import WAYS
from ....tools.dialect import Dialect

_NAMES = {"chat": "completion", "score": ""}  # ours -> Ollama's, where they differ; "": none


def abilities(
    manifest: Manifest | None, template: str | None, folder: Path | None = None
) -> list[str]:
    """What the manifest, the chat template and the vocabulary tell."""
    ours = manifest.capabilities if manifest else ("completion",)
    found = {_NAMES.get(name, name) for name in ours} - {""}
    if "completion" in found:  # models with embeddings are to Ollama those that write nothing
        found.discard("embedding")
        found |= {"insert"} if folder and _fills(folder) else set()
    if template is not None:
        try:
            dialect = Dialect(ChatTemplate(template))
        except ModelError:  # whoever loads the model is told
            return sorted(found)
        found |= {"tools"} if dialect.native else set()
        found |= {"thinking"} if thinks(dialect) else set()
    return sorted(found)


def _fills(folder: Path) -> bool:
    """Whether a vocabulary has tokens to fill gaps with."""
    try:
        text = (folder / "tokenizer.json").read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):  # whoever loads the model is told
        return False

    def known(mark: str) -> bool:
        return json.dumps(mark, ensure_ascii=False) in text or json.dumps(mark) in text

    return any(all(map(known, way.marks)) for way in WAYS)


def thinks(dialect: Dialect | None) -> bool:
    """Whether a model writes to itself before it answers."""
    return dialect is not None and (
        dialect.thoughts is not None or dialect.family.name == "harmony"
    )
