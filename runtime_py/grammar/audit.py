"""Audits a JSON Schema before it is compiled: keywords that cannot be enforced are errors.

The table below covers drafts up to 2020-12 as llguidance 1.9 compiles them;
tests/runtime/grammar/test_schemas.py compares it with the library, and random outputs with a
validator.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

from . import formats
from .closing import close
from .disjoint import Disjoint
from .expansion import EXPANDED, Expansion
from .layout import Layout, unwritable, written
from .negation import Negation
from .numbers import bound, inexact, tighten
from .patterns import from_ecma
from .references import References, objects
from .repair import repaired

# Enforced keywords, with the kind of place in which their values contain schemas.
ENFORCED: dict[str, str] = {
    "$ref": "",
    "additionalItems": "one",
    "additionalProperties": "one",
    "allOf": "list",
    "anyOf": "list",
    "const": "",
    "enum": "",
    "exclusiveMaximum": "",
    "exclusiveMinimum": "",
    "format": "",
    "items": "one or list",
    "maxItems": "",
    "maxLength": "",
    "maxProperties": "",
    "maximum": "",
    "minItems": "",
    "minLength": "",
    "minProperties": "",
    "minimum": "",
    "multipleOf": "",
    "oneOf": "list",
    "pattern": "",
    "patternProperties": "map",
    "prefixItems": "list",
    "properties": "map",
    "required": "",
    "type": "",
}
# Keywords that are annotations and constrain nothing; unknown keywords constrain nothing either.
ANNOTATIONS = frozenset(
    "$anchor $comment $defs $id $schema $vocabulary contentEncoding contentMediaType contentSchema "
    "default definitions deprecated description examples id readOnly title writeOnly".split()
)
REFUSED = frozenset(
    "$dynamicAnchor $dynamicRef $recursiveAnchor $recursiveRef contains disallow divisibleBy "
    "extends maxContains minContains propertyNames unevaluatedItems unevaluatedProperties".split()
)
_DRAFTS = ("draft-04", "draft-06", "draft-07", "draft/2019-09", "draft/2020-12")
_DIALECTS = frozenset(
    f"{scheme}://json-schema.org/{draft}/schema"
    for scheme in ("http", "https")
    for draft in _DRAFTS
)
_ACCEPTED = ", ".join(_DRAFTS)
_COUNTS = ("maxItems", "maxLength", "maxProperties", "minItems", "minLength", "minProperties")

# The automaton has a state for each remainder: with a larger divisor, compiling takes seconds.
MAX_DIVISOR = 10_000  # largest `multipleOf`, written as an integer of its digits
MAX_DEPTH = 100  # maximum depth of nested schemas, references followed
MAX_SCHEMAS = 20_000
MAX_TEXT = 256 * 2**10  # characters of the schema as JSON


class SchemaProblems(ValueError):
    """A schema that cannot be enforced; the text has a line for each problem.

    Example of a line: "#/properties/a/not: ...".
    """

    code = "unsupported_schema"

    def __init__(self, lines: list[str]) -> None:
        super().__init__("\n".join(lines))
        self.lines = lines


class Unsatisfiable(SchemaProblems):
    """A schema with a part that no value satisfies."""

    code = "invalid_grammar"


def prepared(schema: Any, layout: Layout | None = None) -> str:
    """Return the audited schema as JSON, with some keywords rewritten to equivalent ones.

    Args:
        schema: the result of `json.loads`.
        layout: allowed white space; None: the default of layout.py.

    Raises:
        SchemaProblems: lists everything that cannot be enforced.
    """
    if not isinstance(schema, (dict, bool)):
        raise SchemaProblems([f"#: a schema is an object or a boolean, not {_kind(schema)}"])
    try:
        text = json.dumps(schema, allow_nan=False)
        if len(text) > MAX_TEXT:
            raise SchemaProblems([f"#: {len(text)} characters as JSON; accepted are {MAX_TEXT}"])
        copy = json.loads(text)
    except SchemaProblems:
        raise
    except (ValueError, RecursionError) as e:
        raise SchemaProblems([f"#: {e}"]) from e
    if isinstance(copy, bool):
        copy = {} if copy else {"enum": []}
    copy, impossible = repaired(copy)
    if impossible:
        raise Unsatisfiable(impossible)
    audit = _Audit(copy, json.loads(json.dumps(copy)))
    audit.walk(copy, "#", 0)
    if audit.problems:
        raise SchemaProblems(audit.problems)
    target = References(copy).target
    close(copy, target)
    return written(copy, layout, target)


class _Audit:
    """Audits one schema, which it rewrites in place; it takes a copy as the client sent it, too."""

    def __init__(self, root: dict[str, Any], original: dict[str, Any]) -> None:
        self.problems: list[str] = []
        self._root = root
        # Objects whose ids are keys below; an expansion drops some, and another object would get
        # the id of a dropped one.
        self._kept: list[Any] = [*objects(root)]
        self._divides = any("multipleOf" in one for one in self._kept)
        self._seen: set[int] = set()
        self._references = References(root)
        pairs = zip(self._kept, objects(original), strict=True)
        self._originals = {id(rewritten): as_sent for rewritten, as_sent in pairs}
        # id of a schema that an expansion moves or creates -> its path in the client's schema
        self._places: dict[int, str] = {}
        sent = References(original).target
        self._expand = Expansion(
            Disjoint(sent), Negation(sent, _constrains), sent, self._add, self._place
        )

    def walk(self, schema: Any, path: str, depth: int) -> None:
        """Audit a schema with its subschemas and references; rewrite it in place."""
        path = self._places.get(id(schema), path)
        if id(schema) in self._seen or isinstance(schema, bool):
            return
        if not isinstance(schema, dict):
            self._add(path, f"a schema is an object or a boolean, not {_kind(schema)}")
            return
        self._seen.add(id(schema))
        self._kept.append(schema)
        if depth > MAX_DEPTH or len(self._seen) > MAX_SCHEMAS:
            if not self.problems:
                self._add(
                    path,
                    f"the schema is too large; accepted are {MAX_DEPTH} schemas inside each other "
                    f"and {MAX_SCHEMAS} in all",
                )
            return
        self._check(schema, path)
        self._expand(schema, self._originals.get(id(schema), schema), path)
        for child, where in _children(schema, path):
            self.walk(child, where, depth + 1)
        if "$ref" in schema:
            target = self._references.resolve(schema)
            if target is None:
                self._add(
                    f"{path}/$ref",
                    f"{schema['$ref']!r} is not in the schema; references go to '#', to a pointer "
                    "like '#/$defs/name', or to an $anchor",
                )
            else:
                self.walk(target, str(schema["$ref"]), depth + 1)
        self._rewrite(schema, path)

    def _add(self, path: str, problem: str) -> None:
        self.problems.append(f"{path}: {problem}")

    def _place(self, schema: Any, path: str) -> None:
        if isinstance(schema, dict):
            self._places[id(schema)] = path
            self._kept.append(schema)

    def _check(self, schema: dict[str, Any], path: str) -> None:
        for name in [n for n in schema if n in REFUSED]:
            self._add(f"{path}/{name}", f"{name} cannot be enforced")
        if schema is not self._root and isinstance(schema.get("$id"), str):
            self._add(f"{path}/$id", "$id inside a schema cannot be enforced: it moves references")
        schema.pop("x-guidance", None)  # a client must not set options of the grammar library
        meta_schema = schema.get("$schema")
        if meta_schema is not None and not (
            isinstance(meta_schema, str) and meta_schema.rstrip("#") in _DIALECTS
        ):
            self._add(f"{path}/$schema", f"{meta_schema!r} is not known; accepted are {_ACCEPTED}")
        for name in _COUNTS:
            if isinstance(schema.get(name), float) and schema[name].is_integer():
                schema[name] = int(schema[name])  # the grammar compiler treats 2.0 as a fraction
        self._check_properties(schema, path)
        self._check_divisor(schema, path)
        self._check_numbers(schema, path)
        self._check_constants(schema, path)

    def _check_numbers(self, schema: dict[str, Any], path: str) -> None:
        name = tighten(schema)
        if name is not None:
            self._add(
                f"{path}/{name}",
                f"{name} {schema[name]} cannot be enforced: there are integers up to 2^63 - 1",
            )

    def _check_constants(self, schema: dict[str, Any], path: str) -> None:
        for name in ("const", "enum"):
            number, control = inexact(schema.get(name)), unwritable(schema.get(name))
            if number is not None:
                self._add(
                    f"{path}/{name}",
                    f"{number} cannot be enforced: beyond 2^53 numbers are compared as doubles",
                )
            if control is not None:
                self._add(f"{path}/{name}", f"{control} cannot be enforced: it is not written")

    def _check_properties(self, schema: dict[str, Any], path: str) -> None:
        required, properties = schema.get("required", []), schema.get("properties", {})
        least = schema.get("minProperties", 0)
        if not (isinstance(required, list) and isinstance(properties, dict)):
            return  # the grammar compiler reports a wrong type itself
        if least == 0:
            schema.pop("minProperties", None)
        limits = [n for n in ("minProperties", "maxProperties") if n in schema]
        optional = [n for n in properties if n not in required]
        if limits and optional:
            self._add(
                f"{path}/{limits[0]}",
                f"{limits[0]} cannot be enforced with optional properties ({optional[0]!r}); "
                "make them required",
            )
            return
        if not isinstance(least, int):
            return
        named = len({n for n in required if isinstance(n, str)})
        if least > named + 1:
            self._add(
                f"{path}/minProperties",
                f"minProperties {least} cannot be enforced beyond the {named} required properties "
                "and one more: the same name might be written twice",
            )

    def _check_divisor(self, schema: dict[str, Any], path: str) -> None:
        divisor = schema.get("multipleOf")
        if isinstance(divisor, bool) or not isinstance(divisor, (int, float)):
            return
        _, digits, exponent = Decimal(str(divisor)).as_tuple()
        integer = int("".join(map(str, digits)) or "0") * 10 ** max(int(exponent), 0)
        if integer > MAX_DIVISOR:
            self._add(
                f"{path}/multipleOf",
                f"multipleOf {divisor} cannot be enforced: its digits make {integer}, at most "
                f"{MAX_DIVISOR} are",
            )

    def _rewrite(self, schema: dict[str, Any], path: str) -> None:
        self._rewrite_patterns(schema, path)
        self._rewrite_format(schema, path)
        bound(schema, decimals=not self._divides)

    def _rewrite_patterns(self, schema: dict[str, Any], path: str) -> None:
        if isinstance(schema.get("pattern"), str):
            schema["pattern"] = self._pattern(schema["pattern"], f"{path}/pattern")
        by_pattern = schema.get("patternProperties")
        if isinstance(by_pattern, dict):
            where = f"{path}/patternProperties"
            schema["patternProperties"] = {
                self._pattern(p, where): value for p, value in by_pattern.items()
            }

    def _pattern(self, pattern: str, path: str) -> str:
        try:
            return from_ecma(pattern)
        except ValueError as e:
            self._add(path, f"{pattern!r} cannot be enforced: {e}")
            return pattern

    def _rewrite_format(self, schema: dict[str, Any], path: str) -> None:
        name = schema.get("format")
        if not isinstance(name, str) or name in formats.ENFORCED:
            return
        if name in formats.REFUSED:
            self._add(f"{path}/format", f"format {name!r} cannot be enforced")
            return
        del schema["format"]
        if name in formats.REWRITTEN:
            schema.setdefault("allOf", [])
            schema["allOf"] = [*schema["allOf"], {"pattern": formats.REWRITTEN[name]}]


def _children(schema: dict[str, Any], path: str) -> Iterator[tuple[Any, str]]:
    for name, shape in ENFORCED.items():
        value = schema.get(name)
        if shape == "map" and isinstance(value, dict):
            yield from ((v, f"{path}/{name}/{_escaped(k)}") for k, v in value.items())
        elif "list" in shape and isinstance(value, list):
            yield from ((v, f"{path}/{name}/{i}") for i, v in enumerate(value))
        elif "one" in shape and isinstance(value, (dict, bool)):
            yield value, f"{path}/{name}"


def _constrains(name: str) -> bool:
    return name in ENFORCED or name in REFUSED or name in EXPANDED


def _escaped(name: str) -> str:
    return name.replace("~", "~0").replace("/", "~1")


def _kind(value: Any) -> str:
    return {list: "an array", str: "a string", type(None): "null"}.get(type(value), "a number")
