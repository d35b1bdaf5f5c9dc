"""The check of GPUs from its bundle to its report, on an OpenCL device of this machine."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from benchmarks import shapes
from benchmarks.gpu import bundle

from ..support import gpu
from ..support.tiny_models import COMMON

pytestmark = [pytest.mark.gpu, pytest.mark.nightly]
ROOT = Path(__file__).parents[2]
HERE = f"{sys.version_info.major}.{sys.version_info.minor}"
TINY = COMMON | {
    "model_type": "llama",
    "max_position_embeddings": 1024,
    "rms_norm_eps": 1e-5,
    "rope_theta": 1e4,
    "hidden_act": "silu",
    "head_dim": COMMON["hidden_size"] // COMMON["num_attention_heads"],
}


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """The folder of results, and the report."""
    for kind in ("opencl", "vulkan"):
        gpu.device(kind)
    folder = tmp_path_factory.mktemp("gpu")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bundle, "CASES", ["llama"])
        patch.setattr(bundle, "FLOATS", ["qwen3"])
        patch.setattr(bundle, "KERNEL_RUNS", [("device_kernels", ("-k", "vulkan and norms"))])
        patch.setattr(bundle, "LARGE", [("tiny", "q4f16_1")])
        patch.setattr(bundle, "PEERS", ["tiny"])
        patch.setitem(shapes.SHAPES, "tiny", TINY)
        for name, value in {"BATCHES": (1, 4), "CONTEXT": 24, "PREFILL": 32}.items():
            patch.setattr(bundle, name, value)
        size = bundle.make(folder / "b.tar.xz", "opencl", HERE, ("kernels", "models", "large"))
    assert size < bundle.LARGEST
    environment = os.environ | {"PYTHON": sys.executable, "PYTHONPATH": ""}
    command = [ROOT / "benchmarks" / "gpu_check.sh", folder / "b.tar.xz", folder / "out"]
    subprocess.run(command, env=environment, check=True)
    return folder / "out", (folder / "out" / "report.txt").read_text()


def test_models_and_kernels_are_right(results):
    folder, report = results
    assert "models: 2 of 2 right" in report
    lines = [json.loads(line) for line in (folder / "replays.jsonl").read_text().splitlines()]
    kernels = [line for line in lines if line["kind"] == "kernel"]
    assert len(kernels) > 3 and f"kernels: {len(kernels)} of {len(kernels)} right" in report
    assert all("test_norms" in line["test"] for line in kernels)


def test_what_fails_does_not_stop_the_rest(results):
    """There is no card of NVIDIA's here, so its own speed is not known."""
    _, report = results
    assert "status 1" in report and "CUDA" in report.partition("models:")[0]
    assert report.rstrip().endswith("done")


def test_a_peer_has_the_same_numbers(results):
    folder, _ = results
    (row,) = [json.loads(line) for line in (folder / "peers.jsonl").read_text().splitlines()]
    assert row["peer"] == "transformers" and row["prefill_tokens_s"] > 0
    for rows in (1, 4):  # of a tiny model, whose difference of two times may be noise
        decode = row[f"decode_{rows}"]
        assert decode["tokens_s"] == pytest.approx(rows / decode["step_s"])


def test_a_row_has_what_a_step_costs(results):
    folder, report = results
    (row,) = [json.loads(line) for line in (folder / "rows.jsonl").read_text().splitlines()]
    assert row["quant"] == "q4f16_1" and row["prefill_tokens_s"] > 0
    assert row["decode_1"]["tokens_s"] > 0 and row["decode_4"]["bytes_s"] > 0
    assert "of a matrix product" in report
