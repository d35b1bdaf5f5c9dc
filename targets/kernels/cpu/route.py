"""Chooses the experts of each row, and sorts all slots by expert, on CPUs.

An expert is chosen if fewer than K experts have a higher score: independent comparisons, 16 at a
time. A loop then visits the chosen experts in ascending order. Even with NaN among the scores, K
valid experts are chosen.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tvm.script import tirx as T
from tvm.tirx import PrimFunc

from wherry.ops import RouteSpec

from . import vector as v
from .function import Parameter, prim_func
from .isa import Isa
from .tiles import PANEL, each_row

LEAST = -3.0e38  # a value below every real score
LANES = PANEL


def route(spec: RouteSpec, isa: Isa) -> PrimFunc:
    """Return the PrimFunc that chooses experts and sorts slots.

    (logits [n, E], bias [E] if the spec has one, ids, weights [n, K], starts [E + 1], slots [n K])
    """
    e, k = spec.experts, spec.top_k
    parameters: list[Parameter] = [
        ("logits", ("n", e), "float32"),
        *([("bias", (e,), "float32")] if spec.bias else []),
        ("ids", ("n", k), "int32"),
        ("weights", ("n", k), "float32"),
        ("starts", (e + 1,), "int32"),
        ("slots", ("s",), "int32"),
    ]

    def emit(b: dict[str, Any], sizes: dict[str, Any]) -> None:
        cost = e * e // 2 + 16 * e
        each_row(sizes["n"], cost, lambda row: _Row(spec, isa, b, row).emit())
        _sort(spec, b, sizes["n"])

    return prim_func(parameters, emit)


def _number(n: int) -> Any:
    return T.broadcast(T.int32(n), LANES)


class _Row:
    """Emits the choice of experts for one row."""

    def __init__(self, spec: RouteSpec, isa: Isa, b: dict[str, Any], row: Any) -> None:
        self.spec, self.isa, self.b, self.row = spec, isa, b, row
        # Experts are padded to whole vectors; padding has the lowest score and is never chosen.
        self.padded = -(-spec.experts // LANES) * LANES
        self.scores = _buffer(self.padded)
        self.choice = _buffer(self.padded)

    def emit(self) -> None:
        """Emit the computation of expert ids and weights from the row's logits."""
        if self.spec.score == "sparsemixer":
            self._mix()
            return
        self._copy_logits(self.scores)
        self._find_scores()
        self._over(self._add_bias)
        if self.spec.groups > 1:
            self._reject_groups()
        self._choose()

    def _over(self, emit: Callable[[Any], None]) -> None:
        """Emit `emit(first)` for each 16-lane vector of scores, from expert `first` on."""
        with T.serial(self.padded // LANES) as i, T.sblock("scores"):
            T.reads()
            T.writes()
            emit(i * LANES)

    def _copy_logits(self, to: Any) -> None:
        e = self.spec.experts
        if self.padded > e:
            T.buffer_store(to, v.splat(LEAST, LANES), [v.span(self.padded - LANES, LANES)])
        with T.serial(e) as i:
            T.buffer_store(to, self.b["logits"][self.row, i], [i])

    def _largest(self, of: Any) -> Any:
        largest = _buffer(LANES)
        T.buffer_store(largest, v.splat(LEAST, LANES), [v.span(0, LANES)])

        def update(at: Any) -> None:
            new = v.maximum(largest[v.span(0, LANES)], v.let(of[v.span(at, LANES)]))
            T.buffer_store(largest, new, [v.span(0, LANES)])

        self._over(update)
        return v.max_lanes(largest[v.span(0, LANES)], LANES)

    def _find_scores(self) -> None:
        """Emit scores = softmax or sigmoid of the logits, in place."""
        one, zero, place = v.splat(1.0, LANES), v.splat(0.0, LANES), v.span(0, LANES)
        fma = self.isa.fma
        if self.spec.score == "sigmoid":

            def sigmoid(at: Any) -> None:
                x = self.scores[v.span(at, LANES)]
                y = one / (one + v.exp(zero - x, LANES, fma))
                T.buffer_store(self.scores, y, [v.span(at, LANES)])

            self._over(sigmoid)
            return
        largest = self._largest(self.scores)
        total = _buffer(LANES)
        T.buffer_store(total, zero, [place])

        def exponential(at: Any) -> None:
            x = v.let(self.scores[v.span(at, LANES)])
            y = v.exp(x - v.splat(largest, LANES), LANES, fma)
            y = v.let(T.Select(x > v.splat(LEAST, LANES), y, zero))
            T.buffer_store(self.scores, y, [v.span(at, LANES)])
            T.buffer_store(total, total[place] + y, [place])

        self._over(exponential)
        denominator = v.sum_lanes(total[place], LANES)

        def divide(at: Any) -> None:
            y = self.scores[v.span(at, LANES)] / v.splat(denominator, LANES)
            T.buffer_store(self.scores, y, [v.span(at, LANES)])

        self._over(divide)

    def _add_bias(self, at: Any) -> None:
        T.buffer_store(self.choice, self.scores[v.span(at, LANES)], [v.span(at, LANES)])
        with T.serial(T.max(T.min(LANES, self.spec.experts - at), 0)) as i:
            if self.spec.bias:
                value = self.scores[at + i] + self.b["bias"][at + i]
                T.buffer_store(self.choice, value, [at + i])
        with T.serial(T.max(LANES - T.max(self.spec.experts - at, 0), 0)) as i:
            T.buffer_store(self.choice, T.float32(LEAST), [at + LANES - 1 - i])

    def _reject_groups(self) -> None:
        """Emit the lowest score for experts of rejected groups."""
        spec = self.spec
        size, groups = spec.experts // spec.groups, spec.groups
        of_groups, two = _buffer(groups), _buffer(2)
        with T.serial(groups) as g:
            for i in (0, 1):
                T.buffer_store(two, T.float32(LEAST), [i])
            with T.serial(size) as k, T.sblock("group"):
                T.reads()
                T.writes()
                x = v.let(self.choice[g * size + k])
                T.buffer_store(two, T.max(two[1], T.min(two[0], x)), [1])
                T.buffer_store(two, T.max(two[0], x), [0])
            total = two[0] + two[1] if spec.group_top == 2 else two[0]
            T.buffer_store(of_groups, total, [g])
        with T.serial(groups) as g, T.sblock("keep"):
            T.reads()
            T.writes()
            before = T.sblock_alloc_buffer((1,), "int32")
            T.buffer_store(before, T.int32(0), [0])
            with T.serial(groups) as k:
                wins = T.Or(of_groups[k] > of_groups[g], T.And(of_groups[k] == of_groups[g], k < g))
                T.buffer_store(before, before[0] + T.Select(wins, T.int32(1), T.int32(0)), [0])
            with T.If(before[0] >= spec.kept_groups), T.Then(), T.serial(size) as k:
                T.buffer_store(self.choice, T.float32(LEAST), [g * size + k])

    def _choose(self) -> None:
        spec = self.spec
        ranks = T.sblock_alloc_buffer((self.padded,), "int32")
        self._over(lambda at: self._rank(ranks, at))
        place = T.sblock_alloc_buffer((1,), "int32")
        total = _buffer(1)
        T.buffer_store(place, T.int32(0), [0])
        T.buffer_store(total, T.float32(0), [0])
        ids, weights, row = self.b["ids"], self.b["weights"], self.row
        # Comparisons with NaN are false, so a NaN has rank 0: the count of chosen experts is
        # checked, too.
        with (
            T.serial(spec.experts) as e,
            T.If(T.And(ranks[e] < spec.top_k, place[0] < spec.top_k)),
            T.Then(),
        ):
            T.buffer_store(ids, T.Cast("int32", e), [row, place[0]])
            T.buffer_store(weights, self.scores[e], [row, place[0]])
            T.buffer_store(total, total[0] + self.scores[e], [0])
            T.buffer_store(place, place[0] + 1, [0])
        with T.serial(spec.top_k) as k:
            weight = weights[row, k]
            if spec.normalized:
                denominator = total[0] + T.float32(spec.added) if spec.added else total[0]
                weight = weight / T.max(denominator, T.float32(spec.floor))
            if spec.scale != 1.0:
                weight = weight * T.float32(spec.scale)
            T.buffer_store(weights, weight, [row, k])

    def _rank(self, ranks: Any, at: Any) -> None:
        """Emit the rank of each expert of a vector: the number of experts that precede it."""
        own = v.let(self.choice[v.span(at, LANES)])
        indices = v.let(T.Cast(v.int_type(LANES), T.ramp(T.int32(0), T.int32(1), LANES)))
        count = T.sblock_alloc_buffer((LANES,), "int32")
        place = v.span(0, LANES)
        T.buffer_store(count, _number(0), [place])
        with T.serial(self.spec.experts) as e, T.sblock("other"):
            T.reads()
            T.writes()
            other = v.let(v.splat(self.choice[e], LANES))
            behind = indices > T.broadcast(T.Cast("int32", e - at), LANES)
            one, zero = _number(1), _number(0)
            equal = T.Select(behind, one, zero)
            won = T.Select(other > own, one, T.Select(other == own, equal, zero))
            T.buffer_store(count, count[place] + won, [place])
        T.buffer_store(ranks, count[place], [v.span(at, LANES)])

    def _mix(self) -> None:
        """Emit the choice of experts by the method "sparsemixer", one expert after the other."""
        spec, row = self.spec, self.row
        self._copy_logits(self.scores)
        chosen = T.sblock_alloc_buffer((2,), "int32")
        expert_weights = _buffer(2)  # weights of the two chosen experts
        for turn in (0, 1):
            largest = self._largest(self.scores)
            total = _buffer(1)
            T.buffer_store(total, T.float32(0), [0])
            T.buffer_store(chosen, T.int32(spec.experts), [turn])
            with T.serial(spec.experts) as e, T.sblock("mix"):
                T.reads()
                T.writes()
                x = v.let(self.scores[e])
                first = T.And(x == largest, chosen[turn] == spec.experts)
                with T.If(first), T.Then():
                    T.buffer_store(chosen, T.Cast("int32", e), [turn])
                size = T.max(T.abs(self.b["logits"][row, e]), largest)
                near = (largest - x) / size <= T.float32(2 * spec.jitter)
                with T.If(T.And(x > T.float32(LEAST), near)), T.Then(), T.sblock("near"):
                    T.reads()
                    T.writes()
                    y = v.exp(x - largest, 1, self.isa.fma)
                    T.buffer_store(total, total[0] + y, [0])
            T.buffer_store(expert_weights, T.float32(1) / total[0], [turn])
            # If all scores are NaN, no comparison finds an expert: clamp to a valid one.
            T.buffer_store(chosen, T.min(chosen[turn], T.int32(spec.experts - 1)), [turn])
            T.buffer_store(self.scores, T.float32(LEAST), [chosen[turn]])
        behind = v.let(T.Select(chosen[0] > chosen[1], T.int32(1), T.int32(0)))
        for turn in (0, 1):
            at = 1 - behind if turn else behind
            T.buffer_store(self.b["ids"], chosen[turn], [row, at])
            T.buffer_store(self.b["weights"], expert_weights[turn], [row, at])


def _buffer(size: int) -> Any:
    return T.sblock_alloc_buffer((size,), "float32")


def _sort(spec: RouteSpec, b: dict[str, Any], n: Any) -> None:
    """Emit `starts` and `slots` by a counting sort, which is stable."""
    e, k = spec.experts, spec.top_k
    ids, starts, slots = b["ids"], b["starts"], b["slots"]
    with T.sblock("sort"):
        T.reads()
        T.writes()
        with T.serial(e + 1) as i:
            T.buffer_store(starts, T.int32(0), [i])
        with T.grid(n, k) as (i, j), T.sblock("count"):
            T.reads()
            T.writes()
            expert = v.let(ids[i, j])
            T.buffer_store(starts, starts[expert + 1] + 1, [expert + 1])
        with T.serial(e) as i:
            T.buffer_store(starts, starts[i + 1] + starts[i], [i + 1])
        with T.grid(n, k) as (i, j), T.sblock("deal"):
            T.reads()
            T.writes()
            expert = v.let(ids[i, j])
            place = v.let(starts[expert])
            T.buffer_store(slots, T.Cast("int32", i * k + j), [place])
            T.buffer_store(starts, place + 1, [expert])
        with T.serial(e) as i:  # starts[e] is now the begin of expert e + 1: shift back
            T.buffer_store(starts, starts[e - 1 - i], [e - i])
        T.buffer_store(starts, T.int32(0), [0])
