"""GPU functions on logits and probabilities that WebLLM calls.

WebLLM's script allocates the arrays, in shapes of its own. Each row has one block.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tvm.script import tirx as T
from tvm.tirx import PrimFunc

from . import emit as e
from .limits import GpuLimits

_LEAST = -3.4e38  # logit of a masked token
_BITS = 31  # bits of a non-negative float32


def softmax(vocab: int, limits: GpuLimits) -> PrimFunc:
    """Return the PrimFunc of a softmax with temperature.

    (logits f32 [m, 1, vocab], temperatures f32 [m], probabilities f32 [m, 1, vocab])
    """
    threads = limits.threads_per_block

    def row(b: dict[str, Any], i: Any, t: Any) -> None:
        logits, result = b["logits"], b["probabilities"]
        scale = e.let(T.float32(1) / b["temperatures"][i])
        most = e.Variable(e.number(_LEAST))
        e.over(vocab, threads, t, lambda c: most.set(T.max(most.value, logits[i, 0, c])))
        best = _block_most(most.value, threads, t)

        def weight(c: Any) -> Any:
            return T.exp((logits[i, 0, c] - best) * scale)

        total = e.Variable(T.float32(0))
        e.over(vocab, threads, t, lambda c: total.set(total.value + weight(c)))
        (block_total,) = e.block_sums([total.value], threads, t)
        e.over(
            vocab, threads, t, lambda c: T.buffer_store(result, weight(c) / block_total, [i, 0, c])
        )

    parameters = [
        ("logits", ("m", 1, vocab), "float32"),
        ("temperatures", ("m",), "float32"),
        ("probabilities", ("m", 1, vocab), "float32"),
    ]
    return e.prim_func(parameters, _rows(row, "m", threads))


def sample_top_p(vocab: int, limits: GpuLimits) -> PrimFunc:
    """Return the PrimFunc that draws a token per row among the most likely tokens with mass top_p.

    (probabilities f32 [b, vocab], uniform f32 [m], rows i32 [m], top_p f32 [b], token i32 [m])

    Nothing is sorted: a radix select finds the least probability inside the nucleus, bit by bit, as
    integers of the same order; the token is at uniform * (mass of the nucleus), in the order of
    ids. All tokens with the least probability are inside.
    """
    threads = limits.threads_per_block
    part = -(-vocab // threads)  # neighbouring tokens that each thread sums

    def row(b: dict[str, Any], i: Any, t: Any) -> None:
        of = e.let(b["rows"][i])
        first, limit = e.let(t * part), e.Variable(T.uint32(0))

        def kept(c: Any, least: Any) -> Any:
            value = e.let(b["probabilities"][of, T.min(c, vocab - 1)])
            counts = T.And(c < vocab, T.reinterpret("uint32", value) >= least)
            return e.let(T.Select(counts, value, T.float32(0)))

        def mass(least: Any) -> Any:
            sum_ = e.Variable(T.float32(0))
            with T.serial(part) as k:
                sum_.set(sum_.value + kept(first + k, least))
            return sum_.value

        (total_mass,) = e.block_sums([mass(T.uint32(0))], threads, t)
        target_mass = e.let(total_mass * b["top_p"][of])
        with T.serial(_BITS) as bit:
            shift = T.Cast("uint32", _BITS - 1 - bit)
            more = e.let(T.bitwise_or(limit.value, T.shift_left(T.uint32(1), shift)))
            (mass_above,) = e.block_sums([mass(more)], threads, t)
            limit.set(T.Select(mass_above >= target_mass, more, limit.value))
        least = e.let(limit.value)
        sums = e.shared((threads,))
        T.buffer_store(sums, mass(least), [t])
        e.barrier()

        def draw() -> None:
            total = e.Variable(T.float32(0))
            with T.serial(threads) as k:
                total.set(total.value + sums[k])
            place = e.let(b["uniform"][i] * total.value)
            owner, before = _passed(threads, place, lambda k: sums[k], T.float32(0))
            token = e.Variable(T.int32(0))
            done = e.Variable(T.int32(0))
            with T.serial(part) as k:
                c = e.let(owner * part + k)
                value = kept(c, least)
                before.set(before.value + value)
                here = T.And(done.value == 0, value > T.float32(0))
                token.set(
                    T.Select(here, c, token.value)
                )  # the last token of the nucleus, if rounding leaves none
                done.set(T.Select(before.value > place, T.int32(1), done.value))
            T.buffer_store(b["token"], token.value, [i])

        e.when(t == 0, draw)

    parameters = [
        ("probabilities", ("b", vocab), "float32"),
        ("uniform", ("m",), "float32"),
        ("rows", ("m",), "int32"),
        ("top_p", ("b",), "float32"),
        ("token", ("m",), "int32"),
    ]
    return e.prim_func(parameters, _rows(row, "m", threads))


def _passed(
    count: int, limit: Any, value: Callable[[Any], Any], start: Any
) -> tuple[Any, e.Variable]:
    """Emit the search for the first of `count` values whose prefix sum passes `limit`.

    Returns its index, or the index of the last positive value if none passes; and the sum before
    it.
    """
    before, sum_ = e.Variable(start), e.Variable(start)
    at, done = e.Variable(T.int32(0)), e.Variable(T.int32(0))
    with T.serial(count) as k:
        own = e.let(value(k))
        here = T.And(done.value == 0, own > T.float32(0))
        before.set(T.Select(here, sum_.value, before.value))
        at.set(T.Select(here, T.Cast("int32", k), at.value))
        sum_.set(sum_.value + own)
        done.set(T.Select(sum_.value > limit, T.int32(1), done.value))
    return e.let(at.value), before


def bias(vocab: int, limits: GpuLimits) -> PrimFunc:
    """Return the PrimFunc that adds values to some logits in place.

    (logits f32 [m, vocab], rows i32 [k], ids i32 [k], values f32 [k])
    """

    def one(b: dict[str, Any], k: Any) -> None:
        place = [b["rows"][k], b["ids"][k]]
        T.buffer_store(b["logits"], b["logits"][tuple(place)] + b["values"][k], place)

    parameters = [
        ("logits", ("m", vocab), "float32"),
        ("rows", ("k",), "int32"),
        ("ids", ("k",), "int32"),
        ("values", ("k",), "float32"),
    ]
    return e.prim_func(parameters, _each(one, "k", limits.threads_per_block))


def penalty(vocab: int, limits: GpuLimits) -> PrimFunc:
    """Return the PrimFunc of presence, frequency and repetition penalties, in place.

    (logits f32 [b, vocab], sequences i32 [m], rows i32 [k], ids i32 [k], counts i32 [k], penalties
    f32 [m, 3]); the frequency penalty is multiplied by a token's count, the repetition penalty
    divides logits above 0 and multiplies others.
    """

    def one(b: dict[str, Any], k: Any) -> None:
        row = e.let(b["rows"][k])
        place = [b["sequences"][row], b["ids"][k]]
        of = b["penalties"]
        less = of[row, 0] + T.Cast("float32", b["counts"][k]) * of[row, 1]
        logit = e.let(b["logits"][tuple(place)] - less)
        factor = e.let(of[row, 2])
        T.buffer_store(
            b["logits"], T.Select(logit > T.float32(0), logit / factor, logit * factor), place
        )

    parameters = [
        ("logits", ("b", vocab), "float32"),
        ("sequences", ("m",), "int32"),
        ("rows", ("k",), "int32"),
        ("ids", ("k",), "int32"),
        ("counts", ("k",), "int32"),
        ("penalties", ("m", 3), "float32"),
    ]
    return e.prim_func(parameters, _each(one, "k", limits.threads_per_block))


def bitmask(vocab: int, limits: GpuLimits) -> PrimFunc:
    """Return the PrimFunc that masks the tokens whose bit is 0, in place.

    (logits f32 [b, vocab], rows i32 [m], mask i32 [b, ceil(vocab / 32)])
    """
    words, threads = -(-vocab // 32), limits.threads_per_block

    def row(b: dict[str, Any], i: Any, t: Any) -> None:
        of = e.let(b["rows"][i])

        def one(c: Any) -> None:
            word = T.reinterpret("uint32", b["mask"][of, e.div(c, 32)])
            bit = T.bitwise_and(T.shift_right(word, T.Cast("uint32", e.mod(c, 32))), T.uint32(1))
            e.when(
                bit == T.uint32(0),
                lambda: T.buffer_store(b["logits"], e.number(_LEAST), [of, c]),
            )

        e.over(vocab, threads, t, one)

    parameters = [
        ("logits", ("b", vocab), "float32"),
        ("rows", ("m",), "int32"),
        ("mask", ("b", words), "int32"),
    ]
    return e.prim_func(parameters, _rows(row, "m", threads))


Emit = Callable[[dict[str, Any], dict[str, Any]], None]


def _rows(row: Callable[[dict[str, Any], Any, Any], None], count: str, threads: int) -> Emit:
    """Return a function that emits a launch with one block per row."""

    def emit(b: dict[str, Any], sizes: dict[str, Any]) -> None:
        e.launch((sizes[count],), threads, lambda i, t: row(b, i, t))

    return emit


def _each(one: Callable[[dict[str, Any], Any], None], count: str, threads: int) -> Emit:
    """Return a function that emits a launch with one thread per element."""

    def emit(b: dict[str, Any], sizes: dict[str, Any]) -> None:
        n = sizes[count]

        def body(block: Any, t: Any) -> None:
            k = e.let(block * threads + t)
            e.when(k < n, lambda: one(b, k))

        e.launch((e.div(n + (threads - 1), threads),), threads, body)

    return emit


def _block_most(value: Any, threads: int, thread: Any) -> Any:
    """Emit the maximum of all threads' values; all threads get it."""
    values = e.shared((threads,))
    T.buffer_store(values, value, [thread])
    e.barrier()
    half = threads // 2
    while half:
        distance = half

        def join(distance: int = distance) -> None:
            larger = T.max(values[thread], values[thread + distance])
            T.buffer_store(values, larger, [thread])

        e.when(thread < distance, join)
        e.barrier()
        half //= 2
    most = e.let(values[0])
    e.barrier()
    return most
