"""Attention with sinks (gpt-oss): each head has one more score, whose weight goes to nothing."""

from __future__ import annotations

from functools import cache

from tvm import tirx
from tvm.script import tirx as T

from wherry.tags import tag


@cache
def attention(
    *,
    heads: int,
    kv_heads: int,
    head_dim: int,
    scale: float,
    page_size: int,
    window: int | None = None,
    dtype: str = "float32",
    kv_dtype: str = "float32",
) -> tirx.PrimFunc:
    """As `reference.attention`, of float pages, and with sinks float32 [h] before them.

    (q dtype [n, h, e], positions, sequences, query_indptr, page_indptr, page_ids, sinks,
    pages kv_dtype [pages, 2, g, page_size, e]) -> dtype [n, h, e]
    """
    h, g, e = heads, kv_heads, head_dim
    group, reach = h // g, window or 2**31 - 1

    @T.prim_func(s_tir=True, private=True, check_well_formed=False)
    def func(
        q: T.handle,
        positions: T.handle,
        sequences: T.handle,
        query_indptr: T.handle,
        page_indptr: T.handle,
        page_ids: T.handle,
        sinks: T.Buffer((h,), "float32"),
        pages: T.handle,
        out: T.handle,
    ):
        n, r1, r2, p, all_pages = T.int64(), T.int64(), T.int64(), T.int64(), T.int64()
        Q = T.match_buffer(q, (n, h, e), dtype)
        POS = T.match_buffer(positions, (n,), "int32")
        SEQ = T.match_buffer(sequences, (n,), "int32")
        T.match_buffer(query_indptr, (r1,), "int32")
        PTR = T.match_buffer(page_indptr, (r2,), "int32")
        IDS = T.match_buffer(page_ids, (p,), "int32")
        PAGES = T.match_buffer(pages, (all_pages, 2, g, page_size, e), kv_dtype)
        OUT = T.match_buffer(out, (n, h, e), dtype)
        for i, head in T.grid(n, h):
            with T.sblock("row_head"):
                T.reads()
                T.writes()
                acc = T.sblock_alloc_buffer((e,), "float32")
                state = T.sblock_alloc_buffer((4,), "float32")  # max, sum, score, correction
                state[0] = sinks[head]
                state[1] = T.float32(1)
                for k in T.serial(e):
                    acc[k] = T.float32(0)
                first = T.max(POS[i] + 1 - reach, 0)
                for after in T.serial(POS[i] + 1 - first):
                    t = first + after
                    state[2] = T.float32(0)
                    for k in T.serial(e):
                        state[2] = state[2] + T.Cast("float32", Q[i, head, k]) * T.Cast(
                            "float32",
                            PAGES[
                                IDS[PTR[SEQ[i]] + t // page_size],
                                0,
                                head // group,
                                t % page_size,
                                k,
                            ],
                        )
                    state[2] = state[2] * T.float32(scale)
                    state[3] = T.exp(state[0] - T.max(state[0], state[2]))
                    state[0] = T.max(state[0], state[2])
                    state[1] = state[1] * state[3] + T.exp(state[2] - state[0])
                    for k in T.serial(e):
                        acc[k] = acc[k] * state[3] + T.exp(state[2] - state[0]) * T.Cast(
                            "float32",
                            PAGES[
                                IDS[PTR[SEQ[i]] + t // page_size],
                                1,
                                head // group,
                                t % page_size,
                                k,
                            ],
                        )
                for k in T.serial(e):
                    OUT[i, head, k] = T.Cast(dtype, acc[k] / state[1])

    return tag(
        func,
        "attention",
        {
            "heads": h,
            "kv_heads": g,
            "head_dim": e,
            "scale": scale,
            "window": window,
            "softcap": None,
            "slopes": [],
            "page_size": page_size,
            "kv_dtype": kv_dtype,
            "planes": 2,
            "sinks": True,
        },
    )
