"""Devices of our plugins in tests: a device, or a skip; a failure where there has to be one."""

from __future__ import annotations

import os

import pytest
import tvm

from wherry.errors import ToolchainError
from wherry.runtime.core_library import open_runtime

# Set in CI, which installs drivers that run on CPUs.
REQUIRED = {"opencl": "WHERRY_REQUIRE_OPENCL", "vulkan": "WHERRY_REQUIRE_VULKAN"}
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
    found = tvm.device(kind, 0)
    if not found.exist:
        missing(kind, f"no {kind} device")
    return found
