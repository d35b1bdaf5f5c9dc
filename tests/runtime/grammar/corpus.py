"""The schema corpus: MaskBench's real schemas, with valid and invalid instances of each.

It is 100 MB, so a person gives it: WHERRY_SCHEMA_CORPUS names a clone of
https://github.com/guidance-ai/jsonschemabench. `python -m tests.runtime.grammar.corpus SIDE [PART
PARTS]` prints the counts of one side, "server" or "app".
"""

from __future__ import annotations

import json
import os
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from wherry.errors import WherryError
from wherry.runtime.grammar.audit import SchemaProblems, prepared

from ...app.guided_cases import schema as response_format
from ...app.programs import Program
from .. import small_tokenizers
from .walking import accepts, bytes_vocabulary

FOLDER = "WHERRY_SCHEMA_CORPUS"
# Returns those texts that a schema's grammar allows; None if the schema is refused.
Side = Callable[[Any, list[str]], "list[str] | None"]


def files(part: int = 0, parts: int = 1) -> list[Path]:
    if FOLDER not in os.environ:
        pytest.skip(f"set {FOLDER} to a clone of github.com/guidance-ai/jsonschemabench")
    paths = sorted((Path(os.environ[FOLDER]) / "maskbench" / "data").glob("*.json"))
    assert len(paths) > 11_000
    return paths[part::parts]


def server(schema: Any, texts: list[str]) -> list[str] | None:
    """By llguidance, in Python."""
    try:
        grammar = bytes_vocabulary().compile("json_schema", prepared(schema))
    except (SchemaProblems, WherryError):
        return None
    return [text for text in texts if accepts(grammar, text)]


def app(program: Program) -> Side:
    """By xgrammar, in C++."""
    tokens = small_tokenizers.byte_level()
    given = {
        "tokenizer": tokens.to_str(),
        "template": "x",
        "eos": [tokens.token_to_id("</s>")],
        "tool_format": "",
        "vocab_size": tokens.get_vocab_size(),
    }

    def taken(schema: Any, texts: list[str]) -> list[str] | None:
        request = {
            "messages": [{"role": "user", "content": "x"}],
            "response_format": response_format(schema),
        }
        answer = program.ask(**given, request=request, texts=texts)
        return answer.get("taken")

    return taken


def count(side: Side, paths: list[Path]) -> tuple[Counter[str], list[str]]:
    """Return the counts of schemas and instances, and each invalid instance that is allowed."""
    counts: Counter[str] = Counter()
    wrong = []
    for path in paths:
        case = json.loads(path.read_text("utf-8"))
        texts = [json.dumps(t["data"], ensure_ascii=False) for t in case.get("tests", [])]
        try:
            taken = side(case["schema"], texts)
        except Exception as e:  # of any kind: it would be a 500
            wrong.append(f"{path.name}: {e!r}")
            continue
        counts["refused" if taken is None else "enforced"] += 1
        for test, text in zip(case.get("tests", []), texts, strict=True):
            kind = "valid" if test["valid"] else "invalid"
            if taken is None:
                counts[f"{kind}, refused"] += 1
                continue
            counts[kind] += 1
            counts[f"{kind}, allowed"] += text in taken
            if text in taken and not test["valid"]:
                wrong.append(f"{path.name}: {text[:300]}")
    return counts, wrong


def sides() -> Iterator[tuple[str, Side]]:
    yield "server", server
    with Program("wherry_scripted_app") as program:
        yield "app", app(program)


if __name__ == "__main__":
    requested, *numbers = sys.argv[1:]
    for name, side in sides():
        if name == requested:
            counts, wrong = count(side, files(*map(int, numbers)))
            print(json.dumps({"side": name, "counts": counts, "wrong": wrong}, indent=1))
