"""Reference PrimFuncs of the operations with a recurrent state: slow, simple, portable.

As in `paged.py`, each has a tag, by which a target's kernel set may replace it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from tvm import tirx
from tvm.script import tirx as T

from wherry.ops import (
    DplrSpec,
    GatedDeltaSpec,
    LinearRecurrenceSpec,
    Mamba2Spec,
    MambaSpec,
    ShortConvSpec,
    script,
)
from wherry.ops.recurrent import L2_EPS
from wherry.ops.tags import tag

# Names of axes in this file: n rows, r sequences, c channels, h value heads, dk and dv.


def without(func: tirx.PrimFunc, *unused: int) -> tirx.PrimFunc:
    """Return `func` without the parameters at indices `unused`, which its body ignores."""
    params = [param for i, param in enumerate(func.params) if i not in unused]
    return tirx.PrimFunc(params, func.body, func.ret_type, func.attrs)


@cache
def short_conv(spec: ShortConvSpec) -> tirx.PrimFunc:
    """Return the PrimFunc of the causal convolution.

    (x float32 [n, c], sequences [n], query_indptr [r + 1], weight float32 [taps, c], bias float32
    [c] if the spec has it, slots [r], state float32 [slots, taps - 1, c] in place) -> [n, c]
    """
    c, taps, silu = spec.channels, spec.taps, spec.activation == "silu"
    has_bias = spec.bias

    @script.prim_func(s_tir=True, private=True)
    def func(
        x: T.handle,
        sequences: T.handle,
        query_indptr: T.handle,
        weight: T.Buffer((taps, c), "float32"),
        bias: T.Buffer((c,), "float32"),
        slots: T.handle,
        state: T.handle,
        out: T.handle,
    ):
        n, r, r1, count = T.int64(), T.int64(), T.int64(), T.int64()
        X = T.match_buffer(x, (n, c), "float32")
        T.match_buffer(sequences, (n,), "int32")
        PTR = T.match_buffer(query_indptr, (r1,), "int32")
        SLOT = T.match_buffer(slots, (r,), "int32")
        STATE = T.match_buffer(state, (count, taps - 1, c), "float32")
        Y = T.match_buffer(out, (n, c), "float32")
        for s, channel in T.grid(r, c):
            with T.sblock("channel"):
                T.reads()
                T.writes()
                window = T.sblock_alloc_buffer((taps,), "float32")
                total = T.sblock_alloc_buffer((1,), "float32")
                for j in T.serial(taps - 1):
                    window[j] = STATE[SLOT[s], j, channel]
                for after in T.serial(PTR[s + 1] - PTR[s]):
                    window[taps - 1] = X[PTR[s] + after, channel]
                    total[0] = bias[channel] if has_bias else T.float32(0)
                    for j in T.serial(taps):
                        total[0] = total[0] + window[j] * weight[j, channel]
                    if silu:
                        total[0] = total[0] * T.sigmoid(total[0])
                    Y[PTR[s] + after, channel] = total[0]
                    for j in T.serial(taps - 1):
                        window[j] = window[j + 1]
                for j in T.serial(taps - 1):
                    STATE[SLOT[s], j, channel] = window[j]

    return tag(func if has_bias else without(func, 4), "short_conv", spec)


@cache
def gated_delta(spec: GatedDeltaSpec) -> tirx.PrimFunc:
    """Return the PrimFunc of the gated delta rule.

    (qkv float32 [n, width], gates float32 [n, 2 h]: b, then a; query_indptr [r + 1], a_log and
    dt_bias float32 [h], slots [r], state float32 [slots, h, dk, dv] in place) -> [n, h * dv]. With
    a decay per channel, gates [n, h]: b; decays float32 [n, h * dk] follow, and there are neither
    a_log nor dt_bias.
    """
    h, dk, dv, width = spec.heads, spec.key_dim, spec.value_dim, spec.width
    group, keys = spec.heads // spec.key_heads, spec.key_heads * spec.key_dim
    channel = spec.channel_decay
    gate_width = h if channel else 2 * h

    @script.prim_func(s_tir=True, private=True)
    def func(
        qkv: T.handle,
        gates: T.handle,
        decays: T.handle,
        query_indptr: T.handle,
        a_log: T.Buffer((h,), "float32"),
        dt_bias: T.Buffer((h,), "float32"),
        slots: T.handle,
        state: T.handle,
        out: T.handle,
    ):
        n, r, r1, count = T.int64(), T.int64(), T.int64(), T.int64()
        X = T.match_buffer(qkv, (n, width), "float32")
        GATE = T.match_buffer(gates, (n, gate_width), "float32")
        DECAY = T.match_buffer(decays, (n, h * dk), "float32")
        PTR = T.match_buffer(query_indptr, (r1,), "int32")
        SLOT = T.match_buffer(slots, (r,), "int32")
        S = T.match_buffer(state, (count, h, dk, dv), "float32")
        Y = T.match_buffer(out, (n, h * dv), "float32")
        for s, head in T.grid(r, h):
            with T.sblock("head"):
                T.reads()
                T.writes()
                # lengths of q and k, softplus, decay, beta
                number = T.sblock_alloc_buffer((5,), "float32")
                delta = T.sblock_alloc_buffer((dv,), "float32")
                for after in T.serial(PTR[s + 1] - PTR[s]):
                    row = PTR[s] + after
                    number[0] = T.float32(L2_EPS)
                    number[1] = T.float32(L2_EPS)
                    for i in T.serial(dk):
                        number[0] = (
                            number[0]
                            + X[row, head // group * dk + i] * X[row, head // group * dk + i]
                        )
                        number[1] = (
                            number[1]
                            + X[row, keys + head // group * dk + i]
                            * X[row, keys + head // group * dk + i]
                        )
                    number[0] = T.rsqrt(number[0] * T.float32(dk))
                    number[1] = T.rsqrt(number[1])
                    if not channel:
                        number[2] = GATE[row, h + head] + dt_bias[head]
                        number[2] = T.max(number[2], T.float32(0)) + T.log1p(
                            T.exp(T.float32(0) - T.abs(number[2]))
                        )
                        number[3] = T.exp(T.float32(0) - T.exp(a_log[head]) * number[2])
                    number[4] = T.sigmoid(GATE[row, head])
                    for j in T.serial(dv):
                        delta[j] = T.float32(0)
                        for i in T.serial(dk):
                            S[SLOT[s], head, i, j] = S[SLOT[s], head, i, j] * (
                                DECAY[row, head * dk + i] if channel else number[3]
                            )
                            delta[j] = delta[j] + S[SLOT[s], head, i, j] * (
                                X[row, keys + head // group * dk + i] * number[1]
                            )
                        delta[j] = (X[row, 2 * keys + head * dv + j] - delta[j]) * number[4]
                        Y[row, head * dv + j] = T.float32(0)
                        for i in T.serial(dk):
                            S[SLOT[s], head, i, j] = S[SLOT[s], head, i, j] + delta[j] * (
                                X[row, keys + head // group * dk + i] * number[1]
                            )
                            Y[row, head * dv + j] = Y[row, head * dv + j] + S[
                                SLOT[s], head, i, j
                            ] * (X[row, head // group * dk + i] * number[0])

    unused = (4, 5) if channel else (2,)
    return tag(without(func, *unused), "gated_delta", spec)


@cache
def mamba(spec: MambaSpec) -> tirx.PrimFunc:
    """Return the PrimFunc of Mamba's selective scan.

    (x and steps float32 [n, c], bc float32 [n, 2 d], query_indptr [r + 1], constants float32
    [d + 1, c], slots [r], state float32 [slots, 1, d, c] in place) -> [n, c]
    """
    c, d = spec.channels, spec.state_dim

    @script.prim_func(s_tir=True, private=True)
    def func(
        x: T.handle,
        steps: T.handle,
        bc: T.handle,
        query_indptr: T.handle,
        constants: T.Buffer((d + 1, c), "float32"),
        slots: T.handle,
        state: T.handle,
        out: T.handle,
    ):
        n, r, r1, count = T.int64(), T.int64(), T.int64(), T.int64()
        X = T.match_buffer(x, (n, c), "float32")
        STEP = T.match_buffer(steps, (n, c), "float32")
        BC = T.match_buffer(bc, (n, 2 * d), "float32")
        PTR = T.match_buffer(query_indptr, (r1,), "int32")
        SLOT = T.match_buffer(slots, (r,), "int32")
        S = T.match_buffer(state, (count, 1, d, c), "float32")
        Y = T.match_buffer(out, (n, c), "float32")
        for s, channel in T.grid(r, c):
            with T.sblock("channel"):
                T.reads()
                T.writes()
                step = T.sblock_alloc_buffer((1,), "float32")
                for after in T.serial(PTR[s + 1] - PTR[s]):
                    row = PTR[s] + after
                    step[0] = T.max(STEP[row, channel], T.float32(0)) + T.log1p(
                        T.exp(T.float32(0) - T.abs(STEP[row, channel]))
                    )
                    Y[row, channel] = constants[d, channel] * X[row, channel]
                    for i in T.serial(d):
                        S[SLOT[s], 0, i, channel] = (
                            S[SLOT[s], 0, i, channel] * T.exp(constants[i, channel] * step[0])
                            + BC[row, i] * step[0] * X[row, channel]
                        )
                        Y[row, channel] = (
                            Y[row, channel] + S[SLOT[s], 0, i, channel] * BC[row, d + i]
                        )

    return tag(func, "mamba", spec)


@cache
def mamba2(spec: Mamba2Spec) -> tirx.PrimFunc:
    """Return the PrimFunc of Mamba-2's state space.

    (xbc float32 [n, width], steps float32 [n, h], query_indptr [r + 1], constants float32 [3, h],
    slots [r], state float32 [slots, h, state_dim, p] in place) -> [n, h * p]
    """
    h, p, d, width = spec.heads, spec.head_dim, spec.state_dim, spec.width
    inner, group = spec.inner, spec.heads // spec.groups
    least = float(spec.least_step)
    most = 3e38 if spec.most_step is None else float(spec.most_step)

    @script.prim_func(s_tir=True, private=True)
    def func(
        xbc: T.handle,
        steps: T.handle,
        query_indptr: T.handle,
        constants: T.Buffer((3, h), "float32"),
        slots: T.handle,
        state: T.handle,
        out: T.handle,
    ):
        n, r, r1, count = T.int64(), T.int64(), T.int64(), T.int64()
        X = T.match_buffer(xbc, (n, width), "float32")
        STEP = T.match_buffer(steps, (n, h), "float32")
        PTR = T.match_buffer(query_indptr, (r1,), "int32")
        SLOT = T.match_buffer(slots, (r,), "int32")
        S = T.match_buffer(state, (count, h, d, p), "float32")
        Y = T.match_buffer(out, (n, h * p), "float32")
        for s, head in T.grid(r, h):
            with T.sblock("head"):
                T.reads()
                T.writes()
                number = T.sblock_alloc_buffer((2,), "float32")  # step and decay
                for after in T.serial(PTR[s + 1] - PTR[s]):
                    row = PTR[s] + after
                    number[0] = STEP[row, head] + constants[1, head]
                    number[0] = T.max(number[0], T.float32(0)) + T.log1p(
                        T.exp(T.float32(0) - T.abs(number[0]))
                    )
                    number[0] = T.min(T.max(number[0], T.float32(least)), T.float32(most))
                    number[1] = T.exp(constants[0, head] * number[0])
                    for j in T.serial(p):
                        Y[row, head * p + j] = constants[2, head] * X[row, head * p + j]
                        for i in T.serial(d):
                            S[SLOT[s], head, i, j] = (
                                S[SLOT[s], head, i, j] * number[1]
                                + X[row, inner + head // group * d + i]
                                * number[0]
                                * X[row, head * p + j]
                            )
                            Y[row, head * p + j] = (
                                Y[row, head * p + j]
                                + S[SLOT[s], head, i, j]
                                * X[row, inner + (h // group + head // group) * d + i]
                            )

    return tag(func, "mamba2", spec)


@cache
def linear_recurrence(spec: LinearRecurrenceSpec) -> tirx.PrimFunc:
    """Return the PrimFunc of a linear recurrence.

    (x and decays float32 [n, c], query_indptr [r + 1], slots [r], state float32 [slots, 1, 1, c] in
    place) -> [n, c]
    """
    c = spec.channels

    @script.prim_func(s_tir=True, private=True)
    def func(
        x: T.handle,
        decays: T.handle,
        query_indptr: T.handle,
        slots: T.handle,
        state: T.handle,
        out: T.handle,
    ):
        n, r, r1, count = T.int64(), T.int64(), T.int64(), T.int64()
        X = T.match_buffer(x, (n, c), "float32")
        DECAY = T.match_buffer(decays, (n, c), "float32")
        PTR = T.match_buffer(query_indptr, (r1,), "int32")
        SLOT = T.match_buffer(slots, (r,), "int32")
        S = T.match_buffer(state, (count, 1, 1, c), "float32")
        Y = T.match_buffer(out, (n, c), "float32")
        for s, channel in T.grid(r, c):
            with T.sblock("channel"):
                T.reads()
                T.writes()
                for after in T.serial(PTR[s + 1] - PTR[s]):
                    row = PTR[s] + after
                    S[SLOT[s], 0, 0, channel] = (
                        S[SLOT[s], 0, 0, channel] * DECAY[row, channel] + X[row, channel]
                    )
                    Y[row, channel] = S[SLOT[s], 0, 0, channel]

    return tag(func, "linear_recurrence", spec)


@cache
def dplr(spec: DplrSpec) -> tirx.PrimFunc:
    """Return the PrimFunc of a transition that is diagonal plus low rank.

    (rows float32 [n, width], query_indptr [r + 1], slots [r], state float32 [slots, h, dk, dv] in
    place) -> [n, h * dv]
    """
    h, dk, dv, width = spec.heads, spec.key_dim, spec.value_dim, spec.width
    keys = h * dk

    @script.prim_func(s_tir=True, private=True)
    def func(
        rows: T.handle,
        query_indptr: T.handle,
        slots: T.handle,
        state: T.handle,
        out: T.handle,
    ):
        n, r, r1, count = T.int64(), T.int64(), T.int64(), T.int64()
        X = T.match_buffer(rows, (n, width), "float32")
        PTR = T.match_buffer(query_indptr, (r1,), "int32")
        SLOT = T.match_buffer(slots, (r,), "int32")
        S = T.match_buffer(state, (count, h, dk, dv), "float32")
        Y = T.match_buffer(out, (n, h * dv), "float32")
        for s, head in T.grid(r, h):
            with T.sblock("head"):
                T.reads()
                T.writes()
                read = T.sblock_alloc_buffer((1,), "float32")
                for after in T.serial(PTR[s + 1] - PTR[s]):
                    row = PTR[s] + after
                    for j in T.serial(dv):
                        read[0] = T.float32(0)
                        for i in T.serial(dk):
                            read[0] = (
                                read[0] + S[SLOT[s], head, i, j] * X[row, 3 * keys + head * dk + i]
                            )
                        Y[row, head * dv + j] = T.float32(0)
                        for i in T.serial(dk):
                            S[SLOT[s], head, i, j] = (
                                S[SLOT[s], head, i, j] * X[row, keys + head * dk + i]
                                + X[row, 4 * keys + head * dk + i] * read[0]
                                + X[row, 2 * keys + head * dk + i]
                                * X[row, 5 * keys + head * dv + j]
                            )
                            Y[row, head * dv + j] = (
                                Y[row, head * dv + j]
                                + S[SLOT[s], head, i, j] * X[row, head * dk + i]
                            )

    return tag(func, "dplr", spec)


REFERENCES: dict[str, Callable[[Any], tirx.PrimFunc]] = {
    "short_conv": short_conv,
    "gated_delta": gated_delta,
    "mamba": mamba,
    "mamba2": mamba2,
    "linear_recurrence": linear_recurrence,
    "dplr": dplr,
}
