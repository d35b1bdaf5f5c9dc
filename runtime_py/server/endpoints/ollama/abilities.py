"""Finds the capabilities of a model and gives them Ollama's names."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

from wherry.artifact.manifest import Manifest

from ....core.host_abi import answer_to, open_host
from ....text.chat_template import ChatTemplate

# Wherry's name of a capability -> Ollama's, where they differ; "": Ollama has no name for it.
_NAMES = {"chat": "completion", "score": "", "classify": ""}


def abilities(
    manifest: Manifest | None, template: str | None, folder: Path | None = None
) -> list[str]:
    """Return a model's capabilities from its manifest, its chat template and its vocabulary."""
    capabilities = manifest.capabilities if manifest else ("completion",)
    names = {_NAMES.get(name, name) for name in capabilities} - {""}
    # Ollama calls a model an embedding model only if it generates no text
    if "completion" in names:
        names.discard("embedding")
        names |= {"insert"} if folder and _fills(folder) else set()
    # the load of the model will report the error of a template that is no Jinja
    traits = answer_to("wherry_template_traits", template) if template is not None else None
    if traits:
        names |= {"tools"} if traits["tools"] else set()
        names |= {"thinking"} if traits["thinks"] else set()
    return sorted(names)


@cache
def _marks() -> list[list[str]]:
    marks: list[list[str]] = json.loads(open_host().wherry_fill_in_marks())
    return marks


def _fills(folder: Path) -> bool:
    """Tell whether a vocabulary has fill-in-the-middle tokens."""
    try:
        text = (folder / "tokenizer.json").read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):  # the load of the model will report the error
        return False

    def known(mark: str) -> bool:
        return json.dumps(mark, ensure_ascii=False) in text or json.dumps(mark) in text

    return any(all(map(known, marks)) for marks in _marks())


@cache
def thinks(template: ChatTemplate | None) -> bool:
    """Tell whether a model reasons before it answers."""
    traits = answer_to("wherry_template_traits", template.source) if template else None
    return bool(traits and traits["thinks"])
