"""Properties of a device that GPU kernels depend on."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuLimits:
    """Limits of one kernel launch, as the API of the device guarantees them."""

    threads_per_block: int  # threads (work-items) of a block; a power of two from 64
    shared_memory_bytes: int  # bytes of shared memory of a block, guaranteed
    # bytes of dynamic shared memory that a launch may request for a block
    optin_shared_bytes: int = 0
    storage_buffers: int | None = None  # tensors that a kernel may bind; None: any number

    # A launch costs tens of microseconds (in browsers): prefer few launches, even with few blocks.
    few_launches: bool = False

    # Whether a warp multiplies float16 matrices of 16 x 16 and 16 x 8 (NVIDIA, from sm_80 on).
    tensor_cores: bool = False

    # Whether four warps multiply matrices in shared memory together, and copies report to barriers
    # there (NVIDIA's sm_90; newer GPUs have other instructions).
    warpgroups: bool = False

    # Whether 32 threads of a block run in lockstep: they read each other's registers, and multiply
    # float32 matrices of 8 x 8 together (Apple's SIMD groups, from A14 and M1 on).
    simdgroups: bool = False

    # Instruction by which a wave multiplies float16 matrices of 16 x 16 (AMD), a name in
    # `waves/units.py`; None: there is none.
    wave_matrices: str | None = None

    # Whether the threads of a block multiply float16 matrices together (Vulkan's cooperative
    # matrices), in shapes that only the device knows.
    cooperative_matrices: bool = False

    def __post_init__(self) -> None:
        threads, shared = self.threads_per_block, self.shared_memory_bytes
        if threads < 64 or threads & (threads - 1):
            raise ValueError(f"threads_per_block {threads} is not a power of two from 64")
        if shared < 16384:
            raise ValueError(f"shared_memory_bytes {shared} is less than 16384")
        if self.storage_buffers is not None and self.storage_buffers < 8:
            raise ValueError(f"storage_buffers {self.storage_buffers} is less than 8")

    def block_for(self, elements: int, most: int = 256) -> int:
        """Return the threads of a block for `elements`: a power of two, between 32 and `most`."""
        threads = 32
        while threads < min(elements, most, self.threads_per_block):
            threads *= 2
        return min(threads, self.threads_per_block)
