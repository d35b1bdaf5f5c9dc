"""ctypes binding of libwherry. Every foreign call releases the GIL."""

from __future__ import annotations

import ctypes
import json
from collections.abc import Callable, Mapping, Sequence, Sized
from ctypes import byref, c_float, c_size_t
from ctypes import c_void_p as handle
from dataclasses import fields
from itertools import chain
from pathlib import Path
from typing import Any, TypeVar

from wherry.errors import ArtifactError, ResourceError, UsageError, WherryError

from . import records
from .abi import ABI_VERSION, NUMBERS, declare, int32s
from .interface import CoreStats, Event, Finish, Records, SamplingParams, TopTokens

V = TypeVar("V", bound=Sized)
EVENT_BATCH = 256  # number of events that one call may return

_UNKNOWN, _NO_SPACE = -2, -10
_ERRORS: dict[int, type[WherryError]] = {
    -1: UsageError,  # the C status WHERRY_INVALID_ARGUMENT
    _UNKNOWN: ArtifactError,
    -3: ResourceError,  # the C status WHERRY_OUT_OF_MEMORY
    -4: ArtifactError,  # the C status WHERRY_INCOMPATIBLE
    _NO_SPACE: ResourceError,
}  # the other statuses, WHERRY_BUSY and WHERRY_INTERNAL, mean bugs of Wherry: plain WherryError


def bind(library: ctypes.CDLL) -> ctypes.CDLL:
    """Declare the signatures of the C ABI's functions on an opened libwherry.

    Raises:
        ArtifactError: libwherry has another version of the ABI.
    """
    if not hasattr(library, "wherry_abi_version"):
        # a library without `wherry_abi_version` is of version 1, whose functions begin with core_
        version = 1
    else:
        version = library.wherry_abi_version()
    if version != ABI_VERSION:
        raise ArtifactError(
            f"{library._name} speaks version {version} of the core's ABI, this runtime version "
            f"{ABI_VERSION}. Install wherry again, or build the core: cmake --workflow dev"
        )
    declare(library)
    return library


class NativeCore:
    """`Core` over libwherry: one model, one engine.

    Args:
        api: the result of `bind`.
        library: the compiled model's library.
        weights: the folder that contains tensor-cache.json.
        device: "cpu" or "<kind>:<index>".
        options: options of wherry_model_load, such as "threads", "pack_dir", "cuda_graphs".
        config: the configuration that wherry_engine_create takes.
        draft: library and weights of a draft model, or None.

    Raises:
        ArtifactError: the library or the weights do not match.
        ResourceError: there is not enough memory, or disk for packed weights.
        UsageError: an option is out of range.
    """

    def __init__(
        self,
        api: ctypes.CDLL,
        library: Path,
        weights: Path,
        device: str,
        options: Mapping[str, Any],
        config: Mapping[str, Any],
        draft: tuple[Path, Path] | None = None,
    ) -> None:
        self._api = api
        self._model, self._draft, self._engine = handle(), handle(), handle()
        self._events = (records.Event * EVENT_BATCH)()
        self._arrays = _Arrays()
        try:
            self._load(library, weights, device, options, self._model)
            if draft is not None:
                self._load(*draft, device, options, self._draft)
            self.metadata: Mapping[str, Any] = json.loads(api.wherry_model_metadata(self._model))
            settings = json.dumps(config).encode()
            engine = byref(self._engine)
            self._call("wherry_engine_create", self._model, self._draft, settings, engine)
        except BaseException:
            self._free_models()
            raise

    def _load(
        self, library: Path, weights: Path, device: str, options: Mapping[str, Any], into: handle
    ) -> None:
        paths = (str(library.absolute()).encode(), str(weights.absolute()).encode())
        encoded = json.dumps(options).encode()
        self._call("wherry_model_load", *paths, device.encode(), encoded, byref(into))

    def _free_models(self) -> None:
        for model in (self._model, self._draft):
            if model:
                self._api.wherry_model_free(model)
                model.value = None

    def _call(self, name: str, *arguments: Any) -> None:
        status = getattr(self._api, name)(*arguments)
        if status:
            raise self._error(name, status)

    def _last_error(self) -> str:
        return (self._api.wherry_last_error() or b"").decode(errors="replace")

    def _error(self, name: str, status: int) -> WherryError:
        message = self._last_error() or f"{name} failed with status {status}"
        if status == _NO_SPACE:  # only the cache folder is written to, so that it is the full disk
            message += (
                ". Make room (wherry cache prune), or choose another disk: export WHERRY_CACHE=DIR"
            )
        return _ERRORS.get(status, WherryError)(message)

    def start(self) -> None:
        """Start the engine's thread; implements `Core.start`."""
        self._call("wherry_engine_start", self._engine)

    def add(self, request_id: int, tokens: Sequence[int], params: SamplingParams) -> None:
        """Queue a request; implements `Core.add`."""
        prompt = self._arrays.of("prompt", tokens, int32s)
        packed = self._pack(params)
        self._call(
            "wherry_engine_add", self._engine, request_id, prompt, len(tokens), byref(packed)
        )

    def abort(self, request_id: int) -> None:
        """Abort a request; implements `Core.abort`."""
        status = self._api.wherry_engine_abort(self._engine, request_id)
        if status not in (0, _UNKNOWN):
            raise self._error("wherry_engine_abort", status)

    def add_record(self, request_id: int, tokens: Any, n: int, params: Any) -> None:
        """Queue a request by its C arrays; implements `Core.add_record`."""
        self._call("wherry_engine_add", self._engine, request_id, tokens, n, params)

    def wait(self, timeout_ms: int) -> Records:
        """Wait for events; implements `Core.wait`."""
        count = c_size_t()
        self._call(
            "wherry_engine_wait", self._engine, self._events, EVENT_BATCH, timeout_ms, byref(count)
        )
        failed = self._api.wherry_last_error() if count.value else None
        return Records(self._events, count.value, failed or b"")

    def wait_events(self, timeout_ms: int) -> list[Event]:
        """Wait for events as `wait`, and return copies of them."""
        return events_of(self.wait(timeout_ms))

    def wake(self) -> None:
        """Make a blocked `wait` return; implements `Core.wake`."""
        self._call("wherry_engine_wake", self._engine)

    def stats(self) -> CoreStats:
        """Return the counters; implements `Core.stats`."""
        raw = records.Stats(size=ctypes.sizeof(records.Stats))
        self._call("wherry_engine_stats", self._engine, byref(raw))
        values = {f.name: getattr(raw, f.name) for f in fields(CoreStats)}
        for reason in ("graphs_given_up", "chains_given_up", "disk_problem"):
            values[reason] = (getattr(raw, reason) or b"").decode(errors="replace")
        return CoreStats(**values)

    def reset(self) -> None:
        """Abort every request and clear the cache; implements `Core.reset`."""
        self._call("wherry_engine_reset", self._engine)

    def clear_cache(self) -> None:
        """Drop cached prefixes; implements `Core.clear_cache`."""
        self._call("wherry_engine_clear_cache", self._engine)

    def close(self) -> None:
        """Stop the engine's thread and free everything; implements `Core.close`."""
        if self._engine:
            self._api.wherry_engine_stop(self._engine)
            self._api.wherry_engine_destroy(self._engine)
            self._engine = handle()
        self._free_models()

    def _pack(self, params: SamplingParams) -> records.Params:
        packed = records.Params()
        self._api.wherry_params_init(byref(packed))
        for name in _SCALARS:
            setattr(packed, name, getattr(params, name))
        of = self._arrays.of
        for name in ("stop_ids", "dry_breakers", "allowed", "prediction", "source"):
            values = getattr(params, name)
            setattr(packed, name, of(name, values, int32s))
            setattr(packed, f"n_{name}", len(values))
        packed.bias_ids = of("bias_ids", params.bias, lambda bias: int32s(list(bias)))
        packed.bias_values = of("bias", params.bias, lambda b: (c_float * len(b))(*b.values()))
        packed.n_bias = len(params.bias)
        words = params.bad_words
        packed.bad_words = of("bad_words", words, lambda ws: int32s(list(chain(*ws))))
        packed.bad_word_lengths = of(
            "lengths", words, lambda ws: (c_size_t * len(ws))(*map(len, ws))
        )
        packed.n_bad_words = len(words)
        # set as the last field, because from here on the core owns the mask
        if params.grammar is not None:
            packed.mask = ctypes.pointer(params.grammar.mask(params.stop_ids))
        return packed


class _Arrays:
    """The C arrays of the last packed request, for reuse by the next one.

    All choices of a request have the very same values, and converting a hundred thousand of them
    holds the GIL for milliseconds.
    """

    def __init__(self) -> None:
        self._arrays: dict[str, tuple[Any, int, Any]] = {}

    def of(self, name: str, values: V, make: Callable[[V], Any]) -> Any:
        """Return `make(values)`, or the previous result if `values` is the same object, as long."""
        last, size, array = self._arrays.get(name, (None, 0, None))
        if last is not values or size != len(values):
            array = make(values)
            self._arrays[name] = values, len(values), array
        return array


def events_of(given: Records) -> list[Event]:
    """Return copies of events."""
    return [_read(given.events[i], given.error) for i in range(given.n)]


def _read(event: records.Event, error: bytes) -> Event:
    n = event.n_top
    top = TopTokens(_copied(event, "top_ids", n) + _copied(event, "top_logprobs", n)) if n else ()
    size = event.n_embedding * ctypes.sizeof(c_float)
    return Event(
        event.id,
        event.token,
        event.finish,
        event.logprob,
        top,
        error.decode(errors="replace") if event.finish == Finish.ERROR else "",
        bool(event.prompt),
        event.cached_tokens,
        event.drafted_tokens,
        event.accepted_tokens,
        event.queue_seconds,
        event.prefill_seconds,
        event.decode_seconds,
        ctypes.string_at(event.embedding, size) if size else b"",
    )


def _copied(event: records.Event, name: str, n: int) -> bytes:
    """Return a copy of the first n 4-byte numbers of a C array."""
    return ctypes.string_at(ctypes.addressof(event) + _OFFSETS[name], 4 * n)


_OFFSETS = {name: getattr(records.Event, name).offset for name in ("top_ids", "top_logprobs")}
# Fields that are a single number both in SamplingParams and in the C struct.
_SCALARS = tuple(
    name
    for name, kind in (entry[:2] for entry in records.Params._fields_)
    if kind in NUMBERS and name in {f.name for f in fields(SamplingParams)}
)
