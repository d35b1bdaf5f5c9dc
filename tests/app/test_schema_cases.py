"""What grammars of JSON Schemas allow, text by text: rows that browsers are held to, too."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ..runtime import small_tokenizers
from .guided_cases import schema
from .programs import Program

# `unenforced`: the keywords that are refused; `browsers`, `server`: those that one of them refuses,
# and apps enforce.
ROWS: list[dict[str, Any]] = json.loads((Path(__file__).parent / "schema_cases.json").read_text())


@pytest.fixture(scope="module")
def program() -> Iterator[Program]:
    with Program("wherry_scripted_app") as started:
        yield started


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["name"])
def test_texts_that_are_allowed(program: Program, row: dict[str, Any]) -> None:
    tokens = small_tokenizers.byte_level()
    verdict = program.ask(
        tokenizer=tokens.to_str(),
        template="x",
        eos=[tokens.token_to_id("</s>")],
        tool_format="",
        vocab_size=tokens.get_vocab_size(),
        request={
            "messages": [{"role": "user", "content": "x"}],
            "response_format": schema(row["schema"]),
        },
        texts=[*row.get("valid", []), *row.get("invalid", [])],
    )
    error = verdict.get("error", {"code": "", "message": ""})
    if "without xgrammar" in error["message"]:
        if os.environ.get("WHERRY_REQUIRE_XGRAMMAR"):
            pytest.fail(error["message"])
        pytest.skip(error["message"])
    if "unenforced" not in row:
        assert verdict == {"taken": row["valid"]}
    elif error["code"] == "unsupported_schema":
        for name in row["unenforced"]:  # and why, where that is not plain
            assert re.search(rf"[:,] {re.escape(name)}(:|,|$)", error["message"])
    else:  # no value is valid
        assert error["code"] == "invalid_grammar"
