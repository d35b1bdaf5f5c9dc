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
    assert np.array_equal(left[table], pages[table])
