"""Reading config.json: every field is known, or an error."""

import importlib
import json
import math
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, ClassVar, get_args, get_type_hints

import pytest
import transformers

import wherry
from wherry.compiler.checkpoint.folder import read_folder
from wherry.compiler.load import architectures, describe
from wherry.errors import ModelError
from wherry.models.arch import RopeConfig, read_config


@dataclass(frozen=True, slots=True, kw_only=True)
class ToyConfig:
    hidden_size: int
    num_hidden_layers: int
    vocab_size: int
    intermediate_size: int
    num_attention_heads: int
    max_position_embeddings: int
    rope: RopeConfig
    head_dim: int | None = None
    num_key_value_heads: int | None = None
    rms_norm_eps: float = 1e-6
    tie_word_embeddings: bool = False
    layer_types: tuple[str, ...] = ()
    ACCEPTED: ClassVar[Mapping[str, tuple[Any, ...]]] = {
        "hidden_act": ("silu",),
        "attention_bias": (False,),
        "mlp_bias": (False,),
        "kinds": ("full_attention",),
    }
    IGNORED: ClassVar[tuple[str, ...]] = ("max_window_layers",)


SMALL = {
    "hidden_size": 8,
    "num_hidden_layers": 1,
    "vocab_size": 9,
    "intermediate_size": 4,
    "num_attention_heads": 2,
    "max_position_embeddings": 64,
}


@pytest.mark.parametrize("diff", [True, False])
def test_what_transformers_writes_is_read(diff):
    hf = transformers.LlamaConfig(hidden_size=64, num_attention_heads=4, num_key_value_heads=2)
    config = read_config(
        ToyConfig,
        json.loads(hf.to_json_string(use_diff=diff))
        | {
            "hidden_size": 64,
            "intermediate_size": 11008,
            "num_hidden_layers": 32,
            "num_attention_heads": 4,
            "vocab_size": 32000,
            "max_position_embeddings": 2048,
        },
    )
    assert (config.hidden_size, config.head_dim, config.num_key_value_heads) == (64, 16, 2)
    assert config.rope == RopeConfig(theta=10000.0)


def test_null_is_absent_and_lists_become_tuples():
    config = read_config(
        ToyConfig, SMALL | {"head_dim": None, "sliding_window": None, "layer_types": ["a"]}
    )
    assert config.head_dim is None and config.layer_types == ("a",)


def test_one_error_lists_everything():
    hf = SMALL | {
        "hidden_act": "gelu",
        "attention_bias": True,
        "pretraining_tp": 2,
        "sliding_window": 4096,
        "vocab_size": "many",
        "rms_norm_eps": True,
        "rope_parameters": {"rope_type": "axial", "long_factor": [1.0]},
    }
    del hf["hidden_size"]
    with pytest.raises(ModelError) as caught:
        read_config(ToyConfig, hf)
    text = str(caught.value)
    for part in (
        "hidden_size: missing",
        "hidden_act: found 'gelu', supported is 'silu'",
        "attention_bias: found True, supported is False",
        "pretraining_tp: found 2, supported is 1",
        "sliding_window: 4096, an unknown field",
        "vocab_size: found 'many', expected int",
        "rms_norm_eps: found True, expected float",
        "found type 'axial', supported are default, linear, dynamic, llama3, yarn, longrope, "
        "proportional",
    ):
        assert part in text
    assert text.count("  - ") == 8


def test_zero_is_not_taken_for_false():
    with pytest.raises(ModelError, match="mlp_bias: found 0"):
        read_config(ToyConfig, SMALL | {"mlp_bias": 0})


def test_old_and_new_spellings_of_rope_are_one_record():
    scaling = {
        "factor": 8.0,
        "low_freq_factor": 1.0,
        "high_freq_factor": 4.0,
        "original_max_position_embeddings": 32,
    }
    want = RopeConfig(kind="llama3", theta=5e5, **scaling)
    old = SMALL | {"rope_theta": 5e5, "rope_scaling": {"type": "llama3", **scaling}}
    mid = SMALL | {"rope_theta": 5e5, "rope_scaling": {"rope_type": "llama3", **scaling}}
    new = SMALL | {"rope_parameters": {"rope_theta": 5e5, "rope_type": "llama3", **scaling}}
    assert [read_config(ToyConfig, hf).rope for hf in (old, mid, new)] == [want] * 3


def test_rope_fields_that_a_type_has_not_or_lacks_are_errors():
    hf = SMALL | {"rope_scaling": {"type": "linear", "beta_fast": 3, "mrope_section": [1, 2]}}
    with pytest.raises(ModelError) as caught:
        read_config(ToyConfig, hf)
    text = str(caught.value)
    assert "rope_scaling.beta_fast: 3, which type 'linear' does not have" in text
    assert "rope_scaling.mrope_section" in text
    assert "rope_scaling.factor: missing for type 'linear'" in text


def test_each_element_of_a_list_has_to_be_accepted_and_a_class_may_ignore():
    fine = SMALL | {"kinds": ["full_attention"] * 3, "max_window_layers": 28}
    assert read_config(ToyConfig, fine).hidden_size == 8
    with pytest.raises(ModelError, match="supported is 'full_attention'"):
        read_config(ToyConfig, fine | {"kinds": ["full_attention", "sliding_attention"]})


def test_no_framework_is_imported():
    code = "import sys, wherry.models.arch; print({'tvm', 'torch'} & set(sys.modules))"
    env = os.environ | {"PYTHONPATH": str(Path(wherry.__path__[0]).parent)}
    said = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True)
    assert said.stdout.strip() == "set()", said.stderr


LLAMA = SMALL | {"model_type": "llama", "rope_theta": 10000.0}


def described(tmp_path, text):
    (tmp_path / "config.json").write_text(text if isinstance(text, str) else json.dumps(text))
    return describe(read_folder(tmp_path))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"hidden_size": -8}, "hidden_size: found -8, expected int from 1 to 1048576"),
        ({"hidden_size": 2**40}, "hidden_size: found 1099511627776"),
        ({"intermediate_size": 0}, "intermediate_size: found 0"),
        ({"num_hidden_layers": 10**30}, "num_hidden_layers: found 1000000000"),  # hung
        ({"num_attention_heads": 1.5}, "num_attention_heads: found 1.5"),
        ({"num_attention_heads": math.inf}, "num_attention_heads: found inf"),
        ({"num_attention_heads": 3}, "hidden_size: 8 is not divisible by the 3"),
        ({"num_attention_heads": 4, "num_key_value_heads": 3}, "3 does not divide"),
        ({"num_key_value_heads": -1}, "num_key_value_heads: found -1, expected int from 1 to"),
        ({"head_dim": 10**9}, "head_dim: found 1000000000"),
        ({"head_dim": 3}, "head_dim: 3 of 3 dimensions rotate"),
        ({"vocab_size": 10**12}, "vocab_size: found"),
        ({"max_position_embeddings": 10**18}, "max_position_embeddings: found"),
        ({"rms_norm_eps": math.nan}, "rms_norm_eps: found nan, expected float"),
        ({"rms_norm_eps": -1e-6}, "rms_norm_eps: found -1e-06"),
        ({"rope_theta": math.nan}, "theta: found nan, expected a positive number"),
        ({"rope_theta": 0.5}, "theta: found 0.5"),
        ({"rope_scaling": {"rope_type": "linear", "factor": math.nan}}, "factor: found nan"),
        ({"rope_scaling": {"rope_type": "linear", "factor": math.inf}}, "factor: found inf"),
        ({"rope_scaling": {"rope_type": "linear", "factor": 10**400}}, "factor: found 1000"),
        ({"rope_scaling": {"rope_type": ["linear"]}}, "found type ['linear']"),
        ({"rope_scaling": {"rope_type": "yarn", "factor": 2, "truncate": "no"}}, "true or false"),
        ({"rope_scaling": {"rope_type": "dynamic", "factor": "2"}}, "factor: found '2'"),
        ({"partial_rotary_factor": 2.0}, "partial_rotary_factor: found 2.0"),
        (
            {
                "rope_scaling": {
                    "rope_type": "llama3",
                    "factor": 8.0,
                    "low_freq_factor": 4.0,
                    "high_freq_factor": 4.0,
                }
            },
            "low_freq_factor: 4 is not less than high_freq_factor, 4",
        ),
    ],
)
def test_numbers_that_no_model_has(tmp_path, change, said):
    with pytest.raises(ModelError) as caught:
        described(tmp_path, LLAMA | change)
    assert said in str(caught.value)


def test_all_numbers_out_of_range_are_in_one_error(tmp_path):
    wrong = {"hidden_size": 0, "num_hidden_layers": -1, "rms_norm_eps": math.nan}
    with pytest.raises(ModelError) as caught:
        described(tmp_path, LLAMA | wrong | {"rope_theta": -1.0, "extra": 1})
    assert str(caught.value).count("  - ") == 5


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[" * 50_000, "nest more than 100 levels"),
        ('{"a":' * 50_000, "nest more than 100 levels"),
        ('{"a": ' + "[" * 200 + "]" * 200 + "}", "nest more than 100 levels"),
        ("7", "holds a int"),
        ("\ud800", "not JSON"),
        ('{"hidden_size": ' + "9" * 5000 + "}", "not JSON"),
    ],
)
def test_text_that_is_no_configuration(tmp_path, text, said):
    (tmp_path / "config.json").write_bytes(text.encode(errors="surrogatepass"))
    with pytest.raises(ModelError, match=said):
        describe(read_folder(tmp_path))


@pytest.mark.parametrize("name", architectures())
def test_every_number_has_a_range(name):
    config = importlib.import_module(f"wherry.models.families.{name}").ARCH.config
    hints = get_type_hints(config, include_extras=True)
    for field in fields(config):
        bare = [h for h in get_args(hints[field.name]) or [hints[field.name]] if h in (int, float)]
        has_range = "Range(" in str(hints[field.name])
        assert has_range or not bare, f"{name}: {field.name} has no range"
