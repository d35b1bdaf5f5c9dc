"""Every family's config.json, changed as careless editors do: a model or a clear error.

`python -m tests.fuzz.test_configs SEED...` tries other seeds.
"""

from __future__ import annotations

import copy
import json
import random
import sys
import tempfile
import traceback
from pathlib import Path
from typing import Any

import pytest
import transformers

from wherry.compiler.checkpoint.folder import read_folder
from wherry.compiler.library.export import export, parameters
from wherry.compiler.load import describe
from wherry.errors import WherryError
from wherry.quant.scheme import find

from ..models.encoder_decoders import CASES as ENCODER_DECODERS
from ..models.encoders import CASES as ENCODERS
from ..models.families import CASES
from ..support.tiny_models import COMMON, WITH_PARTS
from . import mutate

NAMES = sorted({**CASES, **ENCODERS, **ENCODER_DECODERS})
MANY = 24  # changed files of a family
EXPORTED = 6  # each of so many is exported, too, which takes a second
LONG = 100_000  # tokens of a context for which LongRoPE has other frequencies


def complete_config(name: str) -> dict[str, Any]:
    """The config.json of a family, as transformers writes it."""
    case = {**CASES, **ENCODERS, **ENCODER_DECODERS}[name]
    fields = {**COMMON, **case.config}
    if case.model_type in WITH_PARTS:
        kind, rest = WITH_PARTS[case.model_type]
        text = {"model_type": case.model_type, **fields}
        config = transformers.AutoConfig.for_model(kind, text_config=text, **rest)
    else:
        config = transformers.AutoConfig.for_model(case.model_type, **fields)
    parsed: dict[str, Any] = json.loads(config.to_json_string(use_diff=False))
    return {**parsed, **getattr(case, "published", {})}


def changed(config: dict[str, Any], rng: random.Random) -> dict[str, Any]:
    """A configuration with one or two other values, most of them of the same kind."""
    copied = copy.deepcopy(config)
    if rng.random() < 0.3:
        other: dict[str, Any] = json.loads(mutate.rewritten(json.dumps(copied).encode(), rng))
        return other | {"model_type": copied["model_type"]} if isinstance(other, dict) else copied
    places = [(h, k) for h, k in mutate.places(copied) if k != "model_type"]
    for holder, key in rng.sample(places, rng.choice([1, 1, 2])):
        value = holder[key] if isinstance(holder, dict) or key < len(holder) else None
        holder[key] = _near(value, rng)
    return copied


def _near(value: Any, rng: random.Random) -> Any:
    """A value that a person could have written in this one's place."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return rng.choice([value - 1, value + 1, 2 * value, value // 2, 0, 1, 3, 7, 4096, [value]])
    if isinstance(value, float):
        return rng.choice([-value, value + 1, 0.0, 1e9, int(value), str(value)])
    if isinstance(value, list):
        return rng.choice([value[1:], value + value, value[::-1], [], {"a": value}, 5])
    if isinstance(value, dict):
        return rng.choice([{}, [*value], 5, "x", {k: 7 for k in value}, {**value, "more": 1}])
    return rng.choice([0, 1, 4, 0.5, True, [], {}, "x", "full_attention", "default"])


def attempt(config: dict[str, Any], folder: Path, *, exported: bool) -> None:
    """Do what a compilation does with config.json before weights are read."""
    (folder / "config.json").write_text(json.dumps(config))
    try:
        described = describe(read_folder(folder)).at(LONG)
        parameters(described.arch, described.config, described.entries)
        if exported:
            export(
                described.arch,
                described.config,
                find("q4f32_1"),
                dtype="float32",
                kv_dtype="float32",
                entries=described.entries,
            )
    except WherryError as e:
        assert str(e)


def broken(name: str, seed: int, count: int) -> list[str]:
    """Return what went wrong with changed files: the change, and the end of the traceback."""
    original, failures = complete_config(name), []
    with tempfile.TemporaryDirectory() as folder:
        for n in range(count):
            rng = random.Random(f"{name} {seed} {n}")
            config = changed(original, rng)
            try:
                attempt(config, Path(folder), exported=n % EXPORTED == 0)
            except Exception:
                other = {k: v for k, v in config.items() if original.get(k, "-") != v}
                failures.append(
                    f"{name} {seed} {n}: {other!r:.300}\n{traceback.format_exc()[-700:]}"
                )
    return failures


@pytest.mark.nightly
@pytest.mark.parametrize("name", NAMES)
def test_changed_configurations(name):
    problems = broken(name, 0, MANY)
    assert not problems, "\n".join(problems)


if __name__ == "__main__":
    for one in map(int, sys.argv[1:]):
        for each in NAMES:
            for problem in broken(each, one, MANY):
                print(problem, flush=True)
