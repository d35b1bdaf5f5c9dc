"""Records of the C ABI from and to Python's, for cores that are written in Python."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import fields

from wherry.runtime.core import records
from wherry.runtime.core.abi import NUMBERS
from wherry.runtime.core.interface import Event, Finish, Records, SamplingParams

_NUMBERS = {
    name for name, kind in (entry[:2] for entry in records.Params._fields_) if kind in NUMBERS
}
_LISTS = ("stop_ids", "dry_breakers", "allowed", "prediction", "source")


class CMask:
    """The grammar of a request in the form of C, which its core owns and must release."""

    def __init__(self, record: records.Mask) -> None:
        # a copy: the record of the caller lives as long as the call
        self.record = records.Mask.from_buffer_copy(record)

    def mask(self, stop_ids: Sequence[int]) -> records.Mask:
        return self.record


def params_of(given: records.Params) -> SamplingParams:
    """Parameters as a request of Python has them."""
    sampling = {
        f.name: _number(getattr(given, f.name))
        for f in fields(SamplingParams)
        if f.name in _NUMBERS
    }
    for name in _LISTS:
        sampling[name] = tuple(getattr(given, name)[: getattr(given, f"n_{name}")])
    ids, values = given.bias_ids[: given.n_bias], given.bias_values[: given.n_bias]
    sampling["bias"] = dict(zip(ids, map(_number, values), strict=True))
    words, at = [], 0
    for length in given.bad_word_lengths[: given.n_bad_words]:
        words.append(tuple(given.bad_words[at : at + length]))
        at += length
    sampling["bad_words"] = tuple(words)
    return SamplingParams(**sampling, grammar=CMask(given.mask.contents) if given.mask else None)


def _number(value):
    """A float32 as the shortest decimal number that gives it."""
    return float(f"{value:.6g}") if isinstance(value, float) else value


def records_of(events: Sequence[Event]) -> Records:
    """Events as the C ABI has them; the embeddings live as long as the result."""
    array = (records.Event * max(len(events), 1))()
    kept, error = [], b""
    for record, event in zip(array, events, strict=False):
        for name in ("id", "token", "finish", "logprob", "prompt", "cached_tokens"):
            setattr(record, name, getattr(event, name))
        for name in ("drafted_tokens", "accepted_tokens"):
            setattr(record, name, getattr(event, name))
        for name in ("queue_seconds", "prefill_seconds", "decode_seconds"):
            setattr(record, name, getattr(event, name))
        record.n_top = len(event.top)
        for i, (token, logprob) in enumerate(event.top):
            record.top_ids[i], record.top_logprobs[i] = token, logprob
        if event.embedding:
            n = len(event.embedding) // 4
            kept.append((ctypes.c_float * n).from_buffer_copy(event.embedding))
            record.embedding, record.n_embedding = kept[-1], n
        if event.finish == Finish.ERROR:
            error = event.error.encode()
    array.kept = kept
    return Records(array, len(events), error)
