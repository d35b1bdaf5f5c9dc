"""A request that leaves no token possible is its sender's error, in the real core's words."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from ..support.tiny_compiled import compile_tiny

pytestmark = pytest.mark.cpu
SCRIPT = """
import sys
from wherry.runtime import MLCEngine
from wherry.runtime.errors import RequestError
with MLCEngine(sys.argv[1], context=60, threads=1) as engine:
    ask = {"prompt": [3, 1, 4], "max_tokens": 4, "allowed_token_ids": [5]}
    print(engine.completions.create(**ask).choices[0].finish_reason)
    try:
        engine.completions.create(**ask, bad_words=["t5"])
    except RequestError as e:
        print(e.code)
"""


def test_what_forbids_all_that_it_allows(tmp_path):
    folder = tmp_path / "model"
    folder.mkdir()
    compile_tiny(folder)
    environment = {
        **os.environ,
        "PYTHONPATH": str(Path(__file__).parents[2] / "src"),
        "WHERRY_CACHE": str(tmp_path / "cache"),
    }
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(folder)],
        env=environment,
        capture_output=True,
        text=True,
    )
    assert done.stdout.split() == ["length", "no_token_possible"], done.stderr
