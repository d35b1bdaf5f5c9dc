"""The structure of a body is known before it is parsed; answers are encoded in parts."""

from __future__ import annotations

import json
import random

import pytest

from wherry.runtime.errors import RequestError
from wherry.runtime.server.wire import json_body
from wherry.runtime.server.wire.json_body import Structure, encoded, measure, parse_json


def random_value(rng: random.Random, depth: int = 0):
    kind = rng.randrange(7)
    if depth > 6 or kind < 2:
        return rng.choice([rng.randrange(99), 1.5, None, True])
    if kind < 4:
        return "".join(rng.choices('ab"\\,:[]{}é\n🎉', k=rng.randrange(9)))
    if kind == 4:
        return [random_value(rng, depth + 1) for _ in range(rng.randrange(4))]
    names = ("".join(rng.choices('ab"\\,:[]{}', k=4)) for _ in range(rng.randrange(4)))
    return {name: random_value(rng, depth + 1) for name in names}


def reference(value, depth: int = 0) -> Structure:
    structure = Structure()
    if isinstance(value, (dict, list)):
        inner = list(value.values() if isinstance(value, dict) else value)
        structure.containers, structure.depth = 1, depth + 1
        structure.values = max(0, len(inner) - 1)
        structure.names = len(inner) if isinstance(value, dict) else 0
        for part in (reference(v, depth + 1) for v in inner):
            structure.containers += part.containers
            structure.values += part.values
            structure.names += part.names
            structure.depth = max(structure.depth, part.depth)
    return structure


@pytest.mark.parametrize("block", [1, 2, 3, 7, 64, 2**20])
def test_counts_wherever_blocks_end(block, monkeypatch):
    monkeypatch.setattr(json_body, "_BLOCK", block)
    rng = random.Random(block)
    for _ in range(500):
        value = random_value(rng)
        body = json.dumps(value, ensure_ascii=rng.random() < 0.5).encode()
        assert measure(body) == reference(value), body
        assert parse_json(body) == value


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"[" * 65, "64 levels"),
        (b"[" + b"[]," * 2**16 + b"0]", "65536 objects and lists"),
        (b"{" + b'"a":0,' * (2**16 + 1) + b'"b":0}', "65536 fields"),
        (b"[" + b"0," * (2**19 + 1) + b"0]", "524288 values"),
        (b"[" + b"1" * 65 + b"]", "whole number of 65 digits"),
        (b'["\xff"]', "not JSON"),
        ('["a"]'.encode("utf-16"), "not JSON"),
        (b"", "not JSON"),
        (b'["a', "not JSON"),
        (b"\\", "not JSON"),
    ],
)
def test_what_is_too_much_or_no_json(body, message):
    with pytest.raises(RequestError, match=message) as e:
        parse_json(body)
    assert e.value.code == "invalid_json"


def test_brackets_in_texts_do_not_count():
    text = '[{,:"\\' * 200_000
    assert parse_json(json.dumps([text]).encode()) == [text]
    assert parse_json(b"\xef\xbb\xbf[1]") == [1]  # a byte order mark


def test_answers_are_what_json_makes():
    rng = random.Random(5)
    for depth in (0, 1, 2, 5, 9):
        for _ in range(200):
            value = random_value(rng)
            assert json.loads(encoded(value, depth)) == value
