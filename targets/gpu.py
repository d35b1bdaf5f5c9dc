"""Builds the target presets of all GPUs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from tvm.tirx import PrimFunc

from wherry.errors import UsageError
from wherry.ops import INTEGERS

from .cpu import host
from .hosts import Host
from .kernels.by_name import Answer, KernelsByName
from .kernels.gpu import GpuKernels, GpuLimits
from .kernels.kernel_set import FusedKernel
from .target import TargetPreset
from .variants import GROUP_SIZES, MATRICES

FLOATS = ("float32", "float16")
Edit = Callable[[PrimFunc], PrimFunc]


def gpu_preset(
    name: str,
    limits: GpuLimits,
    device: Mapping[str, Any],
    *,
    there: Host | None = None,
    edit: Edit | None = None,
    **more: Any,
) -> TargetPreset:
    """Return the preset of a GPU: tensors in memory are float16, registers float32.

    Args:
        name: name of the target, as typed.
        limits: limits of a kernel launch.
        device: TVM's description of the device, to which the limits are added.
        there: the host that drives the device; None: this machine.
        edit: function applied to the PrimFunc of every kernel.
        more: other fields of the preset.
    """
    threads = limits.threads_per_block
    sizes = {"max_num_threads": threads, "max_shared_memory_per_block": limits.shared_memory_bytes}
    if device["kind"] != "webgpu":  # TVM's WebGPU target knows this limit as max_num_threads alone
        sizes["max_threads_per_block"] = threads
    device_limits = {**device, **sizes}

    def kernels_for(own: GpuLimits) -> KernelsByName:
        kernels = GpuKernels(own, device_limits)
        return EditedKernels(kernels, edit) if edit else KernelsByName(kernels)

    return TargetPreset(
        name=name,
        device=device_limits,
        host=there.target if there else host(),
        library=there.library() if there else "so",
        features=(),
        dtype="float32",
        kv_dtype="float16",
        # another engine's interface has its own cache
        kv_dtypes=(*FLOATS, *INTEGERS) if more.get("interface") is None else FLOATS,
        kernels=kernels_for(limits),
        activations="float16",
        # Kernels for float32 activations: tensor cores and matrix units would round those to
        # float16.
        float_kernels=kernels_for(
            replace(limits, tensor_cores=False, wave_matrices=None, cooperative_matrices=False)
        ),
        latents_once=True,
        cache_words=True,
        **more,
    )


def group_size(kind: str, variant: str | None) -> int:
    """Return the threads of a work-group for `variant`; None: the largest of GROUP_SIZES.

    Raises:
        UsageError: the variant is not one of GROUP_SIZES.
    """
    if variant is not None and variant not in GROUP_SIZES:
        more = f"; or {MATRICES}, for GPUs that multiply them" if kind == "vulkan" else ""
        raise UsageError(
            f"Unknown target '{kind}:{variant}'; after the colon stands the number of threads "
            f"per block: {', '.join(GROUP_SIZES)}{more}. Type: --target {kind}"
        )
    return int(variant or GROUP_SIZES[-1])


class EditedKernels(KernelsByName):
    """GPU kernels whose PrimFuncs pass through an edit that a language or device needs."""

    def __init__(self, kernels: GpuKernels, edit: Edit) -> None:
        super().__init__(kernels)
        self._edit = edit

    def kernel(self, op: str, spec: str) -> Answer:
        """Return the edited kernel of an operation; None: the kernel set has none."""
        unedited = super().kernel(op, spec)
        if isinstance(unedited, FusedKernel):
            return replace(unedited, compute=self._edit(unedited.compute))
        return self._edit(unedited) if isinstance(unedited, PrimFunc) else unedited

    def schedule(self, func: PrimFunc) -> PrimFunc:
        """Schedule any other PrimFunc, and edit it."""
        return self._edit(super().schedule(func))
