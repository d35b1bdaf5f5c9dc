"""What a target is, and how one is found by what a person types."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from wherry.errors import UsageError

from .kernels.by_name import KernelsByName
from .toolchain import Toolchain

KINDS = (
    "cpu",
    "opencl",
    "vulkan",
)  # each is a file of this folder with a function `preset(variant) -> TargetPreset`
Library = Literal["so", "tar", "wasm"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetPreset:
    """One kind of machine, with its limits. Everything that a pass may ask, as data."""

    name: str  # as typed, resolved: "cpu:znver4"
    device: Mapping[str, Any]  # handed to tvm.target.Target as it is
    host: Mapping[str, Any]  # likewise, for the code that calls the device
    library: Library  # what the linker makes
    features: tuple[str, ...]  # of the CPU that runs it, in Linux's names
    dtype: str  # of activations
    kv_dtype: str  # of the cache
    kernels: KernelsByName
    linker: str | None = None  # command that links a library for another machine than this
    toolchain: Toolchain | None = None  # what code generation takes beyond TVM
    variants: tuple[TargetPreset, ...] = ()  # faster ones of the same kind, from least to most

    def record(self) -> dict[str, Any]:
        """What the manifest keeps."""
        return {
            "name": self.name,
            "kind": self.device["kind"],
            "host": self.host.get("mtriple", ""),
            "cpu": self.device.get("mcpu", ""),
            "features": list(self.features),
        }


def find(text: str) -> TargetPreset:
    """The target that `text` names: "auto", "cpu", "cpu:x86-64-v3".

    Raises:
        UsageError: no such target; the message lists those there are.
    """
    kind, _, variant = text.partition(":")
    if kind == "auto" and not variant:
        kind = "cpu"  # the one device there is yet
    if kind not in KINDS:
        raise UsageError(
            f"Unknown target {text!r}; there are auto, {', '.join(KINDS)} and, for another machine "
            "of that kind, cpu:NAME with a name of LLVM's (cpu:x86-64-v3). Type: --target cpu"
        )
    module = importlib.import_module(f".{kind}", __package__)
    preset: TargetPreset = module.preset(variant or None)
    return preset
