"""Models to begin with: the page, their sizes, and those that a machine has memory for."""

from __future__ import annotations

import json
from math import prod
from pathlib import Path

import pytest
from benchmarks.shapes import SHAPES, weight_shapes

from wherry.cli import listing
from wherry.cli.group import cli
from wherry.compiler.recommended import MODELS, fitting, page
from wherry.hub.names import check

PAGE = Path(__file__).parents[2] / "docs" / "which-model.md"


def test_the_page_is_up_to_date():
    assert page() == PAGE.read_text(), "make docs"


def test_names_can_be_typed_and_sizes_grow():
    for model in MODELS:
        check(model.name)
        assert f"`{model.name}` | {model.good_at} |" in page() and f"| {model.licence} |" in page()
    assert [m.memory for m in MODELS] == sorted(m.memory for m in MODELS)


@pytest.mark.parametrize(
    ("shape", "name"),
    [
        ("smollm2-135m", "HuggingFaceTB/SmolLM2-135M-Instruct"),
        ("qwen3-0.6b", "Qwen/Qwen3-0.6B"),
        ("qwen3-8b", "Qwen/Qwen3-8B"),
    ],
)
def test_sizes_are_those_of_the_published_shapes(shape, name):
    config = SHAPES[shape]
    model = next(m for m in MODELS if m.name == f"hf://{name}")
    count = sum(prod(t) for t in weight_shapes(config).values())
    if not config["tie_word_embeddings"]:
        count += config["vocab_size"] * config["hidden_size"]  # the LM head, which is left out
    assert model.parameters == pytest.approx(count / 1e6, rel=0.001)
    heads = config["num_key_value_heads"] * config["head_dim"]
    assert model.kv == config["num_hidden_layers"] * heads * 2 * 2


def test_a_machine_lists_what_it_has_memory_for(monkeypatch, capsys):
    monkeypatch.setattr(listing, "_free", lambda: {"cpu": int(4e9), "cuda:0": int(1e9)})
    cli.main(["list", "--fits"], standalone_mode=False)
    said = capsys.readouterr()
    first, *rows = said.out.splitlines()[1:]
    assert first.split()[:6] == [fitting(3.6e9)[0].name, *"2.3 GB 3.2 GB cpu".split()]
    assert any("cpu, cuda:0" in row for row in rows) and "Qwen3-8B" not in said.out
    assert said.err.endswith(f"Type: wherry run {fitting(3.6e9)[0].name}\n")
    cli.main(["list", "--fits", "--json"], standalone_mode=False)
    records = json.loads(capsys.readouterr().out)
    assert [r["model"] for r in records] == [m.name for m in fitting(3.6e9)]
