"""What may stand in an element of markup, as a grammar."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..grammar.audit import SchemaProblems
from .lark import Lark

_OF_TEXT = ("pattern", "minLength", "maxLength", "format")
_OF_ANY = ("not", "if", "allOf")
# Of the arguments together, beyond what each is.
_OF_ALL = (
    "$ref allOf anyOf oneOf not if const enum dependencies dependentRequired dependentSchemas "
    "minProperties maxProperties patternProperties".split()
)


def members(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The properties of a tool's arguments, which this model writes one by one.

    Raises:
        SchemaProblems: something is said of the arguments together, which is enforced in JSON only.
    """
    properties = schema.get("properties", {})
    refused = [k for k in _OF_ALL if k in schema]
    if any(name not in properties for name in schema.get("required", ())):
        refused.append("required")
    if refused:
        raise SchemaProblems(
            [
                f"{k}: not enforced among arguments that this model writes one by one"
                for k in refused
            ]
        )
    return {name: value for name, value in properties.items() if value is not False}


def element(lark: Lark, schema: Any, root: Mapping[str, Any], end: str) -> tuple[bool, str]:
    """An argument's value and what ends it.

    Args:
        lark: the grammar.
        schema: the argument's.
        root: the tool's, which may hold definitions.
        end: what ends the value.

    Returns:
        Whether it is a text as it stands, and the expression.

    Raises:
        SchemaProblems: a text is to have a form, which is not enforced outside of JSON.
    """
    schema = _resolved(schema, root)
    kinds = _kinds(schema)
    refused = [k for k in _OF_ANY if k in schema]
    values = schema.get("enum", [schema["const"]] if "const" in schema else None)
    if values and not refused and all(isinstance(v, str) for v in values):
        return True, f"{lark.either([lark.text(v) for v in values])} {lark.text(end)}"
    if "string" not in kinds:
        return False, f"{lark.json(schema, root)} {lark.text(end)}"
    if refused := [*refused, *_of_text(schema)]:
        raise SchemaProblems(
            [f"{k}: not enforced in a text that this model writes outside of JSON" for k in refused]
        )
    return kinds == {"string"}, lark.up_to(end)


def _of_text(schema: Mapping[str, Any]) -> list[str]:
    """What it says of a text, or one of its alternatives does."""
    branches = [*schema.get("anyOf", ()), *schema.get("oneOf", ())]
    inner = [k for b in branches if isinstance(b, Mapping) for k in _of_text(b)]
    return [*(k for k in _OF_TEXT if k in schema), *inner]


def _resolved(schema: Any, root: Mapping[str, Any]) -> Mapping[str, Any]:
    """The schema that references lead to."""
    for _ in range(20):
        if not isinstance(schema, Mapping):
            return {}
        reference = schema.get("$ref")
        if not isinstance(reference, str) or not reference.startswith("#/"):
            break
        schema = root
        for step in reference[2:].split("/"):
            schema = schema.get(step, {}) if isinstance(schema, Mapping) else {}
    return schema if isinstance(schema, Mapping) else {}


def _kinds(schema: Mapping[str, Any]) -> set[str]:
    """Types that a value may have; a schema that says nothing may be met by a text."""
    found = schema.get("type")
    if isinstance(found, str):
        return {found}
    if isinstance(found, list):
        return set(found)
    branches = [*schema.get("anyOf", ()), *schema.get("oneOf", ())]
    if branches:
        return {kind for b in branches if isinstance(b, Mapping) for kind in _kinds(b)}
    return {"object"} if "properties" in schema else {"string"}
