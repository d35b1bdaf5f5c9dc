"""What the engine does beyond a step, over the real core: each feature, and the same tokens."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from wherry.errors import UsageError
from wherry.runtime import MLCEngine

from ..support.tiny_compiled import compile_tiny

pytestmark = pytest.mark.cpu
ROOT = Path(__file__).parents[2]
PROMPT = [3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3, 2, 3, 8, 4, 6]


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tiny")
    return folder, compile_tiny(folder)


SCRIPT = """
import json, sys
from wherry.runtime import MLCEngine
folder, prompt, options, requests = json.loads(sys.argv[1])
answers = []
with MLCEngine(folder, context=60, threads=1, **options) as engine:
    for fields in requests:
        asked = {"prompt": prompt, "temperature": 0, "max_tokens": 20, **fields}
        answer = engine.completions.create(**asked)
        answers.append([[c.text for c in answer.choices], answer.usage.model_dump()])
    stats = engine.stats()
print(json.dumps([answers, stats.accepted_tokens, stats.disk_tokens, stats.prefill_tokens]))
"""


@pytest.fixture
def run(compiled, tmp_path):
    folder, greedy = compiled
    expected = "".join(f"t{i}" for i in greedy(PROMPT, 20) if i)  # t0 is special: no text

    def run(options, *requests):
        environment = {
            **os.environ,
            "PYTHONPATH": str(ROOT / "src"),
            "WHERRY_CACHE": str(tmp_path / "cache"),
        }
        done = subprocess.run(
            [sys.executable, "-c", SCRIPT, json.dumps([str(folder), PROMPT, options, requests])],
            env=environment,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        answers, accepted, disk, prefilled = json.loads(done.stdout)
        for texts, _ in answers:
            assert {t.replace(" ", "") for t in texts} == {expected}
        return [usage for _, usage in answers], accepted, disk, prefilled

    return run


def cached(usage):
    return usage["prompt_tokens_details"]["cached_tokens"]


def test_a_prompt_is_computed_once(run):
    usages, _, _, prefilled = run({}, {}, {})
    assert [cached(u) for u in usages] == [0, len(PROMPT) - 1]
    assert prefilled == len(PROMPT) + 1
    usages, *_ = run({"prefix_cache": False}, {}, {})
    assert [cached(u) for u in usages] == [0, 0]


def test_choices_of_one_prompt_share_it(run):
    _, _, _, prefilled = run({"max_batch": 4}, {"n": 4})
    assert prefilled <= len(PROMPT) + 3 * 4  # tokens of the page that is not full, each time


def test_salts_are_kept_apart(run):
    usages, *_ = run({}, {"cache_salt": "a"}, {"cache_salt": "b"}, {"cache_salt": "a"})
    assert [cached(u) for u in usages] == [0, 0, len(PROMPT) - 1]


def test_a_prompt_outlives_the_process(run, tmp_path):
    options = {"prefix_cache_dir": str(tmp_path / "prefixes")}
    run(options, {})
    usages, _, disk, _ = run(options, {})
    assert cached(usages[0]) == disk == len(PROMPT) // 4 * 4


def test_a_draft_model_proposes(run, compiled):
    usages, accepted, _, _ = run({"draft": str(compiled[0])}, {})
    assert accepted > 0  # it is the model itself
    details = usages[0]["completion_tokens_details"]
    assert details["accepted_prediction_tokens"] == accepted


def test_options_of_the_engine_are_checked(run):
    with pytest.raises(AssertionError, match="max_slowdown"):
        run({"max_slowdown": 0.5}, {})


def test_a_folder_that_cannot_keep_prefixes_is_refused(compiled, tmp_path):
    """An unusable folder is an error at the start, because later it would only cost speed."""
    place = tmp_path / "a file" / "below"
    place.parent.touch()
    with pytest.raises(UsageError, match=f"cannot be kept on disk: {place}: cannot create: Not a"):
        MLCEngine(compiled[0], context=60, threads=1, prefix_cache_dir=place)
