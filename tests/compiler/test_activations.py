"""Dtypes of activations and of the cache: what suits target and scheme, what is refused, memory."""

import pytest

from wherry.compiler.api import Limits, ensure_artifact
from wherry.compiler.checkpoint.folder import read_folder
from wherry.compiler.choices import with_dtypes
from wherry.compiler.forecast import forecast
from wherry.errors import UsageError
from wherry.quant.scheme import find as find_scheme
from wherry.targets.target import find

from ..support.tiny_models import save


def test_float_weights_have_no_int8_activations():
    with pytest.raises(UsageError, match=r"'int8'.*q0f16 are floats.*--activations auto"):
        ensure_artifact("demo", target="cpu", quant="q0f16", activations="int8")


def test_gpus_have_none():
    with pytest.raises(UsageError, match=r"target webgpu multiplies by float16 or float ones"):
        ensure_artifact("demo", target="webgpu", quant="q4f16_1", activations="int8")


@pytest.mark.parametrize(
    ("target", "quant", "options", "chosen_dtypes"),
    [
        ("cpu:x86-64-v3", "q4f16_1", {}, ("int8", "float16")),
        ("cpu:x86-64-v3", "q0f32", {}, ("float", "float32")),
        ("cpu:x86-64-v3+", "q4f16_1", {"activations": "bf16"}, ("bf16", "float16")),
        ("cpu:x86-64-v3+", "q0f16", {"activations": "bf16"}, ("bf16", "float16")),
        ("cpu:x86-64-v3", "q0f16", {"kv_dtype": "int8"}, ("float", "int8")),
        *((t, "q4f16_1", {}, ("float16", "float16")) for t in ("cuda", "rocm:gfx1100", "metal")),
        *((t, "q0f16", {}, ("float16", "float16")) for t in ("opencl", "vulkan", "webgpu")),
        *((t, "q4f32_1", {}, ("float", "float32")) for t in ("opencl", "vulkan", "webgpu")),
        ("webgpu", "q4f16_1", {"activations": "float"}, ("float", "float16")),
        ("webgpu", "q4f16_1", {"kv_dtype": "float32"}, ("float16", "float32")),
        ("vulkan", "q0f32", {"activations": "float16"}, ("float16", "float32")),
        ("vulkan", "q0f32", {"kv_dtype": "float16"}, ("float", "float16")),
    ],
)
def test_what_suits(target, quant, options, chosen_dtypes):
    chosen = {"kv_dtype": "auto", "activations": "auto"} | options
    preset = with_dtypes(find(target), find_scheme(quant), **chosen)
    assert (preset.activations, preset.kv_dtype) == chosen_dtypes


def test_what_a_target_has_not():
    half = {"kv_dtype": "auto", "activations": "float16"}
    with pytest.raises(UsageError, match="cpu:x86-64-v3 multiplies by int8 or float ones"):
        with_dtypes(find("cpu:x86-64-v3"), find_scheme("q4f16_1"), **half)
    with pytest.raises(UsageError, match="web-llm keeps keys and values in float32 or float16"):
        web_llm = find("webgpu:web-llm")
        with_dtypes(web_llm, find_scheme("q4f16_1"), kv_dtype="int8", activations="auto")


@pytest.mark.cpu
def test_half_the_memory(tmp_path):
    """float16 halves the KV cache, and a step's tensors except logits and the residual stream."""
    wide = {"hidden_size": 256, "intermediate_size": 1024, "num_hidden_layers": 1}
    save(tmp_path, "llama", **wide)

    def memory(**options):
        limits = Limits(max_batch=4, prefill_chunk=128)
        return forecast(
            "m", read_folder(tmp_path), target="webgpu", limits=limits, **options
        ).memory

    half, single = memory(), memory(activations="float", kv_dtype="float32")
    assert half["kv_per_token"] * 2 == single["kv_per_token"] > 0
    assert half["weights"] == single["weights"]
    assert half["workspace"] < 0.7 * single["workspace"]
