"""Draws a token for each row from its candidates on the device, as input of the next step.

The result is a draft token: the host repeats the draw from the same candidates in double precision
(engine/sampling/candidates.h), and only the host's token counts. So float32 is enough here, and a
draw beyond the candidates may give any token.

A row of `how` has: the scale of its logits, its uniform random number in [0, 1), top_k (0: all),
top_p, min_p. A row of the result is the row of `packed` (candidates.py), followed by the token.
"""

from __future__ import annotations

from typing import Any

from tvm.script import tirx as T

from wherry.ops import ChoiceSpec

from ..kernel_set import FusedKernel
from . import emit as e
from .candidates import TAIL
from .limits import GpuLimits

HOW = 5  # float32 in each row of `how`

# candidates visited by rank; later ones have another order, see Ranking::kFirst of the engine
_HEAD = 64
_FLOOR = -100.0  # lower limit of exponents


def choice(spec: ChoiceSpec, limits: GpuLimits) -> FusedKernel:
    """Return the kernel (packed u32 [m, 2 K + 4], how f32 [m, 5], result u32 [m, 2 K + 5])."""
    columns = 2 * spec.count + TAIL
    threads = min(128, limits.threads_per_block)

    def emit(b: dict[str, Any], sizes: dict[str, Any]) -> None:
        e.launch((sizes["m"],), threads, lambda row, t: _row(b, row, t, spec.count, threads))

    func = e.prim_func(
        [
            ("packed", ("m", columns), "uint32"),
            ("how", ("m", HOW), "float32"),
            ("result", ("m", columns + 1), "uint32"),
        ],
        emit,
    )
    return FusedKernel(compute=func)


def _float(bits: Any) -> Any:
    return T.reinterpret("float32", bits)


def _row(b: dict[str, Any], row: Any, thread: Any, count: int, threads: int) -> None:
    packed, how, result = b["packed"], b["how"], b["result"]
    weights = e.shared((count,))
    scale = e.let(how[row, 0])
    best = e.let(_float(packed[row, count]))

    def weigh(i: Any) -> None:
        exponent = (_float(packed[row, count + i]) - best) * scale
        T.buffer_store(weights, T.exp(T.max(exponent, e.number(_FLOOR))), [i])

    e.over(count, threads, thread, weigh)
    e.over(
        2 * count + TAIL,
        threads,
        thread,
        lambda i: T.buffer_store(result, packed[row, i], [row, i]),
    )
    e.barrier()

    def draw() -> None:
        chosen = _drawn(packed, how, weights, row, count)
        T.buffer_store(result, packed[row, chosen], [row, 2 * count + TAIL])

    e.when(thread == 0, draw)


def _drawn(packed: Any, how: Any, weights: Any, row: Any, count: int) -> Any:
    """Emit the sampling stages in the order of the engine's sampler.

    Return the drawn token's rank.
    """
    candidate_count = e.let(T.Cast("int32", packed[row, 2 * count]))
    total = e.let(_float(packed[row, 2 * count + 2]))  # sum of exp over the whole row
    top_k, top_p, min_p = e.let(T.Cast("int32", how[row, 2])), how[row, 3], how[row, 4]
    cuts = T.Or(top_k > 0, T.Or(top_p < T.float32(1), min_p > T.float32(0)))
    some = e.let(T.Select(top_k > 0, T.min(top_k, candidate_count), candidate_count))
    most = e.let(T.Select(cuts, some, T.min(candidate_count, T.int32(_HEAD))))
    head = e.Variable(T.float32(0))
    with T.serial(most) as i:
        head.set(head.value + weights[i])
    target_mass = e.let(T.Select(top_k > 0, head.value, total) * top_p)

    kept, end, going = e.Variable(T.float32(0)), e.Variable(T.int32(0)), e.Variable(T.int32(1))
    with T.serial(most) as i:
        weight = e.let(weights[i])
        enough = T.And(top_p < T.float32(1), kept.value >= target_mass)
        stop = T.And(i > 0, T.Or(enough, weight < min_p))
        going.set(T.Select(stop, T.int32(0), going.value))
        kept.set(kept.value + T.Select(going.value > 0, weight, T.float32(0)))
        end.set(end.value + going.value)
    # whether the top-p cut is beyond the ranked candidates
    beyond = T.And(going.value > 0, top_p < T.float32(1))
    cut_mass = T.Select(beyond, T.max(kept.value, target_mass), kept.value)
    mass = T.Select(cuts, cut_mass, T.max(total, kept.value))

    rest, rank, done = (
        e.Variable(how[row, 1] * mass),
        e.Variable(T.int32(0)),
        e.Variable(T.int32(0)),
    )
    with T.serial(end.value) as i:
        weight = e.let(weights[i])
        here = e.let(T.Cast("int32", T.And(done.value == 0, rest.value < weight)))
        rank.set(T.Select(here > 0, T.Cast("int32", i), rank.value))
        done.set(done.value + here)
        rest.set(rest.value - weight)
    # the rank to use if rounding passed the last candidate
    last = T.Select(cuts, T.max(end.value - 1, 0), T.int32(0))
    return e.let(T.Select(done.value > 0, rank.value, last))
