"""Closes objects: properties that a schema does not name are not written, unless it allows them.

JSON Schema allows any further property unless `additionalProperties` forbids it, and a small model
that may add properties adds them until its tokens are spent. Values of a closed object are valid
for the open one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

Schema = dict[str, Any]

# keywords by which a schema says itself which other properties, or how many, there are
_SAYS_MORE = ("additionalProperties", "minProperties", "maxProperties")
_NAMED = ("$anchor", "$defs", "$id", "definitions")  # what only one schema may have
_OF_OBJECTS = frozenset({*_SAYS_MORE, "properties", "patternProperties", "required"})


def close(root: Schema, resolve: Callable[[Schema], Any]) -> None:
    """Close the objects of an audited schema, in place.

    Args:
        root: the schema; its keywords are those of audit.ENFORCED.
        resolve: returns the schema that a `$ref` names, or the given one.
    """
    closing = _Closing(resolve)
    closing.place(root)
    closing.close()
    for shared, together, references in closing.shared():
        definitions = root.setdefault("$defs", {})
        if not isinstance(definitions, dict):
            return
        name = next(n for n in map("closed-{}".format, count()) if n not in definitions)
        definitions[name] = _closed(shared, together)
        for reference in references:
            reference["$ref"] = f"#/$defs/{name}"


class _Closing:
    """Finds the places of values first, and closes them then, because schemas are shared."""

    def __init__(self, resolve: Callable[[Schema], Any]) -> None:
        self._resolve = resolve
        self._places: dict[int, list[Schema]] = {}  # id of a place -> its schemas, itself first
        self._parts: set[int] = set()  # ids of schemas that hold together with others
        self._references: dict[int, list[Schema]] = {}  # id of a place -> the `$ref`s to it

    def place(self, root: Any) -> None:
        """Note the places below a schema that describes a value alone."""
        open_places = [root]
        while open_places:
            schema = open_places.pop()
            if not isinstance(schema, dict) or id(schema) in self._places:
                continue
            if schema.keys() & {"$ref", "anyOf"} and not schema.keys() & _OF_OBJECTS:
                alone = self._alone(schema)
                if alone is not None:
                    self._places[id(schema)] = []
                    if "$ref" in schema:
                        self._references.setdefault(id(alone[0]), []).append(schema)
                    open_places += alone
                    continue
            together = self._together(schema)
            self._places[id(schema)] = together
            self._parts |= {id(part) for part in together[1:]}
            open_places += self._values(together)

    def _alone(self, schema: Schema) -> list[Any] | None:
        """Return the alternatives of a schema that says nothing of objects besides them."""
        if "allOf" in schema or ("$ref" in schema and "anyOf" in schema):
            return None
        if "$ref" in schema:
            target = self._resolve(schema)
            return None if target is schema else [target]
        return list(schema["anyOf"]) if isinstance(schema["anyOf"], list) else None

    def _together(self, schema: Schema) -> list[Schema]:
        """Return a schema and all that may hold for the same value."""
        parts: dict[int, Schema] = {}
        rest: list[Any] = [schema]
        while rest:
            part = rest.pop()
            if not isinstance(part, dict) or id(part) in parts:
                continue
            parts[id(part)] = part
            for name in ("allOf", "anyOf"):
                rest += _list(part.get(name))
            if "$ref" in part:
                rest.append(self._resolve(part))
        return list(parts.values())

    def _values(self, together: list[Schema]) -> Iterator[Any]:
        """Yield the schemas of properties and items that hold alone; note the others as parts."""
        by_name: dict[Any, list[Any]] = {}
        patterned = any(_map(s.get("patternProperties")) for s in together)
        for s in together:
            for name, value in _map(s.get("properties")).items():
                by_name.setdefault("" if patterned else ("name", name), []).append(value)
            for value in _map(s.get("patternProperties")).values():
                by_name.setdefault("", []).append(value)
            for name in ("additionalProperties", "items", "additionalItems", "prefixItems"):
                value = s.get(name)
                parts = value if isinstance(value, list) else [value] if value is not None else []
                # With other schemas, the same value may have several of these.
                kind = ("kind", name, None if len(together) > 1 else len(by_name))
                for i, part in enumerate(parts):
                    by_name.setdefault((*kind, i) if len(together) == 1 else kind, []).append(part)
        for values in by_name.values():
            if len(values) == 1:
                yield values[0]
                continue
            for value in values:
                if isinstance(value, dict):
                    self._parts |= {id(part) for part in self._together(value)}

    def close(self) -> None:
        """Close each place whose schemas hold nowhere else together with others."""
        for key, together in self._places.items():
            if together and key not in self._parts:
                _close(together[0], together)

    def shared(self) -> Iterator[tuple[Schema, list[Schema], list[Schema]]]:
        """Yield the schemas that hold alone in one place and with others in another.

        With each come those of its place, and the references to it that hold alone.
        """
        for key, together in self._places.items():
            references = [r for r in self._references.get(key, ()) if id(r) not in self._parts]
            if together and key in self._parts and references:
                yield together[0], together, references


def _close(schema: Schema, together: list[Schema]) -> None:
    if any(name in part for part in together for name in _SAYS_MORE):
        return
    if not any(_says_objects(part) for part in together):
        return
    names = dict.fromkeys(n for part in together for n in _map(part.get("properties")))
    for part in together:
        names |= dict.fromkeys(n for n in _list(part.get("required")) if isinstance(n, str))
    properties = _map(schema.get("properties"))
    more: Schema = {name: {} for name in names if name not in properties}
    if more or len(together) > 1:
        schema["properties"] = {**properties, **more}
    patterns = dict.fromkeys(p for s in together[1:] for p in _map(s.get("patternProperties")))
    if patterns:
        own = _map(schema.get("patternProperties"))
        schema["patternProperties"] = {**own, **{p: {} for p in patterns if p not in own}}
    schema["additionalProperties"] = False


def _closed(shared: Schema, together: list[Schema]) -> Schema:
    """Return a closed copy of a schema; its subschemas are the same objects."""
    copy = {name: value for name, value in shared.items() if name not in _NAMED}
    _close(copy, [copy, *together[1:]])
    return copy


def _says_objects(schema: Schema) -> bool:
    """Tell whether a schema names properties, and not only some that may not be."""
    if _map(schema.get("patternProperties")):
        return True
    properties = schema.get("properties")
    if not isinstance(properties, dict):
        return False
    return not properties or any(value is not False for value in properties.values())


def _map(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
