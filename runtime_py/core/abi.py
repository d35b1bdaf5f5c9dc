"""The functions of the core's C ABI for ctypes; engine/include/wherry.h documents them."""

from __future__ import annotations

import ctypes
from array import array
from collections.abc import Sequence
from ctypes import (
    POINTER,
    c_char_p,
    c_float,
    c_int,
    c_int32,
    c_size_t,
    c_uint32,
    c_uint64,
    c_void_p,
)
from typing import Any

from .records import Event, Mask, Params, Stats

NUMBERS = (c_float, c_int32, c_uint64)
ABI_VERSION = 3  # must equal WHERRY_ABI_VERSION in wherry.h


_HANDLE = c_void_p
# argument types of each function; every function returns a wherry_status
SIGNATURES: dict[str, tuple[Any, ...]] = {
    "wherry_model_load": (c_char_p, c_char_p, c_char_p, c_char_p, POINTER(_HANDLE)),
    "wherry_model_free": (_HANDLE,),
    "wherry_engine_create": (_HANDLE, _HANDLE, c_char_p, POINTER(_HANDLE)),
    "wherry_engine_destroy": (_HANDLE,),
    "wherry_engine_reset": (_HANDLE,),
    "wherry_engine_clear_cache": (_HANDLE,),
    "wherry_engine_add": (_HANDLE, c_uint64, POINTER(c_int32), c_size_t, POINTER(Params)),
    "wherry_engine_abort": (_HANDLE, c_uint64),
    "wherry_engine_launch": (_HANDLE,),
    "wherry_engine_collect": (_HANDLE, POINTER(Event), c_size_t, POINTER(c_size_t)),
    "wherry_engine_step": (_HANDLE, POINTER(Event), c_size_t, POINTER(c_size_t)),
    "wherry_engine_start": (_HANDLE,),
    "wherry_engine_stop": (_HANDLE,),
    "wherry_engine_wait": (_HANDLE, POINTER(Event), c_size_t, c_int, POINTER(c_size_t)),
    "wherry_engine_wake": (_HANDLE,),
    "wherry_engine_stats": (_HANDLE, POINTER(Stats)),
    "wherry_vocabulary_create": (
        c_char_p,
        c_char_p,
        POINTER(c_uint32),
        c_size_t,
        POINTER(_HANDLE),
    ),
    "wherry_vocabulary_free": (_HANDLE,),
    "wherry_grammar_compile": (_HANDLE, c_char_p, c_char_p, POINTER(_HANDLE)),
    "wherry_grammar_free": (_HANDLE,),
    "wherry_grammar_mask": (_HANDLE, POINTER(c_int32), c_size_t, POINTER(Mask)),
}


def declare(library: ctypes.CDLL) -> None:
    """Declare every function of the ABI on an opened libwherry."""
    library.wherry_abi_version.restype = c_int
    library.wherry_last_error.restype = c_char_p
    library.wherry_model_metadata.restype = c_char_p
    library.wherry_model_metadata.argtypes = (_HANDLE,)
    library.wherry_params_init.restype = None
    library.wherry_params_init.argtypes = (POINTER(Params),)
    for name, arguments in SIGNATURES.items():
        function = getattr(library, name)
        function.restype, function.argtypes = c_int, arguments


def int32s(values: Sequence[int]) -> Any:
    """Return a C array of int32, [len(values)]."""
    # `from_buffer` is five times as fast as ctypes' constructor, which takes each value as an
    # argument.
    return (c_int32 * len(values)).from_buffer(array("i", values)) if values else (c_int32 * 0)()
