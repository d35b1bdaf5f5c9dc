"""The library's entry `candidates`: the logits' summary for sampling, computed on the device.

    candidates(logits [m, vocab] f32, scales [m] f32) -> [m, 2 K + 4] u32

    choice(packed [m, 2 K + 4] u32, how [m, 5] f32) -> [m, 2 K + 5] u32

`targets/kernels/gpu/candidates.py` describes a row of the result, and `choice.py` there what
`choice` adds to it. Only targets with these kernels get the entries; the metadata then has
"candidates", K, and "candidates_error", the relative error of the sums.
"""

from __future__ import annotations

from typing import Any

from tvm import IRModule, relax, tirx

from wherry.ops import CandidatesSpec, ChoiceSpec
from wherry.passes.kernels import with_scratch
from wherry.targets.kernels.gpu.candidates import FAST_MATH_ERROR, RELATIVE_ERROR, TAIL
from wherry.targets.kernels.gpu.choice import HOW
from wherry.targets.target import TargetPreset

ENTRY = "candidates"
CHOICE = "choice"


def add_candidates(
    mod: IRModule, target: TargetPreset, *, vocab_size: int, logit_rows: int
) -> tuple[IRModule, dict[str, Any]]:
    """Add the entries for sampling candidates; return the module and the metadata.

    Both are unchanged if the target has no candidates kernels.

    Args:
        mod: the module, with scheduled PrimFuncs.
        target: the target preset, whose kernels are used.
        vocab_size: number of logits.
        logit_rows: upper bound of m.
    """
    spec = CandidatesSpec(vocab=vocab_size)
    kernel: Any = target.kernels.kernel(ENTRY, spec.to_json())
    if kernel is None or vocab_size <= spec.count:
        return mod, {}
    builder = relax.BlockBuilder(mod)
    rows = tirx.Var("m", "int64")
    logits = relax.Var("logits", relax.TensorType([rows, vocab_size], "float32"))
    scales = relax.Var("scales", relax.TensorType([rows], "float32"))
    attrs = {"tir_var_upper_bound": {"m": logit_rows}}
    result = relax.TensorType([rows, 2 * spec.count + TAIL], "uint32")
    with builder.function(ENTRY, [logits, scales], attrs=attrs):
        with builder.dataflow():
            var = builder.add_func(kernel.compute, f"{ENTRY}_kernel")
            results = with_scratch(builder, var, kernel, [logits, scales], result, {"m": rows})
            out = builder.emit_output(results)
        builder.emit_func_output(out)
    _add_choice(builder, target.kernels, spec.count, attrs)
    error = FAST_MATH_ERROR if target.fast_math else RELATIVE_ERROR
    return builder.get(), {"candidates": spec.count, "candidates_error": error}


def _add_choice(
    builder: relax.BlockBuilder, kernels: Any, count: int, attrs: dict[str, Any]
) -> None:
    rows = tirx.Var("m", "int64")
    kernel: Any = kernels.kernel(CHOICE, ChoiceSpec(count=count).to_json())
    columns = 2 * count + TAIL
    packed = relax.Var("packed", relax.TensorType([rows, columns], "uint32"))
    how = relax.Var("how", relax.TensorType([rows, HOW], "float32"))
    result = relax.TensorType([rows, columns + 1], "uint32")
    with builder.function(CHOICE, [packed, how], attrs=attrs):
        with builder.dataflow():
            var = builder.add_func(kernel.compute, f"{CHOICE}_kernel")
            out = builder.emit_output(relax.call_tir(var, [packed, how], out_ty=result))
        builder.emit_func_output(out)
