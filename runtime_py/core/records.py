"""The structs of the core's C ABI for ctypes.

Written by `make generated` of engine/include/wherry.h, which documents the fields; not
to be edited.
"""

from __future__ import annotations

import ctypes
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
    c_uint8,
    c_uint32,
    c_uint64,
    c_void_p,
)


class Mask(ctypes.Structure):
    """The C struct `wherry_mask`."""

    _fields_ = (
        ("size", c_size_t),
        ("context", c_void_p),
        ("fill", CFUNCTYPE(c_int, c_void_p, POINTER(c_uint32), c_size_t, POINTER(c_int))),
        ("accept", CFUNCTYPE(c_int, c_void_p, c_int32, POINTER(c_int))),
        ("forced", CFUNCTYPE(c_int, c_void_p, POINTER(c_int32), c_size_t, POINTER(c_size_t))),
        ("error", CFUNCTYPE(c_char_p, c_void_p)),
        ("release", CFUNCTYPE(None, c_void_p)),
    )


class Image(ctypes.Structure):
    """The C struct `wherry_image`."""

    _fields_ = (
        ("first", c_size_t),
        ("rows", c_size_t),
        ("digest", c_uint8 * 32),
        ("patches", POINTER(c_uint8)),
        ("n_patches", c_size_t),
        ("patch_bytes", c_size_t),
        ("levels", POINTER(c_float)),
        ("positions", POINTER(c_int32)),
        ("taps", c_size_t),
        ("position_weights", POINTER(c_float)),
        ("coordinates", POINTER(c_int32)),
        ("first_feature", c_size_t),
        ("features", c_size_t),
        ("grid_rows", c_size_t),
        ("grid_columns", c_size_t),
    )


class Params(ctypes.Structure):
    """The C struct `wherry_params`."""

    _fields_ = (
        ("size", c_size_t),
        ("max_tokens", c_int32),
        ("min_tokens", c_int32),
        ("stop_ids", POINTER(c_int32)),
        ("n_stop_ids", c_size_t),
        ("temperature", c_float),
        ("dynamic_range", c_float),
        ("dynamic_exponent", c_float),
        ("top_p", c_float),
        ("top_k", c_int32),
        ("min_p", c_float),
        ("typical_p", c_float),
        ("top_n_sigma", c_float),
        ("xtc_probability", c_float),
        ("xtc_threshold", c_float),
        ("mirostat_tau", c_float),
        ("mirostat_eta", c_float),
        ("repetition_penalty", c_float),
        ("presence_penalty", c_float),
        ("frequency_penalty", c_float),
        ("dry_multiplier", c_float),
        ("dry_base", c_float),
        ("dry_allowed_length", c_int32),
        ("dry_range", c_int32),
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
        ("top_logprobs", c_int32),
        ("prompt_logprobs", c_int32),
        ("priority", c_int32),
        ("user", c_uint64),
        ("salt", c_uint64),
        ("adapter", c_int32),
        ("max_drafts", c_int32),
        ("prediction", POINTER(c_int32)),
        ("n_prediction", c_size_t),
        ("embed", c_int32),
        ("source", POINTER(c_int32)),
        ("n_source", c_size_t),
        ("images", POINTER(Image)),
        ("n_images", c_size_t),
    )


class Event(ctypes.Structure):
    """The C struct `wherry_event`."""

    _fields_ = (
        ("id", c_uint64),
        ("token", c_int32),
        ("finish", c_int32),
        ("prompt", c_int32),
        ("logprob", c_float),
        ("n_top", c_int32),
        ("top_ids", c_int32 * 20),
        ("top_logprobs", c_float * 20),
        ("cached_tokens", c_int32),
        ("drafted_tokens", c_int32),
        ("accepted_tokens", c_int32),
        ("queue_seconds", c_float),
        ("prefill_seconds", c_float),
        ("decode_seconds", c_float),
        ("embedding", POINTER(c_float)),
        ("n_embedding", c_int64),
    )


class Stats(ctypes.Structure):
    """The C struct `wherry_stats`."""

    _fields_ = (
        ("size", c_size_t),
        ("steps", c_uint64),
        ("prompt_tokens", c_uint64),
        ("prefill_tokens", c_uint64),
        ("cached_tokens", c_uint64),
        ("disk_tokens", c_uint64),
        ("decode_tokens", c_uint64),
        ("recomputed_tokens", c_uint64),
        ("drafted_tokens", c_uint64),
        ("accepted_tokens", c_uint64),
        ("finished", c_uint64),
        ("preemptions", c_uint64),
        ("waiting", c_int32),
        ("prefilling", c_int32),
        ("running", c_int32),
        ("pages_total", c_int32),
        ("pages_free", c_int32),
        ("pages_cached", c_int32),
        ("page_size", c_int32),
        ("model_seconds", c_double),
        ("sample_seconds", c_double),
        ("host_seconds", c_double),
        ("step_seconds", c_double),
        ("failed_steps", c_uint64),
        ("candidate_rows", c_uint64),
        ("whole_rows", c_uint64),
        ("readback_bytes", c_uint64),
        ("overlapped_seconds", c_double),
        ("chained_steps", c_uint64),
        ("wasted_rows", c_uint64),
        ("graph_steps", c_uint64),
        ("graphs_given_up", c_char_p),
        ("chains_given_up", c_char_p),
        ("disk_dropped", c_uint64),
        ("disk_problem", c_char_p),
        ("state_slots", c_int32),
        ("state_slots_free", c_int32),
        ("state_snapshots", c_int32),
        ("images_encoded", c_uint64),
    )
