"""Which text a conversion is calibrated on, from what the user chose."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from math import prod
from pathlib import Path

from wherry.machine.host_memory import available
from wherry.models.arch import Shape
from wherry.quant.mix import Mix
from wherry.quant.scheme import Scheme

from ..load import Described
from ..quality.texts import given, shipped
from .encode import Calibration, memory_bytes, refused

AUTO, NONE, BUILTIN = "auto", "none", "builtin"
# AUTO leaves out models of fewer weights, which are those of tests, and of more work than about ten
# minutes of CPU time: Qwen3 0.6B has 3.6e12, Gemma 3 1B 26e12. Larger ones lose less, too.
_LEAST_WEIGHTS, _MOST_WORK = 50_000_000, 6e12
_FEW_BITS = 5.0  # AUTO leaves mixes and types of more bits alone, which hardly gain
_log = logging.getLogger(__name__)


def calibration_of(
    described: Described,
    choice: str,
    parameters: Mapping[str, Shape],
    scheme: Scheme,
    mix: Mix | None = None,
) -> Calibration | None:
    """Return how a conversion encodes linears; None: by search.

    Where a text was asked for and is of no use, the reason is in the log.

    Args:
        described: the model.
        choice: "auto", "none", "builtin" or a file.
        parameters: shapes of the model's parameters by name.
        scheme: the scheme of the weights.
        mix: the mix that they are encoded in.

    Raises:
        UsageError: the file is no text.
    """
    if choice == NONE:
        return None
    reason = refused(described, parameters, scheme, mix)
    if choice == AUTO:
        large_enough = sum(map(prod, parameters.values())) >= _LEAST_WEIGHTS
        readable = described.folder.has_tokenizer
        few = mix is None or mix.bits_per_weight <= _FEW_BITS
        soon = work(parameters) <= _MOST_WORK
        if reason or not (readable and few and large_enough and soon):
            return None
    text = shipped("calibration") if choice in (AUTO, BUILTIN) else given(Path(choice).expanduser())
    if reason:
        _log.warning("%s, so its weights are encoded without a calibration text.", reason)
        return None
    return Calibration(described, text)


def work(parameters: Mapping[str, Shape]) -> float:
    """Return the multiplications for matrices [..., rows, columns]: 3 columns^3 each."""
    matrices = (shape for shape in parameters.values() if len(shape) > 1)
    return sum(3.0 * prod(shape[:-2]) * shape[-1] ** 3 for shape in matrices)


def fits(parameters: Mapping[str, Shape]) -> bool:
    """Return whether memory suffices to calibrate a model by the built-in text; else log it."""
    free, needed = available(), memory_bytes(parameters)
    if free is None or needed <= free:
        return True
    _log.warning(
        "%.1f GB of memory are free, and calibration takes %.1f GB, so the weights are encoded "
        "without it.",
        free / 1e9,
        needed / 1e9,
    )
    return False
