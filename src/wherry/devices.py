"""The devices of this machine, as what drives them sees them: CUDA, and the plugins."""

from __future__ import annotations

import ctypes
import json
from dataclasses import dataclass
from typing import Any

from wherry import cuda_driver
from wherry.errors import UsageError
from wherry.plugins import PLUGINS, open_plugin
from wherry.tvm_runtime import open_runtime

KINDS = ("cuda", *PLUGINS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """One device; its place in the list is its number."""

    name: str  # as its driver has it
    kind: str  # "cuda", "opencl", "vulkan"
    memory_bytes: int  # in all
    available_bytes: int | None  # of them, now; None: the driver does not tell
    largest_buffer_bytes: int  # that a kernel may use
    discrete: bool  # has memory of its own, which the host does not share
    driver: str  # version
    software: bool  # a CPU that plays a GPU
    threads_per_block: int | None  # of a kernel at most; None: the driver was not asked
    code: str | None  # of its machine code: "sm_90"; None: the driver compiles for it


def list_devices(kind: str) -> list[Device]:
    """All devices of a kind, best first; [] where there are none, and `problems` may say why.

    Raises:
        UsageError: nothing here drives devices of this kind.
        ToolchainError: its plugin was not built, or for another version of TVM.
    """
    if kind == "cuda":
        return [_cuda(gpu) for gpu in cuda_driver.gpus()]
    return [
        Device(
            name=found["name"],
            kind=kind,
            memory_bytes=found["memory"],
            available_bytes=found["available_memory"] if found["available_memory"] >= 0 else None,
            largest_buffer_bytes=found["largest_buffer"],
            discrete=found["discrete"],
            driver=found["driver"],
            software=found["software"],
            threads_per_block=found["threads_per_block"],
            code=None,
        )
        for found in _listed(kind)["devices"]
    ]


def problems(kind: str) -> str:
    """What went wrong while devices of a kind were looked for, a line each; "" if nothing.

    Raises:
        UsageError, ToolchainError: as `list_devices`.
    """
    if kind == "cuda":
        return cuda_driver.problem()
    return str(_listed(kind)["problems"]).strip()


def _cuda(gpu: cuda_driver.Gpu) -> Device:
    return Device(
        name=gpu.name,
        kind="cuda",
        memory_bytes=gpu.memory_bytes,
        available_bytes=None,  # asking for it takes memory of the GPU
        largest_buffer_bytes=gpu.memory_bytes,
        discrete=gpu.discrete,
        driver=gpu.driver,
        software=False,
        threads_per_block=None,
        code=gpu.code,
    )


def _listed(kind: str) -> dict[str, Any]:
    if kind not in PLUGINS:
        raise UsageError(f"Devices of kind {kind!r} are not listed; accepted: {', '.join(KINDS)}")
    open_runtime(kind)
    function = getattr(open_plugin(kind), f"wherry_{kind}_devices")
    function.restype = ctypes.c_char_p
    listed: dict[str, Any] = json.loads(function())
    return listed
