"""What the files of a compiled folder say of a model besides its weights."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from wherry.artifact.head import Head, read_head

from ..text import chat_template
from ..text.tokenizer import Tokenizer
from . import generation_config


@dataclass(frozen=True, slots=True)
class SideFiles:
    """Tokenizer, chat template, generation_config.json and wherry-head.json of one model."""

    tokenizer: Tokenizer
    template: chat_template.ChatTemplate | None = None
    defaults: Mapping[str, Any] = field(default_factory=dict)  # generation_config.json
    head: Head | None = None  # what the model computes instead of text

    @classmethod
    def read(cls, folder: Path) -> SideFiles:
        """Read the files of a folder.

        Raises:
            ModelError: a file is missing or damaged.
        """
        tokenizer = Tokenizer.from_folder(folder)
        template = chat_template.from_folder(folder, tokenizer.special_tokens)
        return cls(tokenizer, template, generation_config.read(folder), read_head(folder))
