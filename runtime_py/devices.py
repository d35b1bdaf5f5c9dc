"""The devices of this machine, as the plugins that drive them see them."""

from __future__ import annotations

import ctypes
import json
from dataclasses import dataclass
from typing import Any

from wherry.errors import UsageError
from wherry.plugins import PLUGINS, open_plugin

from .core_library import open_runtime


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """One device; its place in the list is its number."""

    name: str  # as its driver has it
    kind: str  # "opencl", "vulkan"
    memory_bytes: int  # in all
    available_bytes: int | None  # of them, now; None: the driver does not tell
    largest_buffer_bytes: int  # that a kernel may use
    discrete: bool  # has memory of its own, which the host does not share
    driver: str  # version


def list_devices(kind: str) -> list[Device]:
    """All devices of a kind, best first; [] where there are none, and `problems` may say why.

    Raises:
        UsageError: no plugin drives devices of this kind.
        ToolchainError: its plugin was not built, or for another version of TVM.
    """
    return [
        Device(
            name=found["name"],
            kind=kind,
            memory_bytes=found["memory"],
            available_bytes=found["available_memory"] if found["available_memory"] >= 0 else None,
            largest_buffer_bytes=found["largest_buffer"],
            discrete=found["discrete"],
            driver=found["driver"],
        )
        for found in _listed(kind)["devices"]
    ]


def problems(kind: str) -> str:
    """What went wrong while devices of a kind were looked for, a line each; "" if nothing.

    Raises:
        UsageError, ToolchainError: as `list_devices`.
    """
    return str(_listed(kind)["problems"]).strip()


def _listed(kind: str) -> dict[str, Any]:
    if kind not in PLUGINS:
        raise UsageError(f"Devices of kind {kind!r} are not listed; accepted: {', '.join(PLUGINS)}")
    open_runtime(kind)
    function = getattr(open_plugin(kind), f"wherry_{kind}_devices")
    function.restype = ctypes.c_char_p
    listed: dict[str, Any] = json.loads(function())
    return listed
