"""The attention that computes q, k and v itself, on devices, bit for bit against two kernels."""

from __future__ import annotations

import numpy as np
import pytest

from wherry.ops import QkvAttentionSpec, qkv_heads
from wherry.targets.kernels import FusedLinearSpec, PagedAttentionSpec
from wherry.targets.kernels.gpu import GpuKernels
from wherry.targets.kernels.gpu.splits import SPLIT
from wherry.targets.webgpu import LIMITS

from .test_cpu_linear import portable
from .test_paged_attention import scratch, table_of

pytestmark = pytest.mark.gpu
KERNELS = GpuKernels(LIMITS, {})
LONG = list(range(10, 50))  # pages of a sequence of more than two splits
STEPS = {  # sequences as (first position, rows, pages)
    "one decode row": [(20, 1, [3, 4])],
    "the first token": [(0, 1, [3])],
    "two decode rows": [(20, 1, [3, 4]), (40, 1, [5, 6, 7])],
    "three decode rows": [(20, 1, [3, 4]), (40, 1, [5, 6, 7]), (0, 1, [8])],
    "a long context": [(2 * SPLIT + 5, 1, LONG)],
    "prompts": [(0, 9, [3]), (17, 3, [5, 6])],
    "a prompt": [(0, 9, [3])],
    "a prompt with decode rows": [(20, 1, [3, 4]), (2 * SPLIT + 5, 1, LONG), (17, 3, [5, 6])],
}
NIGHTLY = pytest.mark.nightly
# Query heads, KV heads, head dim, hidden size, scheme, dtype of scales, eps of the norms of heads,
# dtype of what is kept, what of keys and values qkv has; values are normed where there are norms
# and values.
# Vulkan's kernels come from the source that browsers get.
CASES = [
    ("vulkan", 4, 2, 16, 64, "q4", "float16", 1e-6, "float16", "both"),  # several heads a block
    pytest.param(  # nothing is aligned
        *("metal", 3, 1, 20, 44, "f32", None, None, "float32", "both"), marks=NIGHTLY
    ),
    *(
        pytest.param("vulkan", 4, 2, 16, 64, "q4", "float16", 1e-6, dtype, kv, marks=NIGHTLY)
        for dtype, kv in (("float16", "keys"), ("float32", "none"))
    ),
]


@pytest.mark.parametrize(
    ("build", "h", "g", "e", "hidden", "scheme", "scale_dtype", "eps", "dtype", "kv"),
    CASES,
    indirect=["build"],
)
def test_the_bits_are_those_of_the_kernels_apart(
    build, make_batch, h, g, e, hidden, scheme, scale_dtype, eps, dtype, kv
):
    rng = np.random.default_rng(e)
    width = qkv_heads(h, g, kv) * e
    linear = FusedLinearSpec(
        out_features=width,
        in_features=hidden,
        scheme=scheme,
        scale_dtype=scale_dtype,
        norm_eps=1e-5,
        y_dtype=dtype,
    )
    attention = PagedAttentionSpec(
        heads=h,
        kv_heads=g,
        head_dim=e,
        rotary_dim=e,
        inv_freq=tuple(float(np.float32(0.7**i)) for i in range(e // 2)),
        scale=e**-0.5,
        qk_norm_eps=eps,
        v_norm=eps is not None and kv != "none",
        kv=kv,
        kv_dtype=dtype,
        qkv_dtype=dtype,
        out_dtype=dtype,
    )
    kernels = (
        KERNELS.qkv_attention(QkvAttentionSpec(linear=linear, attention=attention)),
        KERNELS.fused_linear(linear),
        KERNELS.paged_attention(attention),
    )
    together, first, second = (build(kernel.compute) for kernel in kernels)
    stored, _ = portable(rng, width, hidden, scheme, scale_dtype)
    norm = rng.uniform(0.5, 2, hidden).astype("float32")
    norms = rng.uniform(0.5, 2, (2, e)).astype("float32")
    joined, apart = ([norms], list(norms)) if eps else ([], [])
    pages = rng.standard_normal((60, 2, g, 16, e)).astype(dtype)
    for name, rows in STEPS.items():
        batch = make_batch(rows)
        n = len(batch.positions)
        x = rng.standard_normal((n, hidden)).astype("float32")
        steps = [table_of(batch), batch.query_indptr]
        buffers = [scratch(kernel, batch) for kernel in kernels]
        out, qkv = np.full((n, h, e), np.nan, dtype), np.full((n, width), np.nan, dtype)

        inputs = [x, norm, *stored, *steps, *joined, pages]
        got = together(*inputs, out, *buffers[0])[len(inputs) - 1 :][:2]
        qkv = first(x, norm, *stored, qkv, *buffers[1])[2 + len(stored)]
        inputs = [qkv.reshape(n, width // e, e), *steps, *apart, pages]
        expected = second(*inputs, out, *buffers[2])[len(inputs) - 1 :][:2]
        assert np.isfinite(expected[1]).all()
        assert np.array_equal(expected[0], pages) == (kv == "none")
        for a, b in zip(got, expected, strict=True):
            assert np.array_equal(a, b), name
