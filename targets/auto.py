"""Resolves the target "auto": the best device of this machine that models can run on.

This module imports neither TVM nor PyTorch, which TVM imports if it is installed.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass

from wherry.errors import ToolchainError
from wherry.machine import cuda_driver
from wherry.machine.devices import KINDS, Device, list_devices

from .variants import CUDA_CODES, GROUP_SIZES

_log = logging.getLogger(__name__)
# kinds of targets with a driver that Wherry can query, fastest first
ORDER = ("cuda", "rocm", "metal", "vulkan", "opencl")


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A target that a device of this machine can run."""

    target: str  # name of a target, such as "cuda:sm_90"
    reason: str  # explanation that users see


def candidates() -> Iterator[Candidate]:
    """Yield the candidates, best first; the last is the CPU. The search is lazy.

    Only the first device of each kind counts, because models are loaded onto it.
    """
    for kind in (kind for kind in ORDER if kind in KINDS):
        try:
            devices = list_devices(kind)
        except ToolchainError as e:  # the device plugin was not built
            _log.info("Target %s is not considered: %s", kind, e)
            continue
        if not devices:
            _log.info("Target %s is not considered: no device", kind)
        elif devices[0].software:
            _log.info("Target %s is not considered: %s is a CPU", kind, devices[0].name)
        elif problem := _problem(kind):
            _log.warning("%s goes unused. %s", devices[0].name, problem)
        elif target := _target_of(devices[0]):
            yield Candidate(target=target, reason=f"this machine has {devices[0].name}")
        else:
            _log.warning("Target %s is not considered: %s can do too little", kind, devices[0].name)
    yield Candidate(target="cpu", reason="this machine has no other device that can run it")


def _problem(kind: str) -> str:
    """Return why a device that is present cannot be used; "" if it can."""
    try:
        if kind == "cuda":
            cuda_driver.open_libraries()
    except ToolchainError as e:
        return str(e)
    return ""


def _target_of(device: Device) -> str | None:
    """Return the target for a device; None if every target needs a larger or newer one."""
    if device.kind == "cuda":
        if device.code in CUDA_CODES:
            return f"cuda:{device.code}"
        newest = list(CUDA_CODES)[-1]
        newer = device.code and int(device.code[3:]) > int(newest[3:])
        return "cuda" if newer else None  # the driver of a newer GPU compiles PTX
    most = device.threads_per_block
    fitting = [size for size in GROUP_SIZES if most is None or int(size) <= most]
    if not fitting:
        return None
    return device.kind if fitting == list(GROUP_SIZES) else f"{device.kind}:{fitting[-1]}"
