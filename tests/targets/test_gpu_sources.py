"""The GPU kernels as source for the other APIs: they compile, and keep to the APIs' limits."""

from __future__ import annotations

import re

import pytest
import tvm
from tvm.target import Target

from wherry.ops import INTEGERS, CandidatesSpec, QkvAttentionSpec
from wherry.targets import opencl, webgpu
from wherry.targets.device_features import needed
from wherry.targets.kernels import (
    AttentionSpec,
    EmbeddingSpec,
    FusedLinearSpec,
    LinearSpec,
    PagedAttentionSpec,
    RMSNormSpec,
    RopeAppendSpec,
    SwiGLUSpec,
)
from wherry.targets.kernels.gpu import GpuKernels, GpuLimits
from wherry.targets.storage_half import with_storage_half

pytestmark = pytest.mark.cpu
PAGED = ("rope", "norm_rope", "attention", "paged_attention", "paged_int8", "paged_int4")
DEVICES = {
    "opencl": {"kind": "opencl", "max_threads_per_block": 256},
    "webgpu": {"kind": "webgpu", "max_num_threads": 256},
    "metal": {"kind": "metal", "max_threads_per_block": 256},
    "cuda": {"kind": "cuda", "arch": "sm_80"},
}
USUAL = GpuLimits(threads_per_block=256, shared_memory_bytes=32768)
WEBGPU = GpuLimits(threads_per_block=256, shared_memory_bytes=16384, storage_buffers=8)


def kernels(table):
    rope = {
        "heads": 6,
        "kv_heads": 2,
        "head_dim": 128,
        "rotary_dim": 128,
        "inv_freq": tuple(10000.0 ** (-i / 64) for i in range(64)),
    }
    q4 = {"scheme": "q4", "scale_dtype": "float32"}
    fused = {"out_features": 96, "in_features": 64, "norm_eps": 1e-5, "gated": True}
    halves = {"kv_dtype": "float16", "qkv_dtype": "float16", "out_dtype": "float16"}
    attention = {key: rope[key] for key in ("heads", "kv_heads", "head_dim")} | {"scale": 0.1}
    return {
        "norm": table.rms_norm(RMSNormSpec(dim=96, eps=1e-5)),
        "add_norm": table.add_rms_norm(RMSNormSpec(dim=2048, eps=1e-5)),
        "swiglu": table.swiglu(SwiGLUSpec(dim=96)),
        "embedding": table.embedding(EmbeddingSpec(vocab=100, dim=64, **q4)),
        "linear": table.linear(LinearSpec(out_features=100, in_features=80, **q4)),
        "q4_k_linear": table.linear(
            LinearSpec(out_features=100, in_features=256, scheme="q4_k", scale_dtype="float16")
        ),
        "fused_zero_point_linear": table.fused_linear(
            FusedLinearSpec(
                **fused, scheme="affine4f32_g32", scale_dtype="float32", x_dtype="float16"
            )
        ).compute,
        "float_linear": table.linear(LinearSpec(out_features=100, in_features=80, scheme="f32")),
        "rope": table.rope_append(RopeAppendSpec(**rope)),
        "norm_rope": table.rope_append(RopeAppendSpec(**rope, qk_norm_eps=1e-6)),
        "attention": table.attention(AttentionSpec(**attention)),
        "fused_linear": table.fused_linear(FusedLinearSpec(**fused, **q4)).compute,
        "fused_float_linear": table.fused_linear(
            FusedLinearSpec(**fused, scheme="f32", x_dtype="float16", y_dtype="float16")
        ).compute,
        "candidates": table.candidates(CandidatesSpec(vocab=2**18)).compute,
        "paged_attention": table.paged_attention(
            PagedAttentionSpec(**rope, scale=0.1, **halves)
        ).compute,
        **{
            f"paged_{kv_dtype}": table.paged_attention(
                PagedAttentionSpec(
                    **rope, scale=0.1, **halves | {"kv_dtype": kv_dtype, "words": True}
                )
            ).compute
            for kv_dtype in INTEGERS
        },
    }


# A load of four elements from one address, in each language.
VECTORS = {
    "opencl": r"vload4\(",
    "metal": r"\*\(device (?:float|uint|half)4\*\)",
    "cuda": r"\*\((?:float4|uint4|uint2|half4)\*\)",
}
GATHER = r"(?:make_)?(?:float|uint)4\)?\(\w+\[\w+(?:\.s|\.x|\[)"  # of four elements, one by one
WIDE = r"\b(?:long|int64_t)\b"


def source(func, kind):
    host = opencl.preset(None).host
    mod = tvm.IRModule({"kernel": func.with_attr("global_symbol", "kernel")})
    built = tvm.compile(mod, target=Target(DEVICES[kind], host=dict(host)))
    return str(built.mod.imports[0].inspect_source())


@pytest.mark.parametrize("kind", DEVICES)
@pytest.mark.by_day("webgpu")
def test_every_kernel_compiles(kind):
    limits = WEBGPU if kind == "webgpu" else USUAL
    for name, func in kernels(GpuKernels(limits, DEVICES[kind])).items():
        text = source(func, kind)
        assert "kernel" in text, name
        if kind == "webgpu":  # has neither vectors of TVM's nor 64 bits
            continue
        body = text[text.index("kernel_kernel") :]
        assert not re.search(GATHER, body), name
        # Addresses have 32 bits, but those of pages, where all layers' tokens are.
        assert name in PAGED or not re.search(WIDE, body), name
        if name in ("fused_linear", "fused_float_linear", "attention", "paged_attention"):
            assert re.search(VECTORS[kind], body), name


@pytest.mark.parametrize("kind", DEVICES)
@pytest.mark.by_day("metal")
def test_no_kernel_takes_sine_or_cosine_of_the_device(kind):
    """WGSL and Vulkan promise 2^-11, within [-pi, pi] alone; Metal's fast math is no better."""
    table = kernels(GpuKernels(USUAL, DEVICES[kind]))
    rotate = [source(table[name], kind) for name in ("rope", "norm_rope", "paged_attention")]
    for text in rotate:
        assert not re.search(r"\b(?:sin|cos)f?\(", text)


def demands(func):
    """(storage buffers, bytes of workgroup memory) of each WGSL kernel of a function."""
    parts = [p for p in source(func, "webgpu").split("// Function:") if "@compute" in p]
    shared = r"var<workgroup> \w+ : array<[fiu]32, (\d+)>"
    return [(p.count("var<storage"), sum(4 * int(n) for n in re.findall(shared, p))) for p in parts]


@pytest.mark.nightly
def test_webgpu_gets_no_kernel_beyond_its_limits():
    beyond = {
        name: demands(func) for name, func in kernels(GpuKernels(WEBGPU, DEVICES["webgpu"])).items()
    }
    assert len(beyond["norm_rope"]) == 2 and len(beyond["linear"]) == 3
    assert max(buffers for parts in beyond.values() for buffers, _ in parts) == 7
    assert 8192 < max(shared for parts in beyond.values() for _, shared in parts) <= 16384
    unlimited = kernels(GpuKernels(USUAL, DEVICES["webgpu"]))
    assert demands(unlimited["norm_rope"])[0][0] == 9  # what the limit is for


@pytest.mark.nightly
def test_opencl_loads_and_stores_halves_without_computing_with_them():
    table = kernels(GpuKernels(USUAL, DEVICES["opencl"]))
    for name in ("fused_float_linear", "paged_attention"):
        text = source(with_storage_half(table[name]), "opencl")
        for function in ("vload_half(", "vload_half4(", "vstore_half("):
            assert function in text, name
        assert not re.search(r"\bhalf\d* [a-z_]+|\(half\d*\)|convert_half", text), name
        assert not needed("opencl", {"cl": text})
        assert needed("opencl", {"cl": source(table[name], "opencl")}) == ["cl_khr_fp16"]


def test_limits_are_checked():
    good = {"threads_per_block": 256, "shared_memory_bytes": 32768, "storage_buffers": None}
    GpuLimits(**good)
    for name, value in (
        ("threads_per_block", 100),
        ("shared_memory_bytes", 1024),
        ("storage_buffers", 4),
    ):
        with pytest.raises(ValueError, match=f"{name} {value}"):
            GpuLimits(**good | {name: value})


HEADS = [  # of query, of keys and values, elements of each: those of real models, and odd ones
    (16, 8, 128),
    (9, 3, 64),
    (4, 1, 256),
    *(
        pytest.param(*heads, marks=pytest.mark.nightly)
        for heads in (
            *((32, 8, 64), (14, 2, 64), (28, 4, 128), (8, 8, 96), (40, 8, 128)),
            *((12, 12, 64), (4, 2, 16)),
        )
    ),
]


@pytest.mark.parametrize(("heads", "kv_heads", "head_dim"), HEADS)
@pytest.mark.by_day("4-1-256")
def test_attention_of_any_heads_compiles(heads, kv_heads, head_dim):
    """TVM adds the barriers that it misses, which it cannot do everywhere."""
    attention = PagedAttentionSpec(
        heads=heads,
        kv_heads=kv_heads,
        head_dim=head_dim,
        rotary_dim=8,
        inv_freq=(1.0, 0.5, 0.25, 0.125),
        scale=0.1,
        qk_norm_eps=1e-6 if heads % 3 else None,
    )
    width = (heads + 2 * kv_heads) * head_dim
    linear = FusedLinearSpec(out_features=width, in_features=64, scheme="f32", norm_eps=1e-5)
    spec = QkvAttentionSpec(linear=linear, attention=attention)
    apart = GpuKernels(USUAL, DEVICES["opencl"]).paged_attention(attention)
    assert source(apart.compute, "opencl").count("// Function:") == 5
    joined = GpuKernels(webgpu.LIMITS, DEVICES["webgpu"]).qkv_attention(spec)
    assert all(shared <= 16384 for _, shared in demands(joined.compute))
