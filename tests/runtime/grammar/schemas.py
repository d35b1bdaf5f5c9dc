"""Schemas of our own: each keyword that is enforced, alone and beside others."""

from __future__ import annotations

import json
from decimal import Decimal


def decimals(value):
    """Numbers as they are written, for a validator: 0.3 is a multiple of 0.1."""
    return json.loads(json.dumps(value), parse_float=Decimal)


TREE = {
    "$defs": {
        "node": {
            "type": "object",
            "properties": {"v": {"type": "integer"}, "next": {"$ref": "#/$defs/node"}},
            "required": ["v"],
            "additionalProperties": False,
        }
    },
    "$ref": "#/$defs/node",
}


def tagged(name, field):
    return {
        "type": "object",
        "properties": {"kind": {"const": name}, field: {"type": "number"}},
        "required": ["kind", field],
        "additionalProperties": False,
    }


ENFORCED = {
    "true": True,
    "empty": {},
    "type null": {"type": "null"},
    "type boolean": {"type": "boolean"},
    "type integer": {"type": "integer"},
    "type number": {"type": "number"},
    "type string": {"type": "string"},
    "type array": {"type": "array"},
    "type object": {"type": "object"},
    "types": {"type": ["integer", "null"]},
    "const": {"const": {"b": [1, None, 'x"y'], "a": 2.5}},
    "enum": {"enum": ["a", "b", 1, None, [1], {"x": True}]},
    "enum and type": {"enum": ["a", 1], "type": "integer"},
    "minLength, maxLength": {"type": "string", "minLength": 2, "maxLength": 4},
    "maxLength counts characters": {"type": "string", "maxLength": 1},
    "a count as a fraction": {"type": "array", "maxItems": 2.0, "items": {"type": "null"}},
    "pattern": {"type": "string", "pattern": "^[ab]{2,3}-\\d$"},
    "pattern anywhere": {"type": "string", "pattern": "ab", "maxLength": 12},
    "pattern of white space": {"type": "string", "pattern": "^a\\sb\\S$"},
    "pattern of any character": {"type": "string", "pattern": "^a.b[\\s\\S]$"},
    "pattern of other characters": {"type": "string", "pattern": "^\\D\\W\\w\\d[\\w.-]$"},
    "pattern and length": {"type": "string", "pattern": "^a*$", "minLength": 2, "maxLength": 3},
    "pattern with quotes": {"type": "string", "pattern": '^"[a/]\\/"$'},
    "minimum, maximum": {"type": "integer", "minimum": -3, "maximum": 12},
    "exclusive": {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1},
    "fractions": {"type": "number", "minimum": 0.1, "maximum": 0.11},
    "multipleOf": {"type": "integer", "multipleOf": 7},
    "multipleOf a half": {"type": "number", "multipleOf": 0.5},
    "bounds without a type": {"minimum": 1, "maxLength": 1, "maxItems": 1},
    "items": {"type": "array", "items": {"type": "boolean"}},
    "items false": {"type": "array", "items": False},
    "minItems, maxItems": {"type": "array", "items": {"const": 1}, "minItems": 2, "maxItems": 3},
    "prefixItems": {"type": "array", "prefixItems": [{"const": 1}, {"type": "string"}]},
    "prefixItems and items": {
        "type": "array",
        "prefixItems": [{"const": 1}],
        "items": {"const": 0},
        "minItems": 3,
        "maxItems": 4,
    },
    "properties": {"properties": {"a": {"type": "integer"}, "b": {"type": "null"}}},
    "required": {"type": "object", "required": ["a", "b"], "properties": {"b": {"type": "null"}}},
    "names": {
        "type": "object",
        "required": ['ä"\\'],
        "additionalProperties": False,
        "properties": {'ä"\\': {"type": "integer"}},
    },
    "additionalProperties": {"type": "object", "additionalProperties": {"type": "integer"}},
    "closed": {"type": "object", "properties": {"a": {}}, "additionalProperties": False},
    "patternProperties": {
        "type": "object",
        "patternProperties": {"^a": {"type": "integer"}, "^b": {"type": "string"}},
        "additionalProperties": False,
    },
    "minProperties": {"type": "object", "minProperties": 1},
    "minProperties beyond required": {
        "type": "object",
        "properties": {"a": {"type": "integer"}},
        "required": ["a"],
        "minProperties": 2,
    },
    "maxProperties": {"type": "object", "maxProperties": 2},
    "a property that may not be": {"type": "object", "properties": {"a": False}},
    "allOf": {
        "allOf": [
            {"type": "object", "properties": {"a": {"type": "integer"}}},
            {"properties": {"b": {"type": "string"}}, "required": ["b"]},
        ]
    },
    "allOf of strings": {"allOf": [{"type": "string"}, {"pattern": "^a+$"}, {"maxLength": 3}]},
    "anyOf": {"anyOf": [{"type": "string", "maxLength": 1}, {"type": "integer", "maximum": 1}]},
    "anyOf beside properties": {
        "type": "object",
        "properties": {"a": {"type": "integer"}},
        "anyOf": [{"required": ["a"]}, {"required": ["b"]}],
    },
    "oneOf by type": {"oneOf": [{"type": "string"}, {"type": "integer"}, {"type": "null"}]},
    "oneOf by constants": {"oneOf": [{"const": "a"}, {"enum": ["b", "c"]}]},
    "oneOf by a property": {"oneOf": [tagged("circle", "r"), tagged("square", "side")]},
    "oneOf through references": {
        "$defs": {"c": tagged("circle", "r"), "s": tagged("square", "side")},
        "type": "object",
        "properties": {"shape": {"oneOf": [{"$ref": "#/$defs/c"}, {"$ref": "#/$defs/s"}]}},
        "required": ["shape"],
        "additionalProperties": False,
    },
    "oneOf beside anyOf": {
        "anyOf": [{"type": "string"}, {"type": "integer"}],
        "oneOf": [{"type": "integer"}, {"type": "null"}],
    },
    "reference": {"$ref": "#/$defs/small", "maximum": 3, "$defs": {"small": {"type": "integer"}}},
    "anchor": {"$ref": "#here", "$defs": {"x": {"$anchor": "here", "type": "boolean"}}},
    "escaped pointer": {"$ref": "#/$defs/a~1b%25", "$defs": {"a/b%": {"type": "null"}}},
    "recursion": TREE,
    "definitions": {"$ref": "#/definitions/x", "definitions": {"x": {"type": "null"}}},
    "what nothing refers to": {"type": "null", "$defs": {"x": {"uniqueItems": True}}},
    "uniqueItems false": {"type": "array", "items": {"const": 1}, "uniqueItems": False},
    "annotations": {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "https://example.com/x",
        "$comment": "x",
        "title": "x",
        "description": "x",
        "default": 1,
        "examples": [1],
        "deprecated": True,
        "readOnly": True,
        "writeOnly": False,
        "contentEncoding": "base64",
        "contentMediaType": "text/plain",
        "contentSchema": {"not": {}},
        "a name of the client's": {"not": {}},
        "type": "string",
        "maxLength": 3,
    },
    "an instance that looks like a schema": {"enum": [{"not": {}, "$ref": "#/nowhere"}]},
    "properties named as keywords": {
        "type": "object",
        "properties": {"not": {"type": "null"}, "if": {"type": "null"}},
        "required": ["not", "if"],
        "additionalProperties": False,
    },
    "format date": {"type": "string", "format": "date"},
    "format time": {"type": "string", "format": "time"},
    "format date-time": {"type": "string", "format": "date-time"},
    "format duration": {"type": "string", "format": "duration"},
    "format email": {"type": "string", "format": "email"},
    "format hostname": {"type": "string", "format": "hostname", "maxLength": 20},
    "format ipv4": {"type": "string", "format": "ipv4"},
    "format ipv6": {"type": "string", "format": "ipv6"},
    "format uri": {"type": "string", "format": "uri", "maxLength": 60},
    "format uuid": {"type": "string", "format": "uuid"},
    "format beside a pattern": {"type": "string", "format": "date", "pattern": "^20"},
    "a format of the client's": {"type": "string", "format": "int64", "maxLength": 2},
}

# Schema and where its error stands.
REFUSED = {
    "not": ({"not": {"type": "null"}}, "#/not"),
    "if": ({"properties": {"a": {"if": {"const": 1}, "then": {}}}}, "#/properties/a/if"),
    "then": ({"if": {}, "then": False}, "#/then"),
    "else": ({"if": {}, "else": False}, "#/else"),
    "contains": ({"contains": {"const": 1}}, "#/contains"),
    "minContains": ({"contains": {}, "minContains": 2}, "#/minContains"),
    "maxContains": ({"contains": {}, "maxContains": 2}, "#/maxContains"),
    "uniqueItems": ({"items": {"uniqueItems": True}}, "#/items/uniqueItems"),
    "propertyNames": ({"propertyNames": {"maxLength": 1}}, "#/propertyNames"),
    "dependentRequired": ({"dependentRequired": {"a": ["b"]}}, "#/dependentRequired"),
    "dependentSchemas": ({"dependentSchemas": {"a": {}}}, "#/dependentSchemas"),
    "dependencies": ({"dependencies": {"a": ["b"]}}, "#/dependencies"),
    "unevaluatedProperties": ({"unevaluatedProperties": False}, "#/unevaluatedProperties"),
    "unevaluatedItems": ({"unevaluatedItems": False}, "#/unevaluatedItems"),
    "$dynamicRef": ({"$dynamicRef": "#x"}, "#/$dynamicRef"),
    "$dynamicAnchor": ({"$dynamicAnchor": "x"}, "#/$dynamicAnchor"),
    "$recursiveRef": ({"$recursiveRef": "#"}, "#/$recursiveRef"),
    "$recursiveAnchor": ({"$recursiveAnchor": True}, "#/$recursiveAnchor"),
    "disallow": ({"disallow": "string"}, "#/disallow"),
    "divisibleBy": ({"divisibleBy": 2}, "#/divisibleBy"),
    "extends": ({"extends": {}}, "#/extends"),
    "oneOf that may overlap": ({"oneOf": [{"minimum": 1}, {"type": "integer"}]}, "#/oneOf"),
    "oneOf without required": (
        {"oneOf": [{"properties": {"k": {"const": 1}}}, {"properties": {"k": {"const": 2}}}]},
        "#/oneOf",
    ),
    "1 is 1.0": ({"oneOf": [{"const": 1}, {"const": 1.0}]}, "#/oneOf"),
    "format": ({"format": "json-pointer"}, "#/format"),
    "remote reference": ({"$ref": "https://example.com/x"}, "#/$ref"),
    "broken reference": ({"anyOf": [{"$ref": "#/$defs/x"}]}, "#/anyOf/0/$ref"),
    "through a reference": (
        {"$ref": "#/$defs/a", "$defs": {"a": {"items": {"not": {}}}}},
        "#/$defs/a/items/not",
    ),
    "moved references": ({"properties": {"a": {"$id": "x"}}}, "#/properties/a/$id"),
    "minProperties": ({"minProperties": 2}, "#/minProperties"),
    "maxProperties": ({"maxProperties": 1, "properties": {"a": {}}}, "#/maxProperties"),
    "multipleOf": ({"multipleOf": 1000003}, "#/multipleOf"),
    "class operators": ({"pattern": "[a&&b]"}, "#/pattern"),
    "nested class": ({"patternProperties": {"[a[b]]": {}}}, "#/patternProperties"),
    "dialect": ({"$schema": "https://example.com/dialect"}, "#/$schema"),
    "a name with a slash": ({"properties": {"a/b": {"not": {}}}}, "#/properties/a~1b/not"),
    "no schema": ({"properties": {"a": 3}}, "#/properties/a"),
}
