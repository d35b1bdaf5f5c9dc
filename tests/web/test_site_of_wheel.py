"""The site that an installed wheel packaged where there was no compiler: this machine's tokens.

`make accept-wheel` makes the site, and `make accept-site` runs these tests.
"""

from __future__ import annotations

import json
import subprocess

import pytest

from wherry.runtime.core.interface import SamplingParams

from ..support.web import missing
from .browser import answer_of
from .conftest import ROOT, TOKENS

pytestmark = [pytest.mark.browser, pytest.mark.nightly]
SITE = ROOT / "build" / "wheels" / "bare" / "site"
HERE = ROOT / "tests" / "web"
SECONDS = 540  # SwiftShader takes a second or two for a pipeline
QUANT = "q4f32_1"  # of wheels/accept.py


@pytest.fixture(scope="module")
def site():
    if not (SITE / "index.html").is_file():
        missing(f"no site of a wheel in {SITE}: make build-wheels accept-wheel")
    return SITE


@pytest.fixture(scope="module")
def expected(native, prompts):
    greedy = SamplingParams(temperature=0, max_tokens=TOKENS)
    return native([(prompt, greedy) for prompt in prompts], QUANT)


def test_on_the_cpu_in_node(site, core_js, given, expected):
    done = subprocess.run(
        ["node", HERE / "node.mjs", core_js / "core.js", site / "models" / "demo-wasm"],
        input=json.dumps(given),
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    assert [one["tokens"] for one in json.loads(done.stdout)["together"]] == expected


def test_on_the_gpu_in_chromium(site, chromium, core_js, given, expected):
    folders = {"core": core_js, "model": site / "models" / "demo-webgpu", "tests": HERE}
    report = answer_of(folders, given | {"few": 8}, SECONDS)
    assert "failure" not in report, report["failure"]
    assert [one["tokens"] for one in report["together"]] == expected
