"""Properties of a device that GPU kernels depend on."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuLimits:
    """Limits of one kernel launch, as the API of the device guarantees them."""

    threads_per_block: int  # work-items of a work-group; a power of two from 64
    shared_memory_bytes: int  # of one block
    asked_shared_bytes: int = 0  # that a launch may request for a block
    storage_buffers: int | None = None  # tensors that one kernel may bind; None: any number

    # A launch costs tens of microseconds (browsers): prefer few launches, even with few blocks.
    few_launches: bool = False

    # A warp multiplies float16 matrices of 16 x 16 and 16 x 8 (NVIDIA's, from sm_80 on).
    tensor_cores: bool = False

    # 32 threads of a block run in step: they read each other's registers, and multiply float32
    # matrices of 8 x 8 together (Apple's SIMD groups, from A14 and M1 on).
    simdgroups: bool = False

    # A wave multiplies float16 matrices of 16 x 16 (AMD's): by which instruction, a name in
    # `waves/units.py`.
    wave_matrices: str | None = None

    # The threads of a block multiply float16 matrices together (Vulkan's cooperative matrices), in
    # shapes that only the device knows.
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
        """Threads for a number of elements: a power of two, at least 32."""
        threads = 32
        while threads < min(elements, most, self.threads_per_block):
            threads *= 2
        return min(threads, self.threads_per_block)
