"""CPUs: this machine ("cpu"), a named one ("cpu:znver4"), a level and all above ("cpu:x86-64-v3+").

Of a level and all above it, a folder has a library each: the best that a machine runs is used.
"""

from __future__ import annotations

import platform
import shutil
from dataclasses import replace
from functools import lru_cache
from typing import Any

from tvm.target import Target, codegen

from wherry.artifact import cpu_features
from wherry.errors import UsageError

from .kernels.by_name import KernelsByName
from .kernels.cpu import CpuKernels
from .kernels.cpu.isa import isa_from_features
from .target import TargetPreset

# Features that generated code may use, and Linux's names for them.
FEATURES = {
    "avx": "avx",
    "avx2": "avx2",
    "avx512bf16": "avx512_bf16",
    "avx512bw": "avx512bw",
    "avx512cd": "avx512cd",
    "avx512dq": "avx512dq",
    "avx512f": "avx512f",
    "avx512ifma": "avx512ifma",
    "avx512vbmi": "avx512vbmi",
    "avx512vl": "avx512vl",
    "avx512vnni": "avx512_vnni",
    "avxvnni": "avx_vnni",
    "bmi": "bmi1",
    "bmi2": "bmi2",
    "dotprod": "asimddp",
    "f16c": "f16c",
    "fma": "fma",
    "fullfp16": "asimdhp",
    "i8mm": "i8mm",
    "lzcnt": "abm",
    "movbe": "movbe",
    "neon": "asimd",
    "popcnt": "popcnt",
    "sse4.2": "sse4_2",
    "ssse3": "ssse3",
}
TRIPLES = {
    "x86_64": "x86_64-unknown-linux-gnu",
    "aarch64": "aarch64-unknown-linux-gnu",
}
# Levels of x86-64 that kernels differ by, from least to most: LLVM's CPU and what is added to it.
LEVELS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("x86-64-v2", ()),
    ("x86-64-v3", ()),
    ("x86-64-v3", ("avxvnni",)),
    ("x86-64-v4", ()),
    ("x86-64-v4", ("avx512vnni",)),
)


@lru_cache
def preset(variant: str | None) -> TargetPreset:
    """The preset of this machine, of LLVM's CPU `variant`, or with "+" of a level and all above it.

    Raises:
        UsageError: LLVM knows no such CPU, or there is no such level.
    """
    here = platform.machine()
    if variant is None:
        return _native(here)
    if variant.endswith("+"):
        return _levels(variant)
    return _preset(variant, _arch(variant, here))


def _preset(
    cpu: str, arch: str, added: tuple[str, ...] = (), hidden: tuple[str, ...] = ()
) -> TargetPreset:
    """Of LLVM's CPU `cpu` with features that are added or hidden."""
    device: dict[str, Any] = {"kind": "llvm", "mtriple": TRIPLES[arch], "mcpu": cpu}
    if attributes := [*(f"+{f}" for f in added), *(f"-{f}" for f in hidden)]:
        device["mattr"] = attributes
    features = {f for f in codegen.llvm_get_cpu_features(Target(device)) if f in FEATURES}
    native = arch == platform.machine()
    linker = None if native else shutil.which(f"{arch}-linux-gnu-g++")
    return TargetPreset(
        name="+".join((f"cpu:{cpu}", *added)),
        device=device,
        host=device,
        library="so" if native or linker else "tar",
        features=tuple(sorted(FEATURES[f] for f in features)),
        dtype="float32",
        kv_dtype="float32",
        kernels=KernelsByName(CpuKernels(isa_from_features(features))),
        linker=linker,
    )


def _native(arch: str) -> TargetPreset:
    """This machine, without what a virtual machine hides of its model's features."""
    cpu = _native_cpu(arch)
    whole = _preset(cpu, arch)
    present = cpu_features()
    hidden = [f for f, name in FEATURES.items() if name in whole.features and name not in present]
    return _preset(cpu, arch, hidden=tuple(hidden)) if present and hidden else whole


def _levels(variant: str) -> TargetPreset:
    """The lowest level, with all above it as variants."""
    names = list(dict.fromkeys(cpu for cpu, _ in LEVELS))
    if variant[:-1] not in names:
        raise UsageError(
            f"There is no level {variant!r}; there are {', '.join(f'{n}+' for n in names)}. "
            "Type: --target cpu:x86-64-v3+"
        )
    from_here = next(i for i, (cpu, _) in enumerate(LEVELS) if cpu == variant[:-1])
    lowest, *above = (_preset(cpu, "x86_64", added) for cpu, added in LEVELS[from_here:])
    return replace(lowest, name=f"cpu:{variant}", variants=tuple(above))


def host() -> dict[str, Any]:
    """The target of code that drives a device: any CPU of this machine's architecture."""
    here = platform.machine()
    if here not in TRIPLES:
        raise UsageError(f"This machine's CPU is {here!r}; supported are {', '.join(TRIPLES)}.")
    return {"kind": "llvm", "mtriple": TRIPLES[here]}


def _native_cpu(arch: str) -> str:
    if arch not in TRIPLES:
        raise UsageError(f"This machine's CPU is {arch!r}; supported are {', '.join(TRIPLES)}.")
    return str(codegen.llvm_get_system_cpu())


def _arch(cpu: str, here: str) -> str:
    """Which of our architectures has a CPU of this name; the machine's own first."""
    for arch in sorted(TRIPLES, key=lambda a: a != here):
        bare = Target({"kind": "llvm", "mtriple": TRIPLES[arch]})
        if cpu in codegen.llvm_get_cpu_archlist(bare):
            return arch
    raise UsageError(
        f"LLVM knows no CPU called {cpu!r}. Names it knows: x86-64-v2, x86-64-v3, x86-64-v4, "
        "znver4, cascadelake, cortex-a76, neoverse-n1 and others. Type: --target cpu for this "
        "machine, or --target cpu:x86-64-v3"
    )
