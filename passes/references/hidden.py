"""PrimFuncs that write and read the hidden states which a multi-token prediction block needs.

They have no tag: the default schedules of all targets suffice, because each element is copied by
itself. A page [page_size, d] of hidden states belongs to the tokens of a page of the KV cache.
"""

from __future__ import annotations

from functools import cache

from tvm import tirx
from tvm.script import tirx as T

from wherry.ops import script

# Names of axes in this file: n rows, r sequences, d hidden.


@cache
def keep_hidden(d: int, page_size: int, dtype: str, kept: str) -> tirx.PrimFunc:
    """Return the PrimFunc that keeps rows in pages, and returns them.

    (x dtype [n, d], positions, sequences, page_indptr, page_ids, pages kept [pages, page_size, d]
    in place) -> dtype [n, d]
    """

    @script.prim_func(s_tir=True, private=True)
    def func(
        x: T.handle,
        positions: T.handle,
        sequences: T.handle,
        page_indptr: T.handle,
        page_ids: T.handle,
        pages: T.handle,
        out: T.handle,
    ):
        T.func_attr({"op_pattern": 8})
        n, r1, p, all_pages = T.int64(), T.int64(), T.int64(), T.int64()
        X = T.match_buffer(x, (n, d), dtype)
        POS = T.match_buffer(positions, (n,), "int32")
        SEQ = T.match_buffer(sequences, (n,), "int32")
        PTR = T.match_buffer(page_indptr, (r1,), "int32")
        IDS = T.match_buffer(page_ids, (p,), "int32")
        PAGES = T.match_buffer(pages, (all_pages, page_size, d), kept)
        Y = T.match_buffer(out, (n, d), dtype)
        for i, k in T.grid(n, d):
            with T.sblock("keep"):
                vi, vk = T.axis.remap("SS", [i, k])
                PAGES[IDS[PTR[SEQ[vi]] + POS[vi] // page_size], POS[vi] % page_size, vk] = T.Cast(
                    kept, X[vi, vk]
                )
                Y[vi, vk] = X[vi, vk]

    return func


@cache
def kept_hidden(d: int, page_size: int, dtype: str, kept: str) -> tirx.PrimFunc:
    """Return the PrimFunc that reads what is kept of the row before each row; zeros for the first.

    (positions, sequences, page_indptr, page_ids, pages kept [pages, page_size, d]) -> dtype [n, d]
    """

    @script.prim_func(s_tir=True, private=True)
    def func(
        positions: T.handle,
        sequences: T.handle,
        page_indptr: T.handle,
        page_ids: T.handle,
        pages: T.handle,
        out: T.handle,
    ):
        T.func_attr({"op_pattern": 8})
        n, r1, p, all_pages = T.int64(), T.int64(), T.int64(), T.int64()
        POS = T.match_buffer(positions, (n,), "int32")
        SEQ = T.match_buffer(sequences, (n,), "int32")
        PTR = T.match_buffer(page_indptr, (r1,), "int32")
        IDS = T.match_buffer(page_ids, (p,), "int32")
        PAGES = T.match_buffer(pages, (all_pages, page_size, d), kept)
        Y = T.match_buffer(out, (n, d), dtype)
        for i, k in T.grid(n, d):
            with T.sblock("kept"):
                vi, vk = T.axis.remap("SS", [i, k])
                Y[vi, vk] = T.if_then_else(
                    POS[vi] > 0,
                    T.Cast(
                        dtype,
                        PAGES[
                            IDS[PTR[SEQ[vi]] + T.max(POS[vi] - 1, 0) // page_size],
                            T.max(POS[vi] - 1, 0) % page_size,
                            vk,
                        ],
                    ),
                    T.Cast(dtype, T.float32(0)),
                )

    return func
