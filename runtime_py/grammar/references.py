"""Resolves `$ref` references inside a JSON Schema."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import unquote


class References:
    """Resolves the references of one JSON Schema document."""

    def __init__(self, root: dict[str, Any]) -> None:
        self._root = root
        named = [s for s in objects(root) if isinstance(s.get("$anchor"), str)]
        self._anchors = {s["$anchor"]: s for s in named}

    def resolve(self, schema: dict[str, Any]) -> Any:
        """Return the schema that a `$ref` names; None if it is outside of the document."""
        reference = schema["$ref"]
        if not isinstance(reference, str) or not reference.startswith("#"):
            return None
        if not reference.startswith("#/"):
            return self._root if reference == "#" else self._anchors.get(reference[1:])
        node: Any = self._root
        for part in reference[2:].split("/"):
            name = _unescaped(part)
            if isinstance(node, dict) and name in node:
                node = node[name]
            elif isinstance(node, list) and name.isdecimal() and int(name) < len(node):
                node = node[int(name)]
            else:
                return None
        return node

    def target(self, schema: dict[str, Any]) -> Any:
        """Return the schema that a `$ref` names.

        The given one if that is outside of the document.
        """
        resolved = self.resolve(schema)
        return schema if resolved is None else resolved


def objects(value: Any) -> Iterator[dict[str, Any]]:
    """Yield every object in a JSON value."""
    stack = [value]
    while stack:
        node = stack.pop()
        if isinstance(node, dict):
            yield node
            stack.extend(node.values())
        elif isinstance(node, list):
            stack.extend(node)


def _unescaped(part: str) -> str:
    return unquote(part).replace("~1", "/").replace("~0", "~")
