"""Faster TVMScript decorators: `prim_func` and `macro` parse as those of `T` do.

TVM's read the source lines of the whole call stack, to find scripts inside classes, names that only
annotations use, and the parser that expands a macro. Functions here have no such names, and the
parser is found without source lines. It matters where frames have no file, each of which is looked
for in all modules: under pytest-xdist, with transformers loaded, 0.6 s of a compilation.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from tvm.script.parser._core import parse, utils
from tvm.script.parser.core.entry import scan_macro
from tvm.tirx import PrimFunc
from tvm.tirx.script.parser.entry import TIRInline


def prim_func(**_options: Any) -> Callable[[Callable[..., None]], PrimFunc]:
    """Return a decorator; TVM's parser reads the options (`private`, `s_tir`) from the source."""

    def read(func: Callable[..., None]) -> PrimFunc:
        variables = utils.inspect_function_capture(func)
        function: PrimFunc = parse(func, variables, check_well_formed=False)
        return function

    read.dispatch_token = "tirx"  # type: ignore[attr-defined]
    return read


class _Macro(TIRInline):
    def _find_parser_def(self) -> Any:
        frame: Any = sys._getframe(1)
        while frame and not (parser := frame.f_globals.get(self.parser_object_name)):
            frame = frame.f_back
        if frame is None:
            raise RuntimeError("a macro is expanded inside a prim_func alone")
        return parser


def macro(func: Callable[..., None]) -> Callable[..., None]:
    """Return `func` as a macro, which a prim_func or another macro expands."""
    parsed = _Macro(*scan_macro(func, utils.inspect_function_capture(func)), func)
    return lambda *args, **kwargs: parsed(*args, **kwargs)
