"""The core on WebGPU in Chromium, on SwiftShader: the CPU's tokens, and what a step costs.

Each of some forty pipelines takes SwiftShader a second or two. By day `make accept-site` has the
demo's tokens in Chromium, with the site of a wheel.
"""

from __future__ import annotations

import numpy as np
import pytest

from wherry.artifact.manifest import read_manifest
from wherry.compiler.api import ensure_artifact
from wherry.runtime.core.interface import SamplingParams

from ..support import tiny_models
from .browser import answer_of
from .conftest import ENGINE, LIMITS, ROOT, TOKENS

pytestmark = [pytest.mark.browser, pytest.mark.nightly]
FEW = 8  # tokens where more would show nothing else: a step takes a tenth of a second here
SECONDS = 540  # SwiftShader takes a second or two for a pipeline
LAYERS = 6
QUANT = "q4f32_1"  # SwiftShader has no shader-f16


@pytest.fixture(scope="module")
def report(chromium, core_js, given):
    """What the page says of the demo model."""
    folder = ensure_artifact("demo", target="webgpu", quant=QUANT, limits=LIMITS)
    assert read_manifest(folder).target["device_features"] == []
    folders = {"core": core_js, "model": folder, "tests": ROOT / "tests" / "web"}
    report = answer_of(folders, given | {"few": FEW}, SECONDS)
    assert "failure" not in report, report["failure"]
    return report


def test_tokens_are_the_cpu_s(report, native, prompts):
    greedy = SamplingParams(temperature=0, max_tokens=TOKENS)
    expected = native([(prompt, greedy) for prompt in prompts], QUANT)
    assert [one["tokens"] for one in report["together"]] == expected


def test_log_probabilities_are_the_cpu_s(report, native, prompts):
    """SwiftShader's own sine and cosine are as far off as WGSL allows, which shows here."""
    params = SamplingParams(temperature=0, max_tokens=FEW, top_logprobs=1, prompt_logprobs=0)
    (expected,) = native([(prompts[-1], params)], QUANT, logprobs=True)
    assert len(report["logprobs"]) == len(expected) > 60
    np.testing.assert_allclose(report["logprobs"], expected, atol=1e-4)


def test_requests_beside_each_other_are_as_alone(report):
    batched = [one["tokens"][:FEW] for one in report["together"]]
    assert batched == [one["tokens"] for one in report["solo"]]
    assert report["again"]["tokens"] == report["solo"][0]["tokens"]


def test_a_step_launches_few_kernels_and_reads_little(report):
    stats = report["stats"]
    assert 0 < report["decodeDispatches"] <= 4 * LAYERS + 8  # 120 at 28 layers
    assert stats["candidateRows"] > 0.8 * (stats["candidateRows"] + stats["wholeRows"])
    assert stats["wholeRows"] > 0  # rows that candidates did not decide need a second read
    assert stats["deviceBytes"] > 0
    built = [event for event in report["progress"] if event["phase"] == "pipelines"]
    assert built[-1]["done"] == built[-1]["total"] > 20


def test_the_engine_is_the_same(report):
    assert report["second"]["tokens"] == report["secondAlone"]["tokens"]
    assert report["second"]["cached"] > 0 == report["secondAlone"]["cached"]
    assert report["pages"]["after"] == report["pages"]["before"]
    assert [one["finish"] for one in report["masked"]] == ["stop", "stop", "error"]
    assert report["errors"]["token"].startswith("invalid_argument:")
    assert report["errors"]["twice"].startswith("busy:")
    assert report["abortedInStep"] == ["abort"]


def test_a_lost_device_is_an_error_from_then_on(report):
    assert len(report["lost"]) == 2
    assert all(words.startswith("CoreError device_lost:") for words in report["lost"])


def test_a_token_of_28_layers_takes_120_kernels_at_most(chromium, core_js, tmp_path):
    tiny_models.save(tmp_path / "m", "llama", num_hidden_layers=28, max_position_embeddings=256)
    folder = ensure_artifact(str(tmp_path / "m"), target="webgpu", quant=QUANT, limits=LIMITS)
    folders = {"core": core_js, "model": folder, "tests": ROOT / "tests" / "web"}
    given = {"only": "dispatches", "prompts": [list(range(3, 23))], "engine": ENGINE}
    report = answer_of(folders, given, SECONDS)
    assert "failure" not in report, report["failure"]
    decoding = report["counts"][1:]
    assert len(decoding) == 3 and 0 < max(decoding) <= 120, report
