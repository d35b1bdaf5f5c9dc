"""Targets for AMD GPUs as machine code: "rocm:gfx1100", or "rocm" for the GPU of this machine.

TVM's package has no runtime for ROCm, so such a library is for programs that have one. An AMD GPU
of this machine runs models through Vulkan.
"""

from __future__ import annotations

from pathlib import Path

from wherry.errors import UsageError

from .gpu import gpu_preset
from .kernels.gpu import GpuLimits
from .target import TargetPreset
from .toolchains.rocm import RocmToolchain
from .variants import ROCM_CODES, chosen

THREADS = 256  # threads of a work-group: TVM's code generator declares this maximum
SHARED_MEMORY_BYTES = 65536
TOPOLOGY = Path("/sys/class/kfd/kfd/topology/nodes")  # Linux's description of AMD's GPUs


def preset(variant: str | None) -> TargetPreset:
    """Return the preset of the GPU that `variant` names, or of this machine's GPU.

    Raises:
        UsageError: the variant is none of ROCM_CODES, or it is None and this machine has no such
            GPU.
    """
    here = [code for code in gpus_here() if code in ROCM_CODES]
    if variant is None and not here:
        known = ", ".join(f"rocm:{code} ({what})" for code, what in ROCM_CODES.items())
        raise UsageError(
            "Target rocm is for one GPU, and this machine has none of AMD's; name it: "
            f"{known}. Type: --target rocm:gfx1100"
        )
    (code,) = chosen("rocm", variant or here[0], ROCM_CODES)
    wave = wave_of(code)
    unit = matrix_unit_of(code)
    limits = GpuLimits(
        threads_per_block=THREADS,
        shared_memory_bytes=SHARED_MEMORY_BYTES,
        wave_matrices=unit,
    )
    return gpu_preset(
        f"rocm:{code}",
        limits,
        {"kind": "rocm", "mcpu": code, "thread_warp_size": wave},
        toolchain=RocmToolchain(wave),
        codes=(code,),
        # With matrix units a row's bits depend on its batch: GEMMs multiply in float16, GEMVs in
        # float32.
        fast_math=unit is not None,
    )


def wave_of(code: str) -> int:
    """Return the threads of a wave: 64 on data-centre GPUs (CDNA), 32 on the others (RDNA)."""
    return 64 if code.startswith("gfx9") else 32


def matrix_unit_of(code: str) -> str | None:
    """Return the GPU's matrix unit, a name in `kernels/gpu/waves/units.py`; None: it has none."""
    units = {"gfx9": "mfma", "gfx11": "wmma", "gfx12": "wmma12"}
    return next((unit for family, unit in units.items() if code.startswith(family)), None)


def gpus_here() -> list[str]:
    """Return the codes of this machine's AMD GPUs, in the order of Linux's driver."""
    gpus = []
    for path in sorted(TOPOLOGY.glob("*/properties"), key=lambda p: int(p.parent.name)):
        values = dict(line.split()[:2] for line in path.read_text().splitlines() if " " in line)
        version = int(values.get("gfx_target_version", 0))  # 90010 is version 9.0.10
        if version:  # CPUs have version 0
            major, minor, step = version // 10000, version // 100 % 100, version % 100
            gpus.append(f"gfx{major}{minor}{step:x}")
    return gpus
