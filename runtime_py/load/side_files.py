"""Reads the files of a compiled folder that describe the model, other than its weights."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from wherry.artifact.head import Head, read_head
from wherry.artifact.manifest import VISION

from ..text import chat_template
from ..text.tokenizer import Tokenizer, read_json
from . import generation_config


@dataclass(frozen=True, slots=True)
class SideFiles:
    """Tokenizer, template, generation_config.json, wherry-head.json, wherry-vision.json, parsed."""

    tokenizer: Tokenizer
    template: chat_template.ChatTemplate | None = None
    # sampling parameters in generation_config.json
    defaults: Mapping[str, Any] = field(default_factory=dict)
    # tokens that the decoder of an encoder-decoder begins with; (): the files name none
    decoder_start: tuple[int, ...] = ()
    # the embedding or score that the model computes instead of text; None: it generates text
    head: Head | None = None
    # wherry-vision.json: how images become what the model's tower takes; None: it reads text alone
    vision: Mapping[str, Any] | None = None

    @classmethod
    def read(cls, folder: Path) -> SideFiles:
        """Read the side files of a compiled folder.

        Raises:
            ModelError: a file is missing or damaged.
        """
        tokenizer = Tokenizer.from_folder(folder)
        template = chat_template.from_folder(folder, tokenizer.special_tokens)
        defaults, config = generation_config.read(folder), read_json(folder / "config.json")
        start = generation_config.decoder_start(defaults, config)
        vision = read_json(folder / VISION) or None
        return cls(tokenizer, template, defaults, start, read_head(folder), vision)
