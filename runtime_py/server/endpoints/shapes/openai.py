"""Requests in OpenAI's shapes as the OpenAPI document describes them; C++ reads them.

Their fields are rows of app/data/request_fields.json, whose kinds request_kinds.json describes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from wherry.data import read

REF = "#/components/schemas/"
MODEL = {"$ref": f"{REF}ModelName"}
_BOUNDS = {
    "least": "minimum",
    "above": "exclusiveMinimum",
    "most": "maximum",
    "below": "exclusiveMaximum",
}


@dataclass(frozen=True, slots=True)
class RequestFields:
    """The body of a request.

    Attributes:
        name: the schema's name.
        says: what it is.
        groups: the groups of rows; a field of a later group replaces one of an earlier group.
    """

    name: str
    says: str
    groups: tuple[str, ...]

    @property
    def rows(self) -> list[dict[str, Any]]:
        """Return the rows of the fields."""
        groups = read("request_fields")
        return list({row["name"]: row for group in self.groups for row in groups[group]}.values())

    @property
    def schema(self) -> dict[str, Any]:
        """Return the JSON Schema; unknown fields are accepted."""
        kinds = read("request_kinds")["kinds"]
        return {
            "type": "object",
            "description": self.says,
            "properties": {row["name"]: _property(row, kinds) for row in self.rows},
            "required": [row["name"] for row in self.rows if row.get("required")],
            "additionalProperties": True,
        }


CHAT = RequestFields(
    "ChatRequest", "The body of POST /v1/chat/completions.", ("sampling", "shared", "chat")
)
COMPLETION = RequestFields(
    "CompletionRequest", "The body of POST /v1/completions.", ("sampling", "shared", "completion")
)
EMBEDDING = RequestFields("EmbeddingRequest", "The body of POST /v1/embeddings.", ("embedding",))
SCORE = RequestFields(
    "ScoreRequest",
    "The body of POST /v1/score: one query for all documents, or one query for each.",
    ("score",),
)
CLASSIFY = RequestFields("ClassifyRequest", "The body of POST /classify.", ("classify",))
RERANK = RequestFields(
    "RerankRequest", "The body of POST /rerank, /v1/rerank and /v2/rerank.", ("rerank",)
)


def components() -> dict[str, Any]:
    """Return the schemas to which those of requests refer, by name."""
    data = read("request_kinds")
    objects = {name: _object(value) for name, value in data["objects"].items()}
    return {name: _referring(schema) for name, schema in (objects | data["values"]).items()}


def _object(fields: Mapping[str, Any]) -> dict[str, Any]:
    properties = {n: f for n, f in fields.items() if n not in ("says", "required")}
    schema = {"type": "object", "description": fields["says"], "properties": properties}
    required = {"required": fields["required"]} if "required" in fields else {}
    return schema | required | {"additionalProperties": True}


def _property(row: Mapping[str, Any], kinds: Mapping[str, Any]) -> dict[str, Any]:
    if row["name"] == "model":
        return MODEL
    schema = {"enum": row["values"]} if row["kind"] == "one_of" else dict(kinds[row["kind"]])
    if row["kind"] in ("integer", "number"):
        schema |= {name: row[bound] for bound, name in _BOUNDS.items() if bound in row}
    if "longest" in row:
        schema["maxLength"] = row["longest"]
    if row["kind"] in ("words", "documents") and "most" in row:
        schema = _at_most(schema, row["most"])
    if row.get("text"):
        schema = {"anyOf": [*schema["anyOf"], kinds["text"]]}
    if not row.get("required"):
        several = schema["anyOf"] if schema.keys() == {"anyOf"} else [schema]
        schema = {"anyOf": [*several, {"type": "null"}], "default": None}
    if "says" in row:
        schema["description"] = row["says"]
    referring: dict[str, Any] = _referring(schema)
    return referring


def _at_most(schema: dict[str, Any], most: int) -> dict[str, Any]:
    """Return a schema whose list has at most `most` items."""
    if schema.get("type") == "array":
        return schema | {"maxItems": most}
    if "anyOf" in schema:
        return schema | {"anyOf": [_at_most(one, most) for one in schema["anyOf"]]}
    return schema


def _referring(schema: Any) -> Any:
    """Return a schema whose references, names in the data, lead into the document."""
    if isinstance(schema, Mapping):
        return {
            key: REF + value if key == "$ref" and "/" not in value else _referring(value)
            for key, value in schema.items()
        }
    return [_referring(one) for one in schema] if isinstance(schema, list) else schema
