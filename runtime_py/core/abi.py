"""The structs of the core's C ABI for ctypes; engine/include/wherry.h documents their fields."""

from __future__ import annotations

import ctypes
from array import array
from collections.abc import Sequence
from ctypes import (
    CFUNCTYPE,
    POINTER,
    c_char_p,
    c_double,
    c_float,
    c_int,
    c_int32,
    c_int64,
    c_size_t,
    c_uint32,
    c_uint64,
    c_void_p,
)
from typing import Any

from .interface import MAX_TOP_LOGPROBS

NUMBERS = (c_float, c_int32, c_uint64)
ABI_VERSION = 2  # must equal WHERRY_ABI_VERSION in wherry.h


def _fields(kind: Any, names: str) -> list[tuple[str, Any]]:
    return [(name, kind) for name in names.split()]


MaskFill = CFUNCTYPE(c_int, c_void_p, POINTER(c_uint32), c_size_t, POINTER(c_int))
MaskAccept = CFUNCTYPE(c_int, c_void_p, c_int32, POINTER(c_int))
MaskForced = CFUNCTYPE(c_int, c_void_p, POINTER(c_int32), c_size_t, POINTER(c_size_t))
MaskError = CFUNCTYPE(c_char_p, c_void_p)
MaskRelease = CFUNCTYPE(None, c_void_p)


class Mask(ctypes.Structure):
    """The C struct `wherry_mask`, which engine/include/wherry.h documents."""

    _fields_ = (
        ("size", c_size_t),
        ("context", c_void_p),
        ("fill", MaskFill),
        ("accept", MaskAccept),
        ("forced", MaskForced),
        ("error", MaskError),
        ("release", MaskRelease),
    )


class Params(ctypes.Structure):
    """The C struct `wherry_params`, which engine/include/wherry.h documents."""

    _fields_ = (
        ("size", c_size_t),
        *_fields(c_int32, "max_tokens min_tokens"),
        ("stop_ids", POINTER(c_int32)),
        ("n_stop_ids", c_size_t),
        *_fields(c_float, "temperature dynamic_range dynamic_exponent top_p"),
        ("top_k", c_int32),
        *_fields(c_float, "min_p typical_p top_n_sigma xtc_probability xtc_threshold"),
        *_fields(c_float, "mirostat_tau mirostat_eta"),
        *_fields(c_float, "repetition_penalty presence_penalty frequency_penalty"),
        *_fields(c_float, "dry_multiplier dry_base"),
        *_fields(c_int32, "dry_allowed_length dry_range"),
        ("dry_breakers", POINTER(c_int32)),
        ("n_dry_breakers", c_size_t),
        ("seed", c_uint64),
        ("bias_ids", POINTER(c_int32)),
        ("bias_values", POINTER(c_float)),
        ("n_bias", c_size_t),
        ("allowed", POINTER(c_int32)),
        ("n_allowed", c_size_t),
        ("bad_words", POINTER(c_int32)),
        ("bad_word_lengths", POINTER(c_size_t)),
        ("n_bad_words", c_size_t),
        ("mask", POINTER(Mask)),
        *_fields(c_int32, "top_logprobs prompt_logprobs"),
        ("priority", c_int32),
        *_fields(c_uint64, "user salt"),
        *_fields(c_int32, "adapter max_drafts"),
        ("prediction", POINTER(c_int32)),
        ("n_prediction", c_size_t),
        ("embed", c_int32),
        ("source", POINTER(c_int32)),
        ("n_source", c_size_t),
    )


class Event(ctypes.Structure):
    """The C struct `wherry_event`, which engine/include/wherry.h documents."""

    _fields_ = (
        ("id", c_uint64),
        *_fields(c_int32, "token finish prompt"),
        ("logprob", c_float),
        ("n_top", c_int32),
        ("top_ids", c_int32 * MAX_TOP_LOGPROBS),
        ("top_logprobs", c_float * MAX_TOP_LOGPROBS),
        *_fields(c_int32, "cached_tokens drafted_tokens accepted_tokens"),
        *_fields(c_float, "queue_seconds prefill_seconds decode_seconds"),
        ("embedding", POINTER(c_float)),
        ("n_embedding", c_int64),
    )


class Stats(ctypes.Structure):
    """The C struct `wherry_stats`, which engine/include/wherry.h documents."""

    _fields_ = (
        ("size", c_size_t),
        *_fields(c_uint64, "steps prompt_tokens prefill_tokens cached_tokens disk_tokens"),
        *_fields(c_uint64, "decode_tokens recomputed_tokens drafted_tokens accepted_tokens"),
        *_fields(c_uint64, "finished preemptions"),
        *_fields(c_int32, "waiting prefilling running pages_total pages_free pages_cached"),
        ("page_size", c_int32),
        *_fields(c_double, "model_seconds sample_seconds host_seconds step_seconds"),
        *_fields(c_uint64, "failed_steps candidate_rows whole_rows readback_bytes"),
        ("overlapped_seconds", c_double),
        *_fields(c_uint64, "chained_steps wasted_rows graph_steps"),
        *_fields(c_char_p, "graphs_given_up chains_given_up"),
        ("disk_dropped", c_uint64),
        ("disk_problem", c_char_p),
    )


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
