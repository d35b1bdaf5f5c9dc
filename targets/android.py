"""Android phones, through OpenCL: "android" for Adreno GPUs, "android:mali" for Mali."""

from __future__ import annotations

from dataclasses import replace

from wherry.errors import UsageError

from . import hosts, opencl
from .target import TargetPreset

# Work-items of a group, what every GPU of a family has for kernels with as many registers as ours.
# Mali's local memory is its main memory: smaller groups wait less for it.
THREADS = {None: "256", "mali": "128"}


def preset(variant: str | None) -> TargetPreset:
    """The preset of a phone's GPU.

    Raises:
        UsageError: there is no such variant.
    """
    if variant not in THREADS:
        raise UsageError(
            f"Unknown target 'android:{variant}'; after the colon goes mali, or nothing for "
            "Adreno. Type: --target android"
        )
    name = "android" if variant is None else f"android:{variant}"
    gpu = replace(opencl.preset(THREADS[variant]), name=name, hosts=("android",))
    return gpu.on(hosts.HOSTS["android"])
