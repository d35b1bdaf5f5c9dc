"""Optional features of a device that generated code needs, found in the code."""

from __future__ import annotations

import re
from collections.abc import Mapping

# By kind: the suffix of the source, a pattern of an optional feature, and the feature's name in the
# API: features of WebGPU and Vulkan, extensions of OpenCL, families of Apple's GPUs. The feature is
# float16, but on Metal matrices and sums of SIMD groups. Kernels load and store float16 and compute
# in float32: OpenCL has functions for that everywhere, Vulkan a feature for storage alone, and WGSL
# one feature for both. Source for Metal: Apple's Metal Feature Set Tables.
_BEYOND = {
    "webgpu": ("wgsl", r"^enable f16;", ("shader-f16",)),
    "vulkan": ("wgsl", r"^enable f16;", ("storageBuffer16BitAccess",)),
    "opencl": ("cl", r"^ +half\d* \w|\(half\d*\)|convert_half", ("cl_khr_fp16",)),
    "metal": ("metal", r"\bsimd(?:group)?_", ("MTLGPUFamilyApple7",)),
}


def needed(kind: str, sources: Mapping[str, str]) -> list[str]:
    """Names of the features; CUDA and ROCm have none, because their targets name the GPU.

    Args:
        kind: of the target's device.
        sources: of its code, by suffix of a file.
    """
    if kind not in _BEYOND:
        return []
    suffix, sign, names = _BEYOND[kind]
    return list(names) if re.search(sign, sources.get(suffix, ""), re.MULTILINE) else []
