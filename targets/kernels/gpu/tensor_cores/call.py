"""Calls of CUDA C++ functions from PrimFuncs: each kernel's body is one call."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from tvm.backend.cuda.op import cuda_func_call
from tvm.script import tirx as T

FLOATS = {"float32": "float", "float16": "wherry::Half"}


@cache
def joined(*names: str) -> str:
    """The CUDA C++ of some files, in their order."""
    folder = Path(__file__).parent
    return "\n".join((folder / f"{name}.cuh").read_text() for name in names)


def templated(function: str, *arguments: Any) -> str:
    """The name of a function with its template arguments."""
    texts = [str(a).lower() if isinstance(a, bool) else str(a) for a in arguments]
    return f"wherry::{function}<{', '.join(texts)}>"


def shared(size: int) -> Any:
    """Shared memory of a block, with a size that the launch decides."""
    return T.sblock_alloc_buffer((size,), "uint8", scope="shared.dyn").data


def call(source: str, name: str, *arguments: Any) -> None:
    """Emit a call; `source` defines the function."""
    T.evaluate(cuda_func_call(name, *arguments, source_code=source))
