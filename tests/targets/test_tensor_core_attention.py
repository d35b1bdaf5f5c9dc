"""Attention on tensor cores: its CUDA C++, run by an emulator, against NumPy and itself."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from wherry.targets.kernels.gpu import GpuKernels, GpuLimits, tensor_cores
from wherry.targets.kernels.gpu.splits import MOST_SLOTS, SPLIT

from ..support.builders import builder
from .test_paged_attention import Kernel

LIMITS = GpuLimits(threads_per_block=1024, shared_memory_bytes=49152, tensor_cores=True)
KERNELS = GpuKernels(LIMITS, {})
CASES = {  # h, g, e, eps, dtype of what is kept, window, softcap
    "heads of 64": (4, 2, 64, None, "float16"),
    "heads of 128, norms, a window, a cap": (3, 1, 128, 1e-6, "float16", 300, 5.0),
}
BY_NIGHT = {
    "no groups": (2, 2, 64, None, "float16", 37),
    "sixteen heads": (16, 1, 64, 1e-6, "float16"),
    "seven heads": (14, 2, 128, None, "float16", 100),
    "keys are the values": (8, 2, 64, 1e-6, "float16", None, None, (), True, "keys"),
    "another layer's pages": (4, 1, 64, 1e-6, "float16", 300, None, (), False, "none"),
}
# Of the root mean square of the result: the rounding of queries, of weights and of the result.
BOUND = 1e-3


class OnTensorCores(Kernel):
    """The kernel of a case."""

    def __init__(self, *case):
        super().__init__(builder("cuda"), *case, kernels=KERNELS)
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
    return OnTensorCores(*(CASES | BY_NIGHT)[request.param])


LENGTH = SPLIT + 70


def test_a_prompt_in_any_pieces(kernel, make_batch):
    """In one piece, in chunks, and token by token: near the reference, and the same bits."""
    table = np.random.default_rng(1).permutation(60)[: -(-LENGTH // 16)].tolist()
    qkv = kernel.rows(0, LENGTH)
    batch = make_batch([(0, LENGTH, table)])
    whole, pages = kernel(qkv, batch, kernel.pages)
    kernel.close(whole, kernel.expected(qkv, batch, pages))

    others = [(20, 1, [70, 71]), (3, 4, [72])]
    left = kernel.pages
    for start, stop in ((0, 63), (63, 64), (64, 250), (250, 259), (259, LENGTH - 4)):
        rows = np.concatenate([kernel.rows(5, 1), qkv[start:stop], kernel.rows(6, 4)])
        mixed = make_batch([others[0], (start, stop - start, table), others[1]])
        got, left = kernel(rows, mixed, left)
        assert np.array_equal(got[1:-4], whole[start:stop])
    for position in range(LENGTH - 4, LENGTH):  # alone, in splits; with others
        more = [(20, 1, [70, 71]), (300, 1, list(range(70, 89)))] * (position % 2)
        rows = np.concatenate([qkv[position : position + 1], kernel.rows(7, len(more))])
        got, left = kernel(rows, make_batch([(position, 1, table), *more]), left)
        assert np.array_equal(got[0], whole[position])
    for position, most in ((100, MOST_SLOTS), (255, MOST_SLOTS), (LENGTH - 1, 1)):  # in one block
        batch = make_batch([(position, 1, table[: position // 16 + 1])])
        got, left = kernel(qkv[position : position + 1], batch, left, most)
        assert np.array_equal(got[0], whole[position])
    assert np.array_equal(left[table], pages[table])


def test_what_no_row_sees_is_not_read(kernel, make_batch):
    """No numbers beyond the last token and in others' pages, no pages behind the window."""
    count = 5  # rows, of several and of one
    table = list(range(10, 10 + -(-LENGTH // 16)))
    for start, rows in ((LENGTH - count, count), (LENGTH - 1, 1)):
        qkv = kernel.rows(2, rows)
        wanted, _ = kernel(qkv, make_batch([(start, rows, table)]), kernel.pages)
        pages = np.full_like(kernel.pages, np.nan)
        pages[table] = kernel.pages[table]
        pages[table[-1], :, :, LENGTH % 16 :] = np.nan
        seen = max(start + 1 - (kernel.spec.window or LENGTH), 0)
        left = [-1] * (seen // 16) + table[seen // 16 :]
        got, _ = kernel(qkv, make_batch([(start, rows, left)]), pages)
        assert np.array_equal(got, wanted)


def test_what_has_tensor_cores(kernel):
    portable = GpuKernels(replace(LIMITS, tensor_cores=False), {})
    for change, whether in (
        ({}, True),
        ({"head_dim": 96, "rotary_dim": 96, "inv_freq": (1.0,) * 48}, False),
        ({"kv_dtype": "float32"}, False),
        ({"slopes": (0.5,) * kernel.h}, False),
        ({"sinks": True}, False),
        ({"heads": 17 * kernel.g}, False),
    ):
        spec = replace(kernel.spec, **change)
        assert tensor_cores.fits_attention(spec) == whether, change
        for kernels in (KERNELS, portable):
            found = kernels.paged_attention(spec)
            own = whether and kernels is KERNELS
            assert (found is None) == spec.sinks
            assert found is None or (found.scratch[0][1] == "float16") == own, change
