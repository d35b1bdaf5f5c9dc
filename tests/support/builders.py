"""Compilers of single kernels for the devices that this machine has, or that tests emulate."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from tvm.tirx import PrimFunc

from . import cuda, gpu, metal, recording

KINDS = (*gpu.KINDS, "metal")
Build = Callable[[PrimFunc], Callable[..., list[np.ndarray]]]  # see gpu.build


def builder(kind: str) -> Build:
    """The compiler for a kind; skips where there is no such device."""
    if kind == "metal":
        return metal.build
    if kind == "cuda":  # emulated; for what no other device runs
        return recording.recorded(cuda.build)
    gpu.device(kind)
    build = partial(gpu.build, kind)
    return recording.recorded(build) if kind == "vulkan" else build
