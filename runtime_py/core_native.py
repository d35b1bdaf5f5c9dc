"""ctypes binding of libwherry. Every foreign call releases the GIL."""

from __future__ import annotations

import ctypes
import json
from collections.abc import Mapping, Sequence
from ctypes import POINTER, byref, c_char_p, c_double, c_float, c_int, c_int32, c_size_t, c_uint64
from ctypes import c_void_p as handle
from pathlib import Path
from typing import Any

from wherry.errors import ArtifactError, ResourceError, UsageError, WherryError

from .core import MAX_TOP_LOGPROBS, CoreStats, Event, Finish, SamplingParams

ABI_VERSION = 1  # WHERRY_ABI_VERSION
EVENT_BATCH = 256  # events pulled in one call

_NOT_FOUND = -2
_ERRORS: dict[int, type[WherryError]] = {
    -1: UsageError,  # CORE_INVALID_ARGUMENT
    _NOT_FOUND: ArtifactError,
    -3: ResourceError,  # CORE_OUT_OF_MEMORY
    -4: ArtifactError,  # CORE_INCOMPATIBLE
}  # CORE_BUSY and CORE_INTERNAL are bugs of ours: plain WherryError


class _Params(ctypes.Structure):
    _fields_ = (
        ("max_tokens", c_int32),
        ("temperature", c_float),
        ("top_p", c_float),
        ("top_k", c_int32),
        ("min_p", c_float),
        ("repetition_penalty", c_float),
        ("presence_penalty", c_float),
        ("frequency_penalty", c_float),
        ("seed", c_uint64),
        ("stop_ids", POINTER(c_int32)),
        ("n_stop_ids", c_size_t),
        ("bias_ids", POINTER(c_int32)),
        ("bias_values", POINTER(c_float)),
        ("n_bias", c_size_t),
        ("top_logprobs", c_int32),
    )


class _Event(ctypes.Structure):
    _fields_ = (
        ("id", c_uint64),
        ("token", c_int32),
        ("finish", c_int32),
        ("logprob", c_float),
        ("n_top", c_int32),
        ("top_ids", c_int32 * MAX_TOP_LOGPROBS),
        ("top_logprobs", c_float * MAX_TOP_LOGPROBS),
    )


class _Stats(ctypes.Structure):
    _fields_ = (
        *((n, c_uint64) for n in ("steps", "prefill_tokens", "decode_tokens", "finished")),
        *((n, c_int32) for n in ("waiting", "prefilling", "running")),
        *((n, c_int32) for n in ("pages_total", "pages_free", "page_size")),
        *((n, c_double) for n in ("model_seconds", "sample_seconds")),
    )


_SIGNATURES: dict[str, tuple[Any, ...]] = {
    "core_model_load": (c_char_p, c_char_p, c_char_p, c_char_p, POINTER(handle)),
    "core_model_free": (handle,),
    "core_create": (handle, handle, c_char_p, POINTER(handle)),
    "core_destroy": (handle,),
    "core_reset": (handle,),
    "core_add": (handle, c_uint64, POINTER(c_int32), c_size_t, POINTER(_Params)),
    "core_abort": (handle, c_uint64),
    "core_start": (handle,),
    "core_stop": (handle,),
    "core_wait_events": (handle, POINTER(_Event), c_size_t, c_int, POINTER(c_size_t)),
    "core_wake": (handle,),
    "core_stats": (handle, POINTER(_Stats)),
}


def bind(library: ctypes.CDLL) -> ctypes.CDLL:
    """Declare the signatures of the ABI on an opened libwherry.

    Raises:
        ArtifactError: it speaks another version of the ABI.
    """
    library.core_version.restype = c_int
    found = library.core_version()
    if found != ABI_VERSION:
        raise ArtifactError(
            f"{library._name} speaks version {found} of the core's ABI, this runtime version "
            f"{ABI_VERSION}. Install wherry again, or build the core: cmake --workflow dev"
        )
    library.core_last_error.restype = c_char_p
    library.core_model_metadata.restype = c_char_p
    library.core_model_metadata.argtypes = (handle,)
    library.core_params_init.restype = None
    library.core_params_init.argtypes = (POINTER(_Params),)
    for name, arguments in _SIGNATURES.items():
        function = getattr(library, name)
        function.restype, function.argtypes = c_int, arguments
    return library


class NativeCore:
    """`Core` over libwherry: one model, one engine.

    Args:
        api: what `bind` returned.
        library: the compiled model's library.
        weights: folder of tensor-cache.json.
        device: "cpu" or "<kind>:<index>".
        options: core_model_load's options: "threads", "pack_dir".
        config: core_create's: "max_batch", "context", "kv_tokens", "prefill_chunk".

    Raises:
        ArtifactError: the library or the weights do not fit.
        ResourceError: there is not enough memory.
        UsageError: an option is out of range.
    """

    def __init__(
        self,
        api: ctypes.CDLL,
        library: Path,
        weights: Path,
        device: str,
        options: Mapping[str, Any],
        config: Mapping[str, int],
    ) -> None:
        self._api = api
        self._model, self._engine = handle(), handle()
        self._events = (_Event * EVENT_BATCH)()
        paths = (str(library.absolute()).encode(), str(weights.absolute()).encode())
        encoded = json.dumps(options).encode()
        self._call("core_model_load", *paths, device.encode(), encoded, byref(self._model))
        try:
            self.metadata: Mapping[str, Any] = json.loads(api.core_model_metadata(self._model))
            settings = json.dumps(config).encode()
            self._call("core_create", self._model, None, settings, byref(self._engine))
        except BaseException:
            api.core_model_free(self._model)
            raise

    def _call(self, name: str, *arguments: Any) -> None:
        status = getattr(self._api, name)(*arguments)
        if status:
            raise self._error(name, status)

    def _last_error(self) -> str:
        return (self._api.core_last_error() or b"").decode(errors="replace")

    def _error(self, name: str, status: int) -> WherryError:
        message = self._last_error() or f"{name} failed with status {status}"
        return _ERRORS.get(status, WherryError)(message)

    def start(self) -> None:
        """See Core."""
        self._call("core_start", self._engine)

    def add(self, request_id: int, tokens: Sequence[int], params: SamplingParams) -> None:
        """See Core."""
        prompt = (c_int32 * len(tokens))(*tokens)
        self._call("core_add", self._engine, request_id, prompt, len(tokens), byref(_pack(params)))

    def abort(self, request_id: int) -> None:
        """See Core."""
        status = self._api.core_abort(self._engine, request_id)
        if status not in (0, _NOT_FOUND):
            raise self._error("core_abort", status)

    def wait_events(self, timeout_ms: int) -> list[Event]:
        """See Core. One thread at a time: the array that the events are pulled into is reused."""
        count = c_size_t()
        self._call(
            "core_wait_events", self._engine, self._events, EVENT_BATCH, timeout_ms, byref(count)
        )
        return [self._read(self._events[i]) for i in range(count.value)]

    def _read(self, event: _Event) -> Event:
        n = event.n_top
        top = tuple(zip(event.top_ids[:n], event.top_logprobs[:n], strict=True)) if n else ()
        error = self._last_error() if event.finish == Finish.ERROR else ""
        return Event(event.id, event.token, event.finish, event.logprob, top, error)

    def wake(self) -> None:
        """See Core."""
        self._call("core_wake", self._engine)

    def stats(self) -> CoreStats:
        """See Core."""
        raw = _Stats()
        self._call("core_stats", self._engine, byref(raw))
        return CoreStats(**{field[0]: getattr(raw, field[0]) for field in _Stats._fields_})

    def reset(self) -> None:
        """See Core."""
        self._call("core_reset", self._engine)

    def close(self) -> None:
        """See Core."""
        if self._engine:
            self._api.core_stop(self._engine)
            self._api.core_destroy(self._engine)
            self._engine = handle()
        if self._model:
            self._api.core_model_free(self._model)
            self._model = handle()


def _pack(params: SamplingParams) -> _Params:
    stops, bias = params.stop_ids, params.bias
    return _Params(
        max_tokens=params.max_tokens,
        temperature=params.temperature,
        top_p=params.top_p,
        top_k=params.top_k,
        min_p=params.min_p,
        repetition_penalty=params.repetition_penalty,
        presence_penalty=params.presence_penalty,
        frequency_penalty=params.frequency_penalty,
        seed=params.seed,
        stop_ids=(c_int32 * len(stops))(*stops),
        n_stop_ids=len(stops),
        bias_ids=(c_int32 * len(bias))(*bias),
        bias_values=(c_float * len(bias))(*bias.values()),
        n_bias=len(bias),
        top_logprobs=params.top_logprobs,
    )
