"""Schemas of these tests: each enforced keyword, alone and with others."""

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
    "anyOf with properties": {
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
    "oneOf with anyOf": {
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
    "not a type": {"type": ["string", "null"], "not": {"type": "string"}},
    "not a type of any": {"not": {"type": ["object", "array", "string", "number"]}},
    "not constants": {"type": "string", "maxLength": 3, "not": {"enum": ["", "a", "ab", "b]^-"]}},
    "not a number": {"type": "integer", "minimum": 1, "maximum": 4, "not": {"const": 2}},
    "not required": {"type": "object", "not": {"required": ["a"]}},
    "not required together": {
        "type": "object",
        "properties": {"a": {"type": "null"}, "b": {"type": "null"}},
        "additionalProperties": False,
        "not": {"required": ["a", "b"]},
    },
    "not a property": {
        "type": "object",
        "properties": {"a": {"enum": [1, 2, 3]}},
        "not": {"properties": {"a": {"const": 1}}},
    },
    "not not": {"not": {"not": {"type": "boolean"}}},
    "not anyOf": {"not": {"anyOf": [{"type": ["object", "array"]}, {"type": "number"}]}},
    "not through a reference": {
        "$defs": {"a": {"enum": ["a", True]}},
        "enum": ["a", True, False, 1],
        "not": {"$ref": "#/$defs/a"},
    },
    "oneOf that may overlap": {
        "type": "object",
        "properties": {"a": {"type": "null"}, "b": {"type": "null"}},
        "additionalProperties": False,
        "oneOf": [{"required": ["a"]}, {"required": ["b"]}],
    },
    "oneOf by bounds": {"type": "integer", "oneOf": [{"maximum": 3}, {"minimum": 4}]},
    "oneOf of overlapping bounds": {"type": "integer", "oneOf": [{"maximum": 5}, {"minimum": 4}]},
    "oneOf by what is closed": {
        "oneOf": [
            {"type": "object", "required": ["a"]},
            {
                "type": "object",
                "properties": {"b": {"type": "null"}},
                "additionalProperties": False,
            },
        ]
    },
    "oneOf without required": {
        "type": "object",
        "oneOf": [{"properties": {"k": {"const": 1}}}, {"properties": {"k": {"const": 2}}}],
    },
    "dependentRequired": {
        "type": "object",
        "properties": {n: {"type": "null"} for n in "abc"},
        "additionalProperties": False,
        "dependentRequired": {"a": ["b"], "c": ["a"]},
    },
    "dependentSchemas": {
        "type": "object",
        "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
        "additionalProperties": False,
        "dependentSchemas": {"a": {"properties": {"b": {"maximum": 3}}}, "b": False},
    },
    "dependencies": {
        "properties": {n: {"type": "null"} for n in "abc"},
        "additionalProperties": False,
        "dependencies": {"a": ["b"], "b": ["a"], "c": {"required": ["a"]}},
    },
    "if": {
        "type": "object",
        "properties": {"a": {"enum": [1, 2]}, "b": {"type": "integer", "maximum": 9}},
        "required": ["a"],
        "additionalProperties": False,
        "if": {"properties": {"a": {"const": 1}}},
        "then": {"required": ["b"]},
        "else": {"properties": {"b": {"const": 7}}},
    },
    "if alone": {"type": "null", "if": {"pattern": "x"}},
    "then alone": {"type": "null", "then": False, "else": False},
    "uniqueItems of constants": {
        "type": "array",
        "items": {"enum": ["a", 1, 1.0, None]},
        "uniqueItems": True,
    },
    "uniqueItems of booleans": {"items": {"type": "boolean"}, "uniqueItems": True, "minItems": 1},
    "uniqueItems of one": {"type": "array", "maxItems": 1, "uniqueItems": True},
    "uniqueItems of a tuple": {
        "type": "array",
        "prefixItems": [{"type": "string"}, {"type": "null"}],
        "items": False,
        "uniqueItems": True,
    },
    "bounds beyond doubles": {"type": "integer", "minimum": -(2**60) - 1, "maximum": 2**60 + 1},
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
    "format with a pattern": {"type": "string", "format": "date", "pattern": "^20"},
    "a format of the client's": {"type": "string", "format": "int64", "maxLength": 2},
}

# Schema and where its error stands.
REFUSED = {
    "contains": ({"contains": {"const": 1}}, "#/contains"),
    "minContains": ({"contains": {}, "minContains": 2}, "#/minContains"),
    "maxContains": ({"contains": {}, "maxContains": 2}, "#/maxContains"),
    "uniqueItems": ({"items": {"uniqueItems": True}}, "#/items/uniqueItems"),
    "propertyNames": ({"propertyNames": {"maxLength": 1}}, "#/propertyNames"),
    "unevaluatedProperties": ({"unevaluatedProperties": False}, "#/unevaluatedProperties"),
    "unevaluatedItems": ({"unevaluatedItems": False}, "#/unevaluatedItems"),
    "$dynamicRef": ({"$dynamicRef": "#x"}, "#/$dynamicRef"),
    "$dynamicAnchor": ({"$dynamicAnchor": "x"}, "#/$dynamicAnchor"),
    "$recursiveRef": ({"$recursiveRef": "#"}, "#/$recursiveRef"),
    "$recursiveAnchor": ({"$recursiveAnchor": True}, "#/$recursiveAnchor"),
    "disallow": ({"disallow": "string"}, "#/disallow"),
    "divisibleBy": ({"divisibleBy": 2}, "#/divisibleBy"),
    "extends": ({"extends": {}}, "#/extends"),
    "not a pattern": ({"not": {"pattern": "a"}}, "#/not"),
    "not an integer": ({"type": ["number", "null"], "not": {"type": "integer"}}, "#/not"),
    "not a format": ({"not": {"format": "date"}}, "#/not"),
    "not an object": ({"not": {"const": {"a": 1}}}, "#/not"),
    "not a long text": ({"not": {"const": "x" * 99}}, "#/not"),
    "not what refers to itself": (
        {
            "not": {"$ref": "#/$defs/a"},
            "$defs": {"a": {"anyOf": [{"type": "null"}, {"$ref": "#/$defs/a"}]}},
        },
        "#/not",
    ),
    "not a reference with others": (
        {"not": {"$ref": "#/$defs/a", "type": "null"}, "$defs": {"a": {}}},
        "#/not",
    ),
    "oneOf that may overlap": ({"oneOf": [{"minimum": 1}, {"type": "integer"}]}, "#/oneOf"),
    "oneOf of many": (
        {"oneOf": [{"properties": {n: {"const": i} for n in "abcdef"}} for i in range(6)]},
        "#/oneOf",
    ),
    "if a pattern": ({"if": {"pattern": "a"}, "then": {"maxLength": 2}}, "#/if"),
    "inside of then": (
        {"if": {"required": ["a"]}, "then": {"properties": {"b": {"contains": {}}}}},
        "#/then/properties/b/contains",
    ),
    "dependentRequired of many": (
        {"dependentRequired": {n: [n + n] for n in "abcdefg"}},
        "#/dependentRequired",
    ),
    "inside of dependentSchemas": (
        {"dependentSchemas": {"a": {"items": {"contains": {}}}}},
        "#/dependentSchemas/a/items/contains",
    ),
    "dependencies of no names": ({"dependencies": {"a": [1]}}, "#/dependencies"),
    "uniqueItems of many constants": (
        {"items": {"enum": [*range(9)]}, "uniqueItems": True},
        "#/uniqueItems",
    ),
    "a constant beyond doubles": ({"const": [2**53 + 1]}, "#/const"),
    "constants beyond doubles": ({"enum": ["a", -(2**63)]}, "#/enum"),
    "a bound beyond integers": ({"type": "integer", "minimum": 2**70}, "#/minimum"),
    "a control character": ({"enum": [{"a": "\u001b"}]}, "#/enum"),
    "format": ({"format": "json-pointer"}, "#/format"),
    "remote reference": ({"$ref": "https://example.com/x"}, "#/$ref"),
    "broken reference": ({"anyOf": [{"$ref": "#/$defs/x"}]}, "#/anyOf/0/$ref"),
    "through a reference": (
        {"$ref": "#/$defs/a", "$defs": {"a": {"items": {"contains": {}}}}},
        "#/$defs/a/items/contains",
    ),
    "moved references": ({"properties": {"a": {"$id": "x"}}}, "#/properties/a/$id"),
    "minProperties": ({"minProperties": 2}, "#/minProperties"),
    "maxProperties": ({"maxProperties": 1, "properties": {"a": {}}}, "#/maxProperties"),
    "multipleOf": ({"multipleOf": 1000003}, "#/multipleOf"),
    "class operators": ({"pattern": "[a&&b]"}, "#/pattern"),
    "nested class": ({"patternProperties": {"[a[b]]": {}}}, "#/patternProperties"),
    "dialect": ({"$schema": "https://example.com/dialect"}, "#/$schema"),
    "a name with a slash": (
        {"properties": {"a/b": {"contains": {}}}},
        "#/properties/a~1b/contains",
    ),
    "no schema": ({"properties": {"a": 3}}, "#/properties/a"),
}
