"""A faster TVMScript decorator for kernels: `script.prim_func` parses like `T.prim_func`.

TVM's decorator reads the whole call stack with source lines twice, to find scripts inside classes
and names that only annotations use. Kernels have neither.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tvm.script.parser._core import parse, utils
from tvm.tirx import PrimFunc


def prim_func(**_options: Any) -> Callable[[Callable[..., None]], PrimFunc]:
    """Return a decorator; TVM's parser reads the options (`private`, `s_tir`) from the source."""

    def read(func: Callable[..., None]) -> PrimFunc:
        found = utils.inspect_function_capture(func)
        made: PrimFunc = parse(func, found, check_well_formed=False)
        return made

    read.dispatch_token = "tirx"  # type: ignore[attr-defined]
    return read
