"""Packs a bundle to test and measure Wherry on a GPU machine without network or compiler.

`make gpu-bundle`, or `python -m benchmarks.gpu.bundle OUT.tar.xz --target cuda:sm_90`; on the
machine `benchmarks/gpu_check.sh OUT.tar.xz RESULTS`. The bundle has compiled folders of large
models without weights, which a seed generates there; tiny models of every family and kernels with
their expected results; TVM's runtime, the core, and Wherry's Python with its packages.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Collection
from ctypes.util import find_library
from importlib.metadata import version
from math import prod
from pathlib import Path

from tests.models.families import CASES

import wherry
from wherry.compiler.api import Limits
from wherry.machine.plugins import PLUGINS, file_name, find_core, find_host, find_plugin

from ..shapes import SHAPES, weight_shapes
from . import llama_sources
from .hollow import compile_hollow
from .measure import BATCHES, CONTEXT, PREFILL, longest
from .record import record_models

ROOT = Path(__file__).parents[2]
LARGEST = 45 << 20  # bytes of the bundle, at most
# Packages that Wherry imports and machines with PyTorch may lack, in this environment's versions.
PACKAGES = ("apache-tvm-ffi", "pydantic", "pydantic-core", "annotated-types", "typing-inspection")
NOT_IMPORTED = tuple(f"tvm_ffi/{name}" for name in ("3rdparty", "cython", "include", "src"))
LARGE = (
    ("llama-3.2-1b", "q4f16_1"),
    ("llama-3.1-8b", "q4f16_1"),
    ("qwen3-8b", "q4f16_1"),
    ("llama-3.2-1b", "q0f16"),
    ("llama-3.1-8b", "q0f16"),
)
# shapes that other engines also run on the GPU machine, in bfloat16
PEERS = ("llama-3.2-1b", "llama-3.1-8b")
# Families that also run without quantization.
FLOATS = ("llama", "qwen3", "gemma3", "deepseek_v3", "qwen3_moe")
KERNEL_RUNS = (  # (tests, pytest's selection) whose kernel calls are recorded
    (
        "device_kernels paged_attention fused_linear qkv_attention candidates activations "
        "tensor_core_linear tensor_core_blocks tensor_core_attention tensor_core_experts",
        ("-k", "vulkan or tensor_core"),
    ),
    (
        "tensor_core_attention tensor_core_linear",
        ("-m", "nightly", "-k", "row_alone or any_pieces or wide"),
    ),
)


def _site(out: Path, device: str, python: str) -> None:
    """Collect the Python packages in the bundle's site folder."""
    with tempfile.TemporaryDirectory() as folder:
        pinned = [f"{name}=={version(name)}" for name in PACKAGES]
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "-d", folder]
        command += ["--only-binary=:all:", "--python-version", python]
        for manylinux in ("2_17", "2_24", "2_26", "2_27", "2_28"):
            command += ["--platform", f"manylinux_{manylinux}_x86_64"]
        subprocess.run([*command, "--platform", "manylinux2014_x86_64", *pinned], check=True)
        for wheel in Path(folder).glob("*.whl"):
            zipfile.ZipFile(wheel).extractall(out)
    for name in NOT_IMPORTED:
        shutil.rmtree(out / name)
    shutil.copytree(
        Path(wherry.__file__).parent,
        out / "wherry",
        ignore=shutil.ignore_patterns("__pycache__", "demo", "page", "*.so"),
    )
    shutil.copytree(ROOT / "benchmarks" / "gpu", out / "benchmarks" / "gpu")
    (out / "benchmarks" / "__init__.py").touch()
    for name in ("shapes.py", "make_models.py"):
        shutil.copy(ROOT / "benchmarks" / name, out / "benchmarks")
    lib = out / "tvm" / "lib"
    lib.mkdir(parents=True)
    (lib.parent / "__init__.py").touch()
    spec = importlib.util.find_spec("tvm")
    assert spec is not None and spec.origin is not None
    for stem in ("tvm_runtime", f"tvm_runtime_{device}"):
        file = Path(spec.origin).parent / "lib" / file_name(stem)
        if file.is_file():
            shutil.copy(file, lib)
    if device == "vulkan" and (loader := find_library("vulkan")):
        shutil.copy(Path("/usr/lib/x86_64-linux-gnu") / loader, lib)
    libraries = [find_core(), find_host()]
    libraries += [find_plugin(device)] if device in PLUGINS else []
    for library in libraries:
        stripped = out / "wherry" / library.name
        subprocess.run(["strip", "--strip-unneeded", "-o", stripped, library], check=True)


def _kernels(out: Path, target: str) -> None:
    """Record every kernel call of tests that use this machine's Vulkan device or an emulator."""
    for names, chosen in KERNEL_RUNS:
        tests = [f"tests/targets/test_{name}.py" for name in names.split()]
        command = [sys.executable, "-m", "pytest", "-q", *chosen, *tests]
        command += ["--record-kernels", str(out), "--record-target", target]
        command += ["-m", "nightly or not nightly"]  # cases of the night are kernels, too
        # without a Vulkan device the tests would be skipped, and their kernels be missing
        required = os.environ | {"WHERRY_REQUIRE_VULKAN": "1"}
        subprocess.run(command, cwd=ROOT, check=True, env=required)


def _large(out: Path, target: str) -> None:
    """Compile the published shapes without weights, in the order of the measurements."""
    limits = Limits(
        context=longest(CONTEXT, PREFILL), max_batch=max(BATCHES), prefill_chunk=PREFILL
    )
    for number, (shape, quant) in enumerate(LARGE):
        folder = out / f"{number}-{shape}-{quant}"
        compile_hollow(folder, SHAPES[shape], quant, target, limits)
        shutil.rmtree(folder.with_name(folder.name + "-weights"))
        for shard in folder.glob("params_shard_*.bin"):
            shard.unlink()


def _linears(shape: str) -> int:
    """Return how many weights of the layers (without the LM head) each prompt token multiplies."""
    weights = weight_shapes(SHAPES[shape]).items()
    return sum(prod(s) for name, s in weights if ".layers." in name and len(s) == 2)


def make(out: Path, target: str, python: str, parts: Collection[str]) -> int:
    """Write the bundle; return its size in bytes."""
    device = target.partition(":")[0]
    with tempfile.TemporaryDirectory() as folder:
        bundle = Path(folder) / "bundle"
        _site(bundle / "site", device, python)
        if "kernels" in parts:
            _kernels(bundle / "kernels", target)
        if "models" in parts:
            record_models(bundle / "models", target, CASES, "q4f16_1")
            record_models(bundle / "models", target, FLOATS, "q0f32")
        if "large" in parts:
            _large(bundle / "large", target)
        if "llama" in parts:
            llama_sources.write(bundle / "llama")
        sizes = {"batches": BATCHES, "context": CONTEXT, "prefill": PREFILL}
        peers = {name: SHAPES[name] for name in PEERS}
        linears = {name: _linears(name) for name, _ in LARGE}
        description = {"device": device, "target": target, "sizes": sizes}
        description |= {"peers": peers, "linears": linears}
        (bundle / "bundle.json").write_text(json.dumps(description))
        packed = out.with_name(f".{out.name}.partial")
        command = ["tar", "--sort=name", "-C", folder, "-cJf", str(packed), "bundle"]
        # Recorded calls contain repeated KV caches: only with -9 xz finds a repetition 64 MB
        # earlier.
        subprocess.run(command, env=os.environ | {"XZ_OPT": "-9"}, check=True)
        packed.rename(out)
    return out.stat().st_size


def main() -> None:
    """Write a bundle and print its size."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("out", type=Path, help="the bundle: NAME.tar.xz")
    parser.add_argument("--target", default="cuda:sm_90", help="default: %(default)s")
    parser.add_argument("--python", default="3.12", help="of the machine there (%(default)s)")
    parser.add_argument(
        "--parts", default="kernels,models,large,llama", help="default: %(default)s"
    )
    given = parser.parse_args()
    given.out.parent.mkdir(parents=True, exist_ok=True)
    size = make(given.out, given.target, given.python, given.parts.split(","))
    print(f"{given.out}: {size / 1e6:.1f} MB")
    if size > LARGEST:
        sys.exit(f"larger than {LARGEST / 1e6:.1f} MB: leave something out with --parts")


if __name__ == "__main__":
    main()
