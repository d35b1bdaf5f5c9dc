"""Reference PrimFuncs of a mixture of experts: the choice of experts, and a linear of experts.

Axes: n rows, E experts, K experts of a row; slot i * K + k is the k-th expert of row i, in
ascending order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import cache
from typing import Any

from tvm import te, tirx
from tvm.script import tirx as T

from wherry.ops import ActivationSpec, ExpertLinearSpec, RouteSpec, SwiGLUSpec, script
from wherry.ops.tags import tag

from ..layers.activations import formula

LEAST = -3.0e38  # a value below every real score


@cache
def route(spec: RouteSpec) -> tirx.PrimFunc:
    """Return the PrimFunc that chooses the experts of each row.

    (logits [n, E], bias [E] if any) -> ids [n, K], weights [n, K], starts [E + 1], slots [n K], all
    float32 or int32. `slots` are all slots in the order of their experts; the slots of expert e are
    from starts[e] to starts[e + 1].
    """
    score, bias = spec.score, spec.bias
    groups, group_top = spec.groups, spec.group_top
    top_k, kept_groups, normalized = spec.top_k, spec.kept_groups, spec.normalized
    floor, added, scale, jitter = spec.floor, spec.added, spec.scale, spec.jitter
    count, size = spec.experts, spec.experts // groups

    @script.macro
    def find_scores(LOGITS, i, s, total):
        total[0] = T.float32(LEAST)
        for e in T.serial(count):
            total[0] = T.max(total[0], LOGITS[i, e])
        total[1] = T.float32(0)
        for e in T.serial(count):
            total[1] = total[1] + T.exp(LOGITS[i, e] - total[0])
        for e in T.serial(count):
            if score == "softmax":
                s[e] = T.exp(LOGITS[i, e] - total[0]) / total[1]
            else:
                s[e] = T.float32(1) / (T.float32(1) + T.exp(-LOGITS[i, e]))

    @script.macro
    def keep_groups(c, g, total):
        for j in T.serial(groups):
            total[0] = T.float32(LEAST)
            total[1] = T.float32(LEAST)
            for k in T.serial(size):
                total[1] = T.max(total[1], T.min(total[0], c[j * size + k]))
                total[0] = T.max(total[0], c[j * size + k])
            g[j] = total[0] + total[1] if group_top == 2 else total[0]
        for j in T.serial(groups):
            total[0] = T.float32(0)
            for k in T.serial(groups):
                if g[k] > g[j] or (g[k] == g[j] and k < j):
                    total[0] = total[0] + T.float32(1)
            if total[0] >= T.float32(kept_groups):
                for k in T.serial(size):
                    c[j * size + k] = T.float32(LEAST)

    @script.macro
    def choose(IDS, WEIGHTS, i, c, s, total, place):
        place[0] = 0
        total[1] = T.float32(0)
        for e in T.serial(count):
            total[0] = T.float32(0)
            for k in T.serial(count):
                if c[k] > c[e] or (c[k] == c[e] and k < e):
                    total[0] = total[0] + T.float32(1)
            if total[0] < T.float32(top_k) and place[0] < top_k:
                IDS[i, place[0]] = e
                WEIGHTS[i, place[0]] = s[e]
                total[1] = total[1] + s[e]
                place[0] = place[0] + 1
        for k in T.serial(top_k):
            if normalized:
                WEIGHTS[i, k] = (
                    WEIGHTS[i, k]
                    / T.max(total[1] + T.float32(added), T.float32(floor))
                    * T.float32(scale)
                )
            else:
                WEIGHTS[i, k] = WEIGHTS[i, k] * T.float32(scale)

    @script.macro
    def mix_sparsely(LOGITS, IDS, WEIGHTS, i, s, total, place):
        for e in T.serial(count):
            s[e] = LOGITS[i, e]
        for turn in T.serial(2):
            total[0] = T.float32(LEAST)
            for e in T.serial(count):
                if s[e] > total[0]:
                    total[0] = s[e]
                    place[turn] = e
            total[1] = T.float32(0)
            for e in T.serial(count):
                if s[e] > T.float32(LEAST) and (total[0] - s[e]) / T.max(
                    T.abs(LOGITS[i, e]), total[0]
                ) <= T.float32(2 * jitter):
                    total[1] = total[1] + T.exp(s[e] - total[0])
            WEIGHTS[i, turn] = T.float32(1) / total[1]
            s[place[turn]] = T.float32(LEAST)
        if place[0] > place[1]:
            total[0] = WEIGHTS[i, 0]
            WEIGHTS[i, 0] = WEIGHTS[i, 1]
            WEIGHTS[i, 1] = total[0]
        IDS[i, 0] = T.min(place[0], place[1])
        IDS[i, 1] = T.max(place[0], place[1])

    @script.macro
    def sort(IDS, STARTS, SLOTS, n):
        for e in T.serial(count + 1):
            STARTS[e] = 0
        for i, k in T.grid(n, top_k):
            STARTS[IDS[i, k] + 1] = STARTS[IDS[i, k] + 1] + 1
        for e in T.serial(count):
            STARTS[e + 1] = STARTS[e + 1] + STARTS[e]
        for i, k in T.grid(n, top_k):
            SLOTS[STARTS[IDS[i, k]]] = T.Cast("int32", i * top_k + k)
            STARTS[IDS[i, k]] = STARTS[IDS[i, k]] + 1
        for e in T.serial(count):  # starts[e] is now the begin of expert e + 1: shift back
            STARTS[count - e] = STARTS[count - 1 - e]
        STARTS[0] = 0

    @script.macro
    def body(LOGITS, BIAS, IDS, WEIGHTS, STARTS, SLOTS, n):
        for i in T.serial(n):
            with T.sblock("row"):
                T.reads()
                T.writes()
                s = T.sblock_alloc_buffer((count,), "float32")
                c = T.sblock_alloc_buffer((count,), "float32")
                g = T.sblock_alloc_buffer((groups,), "float32")
                total = T.sblock_alloc_buffer((2,), "float32")
                place = T.sblock_alloc_buffer((2,), "int32")
                if score == "sparsemixer":
                    mix_sparsely(LOGITS, IDS, WEIGHTS, i, s, total, place)
                else:
                    find_scores(LOGITS, i, s, total)
                    for e in T.serial(count):
                        c[e] = s[e] + BIAS[e] if bias else s[e]
                    if groups > 1:
                        keep_groups(c, g, total)
                    choose(IDS, WEIGHTS, i, c, s, total, place)
        with T.sblock("sort"):
            T.reads()
            T.writes()
            sort(IDS, STARTS, SLOTS, n)

    if bias:

        @script.prim_func(s_tir=True, private=True)
        def func(
            logits: T.handle,
            correction: T.Buffer((count,), "float32"),
            ids: T.handle,
            weights: T.handle,
            starts: T.Buffer((count + 1,), "int32"),
            slots: T.handle,
        ):
            n, all_slots = T.int64(), T.int64()
            LOGITS = T.match_buffer(logits, (n, count), "float32")
            IDS = T.match_buffer(ids, (n, top_k), "int32")
            WEIGHTS = T.match_buffer(weights, (n, top_k), "float32")
            SLOTS = T.match_buffer(slots, (all_slots,), "int32")
            body(LOGITS, correction, IDS, WEIGHTS, starts, SLOTS, n)

    else:

        @script.prim_func(s_tir=True, private=True)
        def func(
            logits: T.handle,
            ids: T.handle,
            weights: T.handle,
            starts: T.Buffer((count + 1,), "int32"),
            slots: T.handle,
        ):
            n, all_slots = T.int64(), T.int64()
            LOGITS = T.match_buffer(logits, (n, count), "float32")
            IDS = T.match_buffer(ids, (n, top_k), "int32")
            WEIGHTS = T.match_buffer(weights, (n, top_k), "float32")
            SLOTS = T.match_buffer(slots, (all_slots,), "int32")
            body(LOGITS, LOGITS, IDS, WEIGHTS, starts, SLOTS, n)

    return tag(func, "route", spec)


class Element:
    """Emits an element of an expert's weight from stored tensors [E, rows, ...]."""

    def __init__(self, scheme: Any, stored: Sequence[te.Tensor]) -> None:
        self.scheme, self.stored = scheme, stored

    def __call__(self, expert: Any, row: Any, column: Any) -> Any:
        """Return the element as a float32 expression."""
        return self.scheme.element([_ExpertMatrix(t, expert) for t in self.stored], row, column)


class _ExpertMatrix:
    """View of one expert's matrix in a tensor [E, rows, columns]."""

    def __init__(self, tensor: te.Tensor, expert: Any) -> None:
        self.tensor, self.expert = tensor, expert

    def __getitem__(self, index: tuple[Any, Any]) -> Any:
        return self.tensor[self.expert, index[0], index[1]]


def expert_linear(
    spec: Mapping[str, Any], scheme: Any, stored: Sequence[te.Tensor], dtype: str
) -> tirx.PrimFunc:
    """Return the PrimFunc that `ExpertLinearSpec` describes, computed in float32."""
    count, most, width = spec["experts"], spec["top_k"], spec["out_features"]
    columns, routed, combined = spec["in_features"], spec["routed"], spec["combined"]
    shared = routed and not combined
    n, all_slots = te.var("n", "int64"), te.var("s", "int64")
    x = te.placeholder((n if shared else all_slots, columns), dtype, "x")
    ids = te.placeholder((n, most), "int32", "ids")
    order = [te.placeholder((count + 1,), "int32", "starts")]
    order.append(te.placeholder((te.var("t", "int64"),), "int32", "slots"))
    weights = te.placeholder((n, most), "float32", "weights")
    bias = te.placeholder((count, width), dtype, "bias")
    element = Element(scheme, stored)

    def expert(slot: Any) -> Any:
        return ids[slot // most, slot % most] if routed else slot % most

    def plus_bias(y: Any, slot: Any, o: Any) -> Any:
        return y + bias[expert(slot), o].astype("float32") if spec["bias"] else y

    k = te.reduce_axis((0, columns), "k")
    rows = n * most if shared else all_slots
    y = te.compute(
        (rows, width),
        lambda s, o: te.sum(
            x[s // most if shared else s, k].astype("float32") * element(expert(s), o, k), k
        ),
        "y",
    )
    if spec["gate"]:
        f = width // 2
        z = te.compute(
            (rows, f),
            lambda s, o: _gated(
                spec, plus_bias(y[s, o], s, o), plus_bias(y[s, o + f], s, o + f)
            ).astype(dtype),
            "z",
        )
    elif combined:
        e = te.reduce_axis((0, most), "e")
        z = te.compute(
            (n, width),
            lambda i, o: te.sum(
                weights[i, e] * plus_bias(y[i * most + e, o], i * most + e, o), e
            ).astype(dtype),
            "z",
        )
    else:
        z = te.compute((rows, width), lambda s, o: plus_bias(y[s, o], s, o).astype(dtype), "z")
    args = [x, *([ids, *order] if routed else []), *([weights] if combined else [])]
    args += [*([bias] if spec["bias"] else []), *stored, z]
    func = te.create_prim_func(args).without_attr("global_symbol")
    return tag(func, "expert_linear", dict(spec))


@cache
def gate(spec: ExpertLinearSpec, dtype: str) -> tirx.PrimFunc:
    """Return the PrimFunc (y dtype [n, 2 width]) -> dtype [n, width] of a spec's gate.

    It is for experts whose two halves are computed apart.
    """
    n, width, fields = te.var("n", "int64"), spec.width, asdict(spec)
    y = te.placeholder((n, 2 * width), dtype, "y")

    def value(s: Any, o: Any) -> Any:
        both = (y[s, o].astype("float32"), y[s, o + width].astype("float32"))
        return _gated(fields, *both).astype(dtype)

    z = te.compute((n, width), value, "z")
    func = te.create_prim_func([y, z]).without_attr("global_symbol")
    if spec.gate == "silu":
        return tag(func, "swiglu", SwiGLUSpec(dim=width))
    if spec.gate == "gelu_tanh":
        return tag(func, "activation", ActivationSpec(dim=width, kind="gelu_tanh", gated=True))
    return func


def _gated(spec: Mapping[str, Any], gate: Any, up: Any) -> Any:
    if spec["gate"] == "silu":
        return gate * tirx.sigmoid(gate) * up
    if spec["gate"] == "gelu_tanh":
        return formula(gate, "gelu_tanh") * up
    limit, alpha = (tirx.const(spec[name], "float32") for name in ("limit", "alpha"))
    gate = tirx.min(gate, limit)
    up = tirx.max(tirx.min(up, limit), -limit)
    return gate * tirx.sigmoid(gate * alpha) * (up + tirx.const(1, "float32"))
