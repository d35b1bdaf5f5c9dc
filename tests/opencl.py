"""OpenCL in tests: a device, or a skip; a failure where there has to be one."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import tvm
from tvm.target import Target
from tvm.tirx import PrimFunc

from wherry.targets import opencl
from wherry.targets.storage_half import with_storage_half

from . import gpu


def device() -> tvm.runtime.Device:
    """The first OpenCL device of this machine."""
    return gpu.device("opencl")


def build(func: PrimFunc) -> Callable[..., list[np.ndarray]]:
    """Compile; the result takes NumPy arrays and returns them all as the kernel left them."""
    there = device()
    module = tvm.IRModule({"kernel": with_storage_half(func).with_attr("global_symbol", "kernel")})
    preset = opencl.preset(None)
    target = Target(dict(preset.device), host=dict(preset.host))
    with tempfile.TemporaryDirectory() as folder:  # the compiler's own module cannot run
        path = Path(folder) / "kernel.so"
        tvm.compile(module, target=target).export_library(str(path))
        kernel = tvm.runtime.load_module(str(path))["kernel"]

    def call(*arrays: np.ndarray) -> list[np.ndarray]:
        tensors = [tvm.runtime.tensor(a, there) for a in arrays]
        kernel(*tensors)
        return [t.numpy() for t in tensors]

    return call
