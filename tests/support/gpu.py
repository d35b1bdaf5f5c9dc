"""Devices of our plugins in tests: a device, or a skip; a failure where there has to be one."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tvm
from tvm.target import Target
from tvm.tirx import PrimFunc

from wherry.errors import ToolchainError
from wherry.machine.plugins import PLUGINS as KINDS
from wherry.runtime.core.library import open_runtime
from wherry.targets.storage_half import with_single_halves, with_storage_half
from wherry.targets.target import find
from wherry.targets.toolchains.toolchain import require

# Set in CI, which installs drivers that run on CPUs.
REQUIRED = {"opencl": "WHERRY_REQUIRE_OPENCL", "vulkan": "WHERRY_REQUIRE_VULKAN"}
EDITS = {"opencl": with_storage_half, "vulkan": with_single_halves}  # as the targets'
__all__ = ["KINDS", "build", "device", "missing", "on_arrays"]
PACKAGES = {
    "opencl": "pocl-opencl-icd",
    "vulkan": "libvulkan-dev mesa-vulkan-drivers spirv-tools nodejs npm",
}


def missing(kind: str, what: str) -> None:
    """Skip, or fail where what a kind takes is required."""
    message = f"{what}; apt-get install {PACKAGES[kind]}"
    if os.environ.get(REQUIRED[kind]):
        pytest.fail(message)
    pytest.skip(message)


def device(kind: str) -> tvm.runtime.Device:
    """The first device of a kind on this machine."""
    try:
        open_runtime(kind)
    except ToolchainError as e:  # built without the headers that it takes
        missing(kind, str(e))
    handle = tvm.device(kind, 0)
    if not handle.exist:
        missing(kind, f"no {kind} device")
    if toolchain := find(kind).toolchain:
        try:
            require(kind, toolchain.requirements())
        except ToolchainError as e:
            missing(kind, str(e))
    return handle


def build(kind: str, func: PrimFunc) -> Callable[..., list[np.ndarray]]:
    """Compile; the result takes NumPy arrays and returns them all as the kernel left them."""
    there = device(kind)
    func = EDITS[kind](func)
    module = tvm.IRModule({"kernel": func.with_attr("global_symbol", "kernel")})
    preset = find(kind)
    target = Target(dict(preset.device), host=dict(preset.host))
    with tempfile.TemporaryDirectory() as folder:  # the compiler's own module cannot run
        path = Path(folder) / "kernel.so"
        with preset.toolchain.active() if preset.toolchain else nullcontext():
            tvm.compile(module, target=target).export_library(str(path))
        kernel = tvm.runtime.load_module(str(path))["kernel"]
    return on_arrays(kernel, there)


def on_arrays(kernel: Any, there: tvm.runtime.Device) -> Callable[..., list[np.ndarray]]:
    """A kernel that takes NumPy arrays and returns them all as it left them on a device."""

    def call(*arrays: np.ndarray) -> list[np.ndarray]:
        tensors = [tvm.runtime.tensor(a, there) for a in arrays]
        kernel(*tensors)
        return [t.numpy() for t in tensors]

    return call
