"""Finds and opens libwherry and the libraries it depends on, without importing TVM."""

from __future__ import annotations

import ctypes
from functools import cache

from wherry.machine.plugins import find_core, open_library
from wherry.machine.tvm_runtime import open_runtime

from .native import bind

__all__ = ["find_core", "open_core", "open_runtime"]


@cache
def open_core() -> ctypes.CDLL:
    """Open libwherry; call `open_runtime` first."""
    return bind(open_library(find_core()))
