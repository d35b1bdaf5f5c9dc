"""What a device must have beyond the least of its API, read from the code that it is to run."""

from __future__ import annotations

import re
from collections.abc import Mapping

# By kind: the suffix of the source, where it has what not every device can do, and what that takes,
# in the words of the API: features of WebGPU and Vulkan, extensions of OpenCL, families of Apple's
# GPUs. That is halves, but on Metal matrices and sums of SIMD groups. Kernels
# load and store halves and compute with float32, for which OpenCL has functions everywhere and
# Vulkan asks for storage alone; WGSL knows but one feature for both.
# Source for Metal: Apple's Metal Feature Set Tables.
_BEYOND = {
    "webgpu": ("wgsl", r"^enable f16;", ("shader-f16",)),
    "vulkan": ("wgsl", r"^enable f16;", ("storageBuffer16BitAccess",)),
    "opencl": ("cl", r"^ +half\d* \w|\(half\d*\)|convert_half", ("cl_khr_fp16",)),
    "metal": ("metal", r"\bsimd(?:group)?_", ("MTLGPUFamilyApple7",)),
}


def needed(kind: str, sources: Mapping[str, str]) -> list[str]:
    """Names of the features; CUDA and ROCm have none: their codes say it.

    Args:
        kind: of the target's device.
        sources: of its code, by suffix of a file.
    """
    if kind not in _BEYOND:
        return []
    suffix, sign, names = _BEYOND[kind]
    return list(names) if re.search(sign, sources.get(suffix, ""), re.MULTILINE) else []
