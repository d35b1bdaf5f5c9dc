"""Models that say what a row of `tool_cases.py` has them say, in Python's engine or as folders."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tokenizers import AddedToken

from wherry.runtime import MLCEngine
from wherry.runtime.load.model import LoadedModel
from wherry.runtime.load.side_files import SideFiles
from wherry.runtime.text.chat_template import ChatTemplate
from wherry.runtime.text.tokenizer import Tokenizer

from ..runtime import small_tokenizers
from ..runtime.conftest import core_of
from ..runtime.fake_core import FakeCore, saying
from ..support import scripted_model

Case = dict[str, Any]
SPECIAL = {"eos_token": "</s>"}


class ScriptedModel:
    """A row's model in Python's engine, on a core that is none."""

    def __init__(self, case: Case) -> None:
        backend = small_tokenizers.byte_level()
        backend.add_special_tokens([AddedToken(s, special=True) for s in case["specials"]])
        backend.add_tokens([AddedToken(s, special=False) for s in case.get("words", ())])
        self.tokenizer = Tokenizer(backend, SPECIAL)
        self.eos: int = backend.token_to_id(SPECIAL["eos_token"])
        self.output = self.tokenizer.encode(case["said"], add_special_tokens=False)
        core = FakeCore(saying(self.output, self.eos), context=4096, pages=8192)
        template = ChatTemplate(case["template"], SPECIAL)
        tool_format = case.get("tool_format")
        self.loaded = LoadedModel(
            "small", core, SideFiles(self.tokenizer, template), tool_format=tool_format
        )

    def ask(self, **request: Any) -> Any:
        """Its answer, or the chunks of its stream."""
        return MLCEngine.of(self.loaded).chat.completions.create(**request)

    def prompt(self) -> list[int]:
        """Of the last request."""
        return core_of(self.loaded).added[-1][0]

    def close(self) -> None:
        """End it."""
        self.loaded.close()


@dataclass
class ModelFolder:
    """A compiled folder, the rows whose model it is, and options of a load."""

    folder: Path
    options: dict[str, Any]
    cases: list[Case] = field(default_factory=list)


def folders(cases: Iterable[Case], to: Path) -> list[ModelFolder]:
    """A folder for all rows that agree in model, text and place of the text."""
    library = scripted_model.build(to / "scripted.so", "small")
    by_key: dict[str, ModelFolder] = {}
    for case in cases:
        model = ScriptedModel(case)
        try:
            model.ask(**{**case["request"], "max_tokens": 1})
            prompt = len(model.prompt())
        finally:
            model.close()
        kind = {k: v for k, v in case.items() if k != "request"} | {"prompt": prompt}
        key = json.dumps(kind, sort_keys=True)
        if key not in by_key:
            script = scripted_model.ScriptedText(
                tokenizer=model.tokenizer.backend,
                template=case["template"],
                special=SPECIAL,
                eos=model.eos,
                said=model.output,
                prompt=prompt,
            )
            folder = scripted_model.write(to / f"m{len(by_key)}", library, "small", script)
            options = {"tool_format": case["tool_format"]} if "tool_format" in case else {}
            by_key[key] = ModelFolder(folder, options)
        by_key[key].cases.append(case)
    return list(by_key.values())
