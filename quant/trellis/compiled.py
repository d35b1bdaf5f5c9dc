"""Compiles the kernels of `kernels.py` for this machine's CPU, and calls them."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from functools import cache
from typing import Any, TypeVar

import numpy as np
import tvm
import tvm_ffi
from numpy.typing import NDArray
from tvm.target import Target

from wherry.base.parallel import mapped, threads
from wherry.machine.cpu import cpu_features
from wherry.ops.blocks import TRELLIS

from ..search import Floats
from .kernels import TrellisKernels
from .vectors import SimdVectors

# LLVM's levels of x86-64 with wide vectors: their lanes, and what Linux calls what they need.
LEVELS = {
    "x86-64-v4": (16, {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"}),
    "x86-64-v3": (8, {"avx2", "bmi1", "bmi2", "f16c", "fma", "movbe", "abm"}),
}
_LANES = 4  # of other CPUs
_LEAST = 128  # groups that a thread searches at least
_VALUES = np.array(TRELLIS, np.float32)
Result = TypeVar("Result", bound=NDArray[Any])
_compiling = threading.Lock()


def best_path(
    w: Floats,
    scale: Floats,
    importance: Floats,
    bits: int,
    feedback: tuple[Floats, Floats] | None = None,
) -> NDArray[np.uint8]:
    """Return what `paths.best_path` does; `feedback` has the fields of its own."""
    n, lanes = w.shape[1], _lanes(_level())
    rows = [_padded(w, lanes), _padded(scale, lanes)]
    rest = [_padded(feedback[0], lanes)] if feedback else []

    def search(groups: slice) -> NDArray[np.uint8]:
        own = [*(x[..., groups] for x in rows), importance, *(x[:, groups] for x in rest)]
        path = np.empty(own[0].shape, np.uint8)
        if feedback:
            return _run("passed", bits, [*own, feedback[1]], path)
        return _run("path", bits, own, path)

    return np.concatenate(mapped(search, _parts(rows[1].size)), axis=1)[:, :n]


def best_ratios(unit: Floats, tried: Floats, importance: Floats, bits: int) -> Floats:
    """Return what `search.best_ratios` does, for the best paths with scales `tried` [ways, n]."""
    n, lanes = unit.shape[1], _lanes(_level())
    rows = [_padded(unit, lanes), _padded(tried, lanes)]

    def search(groups: slice) -> Floats:
        own = [*(x[:, groups] for x in rows), importance, _VALUES]
        return _run("ratios", bits, own, np.empty(own[0].shape[1], np.float32))

    return np.concatenate(mapped(search, _parts(rows[0].shape[1])))[:n]


def _parts(n: int) -> list[slice]:
    """Return the groups that each thread searches."""
    step = max(_LEAST, -(-n // threads() // _LEAST) * _LEAST)
    return [slice(start, start + step) for start in range(0, n, step)]


def _run(name: str, bits: int, arrays: Sequence[Floats], output: Result) -> Result:
    """Call a kernel, whose group is the rows of the first array, and return `output`."""
    with _compiling:
        kernel = _kernel(name, bits, len(arrays[0]), _level())
    # TVM wants arrays in order that may be changed
    given: list[NDArray[Any]] = [*map(np.ascontiguousarray, arrays), output]
    kernel(*(tvm_ffi.from_dlpack(a if a.flags.writeable else a.copy()) for a in given))
    return output


@cache
def _kernel(name: str, bits: int, group: int, level: str) -> Any:
    kernels = TrellisKernels(SimdVectors(_lanes(level)), bits, group)
    function = getattr(kernels, name)().with_attr("global_symbol", name)
    target = Target({"kind": "llvm", **({"mcpu": level} if level else {})})
    return tvm.compile(tvm.IRModule({name: function}), target)[name]


@cache
def _level() -> str:
    """Return the highest level of this machine's CPU; "": none."""
    features = cpu_features()
    return next((level for level, (_, needed) in LEVELS.items() if features >= needed), "")


def _lanes(level: str) -> int:
    return LEVELS[level][0] if level else _LANES


def _padded(x: Floats, lanes: int) -> Floats:
    """Return x [..., n] with zeros up to a multiple of the lanes."""
    spare = -x.shape[-1] % lanes
    return np.pad(x, [(0, 0)] * (x.ndim - 1) + [(0, spare)]) if spare else x
