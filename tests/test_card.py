"""The quality card of a compiled folder: what is written is read, what is damaged is no card."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from wherry.artifact.card import CARD, Card, read_card, write_card
from wherry.artifact.manifest import Manifest, verify

from .support.artifacts import write

EXAMPLE = Card(
    schema=1,
    artifact="",
    quantization="q4f16_1",
    target="cpu",
    activations="int8",
    kv_dtype="float16",
    reference="tiny",
    reference_quantization="q0f16",
    text="0" * 64,
    tokens=8,
    kl_mean=0.25,
    kl_p99=1.5,
    top1_agreement=0.75,
    perplexity=20.0,
    reference_perplexity=18.0,
)


@pytest.fixture
def manifest(tmp_path) -> Manifest:
    written = write(tmp_path)
    write_card(tmp_path, replace(EXAMPLE, artifact=written.key))
    return written


def test_a_written_card_is_read(tmp_path, manifest):
    assert read_card(tmp_path, manifest) == replace(EXAMPLE, artifact=manifest.key)
    assert verify(tmp_path) == manifest  # a runtime may load a folder with a card


def test_a_folder_without_a_card(tmp_path):
    assert read_card(tmp_path, write(tmp_path)) is None


def test_the_card_of_an_older_compilation_is_none(tmp_path, manifest):
    assert read_card(tmp_path, replace(manifest, key="another")) is None


@pytest.mark.parametrize(
    "change",
    [
        {"schema": 2},
        {"kl_mean": -1.0},
        {"kl_mean": float("nan")},
        {"top1_agreement": 1.5},
        {"tokens": "8"},
        {"unknown": 1},
    ],
)
def test_a_changed_card_is_none(tmp_path, manifest, change):
    path = tmp_path / CARD
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    assert read_card(tmp_path, manifest) is None


@pytest.mark.parametrize("content", [b"", b"[]", b"{", b"\xff", b"[" * 100_000])
def test_a_damaged_card_is_none(tmp_path, manifest, content):
    (tmp_path / CARD).write_bytes(content)
    assert read_card(tmp_path, manifest) is None
