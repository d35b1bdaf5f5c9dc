"""Attention on tensor cores: its CUDA C++, run by an emulator, against NumPy and itself."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from wherry.targets.kernels.gpu import GpuKernels, GpuLimits, tensor_cores
from wherry.targets.kernels.gpu.splits import MOST_SLOTS, SPLIT
from wherry.targets.kernels.gpu.tensor_cores import attention

from ..support.builders import builder
from .test_paged_attention import Kernel

LIMITS = GpuLimits(threads_per_block=1024, shared_memory_bytes=49152, tensor_cores=True)
KERNELS = GpuKernels(LIMITS, {})
AXES = (0, 1, 2) * 10 + (0, 0)  # of each frequency
CASES = {  # h, g, e, eps, dtype of what is kept, window, softcap
    "heads of 64, norms, a window, a cap": (4, 2, 64, 1e-6, "float16", 300, 5.0),
}
BY_NIGHT = {
    "heads of 64": (4, 2, 64, None, "float16"),
    "heads of 128, norms, a window, a cap": (3, 1, 128, 1e-6, "float16", 300, 5.0),
    "heads of 80": (4, 2, 80, None, "float16"),
    "heads of 96, a window": (3, 1, 96, None, "float16", 300),
    "heads of 256, norms, a window, a cap": (2, 1, 256, 1e-6, "float16", 37, 5.0),
    "no groups": (1, 1, 64, None, "float16", 37),
    "sixteen heads": (16, 1, 64, 1e-6, "float16"),
    "seven heads": (7, 1, 128, None, "float16", 100),
    "keys are the values": (2, 2, 64, 1e-6, "float16", None, None, (), True, "keys"),
    "one plane": (4, 1, 64, None, "float16", None, None, (), False, "keys", None, 1),
    "axes": (4, 2, 64, 1e-6, "float16", None, None, (), False, "both", None, 2, AXES),  # M-RoPE
    "another layer's pages": (4, 1, 64, 1e-6, "float16", 300, None, (), False, "none"),
}
HALVES = ("heads of 64", "heads of 128, norms, a window, a cap")  # results; others show all bits
LATENTS = {"head_dim": 576, "rotary_dim": 64, "inv_freq": (1.0,) * 32, "kv": "keys", "planes": 1}
LATENTS |= {"qk_norm_eps": None, "v_norm": False}
# Of the root mean square of the result: the rounding of queries, of weights and of the result.
BOUND = 1e-3


class OnTensorCores(Kernel):
    """The kernel of a case."""

    def __init__(self, name):
        case, out_dtype = (CASES | BY_NIGHT)[name], "float16" if name in HALVES else "float32"
        given = {"pages": PAGES, "kernels": KERNELS, "out_dtype": out_dtype}
        super().__init__(builder("cuda"), *case, **given)
        assert tensor_cores.fits_attention(self.spec)

    def close(self, got, expected):
        error = got - expected
        assert np.sqrt(np.mean(error**2) / np.mean(expected**2)) < BOUND
        assert np.abs(error).max() < 8 * BOUND * np.abs(expected).max()


@pytest.fixture(
    scope="module",
    params=[*CASES, *(pytest.param(c, marks=pytest.mark.nightly) for c in BY_NIGHT)],
)
def kernel(request):
    return OnTensorCores(request.param)


LENGTH, PAGES = SPLIT + 70, 45


def test_a_row_alone(kernel, make_batch):
    """In one block; the first call, which is recorded for machines with a GPU."""
    rows, batch = kernel.rows(8, 1), make_batch([(200, 1, list(range(20, 33)))])
    got, pages = kernel(rows, batch, kernel.pages)
    kernel.close(got, kernel.expected(rows, batch, pages))


def test_a_prompt_in_any_pieces(kernel, make_batch):
    """In one piece, in chunks, and token by token: near the reference, and the same bits."""
    table = np.random.default_rng(1).permutation(24)[: -(-LENGTH // 16)].tolist()
    qkv = kernel.rows(0, LENGTH)
    batch = make_batch([(0, LENGTH, table)])
    at_once, pages = kernel(qkv, batch, kernel.pages)
    kernel.close(at_once, kernel.expected(qkv, batch, pages))

    others = [(20, 1, [24, 25]), (3, 4, [26])]
    left = kernel.pages
    for start, stop in ((0, 63), (63, 64), (64, 250), (250, 259), (259, LENGTH - 4)):
        rows = np.concatenate([kernel.rows(5, 1), qkv[start:stop], kernel.rows(6, 4)])
        mixed = make_batch([others[0], (start, stop - start, table), others[1]])
        got, left = kernel(rows, mixed, left)
        assert np.array_equal(got[1:-4], at_once[start:stop])
    for position in range(LENGTH - 4, LENGTH):  # alone, in splits; with others
        more = [(20, 1, [24, 25]), (300, 1, list(range(26, 45)))] * (position % 2)
        rows = np.concatenate([qkv[position : position + 1], kernel.rows(7, len(more))])
        got, left = kernel(rows, make_batch([(position, 1, table), *more]), left)
        assert np.array_equal(got[0], at_once[position])
    for position, most in ((100, MOST_SLOTS), (255, MOST_SLOTS), (LENGTH - 1, 1)):  # in one block
        batch = make_batch([(position, 1, table[: position // 16 + 1])])
        got, left = kernel(qkv[position : position + 1], batch, left, most)
        assert np.array_equal(got[0], at_once[position])
    assert np.array_equal(left[table], pages[table])


def test_what_no_row_sees_is_not_read(kernel, make_batch):
    """No numbers beyond the last token and in others' pages, no pages behind the window."""
    count = 5  # rows, of several and of one
    table = list(range(10, 10 + -(-LENGTH // 16)))
    for start, rows in ((LENGTH - count, count), (LENGTH - 1, 1)):
        qkv = kernel.rows(2, rows)
        expected, _ = kernel(qkv, make_batch([(start, rows, table)]), kernel.pages)
        pages = np.full_like(kernel.pages, np.nan)
        pages[table] = kernel.pages[table]
        pages[table[-1], :, :, LENGTH % 16 :] = np.nan
        seen = max(start + 1 - (kernel.spec.window or LENGTH), 0)
        left = [-1] * (seen // 16) + table[seen // 16 :]
        got, _ = kernel(qkv, make_batch([(start, rows, left)]), pages)
        assert np.array_equal(got, expected)


def test_what_is_no_number_stays_with_those_who_see_it(kernel, make_batch):
    """A token's NaNs change no row before it, nor one whose window it has left."""
    count, bad = 150, 75
    table = list(range(10, 10 + -(-count // 16)))
    qkv = kernel.rows(3, count)
    expected, _ = kernel(qkv, make_batch([(0, count, table)]), kernel.pages)
    assert np.isfinite(expected).all()
    qkv[bad] = np.nan
    got, _ = kernel(qkv, make_batch([(0, count, table)]), kernel.pages)
    past = bad + (kernel.spec.window or count)
    assert np.array_equal(got[:bad], expected[:bad]) and np.array_equal(got[past:], expected[past:])
    brings = 0 if kernel.kv == "none" else count  # nothing: only its own row has them
    assert np.isnan(got[bad : max(bad + 1, min(past, brings))]).all()


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("old", "new"),
    [
        (
            "there ? shared.value_word(page, i, part, word) : 0",
            "shared.value_word(page, i, part, word)",
        ),
        ("kAll || take[i / 2] ? next[i] : sums[n][i]", "next[i]"),
        ("__syncthreads();  // values have arrived, and no thread reads keys", ""),
        ("start_keys(block + 1, begin, end);", ";"),
    ],
)
def test_a_mistake_is_detected(monkeypatch, make_batch, old, new):
    """A prompt of two pieces has other bits than as one, or the emulator refuses."""
    right = attention.source()
    assert right.count(old) == 1
    monkeypatch.setattr(attention, "source", lambda: right.replace(old, new))
    kernel = OnTensorCores("no groups")
    table, qkv = list(range(10, 18)), kernel.rows(0, 121)
    try:
        expected, _ = kernel(qkv, make_batch([(0, 121, table)]), kernel.pages)
        _, left = kernel(qkv[:50], make_batch([(0, 50, table)]), kernel.pages)
        rest, left = kernel(qkv[50:120], make_batch([(50, 70, table)]), left)
        last, _ = kernel(qkv[120:], make_batch([(120, 1, table)]), left)
    except RuntimeError:
        return
    assert not np.array_equal(np.concatenate([rest, last]), expected[50:])


def test_what_has_tensor_cores(kernel):
    portable = GpuKernels(replace(LIMITS, tensor_cores=False), {})
    for change, whether in (
        ({}, True),
        ({"head_dim": 256, "rotary_dim": 64, "inv_freq": (1.0,) * 32}, True),
        ({"head_dim": 112, "rotary_dim": 112, "inv_freq": (1.0,) * 56, "axes": ()}, False),
        ({"head_dim": 512, "rotary_dim": 64, "inv_freq": (1.0,) * 32}, False),  # Gemma 4's
        (LATENTS, False),
        ({"kv_dtype": "float32"}, False),
        ({"slopes": (0.5,) * kernel.h}, False),
        ({"sinks": True}, False),
        ({"heads": 17 * kernel.g}, False),
    ):
        spec = replace(kernel.spec, **change)
        assert tensor_cores.fits_attention(spec) == whether, change
        for kernels in (KERNELS, portable):
            chosen = kernels.paged_attention(spec)
            own = whether and kernels is KERNELS
            assert (chosen is None) == spec.sinks
            assert chosen is None or (chosen.scratch[0][1] == "float16") == own, change
