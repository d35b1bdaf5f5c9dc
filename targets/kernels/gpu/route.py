"""Chooses experts on GPUs: one block per row; then one block per expert finds its slots.

An expert is chosen if fewer than K experts have a higher score. Every thread that needs a sum or a
maximum over experts loops over all of them, in ascending order: there are some hundreds in shared
memory, and redundant computation needs no barrier.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tvm.script import tirx as T
from tvm.tirx import PrimFunc

from wherry.ops import RouteSpec

from . import emit as e
from .limits import GpuLimits

LEAST = -3.0e38  # a value below every real score
SORTED_FROM = 4  # slots per expert from which kernels of `experts` read sorted slots
_SORT_THREADS = 128


def gemv_slots(n: Any, experts: int, top_k: int) -> Any:
    """Return whether each slot has its own GEMV blocks, because experts have small batches."""
    return n * top_k <= max(SORTED_FROM * experts, 8 * top_k)


def gemv_slots_on_tensor_cores(n: Any, experts: int, top_k: int) -> Any:
    """Return whether slots have their own GEMV blocks in `tensor_cores/experts`.

    Its GEMM reads shared weights once. With one slot per four experts the GEMV reads an eighth of
    the weights twice, which takes as long as the launches that it saves.
    """
    return n * top_k <= max(experts // SORTED_FROM, top_k)


def route(spec: RouteSpec, limits: GpuLimits) -> PrimFunc:
    """Return the PrimFunc that chooses experts and sorts slots.

    (logits [n, E], bias [E] if the spec has one, ids, weights [n, K], starts [E + 1], slots [n K])
    """
    count, k = spec.experts, spec.top_k
    threads = limits.block_for(count)
    parameters: list[e.Parameter] = [
        ("logits", ("n", count), "float32"),
        *([("bias", (count,), "float32")] if spec.bias else []),
        ("ids", ("n", k), "int32"),
        ("weights", ("n", k), "float32"),
        ("starts", (count + 1,), "int32"),
        ("slots", ("s",), "int32"),
    ]

    def emit(b: dict[str, Any], sizes: dict[str, Any]) -> None:
        n = sizes["n"]
        e.launch((n,), threads, lambda row, t: _Row(spec, b, threads, row, t).emit())
        few = gemv_slots_on_tensor_cores if limits.tensor_cores else gemv_slots
        sorting = min(_SORT_THREADS, limits.threads_per_block)
        e.launch_if(
            T.Not(few(n, count, k)),
            lambda: e.launch((count,), sorting, lambda x, t: _sort(spec, b, sorting, n, x, t)),
        )

    return e.prim_func(parameters, emit)


class _Row:
    """Emits the choice of experts for one row, by one block."""

    def __init__(
        self, spec: RouteSpec, b: dict[str, Any], threads: int, row: Any, thread: Any
    ) -> None:
        self.spec, self.b, self.threads, self.row, self.thread = spec, b, threads, row, thread
        self.scores, self.choice = (e.shared((spec.experts,)) for _ in range(2))

    def emit(self) -> None:
        """Emit the computation of expert ids and weights from the row's logits."""
        self._each(lambda i: T.buffer_store(self.scores, self.b["logits"][self.row, i], [i]))
        if self.spec.score == "sparsemixer":
            self._mix()
            return
        self._find_scores()
        if self.spec.groups > 1:
            self._reject_groups()
        self._choose()

    def _each(self, emit: Callable[[Any], None]) -> None:
        """Emit `emit(expert)` for all experts, distributed over threads, and a barrier."""
        e.over(self.spec.experts, self.threads, self.thread, emit)
        e.barrier()

    def _fold(self, start: float, combine: Callable[[Any, Any], Any]) -> Any:
        """Emit combine(... combine(start, 0) ..., E - 1); every thread gets the result."""
        total = e.Variable(T.float32(start))
        with T.serial(self.spec.experts) as i:
            total.set(combine(total.value, i))
        return total.value

    def _find_scores(self) -> None:
        """Emit scores in the place of logits, and the scores by which experts are chosen."""
        one, spec = T.float32(1), self.spec
        if spec.score == "softmax":
            largest = self._fold(LEAST, lambda m, i: T.max(m, self.scores[i]))
            self._each(lambda i: T.buffer_store(self.choice, T.exp(self.scores[i] - largest), [i]))
            total = self._fold(0.0, lambda s, i: s + self.choice[i])
            self._each(lambda i: T.buffer_store(self.scores, self.choice[i] / total, [i]))
        else:

            def sigmoid(i: Any) -> None:
                minus = T.min(T.float32(0) - self.scores[i], T.float32(87))
                T.buffer_store(self.scores, one / (one + T.exp(minus)), [i])

            self._each(sigmoid)

        def choice(i: Any) -> None:
            value = self.scores[i] + self.b["bias"][i] if spec.bias else self.scores[i]
            T.buffer_store(self.choice, value, [i])

        self._each(choice)

    def _reject_groups(self) -> None:
        """Emit the lowest score for experts of rejected groups."""
        spec = self.spec
        size, groups = spec.experts // spec.groups, spec.groups
        of_groups = e.shared((groups,))

        def score(g: Any) -> None:
            first, second = e.Variable(T.float32(LEAST)), e.Variable(T.float32(LEAST))
            with T.serial(size) as k:
                x = e.let(self.choice[g * size + k])
                second.set(T.max(second.value, T.min(first.value, x)))
                first.set(T.max(first.value, x))
            total = first.value + second.value if spec.group_top == 2 else first.value
            T.buffer_store(of_groups, total, [g])

        e.over(groups, self.threads, self.thread, score)
        e.barrier()

        def drop(i: Any) -> None:
            own = e.let(i // size)
            before = e.Variable(T.int32(0))
            with T.serial(groups) as g:
                wins = T.Or(
                    of_groups[g] > of_groups[own], T.And(of_groups[g] == of_groups[own], g < own)
                )
                before.set(before.value + T.if_then_else(wins, T.int32(1), T.int32(0)))
            e.when(
                before.value >= spec.kept_groups,
                lambda: T.buffer_store(self.choice, T.float32(LEAST), [i]),
            )

        self._each(drop)

    def _choose(self) -> None:
        spec, one, none = self.spec, T.int32(1), T.int32(0)
        # Flags are floats, as all shared memory here: TVM merges arrays, and would have to cast
        # others.
        chosen = e.shared((spec.experts,))
        yes, no = T.float32(1), T.float32(0)

        def rank(i: Any) -> None:
            before, own = e.Variable(none), e.let(self.choice[i])
            with T.serial(spec.experts) as j:
                other = e.let(self.choice[j])
                wins = T.Or(other > own, T.And(other == own, j < i))
                before.set(before.value + T.if_then_else(wins, one, none))
            T.buffer_store(chosen, T.if_then_else(before.value < spec.top_k, yes, no), [i])

        self._each(rank)
        total = self._fold(
            0.0, lambda s, i: T.if_then_else(chosen[i] == yes, s + self.scores[i], s)
        )

        def put(i: Any) -> None:
            place = e.Variable(none)
            with T.serial(spec.experts) as j:
                before = T.if_then_else(j < i, chosen[j], no)
                place.set(place.value + T.Cast("int32", before))
            weight = self.scores[i]
            if spec.normalized:
                denominator = total + e.number(spec.added) if spec.added else total
                weight = weight / T.max(denominator, e.number(spec.floor))
            if spec.scale != 1.0:
                weight = weight * e.number(spec.scale)

            def store() -> None:
                T.buffer_store(self.b["ids"], i, [self.row, place.value])
                T.buffer_store(self.b["weights"], weight, [self.row, place.value])

            is_chosen = e.let(chosen[i])  # a copy, because a condition may not read shared memory
            # Comparisons with NaN are false, so a NaN has rank 0: the count of chosen experts is
            # checked, too.
            e.when(T.And(is_chosen == yes, place.value < spec.top_k), store)

        e.over(spec.experts, self.threads, self.thread, put)

    def _mix(self) -> None:
        """Emit the choice of experts by "sparsemixer", on every thread; the first one stores it."""
        spec, logits = self.spec, self.scores
        ids = [e.Variable(T.int32(-1)) for _ in range(2)]
        expert_weights = []
        for turn in range(2):
            first = ids[0].value if turn else T.int32(-1)
            largest = e.Variable(T.float32(LEAST))
            with T.serial(spec.experts) as i:
                x = e.let(T.if_then_else(i == first, T.float32(LEAST), logits[i]))
                ids[turn].set(T.if_then_else(x > largest.value, i, ids[turn].value))
                largest.set(T.max(largest.value, x))
            total = e.Variable(T.float32(0))
            with T.serial(spec.experts) as i:
                x = e.let(logits[i])
                size = T.max(T.max(x, T.float32(0) - x), largest.value)
                near = (largest.value - x) / size <= e.number(2 * spec.jitter)
                y = T.exp(T.min(x - largest.value, T.float32(0)))
                total.set(T.if_then_else(T.And(i != first, near), total.value + y, total.value))
            expert_weights.append(e.let(T.float32(1) / total.value))

        def store() -> None:
            chosen = [e.let(T.max(own.value, 0)) for own in ids]
            behind = e.let(T.if_then_else(chosen[0] > chosen[1], T.int32(1), T.int32(0)))
            for turn in range(2):
                at = 1 - behind if turn else behind
                T.buffer_store(self.b["ids"], chosen[turn], [self.row, at])
                T.buffer_store(self.b["weights"], expert_weights[turn], [self.row, at])

        e.when(self.thread == 0, store)


def _sort(
    spec: RouteSpec, b: dict[str, Any], threads: int, n: Any, expert: Any, thread: Any
) -> None:
    """Emit starts[expert] and the expert's slots, ascending: each thread scans a part of them."""
    count, k = spec.experts, spec.top_k
    # per thread: count of slots of earlier experts, and of this expert
    slot_counts = e.shared((2 * threads,), "int32")
    size = n * k
    part = e.let(T.truncdiv(size + (threads - 1), T.int32(threads)))
    first = e.let(thread * part)
    own = e.let(T.max(T.min(size - first, part), 0))

    def each(visit: Callable[[Any, Any], None]) -> None:
        with T.serial(own) as i:
            slot = e.let(first + i)
            visit(slot, e.let(b["ids"][e.div(slot, k), e.mod(slot, k)]))

    before, mine = e.Variable(T.int32(0)), e.Variable(T.int32(0))

    def tally(_: Any, chosen: Any) -> None:
        for total, counts in ((before, chosen < expert), (mine, chosen == expert)):
            total.set(total.value + T.if_then_else(counts, T.int32(1), T.int32(0)))

    each(tally)
    T.buffer_store(slot_counts, before.value, [thread])
    T.buffer_store(slot_counts, mine.value, [threads + thread])
    e.barrier()
    start, place = e.Variable(T.int32(0)), e.Variable(T.int32(0))
    with T.serial(threads) as j:
        start.set(start.value + slot_counts[j])
        others = e.let(slot_counts[threads + j])
        place.set(place.value + T.if_then_else(j < thread, others, T.int32(0)))
    place.set(place.value + start.value)

    def put(slot: Any, chosen: Any) -> None:
        def store() -> None:
            T.buffer_store(b["slots"], slot, [place.value])
            place.set(place.value + 1)

        e.when(chosen == expert, store)

    each(put)
    e.when(thread == 0, lambda: T.buffer_store(b["starts"], start.value, [expert]))
    e.when(  # the last expert also stores the end of its slots
        T.And(thread == threads - 1, expert == count - 1),
        lambda: T.buffer_store(b["starts"], place.value, [count]),
    )
