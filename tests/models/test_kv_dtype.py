"""A cache in float16, int8 or int4: less memory, nearly the same distribution, in any company."""

from __future__ import annotations

import numpy as np
import pytest

from wherry.artifact.manifest import read_manifest
from wherry.compiler.choices import ArtifactSpec
from wherry.errors import UsageError
from wherry.targets.target import find

from ..support import tiny_models
from ..support.tiny_models import Runner

pytestmark = pytest.mark.cpu
SMALLER = {
    "float16": 2e-5,
    "int8": 2e-2,
    "int4": 1.5e-1,
}  # and how far the distribution may move, nats
PROMPT = [int(t) for t in np.random.default_rng(1).integers(3, 320, 70)]


@pytest.fixture(scope="module", params=[pytest.param("llama", marks=pytest.mark.nightly), "qwen3"])
def folders(request, tmp_path_factory):
    """By dtype of the cache."""
    model = tmp_path_factory.mktemp(request.param)
    # Wide enough for the kernels to use threads.
    shape = {"hidden_size": 512, "num_attention_heads": 8, "head_dim": 64}
    tiny_models.save(model, request.param, **shape)
    return {kv: tiny_models.compiled(model, kv_dtype=kv) for kv in ("float32", *SMALLER)}


def log_softmax(logits):
    x = logits.astype("float64")
    x -= x.max(-1, keepdims=True)
    return x - np.log(np.exp(x).sum(-1, keepdims=True))


@pytest.mark.nightly
def test_less_memory(folders):
    sizes = {kv: read_manifest(f).memory["kv_per_token"] for kv, f in folders.items()}
    assert sizes["float16"] * 2 == sizes["float32"] > 0
    # Of a head of 64: keys in 12 bits, values in 8, two scales.
    assert sizes["int8"] * (2 * 4 * 64) == sizes["float32"] * (96 + 4 + 64 + 4)
    # Keys in 8 bits and a scale; values in 4, of 32 elements a scale and a minimum.
    assert sizes["int4"] * (2 * 4 * 64) == sizes["float32"] * (64 + 4 + 32 + 2 * 4)
    state = {kv: Runner(f).metadata["state"][0]["dtype"] for kv, f in folders.items()}
    assert state == {kv: "uint8" if kv == "int4" else kv for kv in folders}


@pytest.mark.nightly
@pytest.mark.parametrize("kv_dtype", SMALLER)
def test_nearly_the_same_distribution(folders, kv_dtype):
    exact, small = (
        log_softmax(Runner(folders[kv]).step({0: PROMPT})[0]) for kv in ("float32", kv_dtype)
    )
    assert not np.array_equal(exact, small)
    divergence = (np.exp(exact) * (exact - small)).sum(-1)
    assert divergence.max() < SMALLER[kv_dtype]


@pytest.mark.parametrize("kv_dtype", SMALLER)
def test_company_and_chunks_do_not_matter(folders, kv_dtype):
    at_once = Runner(folders[kv_dtype]).step({0: PROMPT})[0]
    other = Runner(folders[kv_dtype])
    for start, stop in ((0, 5), (5, 33), (33, 34), (34, 70)):
        step = other.step({7: [9, start], 0: PROMPT[start:stop], 8: [start]})
        assert np.array_equal(step[0], at_once[start:stop])


def test_what_targets_choose():
    assert find("cpu:x86-64-v3").kv_dtype == "float16"
    assert find("cpu:x86-64-v2").kv_dtype == "float32"
    # a model of float32 keeps its cache in float32, on CPUs as on GPUs: 2.4e-6 of a logit, not 1e-3
    for target in ("cpu:x86-64-v3", "vulkan"):
        for quant, kv_dtype in (("q0f32", "float32"), ("q4f16_1", "float16")):
            assert ArtifactSpec(target=target, quant=quant).preset.kv_dtype == kv_dtype
    chosen = ArtifactSpec(target="cpu:x86-64-v3", quant="q0f32", kv_dtype="float16").preset
    assert chosen.kv_dtype == "float16" and chosen.activations == "float"
    assert find("cpu:x86-64-v3").with_kv_dtype("float32").kv_dtype == "float32"
    with pytest.raises(UsageError, match="float32 or float16 or int8 or int4"):
        find("cpu").with_kv_dtype("int3")
    assert find("vulkan").with_kv_dtype("int4").cache_words
    with pytest.raises(UsageError, match=r"'int4'.*web-llm.*float32 or float16\."):
        find("webgpu:web-llm").with_kv_dtype("int4")
