"""A library with the interface of docs/design/compiled-library.md, compiled in seconds.

Its state is the tokens themselves. With h the sum over positions p of (p + 1) * token(p), read
back through the page tables, the logits of a row are table[h mod 16] + bias. `table` comes from
pack_0 (doubles `w`); `bias` is element 1 of what pack_1 makes of `a` and `b`: (a + b, a - b).
`scale`, which multiplies all, is used as it is stored.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import tvm
from numpy.typing import NDArray
from tvm.script import ir as I
from tvm.script import relax as R
from tvm.script import tirx as T

VOCAB, CONTEXT, PAGE = 16, 64, 4


def metadata(interface: str) -> dict[str, Any]:
    return {
        "schema": 2,
        "interface": interface,
        "name": "tiny",
        "vocab_size": VOCAB,
        "context": CONTEXT,
        "page_size": PAGE,
        "inputs": [
            "tokens",
            "positions",
            "sequences",
            "query_indptr",
            "pages.0",
            "logit_rows",
        ],
        "entries": ["forward"],
        "groups": [{"kind": "self", "window": 0}],
        "state": [{"kind": "paged_kv", "group": 0, "layers": 1, "shape": [PAGE], "dtype": "int32"}],
        "params": [
            {
                "name": "table",
                "shape": [16, 16],
                "dtype": "float32",
                "pack": "pack_0",
                "from": ["w"],
            },
            {"name": "scale", "shape": [1], "dtype": "float32", "from": ["scale"]},
            {
                "name": "bias",
                "shape": [16],
                "dtype": "float32",
                "pack": "pack_1",
                "from": ["a", "b"],
                "index": 1,
            },
        ],
    }


def module(text: str) -> tvm.IRModule:
    @I.ir_module
    class Tiny:
        @T.prim_func(private=True, s_tir=True)
        def double(w: T.Buffer((16, 16), "float32"), out: T.Buffer((16, 16), "float32")):
            for i in T.parallel(16):
                for j in T.serial(16):
                    out[i, j] = w[i, j] * T.float32(2)

        @T.prim_func(private=True, s_tir=True)
        def add(
            a: T.Buffer((16,), "float32"),
            b: T.Buffer((16,), "float32"),
            out: T.Buffer((16,), "float32"),
        ):
            for i in T.serial(16):
                out[i] = a[i] + b[i]

        @T.prim_func(private=True, s_tir=True)
        def subtract(
            a: T.Buffer((16,), "float32"),
            b: T.Buffer((16,), "float32"),
            out: T.Buffer((16,), "float32"),
        ):
            for i in T.serial(16):
                out[i] = a[i] - b[i]

        @T.prim_func(private=True, s_tir=True)
        def write(
            tokens_: T.handle,
            positions_: T.handle,
            sequences_: T.handle,
            page_indptr_: T.handle,
            page_ids_: T.handle,
            logit_rows_: T.handle,
            state_: T.handle,
            table: T.Buffer((16, 16), "float32"),
            scale: T.Buffer((1,), "float32"),
            bias: T.Buffer((16,), "float32"),
            logits_: T.handle,
        ):
            n, r1, p, m, pages = T.int64(), T.int64(), T.int64(), T.int64(), T.int64()
            tokens = T.match_buffer(tokens_, (n,), "int32")
            positions = T.match_buffer(positions_, (n,), "int32")
            sequences = T.match_buffer(sequences_, (n,), "int32")
            page_indptr = T.match_buffer(page_indptr_, (r1,), "int32")
            page_ids = T.match_buffer(page_ids_, (p,), "int32")
            logit_rows = T.match_buffer(logit_rows_, (m,), "int32")
            state = T.match_buffer(state_, (pages, 4), "int32")
            logits = T.match_buffer(logits_, (m, 16), "float32")
            for i in T.serial(n):
                page = page_ids[page_indptr[sequences[i]] + positions[i] // 4]
                state[page, positions[i] % 4] = tokens[i]
            for j in T.serial(m):
                row = logit_rows[j]
                logits[j, 0] = T.float32(0)  # h, until the logits are known
                for q in T.serial(positions[row] + 1):
                    page = page_ids[page_indptr[sequences[row]] + q // 4]
                    logits[j, 0] += T.Cast("float32", (q + 1) * state[page, q % 4])
                for i in T.serial(16):
                    v = 15 - i
                    h = T.Cast("int32", logits[j, 0]) % 16
                    logits[j, v] = (table[h, v] + bias[v]) * scale[0]

        @R.function
        def pack_0(w: R.Tensor((16, 16), "float32")):
            cls = Tiny
            return R.call_tir(cls.double, (w,), out_ty=R.Tensor((16, 16), "float32"))

        @R.function
        def pack_1(a: R.Tensor((16,), "float32"), b: R.Tensor((16,), "float32")):
            cls = Tiny
            plus = R.call_tir(cls.add, (a, b), out_ty=R.Tensor((16,), "float32"))
            minus = R.call_tir(cls.subtract, (a, b), out_ty=R.Tensor((16,), "float32"))
            return (plus, minus)

        @R.function
        def forward(
            tokens: R.Tensor(("n",), "int32"),
            positions: R.Tensor(("n",), "int32"),
            sequences: R.Tensor(("n",), "int32"),
            query_indptr: R.Tensor(("r1",), "int32"),
            page_indptr: R.Tensor(("r1",), "int32"),
            page_ids: R.Tensor(("p",), "int32"),
            logit_rows: R.Tensor(("m",), "int32"),
            state: R.Tensor(("pages", 4), "int32"),
            first: R.Tensor((16, 16), "float32"),
            second: R.Tensor((1,), "float32"),
            third: R.Tensor((16,), "float32"),
        ):
            cls = Tiny
            m = T.int64()
            return R.call_tir(
                cls.write,
                (
                    tokens,
                    positions,
                    sequences,
                    page_indptr,
                    page_ids,
                    logit_rows,
                    state,
                    first,
                    second,
                    third,
                ),
                out_ty=R.Tensor((m, 16), "float32"),
            )

        @R.function
        def _metadata():
            return R.str(text)

    return Tiny


def build(path: Path, interface: str) -> None:
    """Compile to a shared library."""
    library = module(json.dumps(metadata(interface)))
    tvm.compile(library, target=tvm.target.Target({"kind": "llvm"})).export_library(str(path))


def make_weights(seed: int) -> dict[str, NDArray[np.float32]]:
    rng = np.random.default_rng(seed)
    return {
        "scale": np.full(1, 3, "float32"),
        "w": rng.standard_normal((16, 16), dtype="float32"),
        "a": rng.standard_normal(16, dtype="float32"),
        "b": rng.standard_normal(16, dtype="float32"),
    }


def write_weights(folder: Path, weights: dict[str, NDArray[np.float32]]) -> None:
    """tensor-cache.json and one shard; `scale` comes first, so the others are not aligned."""
    folder.mkdir(exist_ok=True)
    records, data = [], b""
    for name, value in weights.items():
        records.append(
            {
                "name": name,
                "shape": list(value.shape),
                "dtype": str(value.dtype),
                "format": "raw",
                "nbytes": value.nbytes,
                "byteOffset": len(data),
            }
        )
        data += value.tobytes()
    shard = {
        "dataPath": "params_shard_0.bin",
        "format": "raw-shard",
        "nbytes": len(data),
        "records": records,
    }
    (folder / "params_shard_0.bin").write_bytes(data)
    (folder / "tensor-cache.json").write_text(json.dumps({"metadata": {}, "records": [shard]}))


def greedy(weights: dict[str, NDArray[np.float32]], prompt: list[int], n: int) -> list[int]:
    """What the library must give: n tokens."""
    tokens = list(prompt)
    for _ in range(n):
        h = sum((p + 1) * t for p, t in enumerate(tokens))
        logits = (2 * weights["w"][h % 16] + (weights["a"] - weights["b"])) * weights["scale"]
        tokens.append(int(np.argmax(logits)))
    return tokens[len(prompt) :]
