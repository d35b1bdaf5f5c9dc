"""The record of a target, and the search for a target by its name."""

from __future__ import annotations

import importlib
import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from wherry.errors import ToolchainError, UsageError

from .auto import candidates
from .hosts import SERVERS, Host, here, require_host
from .hosts import find as find_host
from .kernels.by_name import KernelsByName
from .toolchains.toolchain import Toolchain, require
from .variants import closest

_log = logging.getLogger(__name__)

KINDS = (
    "cpu",
    "cuda",
    "rocm",
    "opencl",
    "vulkan",
    "metal",
    "iphone",
    "android",
    "webgpu",
    "wasm",
)  # modules of this folder, each with a function `preset(variant) -> TargetPreset`
# Other common names of target kinds -> Wherry's name.
_ELSEWHERE = {
    **dict.fromkeys(("gpu", "device"), "auto"),
    **dict.fromkeys(("llvm", "x86", "x86-64", "x86_64", "arm64", "aarch64", "linux"), "cpu"),
    **dict.fromkeys(("nvidia", "nvptx"), "cuda"),
    **dict.fromkeys(("amd", "hip"), "rocm"),
    **dict.fromkeys(("apple", "mac", "macos", "mps"), "metal"),
    **dict.fromkeys(("ios", "ipad", "ipados"), "iphone"),
    **dict.fromkeys(("adreno", "mali"), "android"),
    **dict.fromkeys(("web", "wgpu", "browser"), "webgpu"),
}
Library = Literal["so", "tar", "wasm"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetPreset:
    """A kind of machine and its limits: all properties that passes depend on."""

    name: str  # name as typed, resolved: "cpu:znver4"
    device: Mapping[str, Any]  # argument of tvm.target.Target for the device
    host: Mapping[str, Any]  # argument of tvm.target.Target for host code
    library: Library  # kind of file that the linker writes
    features: tuple[str, ...]  # features that the CPU must have, in Linux's names
    dtype: str  # dtype of the models' graphs
    kv_dtype: str  # default dtype of the KV cache
    kernels: KernelsByName
    linker: str | None = None  # command that cross-links a library
    toolchain: Toolchain | None = None  # tools of code generation beyond TVM
    kv_dtypes: tuple[str, ...] = ("float32",)  # dtypes of KV caches that the kernels support
    # Dtype of activations between a layer's kernels: "float" is float32; with "float16" the
    # residual stream stays float32; "int8" is for linears with 4-bit and 8-bit weights; with
    # "bf16" GEMM is in bfloat16 on CPUs with matrix units.
    # `float_kernels` are the kernels of "float" where that is not the default, `bf16` the preset
    # of the CPUs that have such units.
    activations: str = "float"
    float_kernels: KernelsByName | None = None
    bf16: TargetPreset | None = None
    variants: tuple[TargetPreset, ...] = ()  # faster presets of the same kind, ascending
    hosts: tuple[str, ...] = SERVERS  # names of hosts that can drive the device
    # codes of devices for which a library has machine code, such as "sm_90"
    codes: tuple[str, ...] = ()
    # Whether a row's last bits may depend on its batch: the device's compiler may reorder
    # additions, or GEMM and GEMV multiply differently.
    fast_math: bool = False
    # Name of another engine's interface ("web-llm") that replaces the one in
    # docs/design/compiled-library.md.
    interface: str | None = None
    # bytes of dynamic shared memory that a launch may request for a block
    optin_shared_bytes: int = 0
    # bytes of the largest binding that all devices of the target allow
    binding_bytes: int | None = None
    latents_once: bool = False  # kernels read an MLA latent as key and as value from one plane
    cache_words: bool = False  # kernels read a KV cache of integers in words of four bytes

    def with_kv_dtype(self, name: str) -> TargetPreset:
        """Return this preset with another dtype of the KV cache; "auto" changes nothing.

        Raises:
            UsageError: the target has no kernels for the dtype.
        """
        if name == "auto":
            return self
        if name not in self.kv_dtypes:
            raise UsageError(
                f"A cache of {name!r} was requested; target {self.name} keeps keys and values in "
                f"{' or '.join(self.kv_dtypes)}. Type: --kv-dtype auto"
            )
        return replace(self, kv_dtype=name)

    def with_activations(self, name: str) -> TargetPreset:
        """Return this preset with another dtype of activations; "auto" changes nothing.

        Raises:
            UsageError: the target has no kernels for them.
        """
        if name in ("auto", self.activations):
            return self
        if name == "bf16" and self.bf16:
            return replace(
                self,
                activations="bf16",
                fast_math=True,
                float_kernels=None,
                bf16=None,
                variants=(*self.variants, self.bf16),
            )
        if name != "float" or self.float_kernels is None:
            known = [self.activations]
            known += ["float"] if self.float_kernels else []
            known += ["bf16"] if self.bf16 else []
            raise UsageError(
                f"Activations {name!r} were requested; target {self.name} multiplies by "
                f"{' or '.join(known)} ones. Type: --activations auto"
            )
        return replace(
            self,
            activations="float",
            kernels=self.float_kernels,
            float_kernels=None,
            bf16=None,
            variants=tuple(variant.with_activations(name) for variant in self.variants),
        )

    def suited_to(self, float_dtype: str) -> TargetPreset:
        """Return this preset, with float32 activations and KV cache for schemes of float32.

        Only float16 ones change: CPUs keep activations of int8, their fastest.

        Args:
            float_dtype: dtype of the floats that the scheme stores.
        """
        if float_dtype != "float32":
            return self
        suited = self.with_kv_dtype("float32") if self.kv_dtype == "float16" else self
        return suited.with_activations("float") if self.activations == "float16" else suited

    def record(self) -> dict[str, Any]:
        """Return the target's record in the manifest."""
        return {
            "name": self.name,
            "kind": self.device["kind"],
            "host": self.host.get("mtriple", ""),
            "cpu": self.device.get("mcpu", ""),
            "features": list(self.features),
            **({"codes": list(self.codes)} if self.codes else {}),
            **({"fast_math": True} if self.fast_math else {}),
            **({"interface": self.interface} if self.interface else {}),
        }

    def objects(self, key: str) -> dict[str, str] | None:
        """Return the manifest's fields for an archive of objects or a whole program.

        The fields are "format" of the objects and, if the model is linked into a program,
        "symbols", the argument of `ffi.SystemLib`. None for a shared library.

        Args:
            key: identifies the model, its weights and limits; the same on all hosts.
        """
        if self.library == "so":
            return None
        host = find_host(str(self.host["mtriple"]))
        if self.interface:  # other engines have one model in a program, so no symbol prefix
            return {"format": host.objects, "symbols": ""}
        symbols = {} if host.symbols is None else {"symbols": host.symbols.format(key=key)}
        return {"format": host.objects, **symbols}

    def in_format(self, name: str) -> TargetPreset:
        """Return this preset with another kind of file for its library.

        Args:
            name: "library" (a shared library, which a compiler links), "objects" (an archive that
                the process links when it loads the model), or "auto": a library where a compiler
                is installed.

        Raises:
            UsageError: the host loads no such file, or nothing here links a library for it.
        """
        requested: Library = "tar" if name == "objects" else "so"
        if name == "auto" or requested == self.library:
            return self
        host = find_host(str(self.host["mtriple"]))
        if host.library() == "wasm" or host.symbols is not None:
            raise UsageError(
                f"Target {self.name} has one format, model.{self.library}, and not {name!r}. "
                "Type: --format auto"
            )
        if requested == "so" and (host.objects == "COFF" or (host != here() and not host.linker())):
            raise UsageError(
                f"No compiler here links a library for {host.name}. Type: --format objects"
            )
        return replace(
            self,
            library=requested,
            variants=tuple(variant.in_format(name) for variant in self.variants),
            bf16=self.bf16 and self.bf16.in_format(name),
        )

    def on(self, host: Host) -> TargetPreset:
        """Return this preset with the device driven by another host.

        Raises:
            UsageError: the host has no such device.
        """
        require_host(self.name, host, self.hosts)
        return replace(
            self,
            host=host.target,
            library=host.library(),
            linker=host.linker(),
            variants=tuple(variant.on(host) for variant in self.variants),
        )


def find(text: str, host: str | None = None) -> TargetPreset:
    """Return the target that `text` names: "auto", "cpu", "cpu:x86-64-v3".

    Args:
        text: kind and variant.
        host: name or triple of the machine that drives the device; None: the target's default.

    Raises:
        UsageError: no such target, or it cannot have that host; the message lists the known ones.
    """
    if text == "auto":
        return find("cpu", host) if host else _best()
    kind, _, variant = text.partition(":")
    if kind not in KINDS:
        said = kind.lower()
        fix = _ELSEWHERE.get(said) or closest(said, KINDS) or "cpu"
        raise UsageError(
            f"Unknown target {text!r}; there are auto, {', '.join(KINDS)} and, for another machine "
            "of a kind, KIND:NAME: cpu:x86-64-v3, cuda:sm_90, rocm:gfx1100, opencl:64. "
            f"Type: --target {fix}"
        )
    module = importlib.import_module(f".{kind}", __package__)
    there = find_host(host) if host else None
    if kind == "cpu":  # a CPU target's host is the device itself
        machine: TargetPreset = module.preset(variant or None, there)
        return machine
    preset: TargetPreset = module.preset(variant or None)
    return preset.on(there) if there else preset


def _best() -> TargetPreset:
    """Return the target of this machine's best device whose requirements are all installed."""
    for candidate in candidates():
        preset = find(candidate.target)
        try:
            require(preset.name, preset.toolchain.requirements() if preset.toolchain else ())
        except ToolchainError as e:
            _log.warning("%s, which goes unused. %s", candidate.reason, e)
            continue
        _log.info("Target auto is %s: %s", preset.name, candidate.reason)
        return preset
    raise AssertionError("the CPU takes no requirements")
