"""A random model of apps that obeys the masks: what it writes is what the grammar is."""

from __future__ import annotations

import json
import os
from decimal import Decimal, localcontext
from typing import Any

import jsonschema
import pytest
from tokenizers import AddedToken, Tokenizer

from wherry.data import read

from ..runtime import small_tokenizers
from ..runtime.grammar.schemas import decimals
from ..runtime.tools.test_chats import PLAIN
from .programs import Program

ASK = [{"role": "user", "content": "x"}]
# by the families' names: the texts of a template that tell a family
SIGNS = {row["name"]: row.get("signs", []) for row in read("tool_families")}


class Obedient:
    """A small model that draws any token that its mask allows."""

    def __init__(self, program: Program) -> None:
        self._program = program

    def chunks(
        self, request: dict[str, Any], seed: int, family: Any = None, thinks: str = "", **more: Any
    ) -> list[Any]:
        """Its answer, or what is streamed. `thinks`: what the prompt ends with."""
        signs = "" if family is None else "{{ tools }}{# " + "\n".join(SIGNS[family.name]) + " #}"
        tokens = more.get("tokens") or tokenizer(family)
        reply = self._program.ask(
            tokenizer=tokens.to_str(),
            template=PLAIN + signs + thinks,
            eos=[tokens.token_to_id("</s>")],
            tool_format="" if family is None else family.name,
            seed=seed,
            vocab_size=tokens.get_vocab_size(),
            request={"messages": ASK, **request},
        )
        if "error" in reply:
            error = reply["error"]
            if "without xgrammar" in error["message"]:
                if os.environ.get("WHERRY_REQUIRE_XGRAMMAR"):
                    pytest.fail(error["message"])
                pytest.skip(error["message"])
            raise Refused(error)
        return [json.loads(chunk) for chunk in reply["answer"]]

    def choice(self, request: dict[str, Any], seed: int, family: Any = None, **more: Any) -> Any:
        """Of its answer the only one."""
        (answer,) = self.chunks(request, seed, family, **more)
        return answer["choices"][0]

    def text(self, request: dict[str, Any], seed: int) -> str:
        """What it writes; "" if it did not come to an end."""
        choice = self.choice(request, seed)
        return choice["message"]["content"] if choice["finish_reason"] == "stop" else ""

    def refusal(self, **request: Any) -> dict[str, Any]:
        """The error of a request."""
        with pytest.raises(Refused) as e:
            self.chunks(request, 0)
        return e.value.error


class Refused(Exception):
    """The request's error."""

    def __init__(self, error: dict[str, Any]) -> None:
        super().__init__(error["message"])
        self.error = error


_TOKENIZERS: dict[str, Tokenizer] = {}


def tokenizer(family: Any) -> Tokenizer:
    """Bytes, some pieces of JSON, and the marks of a family, which are special where they are."""
    name = "" if family is None else family.name
    if name not in _TOKENIZERS:
        built = small_tokenizers.byte_level()
        marks = [] if family is None else [*family.markers, *family.stops]
        built.add_special_tokens([AddedToken(m, special=True) for m in marks if "<" in m])
        _TOKENIZERS[name] = built
    return _TOKENIZERS[name]


def valid(text: str, against: Any) -> None:
    """Raise unless the text is a value of the schema, its numbers read as they are written."""
    validator = jsonschema.Draft202012Validator(
        decimals(against), format_checker=jsonschema.Draft202012Validator.FORMAT_CHECKER
    )
    with localcontext() as context:
        context.prec = 1000
        validator.validate(json.loads(text, parse_float=Decimal))
