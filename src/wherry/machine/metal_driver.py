"""Lists Macs' GPUs through Apple's Metal framework, in the order of TVM's run time.

It imports neither TVM nor NumPy. Metal's functions are Objective-C's: a message is a C call, with
the object, the method's selector and arguments.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from functools import cache
from typing import Any

FRAMEWORK = "/System/Library/Frameworks/Metal.framework/Metal"
OBJECTIVE_C = "/usr/lib/libobjc.A.dylib"
FAMILY = 1007  # MTLGPUFamilyApple7: what the target "metal" needs, which M1 has


@dataclass(frozen=True, slots=True, kw_only=True)
class Gpu:
    """A GPU; its index in the list is its device number."""

    name: str
    memory_bytes: int  # that Metal recommends to use at most
    used_bytes: int  # that this process has allocated
    largest_buffer_bytes: int
    discrete: bool  # whether the GPU has memory of its own
    supported: bool  # whether it is of Apple's family 7 or later


@cache
def _libraries() -> tuple[ctypes.CDLL, ctypes.CDLL] | None:
    try:
        return ctypes.CDLL(FRAMEWORK), ctypes.CDLL(OBJECTIVE_C)
    except OSError:  # no Mac
        return None


def gpus() -> list[Gpu]:
    """List the GPUs; [] where there is no Metal."""
    libraries = _libraries()
    if libraries is None:
        return []
    metal, objc = libraries
    objc.sel_registerName.restype, objc.sel_registerName.argtypes = (
        ctypes.c_void_p,
        [ctypes.c_char_p],
    )
    metal.MTLCopyAllDevices.restype = ctypes.c_void_p
    listed = metal.MTLCopyAllDevices()
    if not listed:
        return []
    count = _send(objc, listed, "count", ctypes.c_ulong)
    return [
        _gpu(objc, _send(objc, listed, "objectAtIndex:", ctypes.c_void_p, i)) for i in range(count)
    ]


def _gpu(objc: ctypes.CDLL, device: int) -> Gpu:
    def ask(name: str, result: Any, *arguments: int) -> Any:
        return _send(objc, device, name, result, *arguments)

    text = _send(objc, ask("name", ctypes.c_void_p), "UTF8String", ctypes.c_char_p)
    return Gpu(
        name=text.decode(errors="replace"),
        memory_bytes=ask("recommendedMaxWorkingSetSize", ctypes.c_uint64),
        used_bytes=ask("currentAllocatedSize", ctypes.c_ulong),
        largest_buffer_bytes=ask("maxBufferLength", ctypes.c_ulong),
        discrete=not ask("hasUnifiedMemory", ctypes.c_bool),
        supported=ask("supportsFamily:", ctypes.c_bool, FAMILY),
    )


def _send(objc: ctypes.CDLL, to: int, name: str, result: Any, *arguments: int) -> Any:
    """Send a message whose arguments are integers (`long`)."""
    types = [ctypes.c_void_p, ctypes.c_void_p, *(ctypes.c_long for _ in arguments)]
    call = ctypes.CFUNCTYPE(result, *types)(("objc_msgSend", objc))
    return call(to, objc.sel_registerName(name.encode()), *arguments)
