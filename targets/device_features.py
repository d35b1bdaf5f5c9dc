"""What a device must have beyond the least of its API, read from the code that it is to run."""

from __future__ import annotations

import re
from collections.abc import Mapping

# By kind: the suffix of the source, where it has halves beyond what every device can do, and what
# that takes, in the words of the API: features of WebGPU and Vulkan, extensions of OpenCL. Kernels
# load and store halves and compute with float32, for which OpenCL has functions everywhere and
# Vulkan asks for storage alone; WGSL knows but one feature for both.
_HALVES = {
    "webgpu": ("wgsl", r"^enable f16;", ("shader-f16",)),
    "vulkan": ("wgsl", r"^enable f16;", ("storageBuffer16BitAccess",)),
    "opencl": ("cl", r"^ +half\d* \w|\(half\d*\)|convert_half", ("cl_khr_fp16",)),
}


def needed(kind: str, sources: Mapping[str, str]) -> list[str]:
    """Names of the features; CUDA, ROCm and Metal have none: their codes and families say it.

    Args:
        kind: of the target's device.
        sources: of its code, by suffix of a file.
    """
    if kind not in _HALVES:
        return []
    suffix, halves, names = _HALVES[kind]
    return list(names) if re.search(halves, sources.get(suffix, ""), re.MULTILINE) else []
