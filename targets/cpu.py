"""CPUs: this machine ("cpu"), or a named one ("cpu:x86-64-v3", "cpu:znver4", "cpu:cortex-a76")."""

from __future__ import annotations

import platform
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
    "neon": "asimd",
    "sse4.2": "sse4_2",
}
TRIPLES = {
    "x86_64": "x86_64-unknown-linux-gnu",
    "aarch64": "aarch64-unknown-linux-gnu",
}


@lru_cache
def preset(variant: str | None) -> TargetPreset:
    """The preset of this machine, or of LLVM's CPU `variant`.

    Raises:
        UsageError: LLVM knows no such CPU.
    """
    here = platform.machine()
    cpu, arch = (_native_cpu(here), here) if variant is None else (variant, _arch(variant, here))
    device: dict[str, Any] = {"kind": "llvm", "mtriple": TRIPLES[arch], "mcpu": cpu}
    features = {f for f in codegen.llvm_get_cpu_features(Target(device)) if f in FEATURES}
    if variant is None and (present := cpu_features()):
        # A virtual machine may hide what the model name promises.
        hidden = sorted(f for f in features if FEATURES[f] not in present)
        features -= set(hidden)
        if hidden:
            device["mattr"] = [f"-{f}" for f in hidden]
    return TargetPreset(
        name=f"cpu:{cpu}",
        device=device,
        host=device,
        library="so" if arch == here else "tar",
        features=tuple(sorted(FEATURES[f] for f in features)),
        dtype="float32",
        kv_dtype="float32",
        kernels=KernelsByName(CpuKernels(isa_from_features(features))),
    )


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
