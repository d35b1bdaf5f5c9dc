"""Lists this machine's devices, through CUDA's driver, Apple's framework or Wherry's plugins."""

from __future__ import annotations

import ctypes
import json
import sys
from dataclasses import dataclass
from typing import Any

from wherry.errors import UsageError

from . import cuda_driver, metal_driver
from .plugins import PLUGINS, open_plugin
from .tvm_runtime import open_runtime

KINDS = ("cuda", *(("metal",) if sys.platform == "darwin" else ()), *PLUGINS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """A device; its index in the list is its device number."""

    name: str  # the driver's name of the device
    kind: str  # kind of device: "cuda", "metal", "opencl", "vulkan"
    memory_bytes: int  # total memory
    available_bytes: int | None  # free memory; None: the driver does not report it
    largest_buffer_bytes: int  # bytes of the largest buffer that a kernel can bind
    discrete: bool  # whether the device has memory of its own
    driver: str  # version of the driver
    software: bool  # whether a CPU emulates the GPU
    threads_per_block: int | None  # threads of a kernel's block at most; None: unknown
    code: str | None  # architecture of machine code, "sm_90"; None: the driver compiles


def list_devices(kind: str) -> list[Device]:
    """List all devices of a kind, best first; [] if there are none, and `problems` may say why.

    Raises:
        UsageError: there is no driver or plugin for this kind.
        ToolchainError: the plugin was not built, or was built for another version of TVM.
    """
    if kind == "cuda":
        return [_cuda(gpu) for gpu in cuda_driver.gpus()]
    if kind == "metal" in KINDS:
        return [_metal(gpu) for gpu in metal_driver.gpus() if gpu.supported]
    return [
        Device(
            name=device["name"],
            kind=kind,
            memory_bytes=device["memory"],
            available_bytes=device["available_memory"] if device["available_memory"] >= 0 else None,
            largest_buffer_bytes=device["largest_buffer"],
            discrete=device["discrete"],
            driver=device["driver"],
            software=device["software"],
            threads_per_block=device["threads_per_block"],
            code=None,
        )
        for device in _listed(kind)["devices"]
    ]


def problems(kind: str) -> str:
    """Return problems of the search for devices, one per line; "" if there are none.

    Raises:
        UsageError, ToolchainError: as `list_devices`.
    """
    if kind == "cuda":
        return cuda_driver.problem()
    if kind == "metal" in KINDS:
        old = [gpu.name for gpu in metal_driver.gpus() if not gpu.supported]
        return f"{', '.join(old)}: the target metal needs an M1 or later" if old else ""
    return str(_listed(kind)["problems"]).strip()


def _cuda(gpu: cuda_driver.Gpu) -> Device:
    return Device(
        name=gpu.name,
        kind="cuda",
        memory_bytes=gpu.memory_bytes,
        available_bytes=None,  # querying it would create a context, which takes GPU memory
        largest_buffer_bytes=gpu.memory_bytes,
        discrete=gpu.discrete,
        driver=gpu.driver,
        software=False,
        threads_per_block=None,
        code=gpu.code,
    )


def _metal(gpu: metal_driver.Gpu) -> Device:
    return Device(
        name=gpu.name,
        kind="metal",
        memory_bytes=gpu.memory_bytes,
        available_bytes=max(0, gpu.memory_bytes - gpu.used_bytes),
        largest_buffer_bytes=gpu.largest_buffer_bytes,
        discrete=gpu.discrete,
        driver="Metal",
        software=False,
        threads_per_block=None,
        code=None,
    )


def _listed(kind: str) -> dict[str, Any]:
    if kind not in PLUGINS:
        raise UsageError(f"Devices of kind {kind!r} are not listed; accepted: {', '.join(KINDS)}")
    open_runtime(kind)
    function = getattr(open_plugin(kind), f"wherry_{kind}_devices")
    function.restype = ctypes.c_char_p
    listed: dict[str, Any] = json.loads(function())
    return listed
