"""Compares encodings of a small model by the KL divergence of the next token's distribution.

    python -m benchmarks.encodings demo
    python -m benchmarks.encodings DIR --gguf DIR/model-q4_k_m.gguf --text FILE

Every encoding's weights are decoded to floats and run in one compiled float model, so that nothing
but the weights differs. The first is mlc-llm's rule: the largest weight of a group by 7. A GGUF
file of the same model is measured with its own encoding.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import gguf
import numpy as np
from numpy.typing import NDArray

from wherry.artifact.manifest import read_manifest
from wherry.compiler.api import convert_model, ensure_artifact
from wherry.compiler.quality.compare import Recorded, compare, record
from wherry.compiler.quality.session import Session
from wherry.compiler.quality.texts import given, shipped, windows
from wherry.compiler.weight_cache import StoredTensors, load_state
from wherry.compiler.weight_marker import own_of
from wherry.quant.plan import SchemeRows
from wherry.quant.scheme import find

Floats = NDArray[np.float32]
Weights = Mapping[str, Floats]  # a model's parameters in floats, by name
FLOAT = "q0f32"
MATRICES = find("q4f16_1")  # its matrices are those that every encoding changes
PLAIN, CALIBRATED = ("q4f16_1",), ("q4f16_1", "auto:4.5", "auto:3.5")


def by_seven(w: Floats) -> Floats:
    """Return w [..., in] as mlc-llm's rule rounds it: groups of 32, the largest weight is 7."""
    groups = w.reshape(*w.shape[:-1], -1, 32)
    scale = (np.abs(groups).max(-1, keepdims=True) / 7).astype(np.float16).astype(np.float32)
    q = np.clip(np.rint(groups / np.where(scale == 0, np.float32(1), scale)), -7, 7)
    dequantized: Floats = (q * scale).reshape(w.shape).astype(np.float32)
    return dequantized


def decoded(folder: Path, weights: Weights) -> Weights:
    """Return the parameters that a converted folder has."""
    state, own = load_state(folder), own_of(folder)
    tensors: dict[str, Floats] = {}
    for name, w in weights.items():
        parts = []
        for part in own.get(name, (SchemeRows(name, len(w), MATRICES),)):
            prefix = part.name.removesuffix("weight")
            arrays = {n.removeprefix(prefix): a for n, a in state.items() if n.startswith(prefix)}
            if "q_weight" in arrays or "q_scale" in arrays:
                parts.append(part.scheme.decode(arrays, w.shape[-1]))
            else:
                parts.append(state[part.name].astype(np.float32))
        tensors[name] = np.concatenate(parts) if w.ndim else parts[0]
    return tensors


def nbytes(folder: Path) -> int:
    """Return the bytes of a converted folder's weights."""
    return sum(path.stat().st_size for path in folder.glob("params_shard_*.bin"))


class _Stored(StoredTensors):
    """Parameters in memory, in the place of a folder's."""

    def __init__(self, weights: Weights) -> None:
        self.weights = weights

    def read(self, name: str) -> NDArray[Any]:
        """Return a parameter."""
        return self.weights[name]


def variants(args: argparse.Namespace, work: Path) -> Iterator[tuple[str, int, Weights]]:
    """Yield (name, bytes of all weights, parameters) of each encoding."""
    model, plain, files = args.model, "none", args.gguf
    weights = load_state(convert_model(model, work / "float", quant=FLOAT))
    rounded = {
        name: by_seven(w) if MATRICES.quantizes(name, w.shape) and w.shape[-1] % 32 == 0 else w
        for name, w in weights.items()
    }
    encodings = [*((q, plain) for q in PLAIN), *((q, args.calibration) for q in args.quant)]
    for quant, calibration in encodings:
        out = work / f"{quant}-{Path(calibration).name}".replace(":", "-")
        folder = convert_model(model, out, quant=quant, calibration=calibration)
        if calibration == plain:
            state = load_state(folder)  # what has no codes stays a float there, too
            stays = {n: rounded[n] if n not in state else weights[n] for n in weights}
            yield "largest by 7", nbytes(folder), stays
        yield f"{quant}, {calibration}", nbytes(folder), decoded(folder, weights)
    for path in files:
        size = sum(int(tensor.n_bytes) for tensor in gguf.GGUFReader(path).tensors)
        folder = convert_model(str(path), work / path.stem, quant=FLOAT)
        yield path.name, size, load_state(folder)


def main() -> None:
    """Print a line for each encoding."""
    parser = argparse.ArgumentParser(description="Compare encodings of a model.")
    parser.add_argument("model")
    parser.add_argument("--gguf", type=Path, nargs="*", default=[])
    parser.add_argument("--text", type=Path, help="text to compare on; default: the quality card's")
    parser.add_argument("--quant", nargs="*", default=CALIBRATED, help="encodings to calibrate")
    parser.add_argument("--calibration", default="builtin", help="a text file, or builtin")
    args = parser.parse_args()
    folder = ensure_artifact(
        args.model, target="cpu", quant=FLOAT, kv_dtype="float32", activations="float"
    )
    session = Session(folder, read_manifest(folder))
    text = given(args.text) if args.text else shipped("evaluation")
    texts = windows(text, folder, session.window)
    with tempfile.TemporaryDirectory() as work, Recorded() as recorded:
        record(session, texts, recorded, lambda _: None)
        for name, size, weights in variants(args, Path(work)):
            session._params = list(session._load(_Stored(weights)))
            recorded.rewind()
            quality = compare(session, texts, recorded, lambda _: None)
            print(
                f"{name:24} {size:>10,} bytes  KL {quality.kl_mean:.5f}  p99 {quality.kl_p99:.4f}  "
                f"top-1 {quality.top1_agreement:.1%}  perplexity {quality.perplexity:.2f} "
                f"(float {quality.reference_perplexity:.2f}), {quality.tokens:,} tokens",
                flush=True,
            )


if __name__ == "__main__":
    main()
