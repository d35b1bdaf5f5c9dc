"""What a model can do, in Ollama's words."""

from __future__ import annotations

from wherry.artifact import Manifest
from wherry.errors import ModelError

from ....text.chat_template import ChatTemplate
from ....tools.dialect import Dialect

_NAMES = {"chat": "completion", "score": ""}  # ours -> Ollama's, where they differ; "": none


def abilities(manifest: Manifest | None, template: str | None) -> list[str]:
    """What the manifest and the chat template tell."""
    ours = manifest.capabilities if manifest else ("completion",)
    found = {_NAMES.get(name, name) for name in ours} - {""}
    if "completion" in found:  # models with embeddings are to Ollama those that write nothing
        found.discard("embedding")
    if template is not None:
        try:
            dialect = Dialect(ChatTemplate(template))
        except ModelError:  # whoever loads the model is told
            return sorted(found)
        found |= {"tools"} if dialect.native else set()
        found |= {"thinking"} if thinks(dialect) else set()
    return sorted(found)


def thinks(dialect: Dialect | None) -> bool:
    """Whether a model writes to itself before it answers."""
    return dialect is not None and (
        dialect.thoughts is not None or dialect.family.name == "harmony"
    )
