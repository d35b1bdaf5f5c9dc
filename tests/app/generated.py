"""Writes what is made of the data of app/data:

    python -m tests.app.generated

tests/app/test_generated.py fails where a file is not what this writes.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from wherry.data import read

from . import c_structs

ROOT = Path(__file__).parents[2]
_TEXTS = {
    "reasoning_marks": "kReasoningMarks",
    "request_fields": "kRequestFields",
    "tool_families": "kToolFamilies",
}
_NOTE = "Written by `make generated` of {}; not to be edited."
_WIDE = 100  # characters of a line that is written


def texts() -> str:
    """Files that C++ reads as they are, for it."""
    source = [
        f"// {_NOTE.format('the JSON files here')}",
        '#include "app/data/data.h"',
        "",
        "namespace wherry::app::data {",
        "",
        "// clang-format off",
    ]
    for name, constant in _TEXTS.items():
        lines = _rows(read(name))
        source += [f"const char* const {constant} =", *(f'    R"json({x})json"' for x in lines)]
        source[-1] += ";"
    return "\n".join([*source, "// clang-format on", "", "}  // namespace wherry::app::data", ""])


def _rows(data: Any) -> list[str]:
    """JSON, a row of a list a line."""
    if isinstance(data, dict):
        lines = ["{"]
        for i, (name, rows) in enumerate(data.items()):
            lines += [f'{"," if i else ""}"{name}":', *_rows(rows)]
        return [*lines, "}"]
    rows = (json.dumps(r, ensure_ascii=False, separators=(",", ":")) for r in data)
    return [*(f"{',' if i else '['}{row}" for i, row in enumerate(rows)), "]"]


def python_fields() -> str:
    """Pydantic's class of the fields of sampling, which other protocols have, too."""
    lines = [_PYTHON_HEAD]
    for row in read("request_fields")["sampling"]:
        line = f"    {row['name']}: {_python_type(row)}"
        note = f"  # {row['says']}" if "says" in row else ""
        if len(line + note) > _WIDE:
            lines += [f"    {note.strip()}"] if note else []
            note = ""
        lines.append(line + note)
    return "\n".join([*lines, ""])


_PYTHON_HEAD = f'''"""The fields of sampling, with bounds.

{_NOTE.format("app/data/request_fields.json")}
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, Field

from .counts import at_most
from .kinds import Biases, ShortText, TokenIds


class SamplingFields(BaseModel):
    """Fields of sampling; None: generation_config.json, or else no effect."""
'''
_BOUNDS = {"least": "ge", "above": "gt", "most": "le", "below": "lt"}
_PYTHON = {
    "biases": "Biases = None",
    "flag": "bool | None = None",
    "token_ids": "TokenIds = None",
}


def _python_type(row: dict[str, Any]) -> str:
    kind = row["kind"]
    if kind in ("number", "integer"):
        bounds = ", ".join(f"{to}={row[name]}" for name, to in _BOUNDS.items() if name in row)
        return f"{'int' if kind == 'integer' else 'float'} | None = Field(None, {bounds})"
    if kind == "one_of":
        return f"Literal[{', '.join(map(json.dumps, row['values']))}] | None = None"
    if kind == "words":
        return f'Annotated[list[ShortText] | None, at_most({row["most"]}, "words")] = None'
    return _PYTHON[kind]


def python_arguments() -> str:
    """The fields as types of keyword arguments, which editors and type checkers read."""
    groups = read("request_fields")
    lines = [_ARGUMENTS_HEAD]
    for group, (bases, says) in _ARGUMENTS.items():
        inherited = {row["name"] for base in bases for row in groups[base]} | {"stream"}
        above = [f"{base.capitalize()}Arguments" for base in bases[-1:]] or ["TypedDict"]
        lines += ["", "", f"class {group.capitalize()}Arguments({above[0]}, total=False):"]
        lines += [f'    """{says}"""', ""]
        for row in groups[group]:
            if row["name"] in inherited:
                continue
            kind = _python_argument(row)
            kind = f"Required[{kind}]" if row.get("required") else f"{kind} | None"
            says = "; ".join(filter(None, [_range(row), row.get("says")])).replace('"', "'")
            lines += [f"    {row['name']}: {kind}", f'    """{says}"""']
    return "\n".join([*lines, ""])


_ARGUMENTS = {
    "sampling": ((), "How tokens are chosen; None: generation_config.json, or else no effect."),
    "shared": (("sampling",), "Arguments that chats and completions share."),
    "chat": (
        ("sampling", "shared"),
        "The arguments of `engine.chat.completions.create`, with those below.",
    ),
    "completion": (
        ("sampling", "shared"),
        "The arguments of `engine.completions.create`, with those below.",
    ),
    "embedding": ((), "The arguments of `engine.embeddings.create`."),
}
_ARGUMENTS_HEAD = f'''"""The arguments of `create`: fields of requests, as types that editors know.

{_NOTE.format("app/data/request_fields.json")}
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from typing_extensions import Required, TypedDict'''
_PYTHON_ARGUMENTS = {
    "biases": "Mapping[int, float] | Mapping[str, float]",
    "flag": "bool",
    "form": "Mapping[str, Any]",
    "integer": "int",
    "messages": "Sequence[Mapping[str, Any]]",
    "number": "float",
    "object": "Mapping[str, Any]",
    "objects": "Sequence[Mapping[str, Any]]",
    "prediction": "Mapping[str, Any]",
    "prompt": "str | Sequence[str] | Sequence[int] | Sequence[Sequence[int]]",
    "prompt_logprobs": "int | bool",
    "schema": "Mapping[str, Any] | bool",
    "stops": "str | Sequence[str]",
    "stream_options": "Mapping[str, bool]",
    "text": "str",
    "texts": "Sequence[str]",
    "token_ids": "Sequence[int]",
    "tool_choice": 'Literal["none", "auto", "required"] | Mapping[str, Any]',
    "tools": "Sequence[Mapping[str, Any]]",
    "words": "Sequence[str]",
}


def _python_argument(row: dict[str, Any]) -> str:
    if "values" in row:
        return f"Literal[{', '.join(map(json.dumps, row['values']))}]"
    return _PYTHON_ARGUMENTS[row["kind"]] + (" | str" if row.get("text") else "")


def types() -> str:
    """The fields that apps and pages take, for TypeScript."""
    groups = read("request_fields")
    named = "ChatMessageParam FunctionTool Prediction ResponseFormat Text ToolChoice"
    lines = [f"// {_NOTE.format('app/data/request_fields.json')}", "import type {"]
    lines += [*(f"  {name}," for name in named.split()), '} from "./types.js";']
    for group in _PAGES:
        lines += ["", f"export interface {group.capitalize()}Fields {{"]
        for row in groups[group]:
            says = "; ".join(filter(None, [_range(row), row.get("says")]))
            lines += [f"  /** {says} */"] if says else []
            lines.append(f"  {row['name']}{_type(row)};")
        lines.append("}")
    return "\n".join([*lines, "", *_names(groups), ""])


def _names(groups: dict[str, Any]) -> list[str]:
    """The names of these fields; `others`: those that are refused by name, or have no effect."""
    named = {g: [r["name"] for r in groups[g]] for g in _PAGES}
    refused = [r["name"] for r in groups["refused"]]
    also = [name for g in ("sampling", "shared") for r in groups[g] for name in r.get("also", ())]
    lines = ["/** Names of fields; `others` are refused where they would change the answer. */"]
    lines.append("export const FIELD_NAMES = {")
    for group, names in {**named, "others": [*also, *refused, *groups["no_effect"]]}.items():
        line = f"  {group}: [{', '.join(map(json.dumps, names))}],"
        rows = [f"  {group}: [", *(f"    {json.dumps(name)}," for name in names), "  ],"]
        lines += [line] if len(line) <= _WIDE else rows
    return [*lines, "} as const;"]


_PAGES = ("sampling", "shared", "chat", "completion", "embedding", "rerank", "classify")
_TYPES = {
    "biases": "Readonly<Record<string, number>>",
    "documents": "Text | readonly Text[]",
    "flag": "boolean",
    "form": "ResponseFormat",
    "integer": "number",
    "messages": "readonly ChatMessageParam[]",
    "number": "number",
    "object": "Readonly<Record<string, unknown>>",
    "objects": "readonly Readonly<Record<string, unknown>>[]",
    "prediction": "Prediction",
    "prompt_logprobs": "number | boolean",
    "prompt": "string | readonly string[] | readonly number[] | readonly (readonly number[])[]",
    "schema": "Readonly<Record<string, unknown>> | boolean",
    "stops": "string | readonly string[]",
    "stream_options": "{ include_usage?: boolean }",
    "text": "string",
    "texts": "readonly string[]",
    "token_ids": "readonly number[]",
    "tool_choice": "ToolChoice",
    "tools": "readonly FunctionTool[]",
    "words": "readonly string[]",
}


def _type(row: dict[str, Any]) -> str:
    kind = " | ".join(map(json.dumps, row["values"])) if "values" in row else _TYPES[row["kind"]]
    if row["kind"] == "integer" and max(abs(row[b]) for b in _BOUNDS if b in row) > 2**53:
        kind += " | bigint"
    if row.get("text"):
        kind += " | string"
    return f": {kind}" if row.get("required") else f"?: {kind} | null"


def _range(row: dict[str, Any]) -> str:
    """Its bounds as mathematicians write them."""
    if row["kind"] not in ("number", "integer") or "bigint" in _type(row):
        return ""
    low = f"({row['above']}" if "above" in row else f"[{row['least']}"
    high = f"{row['below']})" if "below" in row else f"{row['most']}]"
    return f"{low}, {high}"


def codes() -> str:
    """The codes of requests that apps and pages refuse, for TypeScript."""
    lines = [
        f"// {_NOTE.format('app/data/error_codes.json')}",
        "",
        "/** Why a request was refused, or has failed: `code` of its error. */",
        "export type RequestErrorCode =",
    ]
    for row in read("error_codes"):
        if row.get("apps"):
            lines += [f"  /** {row['says']} */", f'  | "{row["code"]}"']
    return "\n".join([*lines, ""]).removesuffix("\n") + ";\n"


GENERATED = {
    "app/data/texts.cc": texts,
    "runtime_py/core/records.py": c_structs.for_python,
    "runtime_py/arguments.py": python_arguments,
    "runtime_py/server/endpoints/shapes/fields.py": python_fields,
    "web/src/core/record_fields.ts": c_structs.for_pages,
    "web/src/request/error_codes.ts": codes,
    "web/src/request/request_fields.ts": types,
}

if __name__ == "__main__":
    for path, make in GENERATED.items():
        (ROOT / path).write_text(make(), encoding="utf-8")
