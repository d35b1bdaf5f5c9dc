"""The phases that every module goes through, for any target.

quantize  weights become what their schemes store
attach    what later phases need to know: the paged KV cache, recurrent state, bounds of the sizes
fuse      operations that are computed together get one name
lower     each operation becomes a PrimFunc: the target's own, or the reference
schedule  PrimFuncs without a schedule get the target's
link      a function for each entry of the library, memory planning, the virtual machine's calls
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from tvm import IRModule, ir, relax, tirx

from .attach_bounds import AttachBounds
from .bound_results import BoundResults
from .fuse_attention import FuseAttention
from .fuse_experts import FuseExperts
from .fuse_linear import FuseLinear
from .fuse_norm import FuseNorm
from .fuse_swiglu import FuseSwiGLU
from .kernels import Kernels
from .kv_cache import KVCache
from .narrow_activations import NarrowActivations
from .paged_kv import PagedKV
from .quantize import Quantization, Quantize
from .recurrent_state import RecurrentState, SlotState
from .schedule_rest import ScheduleRest
from .select_kernels import SelectKernels
from .share_tensors import ShareTensors
from .split_entries import SplitEntries

Phase = tuple[str, Sequence[ir.transform.Pass]]


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineInputs:
    """Inputs of the pass pipeline."""

    quantization: Quantization  # the schemes of weights
    cache: KVCache  # what the model's attention needs
    kernels: Kernels
    bounds: Mapping[str, int]  # upper bounds of symbolic sizes, by name
    stored: Mapping[str, str]  # weight name -> dtype on disk
    entries: tuple[str, ...] = ("forward",)  # names of the results of `forward`, in order
    slots: tuple[SlotState, ...] = ()  # the recurrent state of a sequence
    narrow: bool = False  # whether activations stay float16 where kernels of `kernels` support it


def phases(inputs: PipelineInputs) -> list[Phase]:
    """Return the phases in order: name and passes."""
    t, kernels = relax.transform, inputs.kernels
    narrowed = [NarrowActivations(kernels)] if inputs.narrow else []
    return [
        ("quantize", [Quantize(inputs.quantization)]),
        ("attach", _attach(inputs)),
        (
            "fuse",
            [
                FuseSwiGLU(),
                FuseLinear(kernels),
                FuseExperts(kernels),
                FuseAttention(kernels),
                FuseNorm(),
                *narrowed,
            ],
        ),
        (
            "lower",
            [
                SelectKernels(kernels, inputs.stored),
                t.LegalizeOps(),
                t.AnnotateTIROpPattern(),
                t.FoldConstant(),
                t.FuseOps(),
                t.FuseTIR(),
            ],
        ),
        ("schedule", [ScheduleRest(kernels)]),
        (
            "link",
            [
                t.RewriteDataflowReshape(),
                t.ToNonDataflow(),
                SplitEntries(inputs.entries),
                t.RemovePurityChecking(),
                t.CallTIRRewrite(),
                t.StaticPlanBlockMemory(),
                BoundResults(),
                t.LowerAllocTensor(),
                ShareTensors(),
                t.KillAfterLastUse(),
                t.LowerRuntimeBuiltin(),
                t.ComputePrimValue(),
                t.VMShapeLower(),
                t.AttachGlobalSymbol(),
            ],
        ),
    ]


def _attach(inputs: PipelineInputs) -> list[ir.transform.Pass]:
    state = [PagedKV(inputs.cache), RecurrentState(inputs.slots)]
    return [*state, AttachBounds(inputs.bounds)]


def run(
    mod: IRModule,
    inputs: PipelineInputs,
    on_phase: Callable[[str, IRModule], None] = lambda name, mod: None,
    before_link: Callable[[IRModule], IRModule] = lambda mod: mod,
) -> IRModule:
    """Run all phases over `mod`; return the result.

    Args:
        mod: a module with one function, `forward`.
        inputs: inputs of the pass pipeline.
        on_phase: called with the name and the module after each phase (dump, progress).
        before_link: adds functions that are compiled with the module (the metadata).
    """
    for name, passes in phases(inputs):
        if name == "link":
            mod = before_link(mod)
        mod = ir.transform.Sequential(list(passes))(mod)
        if name != "link":  # after the link phase, modules are no longer well-formed Relax
            relax.analysis.well_formed(mod)  # raises at the first violation
        on_phase(name, mod)
    return mod


def prim_funcs(mod: IRModule) -> list[str]:
    """Return the names of a module's PrimFuncs."""
    return [v.name_hint for v, f in mod.functions_items() if isinstance(f, tirx.PrimFunc)]
