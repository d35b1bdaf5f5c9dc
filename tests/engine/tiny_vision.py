"""A model that takes images, and its tower, compiled in seconds, as tests/engine/tiny_library.py.

The tower's feature k of row i is the sum over the row's two patches p of
place(p) + sum over j of patches[p, j] * m[j, k], where `pack_0` makes m = 2 * tower_w, and place(p)
is the weighted sum of the patch's two positions, and its row + 10 * its column.
The text model keeps for each position its token, or the sum of its image row's two features as an
integer. To both it adds time + 2 * height + 4 * width of the row's place, less 7 * its position,
and 5 * the number of rows after it that it attends to. With h the sum of (p + 1) * kept(p), its
logits are the row h mod 16 of w.
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

from . import tiny_library

PATCH, PATCHES_PER_ROW, FEATURES, TAPS = 6, 2, 2, 2
Array = NDArray[np.float32]


def _param(name: str, shape: list[int], **more: Any) -> dict[str, Any]:
    return {"name": name, "shape": shape, "dtype": "float32", "from": [name], **more}


def text_metadata(interface: str) -> dict[str, Any]:
    inputs = ["tokens", "positions", "sequences", "query_indptr", "image_rows", "rope_positions"]
    return tiny_library.metadata(interface) | {
        "inputs": [*inputs, "last_visible", "pages.0", "logit_rows", "image_features"],
        "image_features": FEATURES,
        "params": [_param("w", [16, 16])],
    }


def tower_metadata(interface: str, features: int) -> dict[str, Any]:
    return {
        "schema": 2,
        "interface": interface,
        "name": "tower",
        "inputs": ["patches", "positions", "position_weights", "coordinates"],
        "entries": ["see"],
        "position_taps": TAPS,
        "patch": PATCH,
        "patches_per_row": PATCHES_PER_ROW,
        "image_features": features,
        "params": [_param("tower_w", [PATCH, 2], pack="pack_0")],
    }


def text_module(text: str) -> tvm.IRModule:
    @I.ir_module
    class Text:
        @T.prim_func(private=True, s_tir=True)
        def write(
            tokens_: T.handle,
            positions_: T.handle,
            sequences_: T.handle,
            image_rows_: T.handle,
            rope_positions_: T.handle,
            last_visible_: T.handle,
            page_indptr_: T.handle,
            page_ids_: T.handle,
            logit_rows_: T.handle,
            features_: T.handle,
            state_: T.handle,
            table: T.Buffer((16, 16), "float32"),
            logits_: T.handle,
        ):
            n, r1, p, m = T.int64(), T.int64(), T.int64(), T.int64()
            f, pages = T.int64(), T.int64()
            tokens = T.match_buffer(tokens_, (n,), "int32")
            positions = T.match_buffer(positions_, (n,), "int32")
            sequences = T.match_buffer(sequences_, (n,), "int32")
            image_rows = T.match_buffer(image_rows_, (n,), "int32")
            places = T.match_buffer(rope_positions_, (n, 3), "int32")
            last_visible = T.match_buffer(last_visible_, (n,), "int32")
            page_indptr = T.match_buffer(page_indptr_, (r1,), "int32")
            page_ids = T.match_buffer(page_ids_, (p,), "int32")
            logit_rows = T.match_buffer(logit_rows_, (m,), "int32")
            features = T.match_buffer(features_, (f, 2), "float32")
            state = T.match_buffer(state_, (pages, 4), "int32")
            logits = T.match_buffer(logits_, (m, 16), "float32")
            for i in T.serial(n):
                page = page_ids[page_indptr[sequences[i]] + positions[i] // 4]
                if image_rows[i] >= 0:
                    row = image_rows[i]
                    state[page, positions[i] % 4] = T.Cast(
                        "int32", features[row, 0] + features[row, 1]
                    )
                else:
                    state[page, positions[i] % 4] = tokens[i]
                state[page, positions[i] % 4] += (
                    places[i, 0]
                    + 2 * places[i, 1]
                    + 4 * places[i, 2]
                    - 7 * positions[i]
                    + 5 * (last_visible[i] - positions[i])
                )
            for j in T.serial(m):
                row = logit_rows[j]
                logits[j, 0] = T.float32(0)  # h, until the logits are known
                for q in T.serial(positions[row] + 1):
                    page = page_ids[page_indptr[sequences[row]] + q // 4]
                    logits[j, 0] += T.Cast("float32", (q + 1) * state[page, q % 4])
                for i in T.serial(16):
                    v = 15 - i
                    h = T.Cast("int32", logits[j, 0]) % 16
                    logits[j, v] = table[h, v]

        @R.function
        def forward(
            tokens: R.Tensor(("n",), "int32"),
            positions: R.Tensor(("n",), "int32"),
            sequences: R.Tensor(("n",), "int32"),
            query_indptr: R.Tensor(("r1",), "int32"),
            image_rows: R.Tensor(("n",), "int32"),
            rope_positions: R.Tensor(("n", 3), "int32"),
            last_visible: R.Tensor(("n",), "int32"),
            page_indptr: R.Tensor(("r1",), "int32"),
            page_ids: R.Tensor(("p",), "int32"),
            logit_rows: R.Tensor(("m",), "int32"),
            image_features: R.Tensor(("f", 2), "float32"),
            state: R.Tensor(("pages", 4), "int32"),
            table: R.Tensor((16, 16), "float32"),
        ):
            cls = Text
            m = T.int64()
            return R.call_tir(
                cls.write,
                (
                    tokens,
                    positions,
                    sequences,
                    image_rows,
                    rope_positions,
                    last_visible,
                    page_indptr,
                    page_ids,
                    logit_rows,
                    image_features,
                    state,
                    table,
                ),
                out_ty=R.Tensor((m, 16), "float32"),
            )

        @R.function
        def _metadata():
            return R.str(text)

    return Text


def tower_module(text: str) -> tvm.IRModule:
    @I.ir_module
    class Seeing:
        @T.prim_func(private=True, s_tir=True)
        def double(w: T.Buffer((6, 2), "float32"), out: T.Buffer((6, 2), "float32")):
            for i in T.serial(6):
                for j in T.serial(2):
                    out[i, j] = w[i, j] * T.float32(2)

        @T.prim_func(private=True, s_tir=True)
        def compute(
            patches_: T.handle,
            positions_: T.handle,
            weights_: T.handle,
            coordinates_: T.handle,
            w: T.Buffer((6, 2), "float32"),
            out_: T.handle,
        ):
            n, rows = T.int64(), T.int64()
            patches = T.match_buffer(patches_, (n, 6), "float32")
            positions = T.match_buffer(positions_, (n, 2), "int32")
            weights = T.match_buffer(weights_, (n, 2), "float32")
            coordinates = T.match_buffer(coordinates_, (n, 2), "int32")
            out = T.match_buffer(out_, (rows, 2), "float32")
            for i, k in T.grid(rows, 2):
                out[i, k] = T.float32(0)
                for p in T.serial(2):
                    for t in T.serial(2):
                        out[i, k] += weights[i * 2 + p, t] * T.Cast(
                            "float32", positions[i * 2 + p, t]
                        )
                    out[i, k] += T.Cast(
                        "float32", coordinates[i * 2 + p, 0] + 10 * coordinates[i * 2 + p, 1]
                    )
                    for j in T.serial(6):
                        out[i, k] += patches[i * 2 + p, j] * w[j, k]

        @R.function
        def pack_0(w: R.Tensor((6, 2), "float32")):
            cls = Seeing
            return R.call_tir(cls.double, (w,), out_ty=R.Tensor((6, 2), "float32"))

        @R.function
        def see(
            patches: R.Tensor(("n", 6), "float32"),
            positions: R.Tensor(("n", 2), "int32"),
            position_weights: R.Tensor(("n", 2), "float32"),
            coordinates: R.Tensor(("n", 2), "int32"),
            w: R.Tensor((6, 2), "float32"),
        ):
            cls = Seeing
            n = T.int64()
            return R.call_tir(
                cls.compute,
                (patches, positions, position_weights, coordinates, w),
                out_ty=R.Tensor((n // 2, 2), "float32"),
            )

        @R.function
        def _metadata():
            return R.str(text)

    return Seeing


def build_text(path: Path, interface: str) -> None:
    """Compile the text model to a shared library."""
    _build(text_module(json.dumps(text_metadata(interface))), path)


def build_tower(path: Path, interface: str, features: int = FEATURES) -> None:
    """Compile the tower to a shared library, whose metadata says `features`."""
    _build(tower_module(json.dumps(tower_metadata(interface, features))), path)


def _build(module: tvm.IRModule, path: Path) -> None:
    tvm.compile(module, target=tvm.target.Target({"kind": "llvm"})).export_library(str(path))


def make_weights(seed: int) -> dict[str, Array]:
    """Small integers in the tower, so that no order of additions changes a sum."""
    rng = np.random.default_rng(seed)
    return {
        "w": rng.standard_normal((16, 16), dtype="float32"),
        "tower_w": rng.integers(-3, 4, (PATCH, FEATURES)).astype("float32"),
    }


def features(
    weights: dict[str, Array],
    values: Array,
    positions: NDArray[np.int32],
    position_weights: Array,
    coordinates: NDArray[np.int32],
) -> Array:
    """What the tower must give: values [n, PATCH] -> [n / PATCHES_PER_ROW, FEATURES]."""
    places = (positions * position_weights).sum(axis=1) + coordinates @ np.array([1, 10])
    rows = values @ (2 * weights["tower_w"]) + places[:, None]
    return rows.reshape(-1, PATCHES_PER_ROW, FEATURES).sum(axis=1)


def greedy(weights: dict[str, Array], kept: list[int], n: int, delta: int = 0) -> list[int]:
    """What the model must give: n tokens, after a prompt as it keeps it.

    delta: what M-RoPE adds to the positions of these tokens.
    """
    known, output = list(kept), []
    for _ in range(n):
        h = sum((p + 1) * t for p, t in enumerate(known))
        output.append(int(np.argmax(weights["w"][h % 16])))
        known.append(output[-1] + 7 * delta)
    return output
