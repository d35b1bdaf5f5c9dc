"""Operations with a recurrent state in NumPy, and what every kernel of them must give.

`compile_kernel` takes a PrimFunc and returns a function of NumPy arrays that returns them all as
the kernel left them.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from wherry.ops import (
    DplrSpec,
    GatedDeltaSpec,
    LinearRecurrenceSpec,
    Mamba2Spec,
    MambaSpec,
    ShortConvSpec,
)

CONVS = [
    ShortConvSpec(channels=96, taps=4),
    ShortConvSpec(channels=37, taps=3, activation="none", bias=True),
    ShortConvSpec(channels=300, taps=2, bias=True),
]
DELTAS = [
    GatedDeltaSpec(heads=4, key_heads=2, key_dim=8, value_dim=16),
    GatedDeltaSpec(heads=2, key_heads=2, key_dim=128, value_dim=128),
    GatedDeltaSpec(heads=3, key_heads=1, key_dim=6, value_dim=20),  # no whole vectors
    GatedDeltaSpec(heads=1, key_heads=1, key_dim=16, value_dim=64),
    GatedDeltaSpec(heads=2, key_heads=2, key_dim=32, value_dim=32, channel_decay=True),
    GatedDeltaSpec(heads=2, key_heads=1, key_dim=6, value_dim=20, channel_decay=True),
]
MAMBA = [
    MambaSpec(channels=96, state_dim=16),
    MambaSpec(channels=20, state_dim=6),  # no whole vectors
]
MAMBA2 = [
    Mamba2Spec(heads=4, head_dim=16, groups=2, state_dim=8),
    Mamba2Spec(heads=2, head_dim=64, groups=1, state_dim=128),
    # no whole vectors
    Mamba2Spec(heads=3, head_dim=20, groups=3, state_dim=6, least_step=0.5, most_step=1.5),
]
RECURRENCES = [LinearRecurrenceSpec(channels=c) for c in (96, 20)]
DPLR = [
    DplrSpec(heads=2, key_dim=32, value_dim=32),
    DplrSpec(heads=3, key_dim=6, value_dim=20),  # no whole vectors
]
SLOTS = 7
OWN = {0: 5, 1: 2, 2: 0}  # sequence -> slot
LENGTHS = (21, 1, 9)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def convolve(spec, x, weight, bias):
    """The results of one sequence from its first row on, float64 [n, c]."""
    padded = np.concatenate([np.zeros((spec.taps - 1, spec.channels)), x.astype("float64")])
    y = sum(padded[j : j + len(x)] * weight[j] for j in range(spec.taps)) + bias
    return y * sigmoid(y) if spec.activation == "silu" else y


def delta_rule(spec, qkv, gates, *rest):
    """The results of one sequence from its first row on, float64 [n, h, dv]."""
    h, g, dk, dv = spec.heads, spec.key_heads, spec.key_dim, spec.value_dim
    state, out = np.zeros((h, dk, dv)), []
    if spec.channel_decay:
        decays = rest[0].astype("float64").reshape(-1, h, dk, 1)
    else:
        a_log, dt_bias = rest
        rates = np.log1p(np.exp(gates[:, h:].astype("float64") + dt_bias))
        decays = np.exp(-np.exp(a_log) * rates)[:, :, None, None]
    rows = (qkv.astype("float64"), gates.astype("float64"), decays)
    for row, gate, decay in zip(*rows, strict=True):
        q, k, v = np.split(row, [g * dk, 2 * g * dk])
        q, k = (np.repeat(x.reshape(g, dk), h // g, 0) for x in (q, k))
        q, k = (x / np.sqrt((x * x).sum(-1, keepdims=True) + 1e-6) for x in (q, k))
        state *= decay
        kept = np.einsum("hkv,hk->hv", state, k)
        delta = (v.reshape(h, dv) - kept) * sigmoid(gate[:h])[:, None]
        state += k[:, :, None] * delta[:, None]
        out.append(np.einsum("hkv,hk->hv", state, q) / np.sqrt(dk))
    return np.stack(out)


def dplr(spec, rows):
    """The results of one sequence from its first row on, float64 [n, h * dv]."""
    h, dk = spec.heads, spec.key_dim
    state, out = np.zeros((h, dk, spec.value_dim)), []
    for row in rows.astype("float64"):
        *parts, v = np.split(row, [h * dk * i for i in range(1, 6)])
        r, decays, k, a, b = (part.reshape(h, dk) for part in parts)
        kept = np.einsum("hkv,hk->hv", state, a)
        state = state * decays[..., None] + b[..., None] * kept[:, None]
        state += k[..., None] * v.reshape(h, 1, -1)
        out.append(np.einsum("hkv,hk->hv", state, r).reshape(-1))
    return np.stack(out)


def selective_scan(spec, x, steps, bc, constants):
    """The results of one sequence from its first row on, float64 [n, c]."""
    rates, skip = constants[:-1].astype("float64"), constants[-1]
    state, out = np.zeros((spec.state_dim, spec.channels)), []
    for row, raw, both in zip(x.astype("float64"), steps, bc.astype("float64"), strict=True):
        b, c = np.split(both, 2)
        step = np.log1p(np.exp(raw.astype("float64")))
        state = state * np.exp(rates * step) + b[:, None] * (step * row)
        out.append(c @ state + skip * row)
    return np.stack(out)


def mamba2(spec, xbc, steps, constants):
    """The results of one sequence from its first row on, float64 [n, h, p]."""
    h, g, p, d = spec.heads, spec.groups, spec.head_dim, spec.state_dim
    rate, bias, skip = constants.astype("float64")
    state, out = np.zeros((h, d, p)), []
    for row, raw in zip(xbc.astype("float64"), steps.astype("float64"), strict=True):
        x, b, c = np.split(row, [h * p, h * p + g * d])
        x = x.reshape(h, p)
        b, c = (np.repeat(part.reshape(g, d), h // g, 0) for part in (b, c))
        step = np.clip(np.log1p(np.exp(raw + bias)), spec.least_step, spec.most_step)
        state *= np.exp(rate * step)[:, None, None]
        state += b[:, :, None] * (step[:, None] * x)[:, None]
        out.append(np.einsum("hdp,hd->hp", state, c) + skip[:, None] * x)
    return np.stack(out)


class Slots:
    """A kernel with its state, which begins with zeros in the sequences' slots."""

    def __init__(self, kernel, spec, *, has_sequences):
        rng = np.random.default_rng(1)
        self.kernel, self.has_sequences = kernel, has_sequences
        self.state = rng.standard_normal((SLOTS, *spec.state_shape)).astype("float32")
        self.others = [s for s in range(SLOTS) if s not in OWN.values()]
        self.before = self.state[self.others]
        self.state[list(OWN.values())] = 0

    def step(self, parts, weights, width):
        """Run one step over rows of sequences: {sequence: arrays}; the results of each."""
        lengths = [len(arrays[0]) for arrays in parts.values()]
        starts = np.cumsum([0, *lengths]).astype("int32")
        rows = [np.concatenate(each) for each in zip(*parts.values(), strict=True)]
        batch = [np.repeat(np.arange(len(parts)), lengths).astype("int32")] * self.has_sequences
        slots = np.array([OWN[s] for s in parts], "int32")
        out = np.full((len(rows[0]), width), np.nan, "float32")
        *_, self.state, out = self.kernel(*rows, *batch, starts, *weights, slots, self.state, out)
        assert np.array_equal(self.state[self.others], self.before)  # of other sequences
        return {s: out[a:b] for s, (a, b) in zip(parts, pairwise(starts), strict=True)}


def check(begin, inputs, expected, weights, width, tolerance):
    """Whole prompts against NumPy; cut, in other company and row by row: the same bits."""
    at_once = begin().step(dict(enumerate(inputs)), weights, width)
    for s, row_expected in enumerate(expected):
        np.testing.assert_allclose(at_once[s], row_expected, atol=tolerance)
    for cuts in ((0, 1, 2, 9, 21), (0, 5, 8, 21), range(22)):
        run, got = begin(), []
        for i, (a, b) in enumerate(pairwise(cuts)):
            parts = {0: [x[a:b] for x in inputs[0]]}
            if i % 3 == 0:  # in company
                parts = {2: [x[:3] for x in inputs[2]], **parts, 1: inputs[1]}
            got.append(run.step(parts, weights, width)[0])
        assert np.array_equal(np.concatenate(got), at_once[0])


def check_conv(compile_kernel, kernels, spec):
    rng = np.random.default_rng(spec.channels)
    c = spec.channels
    inputs = [[rng.standard_normal((n, c)).astype("float32")] for n in LENGTHS]
    weight = rng.standard_normal((spec.taps, c)).astype("float32")
    bias = rng.standard_normal(c).astype("float32")
    kernel = compile_kernel(kernels.short_conv(spec))
    expected = [convolve(spec, x, weight, bias if spec.bias else 0) for (x,) in inputs]
    weights = (weight, bias) if spec.bias else (weight,)
    check(lambda: Slots(kernel, spec, has_sequences=True), inputs, expected, weights, c, 2e-6)


def check_delta(compile_kernel, kernels, spec):
    rng = np.random.default_rng(spec.value_dim)
    h, own = spec.heads, spec.channel_decay
    inputs = [
        [
            rng.standard_normal((n, spec.width)).astype("float32"),
            (4 * rng.standard_normal((n, h if own else 2 * h))).astype("float32"),
            *([rng.random((n, h * spec.key_dim)).astype("float32")] if own else []),
        ]
        for n in LENGTHS
    ]
    weights = [] if own else [rng.standard_normal(h).astype("float32") for _ in range(2)]
    kernel = compile_kernel(kernels.gated_delta(spec))
    width = h * spec.value_dim
    expected = [delta_rule(spec, *x, *weights).reshape(-1, width) for x in inputs]
    check(lambda: Slots(kernel, spec, has_sequences=False), inputs, expected, weights, width, 5e-6)


def check_mamba2(compile_kernel, kernels, spec):
    rng = np.random.default_rng(spec.head_dim)
    h = spec.heads
    inputs = [
        [
            rng.standard_normal((n, spec.width)).astype("float32"),
            (3 * rng.standard_normal((n, h))).astype("float32"),
        ]
        for n in LENGTHS
    ]
    constants = rng.standard_normal((3, h)).astype("float32")
    constants[0] = -np.exp(constants[0])
    kernel = compile_kernel(kernels.mamba2(spec))
    expected = [mamba2(spec, *x, constants).reshape(-1, spec.inner) for x in inputs]
    scale = max(np.abs(rows).max() for rows in expected)  # a sum of state_dim products
    width, tolerance = spec.inner, 2e-6 * scale

    def begin():
        return Slots(kernel, spec, has_sequences=False)

    check(begin, inputs, expected, [constants], width, tolerance)


def check_mamba(compile_kernel, kernels, spec):
    rng = np.random.default_rng(spec.channels)
    c, d = spec.channels, spec.state_dim
    inputs = [
        [rng.standard_normal((n, width)).astype("float32") for width in (c, c, 2 * d)]
        for n in LENGTHS
    ]
    constants = rng.standard_normal((d + 1, c)).astype("float32")
    constants[:d] = -np.exp(constants[:d])
    kernel = compile_kernel(kernels.mamba(spec))
    expected = [selective_scan(spec, *x, constants) for x in inputs]
    scale = max(np.abs(rows).max() for rows in expected)  # a sum of state_dim products

    def begin():
        return Slots(kernel, spec, has_sequences=False)

    check(begin, inputs, expected, [constants], c, 2e-6 * scale)


def check_recurrence(compile_kernel, kernels, spec):
    rng = np.random.default_rng(spec.channels)
    c = spec.channels
    inputs = [
        [rng.standard_normal((n, c)).astype("float32"), rng.random((n, c)).astype("float32")]
        for n in LENGTHS
    ]
    expected = []
    for x, decays in inputs:
        states = [np.zeros(c)]
        for row, decay in zip(x.astype("float64"), decays, strict=True):
            states.append(decay * states[-1] + row)
        expected.append(np.stack(states[1:]))
    kernel = compile_kernel(kernels.linear_recurrence(spec))

    def begin():
        return Slots(kernel, spec, has_sequences=False)

    check(begin, inputs, expected, [], c, 2e-6)


def check_dplr(compile_kernel, kernels, spec):
    rng = np.random.default_rng(spec.value_dim)
    h, dk = spec.heads, spec.key_dim
    inputs = []
    for n in LENGTHS:
        r, k, key = rng.standard_normal((3, n, h, dk))
        key /= np.linalg.norm(key, axis=-1, keepdims=True)
        b = key * rng.random((n, h, dk))
        parts = [r, rng.random((n, h, dk)), k, -key, b, rng.standard_normal((n, h, spec.value_dim))]
        inputs.append([np.concatenate([p.reshape(n, -1) for p in parts], 1).astype("float32")])
    expected = [dplr(spec, rows) for (rows,) in inputs]
    kernel = compile_kernel(kernels.dplr(spec))
    scale = max(np.abs(rows).max() for rows in expected)  # a sum of key_dim products

    def begin():
        return Slots(kernel, spec, has_sequences=False)

    check(begin, inputs, expected, [], h * spec.value_dim, 2e-6 * scale)
