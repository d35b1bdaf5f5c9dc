"""Calls CUDA C++ functions from PrimFuncs: the body of each kernel is one call."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from tvm.backend.cuda.op import cuda_func_call
from tvm.script import tirx as T

FLOATS = {"float32": "float", "float16": "wherry::Half"}


@cache
def joined(*names: str) -> str:
    """Return the CUDA C++ of some `.cuh` files, concatenated in their order."""
    folder = Path(__file__).parent
    return "\n".join((folder / f"{name}.cuh").read_text() for name in names)


def templated(function: str, *arguments: Any) -> str:
    """Return the name of a CUDA C++ function with its template arguments."""
    texts = [str(a).lower() if isinstance(a, bool) else str(a) for a in arguments]
    return f"wherry::{function}<{', '.join(texts)}>"


def shared(size: int) -> Any:
    """Allocate dynamic shared memory of a block, `size` bytes."""
    return T.sblock_alloc_buffer((size,), "uint8", scope="shared.dyn").data


def call(source: str, name: str, *arguments: Any) -> None:
    """Emit a call of the CUDA C++ function `name`, which `source` defines."""
    T.evaluate(cuda_func_call(name, *arguments, source_code=source))
