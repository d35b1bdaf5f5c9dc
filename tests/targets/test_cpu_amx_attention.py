"""Attention of prompts for AMX, whose instructions are emulated; see test_cpu_amx.py."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import tvm
from tvm.target import Target

from wherry.compiler.library.build import code_generation
from wherry.targets.kernels import AttentionSpec
from wherry.targets.kernels.cpu import CpuKernels, bf16_attention
from wherry.targets.target import find

from ..support import amx
from .page_layout import stored
from .test_cpu_attention import reference, values

pytestmark = pytest.mark.cpu

# h, g, e, dtype of the cache, further fields: an odd number of queries' tiles, several groups of K
CASES = [
    (4, 1, 64, "float16", {}),
    (3, 1, 32, "float32", {"window": 100}),
    pytest.param(
        *(4, 2, 128, "float16", {"softcap": 5.0, "slopes": (0.1, 0.2, 0.3, 0.4)}),
        marks=pytest.mark.nightly,
    ),
]


@pytest.fixture(scope="module")
def emulator(tmp_path_factory):
    return amx.Emulator(tmp_path_factory.mktemp("amx"))


@pytest.fixture
def attend(here, emulator):
    def build(h, g, e, kv_dtype, more):
        isa = amx.with_matrix_unit(here.isa)
        spec = AttentionSpec(
            heads=h, kv_heads=g, head_dim=e, scale=e**-0.5, kv_dtype=kv_dtype, **more
        )
        with amx.emulated():
            kernel = here.build(CpuKernels(isa, activations="bf16").attention(spec))
        exact = here.build(CpuKernels(here.isa).attention(spec))

        def run(q, batch, pages, kernel=kernel):
            indices = (batch.positions, batch.sequences, batch.query_indptr)
            table = (batch.page_indptr, batch.page_ids)
            y = kernel(q, *indices, *table, stored(pages), np.full(q.shape, np.nan, "float32"))[-1]
            emulator.check()
            return y

        return run, lambda *given: run(*given, exact)

    return build


@pytest.mark.parametrize(("h", "g", "e", "kv_dtype", "more"), CASES)
def test_prompts(attend, make_batch, h, g, e, kv_dtype, more):
    check(attend, make_batch, h, g, e, kv_dtype, more)


def check(attend, make_batch, h, g, e, kv_dtype, more):
    rng = np.random.default_rng(e)
    pages = values(rng, (60, 2, g, 16, e), kv_dtype)
    order = [int(i) for i in rng.permutation(60)]
    # A prompt, a decode row, a chunk over the end of a block, a short chunk; stale pages after.
    batch = make_batch(
        [(0, 50, order[:4]), (33, 1, order[4:7]), (240, 70, order[7:27]), (16, 3, order[27:29])]
    )
    for page, unused in ((order[3], 2), (order[26], 6)):  # what no row attends to
        pages[page, :, :, unused:] = np.nan
    q = values(rng, (124, h, e))
    run, exact = attend(h, g, e, kv_dtype, more)
    out, expected = run(q, batch, pages), exact(q, batch, pages)
    error = np.sqrt(np.mean((out - expected) ** 2) / np.mean(expected**2))
    assert 0 < error < 6e-3
    assert np.array_equal(out[50], expected[50])  # decode rows keep their kernel
    assert np.array_equal(out[-3:], expected[-3:])
    few = slice(0, bf16_attention.LEAST_STEP - 1)  # and small steps
    some = make_batch([(0, 50, order[:4]), (33, 1, order[4:7]), (240, 12, order[7:27])])
    assert np.array_equal(run(q[few], some, pages), exact(q[few], some, pages))


def test_weights_are_rounded_and_nothing_else(attend, make_batch):
    """With queries, keys and values of a few bits only the softmax's weights lose some."""
    rng = np.random.default_rng(1)
    pages = rng.integers(-3, 4, (20, 2, 2, 16, 64)).astype("float16")
    q = rng.integers(-2, 3, (80, 4, 64)).astype("float32")
    batch = make_batch([(200, 80, [int(i) for i in rng.permutation(20)[:18]])])
    run, _ = attend(4, 2, 64, "float16", {})
    expected = reference(q, batch, pages, 64**-0.5)
    assert np.abs(run(q, batch, pages) - expected).max() < 2**-8 * 3


def _full_page(value):
    """Values as if all tokens of a page were there."""
    return lambda self, page, group, panel, token, seen: value(
        self, page, group, panel, token, dataclasses.replace(seen, start=0, seen=256)
    )


def _next_element(key):
    return lambda self, page, group, element: key(self, page, group, element ^ 1)


def _first_head(take):
    return lambda self, first, rows, kv_head: take(self, first, rows, 0)


@pytest.mark.parametrize(
    ("name", "mistake"), [("_value", _full_page), ("_key", _next_element), ("take", _first_head)]
)
def test_a_planted_mistake_is_detected(attend, make_batch, monkeypatch, name, mistake):
    tile = bf16_attention.Bf16Tile
    monkeypatch.setattr(tile, name, mistake(getattr(tile, name)))
    with pytest.raises(AssertionError):
        check(attend, make_batch, 4, 2, 64, "float16", {})


@pytest.mark.nightly
def test_code():
    """Both products of a block configure the tiles and release them."""
    level = find("cpu:x86-64-v3+").bf16
    spec = AttentionSpec(heads=8, kv_heads=2, head_dim=64, scale=1.0, kv_dtype="float16")
    func = level.kernels.kernels.attention(spec).with_attr("global_symbol", "kernel")
    target = Target(dict(level.device))
    with code_generation(target):
        code = tvm.compile(tvm.IRModule({"kernel": func}), target=target).mod.inspect_source("asm")
    count = {name: code.count(f"\t{name}") for name in ("ldtilecfg", "tilerelease", "tdpbf16ps")}
    assert count["ldtilecfg"] == count["tilerelease"] == 2
    assert count["tdpbf16ps"] >= 8 and count["tdpbf16ps"] % 4 == 0


def test_what_has_other_kernels(here):
    """Integers in the cache, and heads that are no multiple of 32."""
    isa = dataclasses.replace(here.isa, amx=True)
    common = {"heads": 2, "kv_heads": 1, "scale": 1.0}
    for kv_dtype, e, supported in (
        ("float16", 64, True),
        ("float16", 80, False),
        ("int8", 64, False),
        ("int4", 64, False),
    ):
        spec = AttentionSpec(**common, head_dim=e, kv_dtype=kv_dtype)
        assert bf16_attention.supported(spec, isa) == supported
        assert not bf16_attention.supported(spec, here.isa)
