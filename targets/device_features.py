"""Finds the optional device features that generated code needs, by searching the code."""

from __future__ import annotations

import re
from collections.abc import Mapping

# Kind of device -> (suffix of its source, pattern of an optional feature, names of the feature in
# the device's API): features of WebGPU and Vulkan, extensions of OpenCL, families of Apple GPUs.
# The feature is float16; on Metal, SIMD-group matrices and reductions. Kernels load and store
# float16 and compute in float32: OpenCL has functions for that everywhere, Vulkan a feature for
# storage alone, and WGSL one feature for both. Source for Metal: Apple's Metal Feature Set Tables.
_BEYOND = {
    "webgpu": ("wgsl", r"^enable f16;", ("shader-f16",)),
    "vulkan": ("wgsl", r"^enable f16;", ("storageBuffer16BitAccess",)),
    "opencl": ("cl", r"^ +half\d* \w|\(half\d*\)|convert_half", ("cl_khr_fp16",)),
    "metal": ("metal", r"\bsimd(?:group)?_", ("MTLGPUFamilyApple7",)),
}


def needed(kind: str, sources: Mapping[str, str]) -> list[str]:
    """Return the names of optional features that the code needs.

    CUDA and ROCm need none, because their targets name the GPU.

    Args:
        kind: kind of the target's device, such as "vulkan".
        sources: the device's source code, by file suffix.
    """
    if kind not in _BEYOND:
        return []
    suffix, sign, names = _BEYOND[kind]
    return list(names) if re.search(sign, sources.get(suffix, ""), re.MULTILINE) else []
