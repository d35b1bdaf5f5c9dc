"""Target for pages without WebGPU, and for Node: CPU kernels in WebAssembly with 128-bit SIMD.

Kernels run on several threads where a page may share memory with its workers, otherwise on one;
model.wasm is the same. WebAssembly has neither fused multiply-add nor float16, and its arithmetic
follows IEEE 754 in a fixed order: a row has the same bits in every browser, on any number of
threads.
"""

from __future__ import annotations

from wherry.errors import UsageError

from . import hosts
from .kernels.by_name import KernelsByName
from .kernels.cpu import CpuKernels
from .kernels.cpu.isa import Isa
from .target import TargetPreset
from .toolchains.web import WebToolchain

# WebAssembly compilers map the locals of a function to the 16 registers of x86 or the 32 of Arm.
ISA = Isa(lanes=4, registers=16, fma=False)


def preset(variant: str | None) -> TargetPreset:
    """Return the preset for any page.

    Raises:
        UsageError: there are no variants.
    """
    if variant is not None:
        raise UsageError(f"Unknown target 'wasm:{variant}'. Type: --target wasm")
    page = hosts.HOSTS["wasm32"]
    device = {**page.target, "mcpu": page.cpu, "mattr": ["+simd128"]}
    return TargetPreset(
        name="wasm",
        device=device,
        host=device,
        library=page.library(),
        features=(),
        dtype="float32",
        kv_dtype="float32",
        kv_dtypes=("float32", "int8", "int4"),
        kernels=KernelsByName(CpuKernels(ISA)),
        toolchain=WebToolchain(),
        hosts=(page.name,),
    )
