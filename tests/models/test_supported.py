"""What is said of the families that can be run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import transformers
from click.testing import CliRunner

from wherry.cli.group import cli
from wherry.compiler.known_models import KNOWN, NAMES
from wherry.compiler.load import families
from wherry.compiler.supported import CHECKED, page, rows
from wherry.data import read
from wherry.hub.names import check
from wherry.models.arch import read_config

from . import checked
from .families import CASES

DOCS = Path(__file__).parents[2] / "docs" / "models.md"


def test_the_page_is_up_to_date():
    assert page() == DOCS.read_text(), "make docs"


def test_names_are_of_families_and_can_be_typed():
    assert set(NAMES) <= set(KNOWN)
    for name in NAMES.values():
        check(f"hf://{name}")
    types = {row.model_type for row in rows()}
    assert set(NAMES) <= types and "| `hf://Qwen/Qwen3-0.6B` |" in page()


def test_every_family_is_compared_with_a_reference():
    rows = "a row in tests/models/families/ or, if transformers has no such family, outside.py"
    assert set(checked.table()) == set(families()), rows


def test_the_record_of_what_is_checked_is_up_to_date():
    assert checked.text() == CHECKED.read_text(), "make docs"
    known = {row.model_type: row for row in rows()}
    assert known["bloom"].checked["cpu"] == "f32, q4 at night"
    assert known["gptj"].checked == {
        "cpu": "f32 at night, q4 at night",
        "opencl": "q4 at night",
        "vulkan": "q4 at night",
        "webgpu": "compiled at night",
    }
    assert known["exaone"].checked["vulkan"] == "" and "llama" in known["exaone"].reference


def test_every_family_is_known_by_models_and_a_format_that_there_is():
    assert set(KNOWN) == set(families()), "a row of KNOWN in compiler/known_models.py"
    formats = {family["name"] for family in read("tool_families")}
    assert {known.tools for known in KNOWN.values()} <= formats | {""}


def test_wherry_list_supported():
    said = CliRunner().invoke(cli, ["list", "--supported"]).stdout
    assert len(said.splitlines()) == 1 + len(rows()) and "mistral" in said
    records = json.loads(CliRunner().invoke(cli, ["list", "--supported", "--json"]).stdout)
    assert [record["model_type"] for record in records] == list(families())


# Fields without which transformers makes a configuration, but no model.
WITHOUT_DEFAULT = {"lfm2_moe": {"layer_types": ["conv", "full_attention"] * 16}}
IN_TRANSFORMERS = sorted({case.model_type for case in CASES.values()})


@pytest.mark.parametrize("name", IN_TRANSFORMERS)
@pytest.mark.parametrize("diff", [False, True])
def test_the_official_configuration_is_read(name, diff):
    """All fields that transformers writes, at their defaults; `diff`: sizes and what differs."""
    hf = transformers.AutoConfig.for_model(name, **WITHOUT_DEFAULT.get(name, {}))
    written = json.loads(hf.to_json_string(use_diff=False))
    kept = json.loads(hf.to_json_string(use_diff=True)) if diff else written
    sizes = ("hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads")
    spelled = [hf.attribute_map.get(size, size) for size in (*sizes, "vocab_size")]
    kept |= {size: written[size] for size in spelled if size in written}
    config = read_config(families()[name].config, kept)
    assert config == read_config(families()[name].config, written)
    assert config.tie_word_embeddings == hf.tie_word_embeddings
    types = getattr(hf, "layer_types", None)
    if types and getattr(hf, "sliding_window", None):
        windowed = [config.windowed(i) for i in range(len(types))]
        assert windowed == [kind == "sliding_attention" for kind in types]
