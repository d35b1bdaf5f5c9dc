"""Embeddings of short texts, against torch and ONNX Runtime: `python -m benchmarks.embeddings`.

MODEL is a sentence-transformers folder with the modules Transformer, Pooling (mean) and Normalize.
All sides run in one process with one thread, in turn, on the same texts; a time is CPU time and
includes tokenization. The peers take batches of 32 texts of similar length, as
sentence-transformers makes them, in float32. ONNX Runtime's side needs
`pip install onnx onnxruntime`.
"""

from __future__ import annotations

import argparse
import io
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import tokenizers
import torch
import transformers

from wherry import MLCEngine

from .rows import ROWS, machine, versions, write_row

BATCH = 32  # texts of a peer's batch
WORDS = """the a quick brown fox jumps over lazy dog compiler toolchain deploys language models on
phones servers browsers with weights while embeddings measure similarity between sentences about
science history music food travel law medicine sport how do what is where can we find it""".split()
Side = Callable[[Sequence[str]], np.ndarray]  # texts -> unit vectors, float32 [texts, d]


def short_texts(count: int) -> list[str]:
    """Return texts of 4 to 24 words: queries, titles and single sentences."""
    rng = np.random.default_rng(0)
    return [" ".join(rng.choice(WORDS, n)) for n in rng.integers(4, 25, count)]


class Batches:
    """The peers' batches: padded token ids and masks, int64 [texts, longest]."""

    def __init__(self, folder: Path) -> None:
        self.tokenizer = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
        self.tokenizer.enable_padding()
        self.tokenizer.enable_truncation(256)

    def of(self, texts: Sequence[str]) -> Iterator[tuple[list[int], np.ndarray, np.ndarray]]:
        """Yield (indices of texts, ids, mask) of each batch, texts of similar length together."""
        order = sorted(range(len(texts)), key=lambda i: -len(texts[i]))
        for first in range(0, len(order), BATCH):
            chosen = order[first : first + BATCH]
            encoded = self.tokenizer.encode_batch([texts[i] for i in chosen])
            ids, mask = ([getattr(x, name) for x in encoded] for name in ("ids", "attention_mask"))
            yield chosen, np.array(ids), np.array(mask)


def peer(batches: Batches, compute: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> Side:
    """Return the side of a program that has (ids, mask) -> rows float32 [texts, longest, d]."""

    def vectors(texts: Sequence[str]) -> np.ndarray:
        rows: list[Any] = [None] * len(texts)
        for chosen, ids, mask in batches.of(texts):
            weights = mask[:, :, None].astype(np.float32)
            means = (compute(ids, mask) * weights).sum(1) / weights.sum(1)
            for i, row in zip(chosen, means, strict=True):
                rows[i] = row / np.linalg.norm(row)
        return np.array(rows)

    return vectors


def torch_side(model: torch.nn.Module, batches: Batches) -> Side:
    """Return torch's side, in eager mode, with its fused attention."""

    def compute(ids: np.ndarray, mask: np.ndarray) -> np.ndarray:
        with torch.inference_mode():
            given = {"input_ids": torch.from_numpy(ids), "attention_mask": torch.from_numpy(mask)}
            rows: np.ndarray = model(**given).last_hidden_state.numpy()
            return rows

    return peer(batches, compute)


class Rows(torch.nn.Module):
    """A model whose arguments are arrays: (ids, mask) -> rows of the last layer."""

    def __init__(self, model: torch.nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """Compute float32 [texts, tokens, d]."""
        rows: torch.Tensor = self.model(input_ids=ids, attention_mask=mask).last_hidden_state
        return rows


def onnx_side(folder: Path, batches: Batches) -> Side:
    """Return ONNX Runtime's side: torch's exported graph with all of its optimizations."""
    import onnxruntime  # of no extra: this file's docstring says how to install it

    # the mask of the fused attention has no ONNX operators
    model = transformers.AutoModel.from_pretrained(folder, attn_implementation="eager").eval()

    file: Any = io.BytesIO()
    one = torch.ones(2, 8, dtype=torch.int64)
    axes = {0: "texts", 1: "tokens"}
    torch.onnx.export(
        Rows(model), (one, one), file, dynamo=False,
        input_names=["ids", "mask"], output_names=["rows"],
        dynamic_axes={"ids": axes, "mask": axes, "rows": axes},
    )  # fmt: skip
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
    session = onnxruntime.InferenceSession(
        file.getvalue(), options, providers=["CPUExecutionProvider"]
    )
    return peer(batches, lambda ids, mask: session.run(["rows"], {"ids": ids, "mask": mask})[0])


def wherry_side(engine: MLCEngine) -> Side:
    """Return Wherry's side: a request with all texts."""

    def vectors(texts: Sequence[str]) -> np.ndarray:
        answer = engine.embeddings.create(input=list(texts), encoding_format="float")
        return np.array([item.embedding for item in answer.data], np.float32)

    return vectors


def seconds(sides: dict[str, Side], texts: Sequence[str], rounds: int) -> dict[str, float]:
    """Return the median CPU seconds of each side, which run in turn."""
    times_of: dict[str, list[float]] = {name: [] for name in sides}
    for _ in range(rounds):
        for name, side in sides.items():
            begin = time.process_time()
            side(texts)
            times_of[name].append(time.process_time() - begin)
    return {name: statistics.median(times) for name, times in times_of.items()}


def main() -> None:
    """Measure, print, and write a row for each quantization."""
    parser = argparse.ArgumentParser(description="Embeddings of short texts on a CPU.")
    parser.add_argument("model", type=Path)
    parser.add_argument("--texts", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--quant", nargs="+", default=["q8f16_1", "q0f32"])
    parser.add_argument("--dry", action="store_true", help="write no rows")
    a = parser.parse_args()
    torch.set_num_threads(1)
    model = transformers.AutoModel.from_pretrained(a.model).eval()
    batches, texts = Batches(a.model), short_texts(a.texts)
    sides = {"torch": torch_side(model, batches), "onnxruntime": onnx_side(a.model, batches)}
    engines = {quant: MLCEngine(str(a.model), quant=quant) for quant in a.quant}
    sides |= {quant: wherry_side(engine) for quant, engine in engines.items()}
    expected = sides["torch"](texts[:64])
    least = {name: float((f(texts[:64]) * expected).sum(1).min()) for name, f in sides.items()}
    medians = seconds(sides, texts, a.rounds)
    for name, time_ in medians.items():
        print(f"{name:12} {time_:8.3f} s, least cosine {least[name]:.5f}")
    for quant in a.quant:
        row = {
            "shape": a.model.name if a.model.name != "model" else a.model.parent.name,
            "what": "embeddings", "threads": 1, "quant": quant, "texts": a.texts,
            "least_cosine": least[quant],
            "ratio_torch_cpu": medians["torch"] / medians[quant],
            "ratio_onnxruntime_cpu": medians["onnxruntime"] / medians[quant],
            "machine": machine(), "versions": versions(),
        }  # fmt: skip
        print(quant, {name: round(row[name], 2) for name in row if name.startswith("ratio")})
        if not a.dry:
            print(write_row(ROWS, row))
    for engine in engines.values():
        engine.close()


if __name__ == "__main__":
    main()
