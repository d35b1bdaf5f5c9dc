"""Targets for CPUs: this machine ("cpu"), a model ("cpu:znver4"), levels ("cpu:x86-64-v3+").

With "+" a folder has a library for the level and one for each level above it; a machine loads the
highest one that it supports. With activations "bf16" there is one more level, for AMX.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import Any

from tvm.target import Target, codegen

from wherry.errors import UsageError
from wherry.machine.cpu import cpu_features

from . import hosts
from .hosts import HOSTS, Host
from .kernels.by_name import KernelsByName
from .kernels.cpu import CpuKernels
from .kernels.cpu.isa import Isa, isa_from_features
from .target import TargetPreset

# CPU features that generated code may use: LLVM's name -> Linux's names.
FEATURES = {
    "amx-bf16": "amx_bf16",
    "amx-tile": "amx_tile",
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
# Hosts whose CPU can be the device; wasm32 has the target "wasm" instead.
HOSTS_OF_CPUS = tuple(name for name in HOSTS if name != "wasm32")
# Levels of x86-64 with different kernels, ascending: (CPU name in LLVM, additional features).
LEVELS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("x86-64-v2", ()),
    ("x86-64-v3", ()),
    ("x86-64-v3", ("avxvnni",)),
    ("x86-64-v4", ()),
    ("x86-64-v4", ("avx512vnni",)),
)
# The level of CPUs that look bytes up in tables of 64. Its other kernels are those of the level
# below it, so it is for a CPU alone, not for a folder of all levels.
VBMI_LEVEL = ("x86-64-v4", ("avx512vnni", "avx512vbmi"))
# The level above them for activations "bf16" alone; its kernels are the only ones that use AMX.
BF16_LEVEL = ("x86-64-v4", ("avx512vnni", "amx-bf16"))
_AMX = {"amx-bf16", "amx-tile"}
# Hosts where the core asks for AMX, see engine/support/matrix_units.h.
AMX_HOSTS = ("linux-x86_64", "linux-x86_64-app")
# Levels of 64-bit Arm: any core, cores with dot products for int8 (Cortex-A55, A75 and later), and
# cores with matrix instructions for it (Cortex-A510, A710, X2, Neoverse V1, N2, Apple M2).
# SME2 has no level: cores share its unit (one for four or six of an M4), and with a float scale for
# each 32 columns, reading a tile of 16 x 16 sums and scaling it (4 instructions a vector) takes
# eight times as long as its 8 outer products; i8mm scales in registers.
ARM_LEVELS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("armv8-a", ()),
    ("armv8-a", ("dotprod",)),
    ("armv8-a", ("dotprod", "i8mm")),
)
LLVM_NAMES = {"armv8-a": "generic"}  # names of levels that LLVM does not know


@lru_cache
def preset(variant: str | None, host: Host | None = None) -> TargetPreset:
    """Return the preset of this machine, of LLVM's CPU `variant`, or of a level and those above it.

    Args:
        variant: CPU name; "LEVEL+" for a level and those above it; None: this machine's CPU, or the
            oldest CPU supported on another host.
        host: the host whose CPU it is; None: this machine, or Linux on the variant's architecture.

    Raises:
        UsageError: LLVM knows no such CPU, there is no such level, or the host has no such CPU.
    """
    if host:
        hosts.require_host("cpu", host, HOSTS_OF_CPUS)
    if variant is None:
        here = hosts.here()
        return _native(here) if host in (None, here) else _preset(host.cpu, host)
    cpu, *added = variant.rstrip("+").split("+")
    # a level with added features: the name that this machine's preset may have
    for one in _hosts_among(host) if added else ():
        own = (VBMI_LEVEL,) if one.arch == "x86_64" else ()
        if (cpu, tuple(added)) in (*levels_of(one), *own):
            return _preset(cpu, one, tuple(added))
    host = _host_of(variant, host)
    return _levels(variant, host) if variant.endswith("+") else _preset(variant, host)


def _preset(
    cpu: str, host: Host, added: tuple[str, ...] = (), hidden: tuple[str, ...] = ()
) -> TargetPreset:
    """Return the preset of LLVM's CPU or the level `cpu`, with CPU features added or hidden."""
    device: dict[str, Any] = {**host.target, "mcpu": LLVM_NAMES.get(cpu, cpu)}
    if attributes := [*(f"+{f}" for f in added), *(f"-{f}" for f in hidden)]:
        device["mattr"] = attributes
    known = {f for f in codegen.llvm_get_cpu_features(Target(device)) if f in FEATURES}
    plain = not _AMX & set(added)  # the kernels of all activations but bf16 use no AMX
    features = known - _AMX if plain else known
    bf16 = plain and _AMX <= known and host.name in AMX_HOSTS
    isa = isa_from_features(features)
    return TargetPreset(
        name="+".join((f"cpu:{cpu}", *added)),
        device=device,
        host=device,
        library=host.library(),
        features=tuple(sorted(FEATURES[f] for f in features)),
        dtype="float32",
        kv_dtype="float16" if isa.half else "float32",
        kv_dtypes=("float32", "float16", "int8", "int4"),
        **_activations(isa),
        bf16=_preset(cpu, host, (*added, "amx-bf16"), hidden) if bf16 else None,
        linker=host.linker(),
        hosts=HOSTS_OF_CPUS,
    )


def _activations(isa: Isa) -> dict[str, Any]:
    """Return the preset's fields for activations: int8 if the CPU has a dot product for it.

    With int8, float kernels remain available as the user's choice. With AMX it is bfloat16: such a
    preset is made for nothing else.
    """
    if isa.amx:
        kernels = KernelsByName(CpuKernels(isa, activations="bf16"))
        return {"activations": "bf16", "fast_math": True, "kernels": kernels}
    kernels = KernelsByName(CpuKernels(isa))
    if isa.dot == "none":
        return {"activations": "float", "kernels": kernels}
    return {
        "activations": "int8",
        "kernels": kernels,
        "float_kernels": KernelsByName(CpuKernels(isa, activations="float")),
    }


def _native(host: Host) -> TargetPreset:
    """Return the preset of this machine from its CPU features.

    LLVM detects the CPU model, which is wrong where a hypervisor hides features. On x86-64 the
    preset is the highest level, so that the folder's name states all features that the code uses;
    elsewhere, and where features cannot be read, it is LLVM's detected model without hidden
    features.
    """
    present = cpu_features()
    if host.arch == "x86_64":
        for cpu, added in (VBMI_LEVEL, *reversed(LEVELS)):
            level = _preset(cpu, host, added)
            if present.issuperset(level.features):
                above = _bf16_level(host)
                return replace(level, bf16=above if present.issuperset(above.features) else None)
    cpu = str(codegen.llvm_get_system_cpu())
    full = _preset(cpu, host)
    hidden = [f for f, name in FEATURES.items() if name in full.features and name not in present]
    return _preset(cpu, host, hidden=tuple(hidden)) if present and hidden else full


def _levels(variant: str, host: Host) -> TargetPreset:
    """Return the preset of the lowest level; presets of the levels above are its variants."""
    levels = levels_of(host)
    from_here = next(i for i, (cpu, _) in enumerate(levels) if cpu == variant[:-1])
    lowest, *above = (_preset(cpu, host, added) for cpu, added in levels[from_here:])
    bf16 = _bf16_level(host) if host.name in AMX_HOSTS else None
    return replace(lowest, name=f"cpu:{variant}", variants=tuple(above), bf16=bf16)


def _bf16_level(host: Host) -> TargetPreset:
    cpu, added = BF16_LEVEL
    return _preset(cpu, host, added)


def host() -> dict[str, Any]:
    """Return TVM's target of host code for a device: any CPU of this machine's architecture."""
    return hosts.here().target


def levels_of(host: Host) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Return the levels of a host's architecture with different kernels, ascending."""
    return {"x86_64": LEVELS, "aarch64": ARM_LEVELS}.get(host.arch, ())


def _hosts_among(given: Host | None) -> list[Host]:
    return [given] if given else [HOSTS["linux-x86_64"], HOSTS["linux-aarch64"]]


def _host_of(variant: str, given: Host | None) -> Host:
    """Return the host that has a CPU or level of this name; if `given` is None, a Linux host."""
    known = _hosts_among(given)
    if variant.endswith("+"):
        names = {h: dict.fromkeys(f"{cpu}+" for cpu, _ in levels_of(h)) for h in known}
        for one, there in names.items():
            if variant in there:
                return one
        where = f" on {given.name}" if given else ""
        listed = "; ".join(f"{', '.join(there)} of {h.arch}" for h, there in names.items())
        raise UsageError(
            f"There is no level {variant!r}{where}; there are {listed}. "
            f"Type: --target cpu:{next(iter(names[known[0]]), 'x86-64-v3+')}"
        )
    for one in sorted(known, key=lambda h: h != hosts.here()):
        named = {cpu for cpu, _ in levels_of(one)}
        if variant in named.union(codegen.llvm_get_cpu_archlist(Target(one.target))):
            return one
    raise UsageError(
        f"LLVM knows no CPU called {variant!r}{f' on {given.name}' if given else ''}. Names it "
        "knows: x86-64-v2, x86-64-v3, x86-64-v4, znver4, cascadelake, cortex-a76, neoverse-n1, "
        "apple-a14 and others. Type: --target cpu for this machine, or --target cpu:x86-64-v3"
    )
