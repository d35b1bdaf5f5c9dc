"""The grammar rules of an element's content in markup formats."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..audit import SchemaProblems
from .format import Rule
from .lark import Lark, nested

_OF_TEXT = ("pattern", "minLength", "maxLength", "format")
_OF_ANY = ("not", "if", "allOf")
# Keywords that constrain several arguments together.
_OF_ALL = (
    "$ref allOf anyOf oneOf not if const enum dependencies dependentRequired dependentSchemas "
    "minProperties maxProperties patternProperties".split()
)


def members(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the properties of a tool's arguments, each of which becomes an element.

    Raises:
        SchemaProblems: the schema constrains several arguments together, which only JSON grammars
            can enforce.
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


def element(lark: Lark, schema: Any, rule: Rule, end: str) -> tuple[bool, str]:
    """Return the expression of an argument's value and its end.

    Args:
        lark: the grammar to which rules are added.
        schema: the schema of the argument.
        rule: the tool, whose schema may have definitions.
        end: the text that ends the value.

    Returns:
        Whether the value is a raw text, and the expression.

    Raises:
        SchemaProblems: the schema constrains a text's form, which only JSON grammars can enforce.
    """
    if rule.input is not None:
        return True, f"{nested(rule.input)} {lark.text(end)}"
    root = rule.schema
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
    """Return the keywords by which the schema, or an alternative of it, constrains texts."""
    branches = [*schema.get("anyOf", ()), *schema.get("oneOf", ())]
    inner = [k for b in branches if isinstance(b, Mapping) for k in _of_text(b)]
    return [*(k for k in _OF_TEXT if k in schema), *inner]


def _resolved(schema: Any, root: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a schema with its references resolved."""
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
    """Return the JSON types that a value may have; a schema without a type allows a text."""
    found = schema.get("type")
    if isinstance(found, str):
        return {found}
    if isinstance(found, list):
        return set(found)
    branches = [*schema.get("anyOf", ()), *schema.get("oneOf", ())]
    if branches:
        return {kind for b in branches if isinstance(b, Mapping) for kind in _kinds(b)}
    return {"object"} if "properties" in schema else {"string"}
