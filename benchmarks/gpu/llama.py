"""Measures llama.cpp: `python -m benchmarks.gpu.llama SOURCES NAME=CONFIG... [--sizes SIZES]`.

Builds its own benchmarks from the bundle's sources (minutes) and prints a JSON row for each model:
random weights in Q4_0 and bfloat16, prompts and batches as in `measure.py`, flash attention on.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..shapes import weight_shapes
from .measure import STEPS, Sizes

BLOCK = 1 << 20  # random numbers to draw; a larger tensor repeats them
Q4_0 = np.dtype([("scale", "<f2"), ("numbers", "u1", 16)])  # 32 weights
KINDS = ("q4_0", "bf16")


def build(sources: Path, place: Path, device: str = "cuda") -> Path:
    """Compile llama.cpp's two benchmark programs; return their folder."""
    flags = {
        "CMAKE_BUILD_TYPE": "Release",
        "BUILD_SHARED_LIBS": "OFF",
        "GGML_NATIVE": "OFF",  # llama.cpp's code for AMX crashes on some machines
        "LLAMA_OPENSSL": "OFF",
        "LLAMA_BUILD_TESTS": "OFF",
        "LLAMA_BUILD_EXAMPLES": "OFF",
        "LLAMA_BUILD_SERVER": "OFF",
        "LLAMA_BUILD_APP": "OFF",
    }
    if device == "cuda":
        flags |= {"GGML_CUDA": "ON", "CMAKE_CUDA_ARCHITECTURES": "native"}
        # with virtual memory, linking needs a stub of the driver
        flags |= {"GGML_CUDA_NO_VMM": "ON"} | cublas()
    set_to = [f"-D{name}={value}" for name, value in flags.items()]
    _run(["cmake", "-S", str(sources), "-B", str(place), *set_to])
    targets = ["--target", "llama-bench", "llama-batched-bench"]
    _run(["cmake", "--build", str(place), "-j", str(os.cpu_count()), *targets])
    return place / "bin"


def _run(command: list[str]) -> str:
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        said = (done.stdout + done.stderr)[-3000:]
        raise SystemExit(f"{' '.join(command[:6])} failed ({done.returncode}):\n{said}")
    return done.stdout


def cublas() -> dict[str, str]:
    """Find cuBLAS in PyPI's packages, where CMake does not look; return CMake variables."""
    spec = importlib.util.find_spec("nvidia")
    for root in spec.submodule_search_locations or () if spec else ():
        for header in Path(root).glob("*/include/cublas_v2.h"):
            library = header.parents[1] / "lib"
            variables = {
                f"CUDA_{stem}_LIBRARY": str(path)
                for stem in ("cublas", "cublasLt")
                for path in library.glob(f"lib{stem}.so.*")
            }
            flags = f"-I{header.parent}"
            return variables | {"CMAKE_CUDA_FLAGS": flags, "CMAKE_CXX_FLAGS": flags}
    return {}


def random_bytes(kind: str, seed: int = 0) -> np.ndarray:
    """Return bytes of random weights of about 0.02: uint8, some BLOCK weights of `kind`."""
    rng = np.random.default_rng(seed)
    if kind == "bf16":
        wide = 0.02 * rng.standard_normal(BLOCK, dtype=np.float32)
        return (wide.view(np.uint32) >> 16).astype(np.uint16).view(np.uint8)
    blocks = np.zeros(BLOCK // 32, Q4_0)
    blocks["scale"] = 0.003 + 0.0003 * rng.standard_normal(len(blocks))
    blocks["numbers"] = rng.integers(0, 256, (len(blocks), 16))
    return blocks.view(np.uint8)


def write(path: Path, config: dict[str, Any], kind: str) -> None:
    """Write a GGUF file of random weights; matrices have `kind`, norms are float32."""
    import gguf

    from ..make_models import arch, describe

    writer = gguf.GGUFWriter(path, arch(config))
    describe(writer, config)
    writer.add_tokenizer_model("none")
    stored = gguf.GGMLQuantizationType[kind.upper()]
    of_block, bytes_of_block = gguf.GGML_QUANT_SIZES[stored]
    drawn = random_bytes(kind)
    names = gguf.get_tensor_name_map(
        gguf.MODEL_ARCH[arch(config).upper()], config["num_hidden_layers"]
    )
    for name, shape in weight_shapes(config).items():
        short = names.get_name(name, try_suffixes=(".weight",))
        assert short is not None, name
        if len(shape) == 1:
            writer.add_tensor(short, np.ones(shape, np.float32))
            continue
        row = shape[1] // of_block * bytes_of_block
        values = np.resize(drawn, (shape[0], row))
        writer.add_tensor(short, values, raw_dtype=stored)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def measure(programs: Path, model: Path, sizes: Sizes, device: str) -> dict[str, Any]:
    """Run llama.cpp's benchmarks; return tokens per second of a prompt and of each batch size."""
    layers = ["-ngl", "99" if device == "cuda" else "0", "-m", str(model)]
    length = str(sizes.prefill)
    prompt = ["-p", length, "-n", "0", "-b", length, "-ub", length, "-fa", "1", "-o", "json"]
    (bench,) = json.loads(_run([str(programs / "llama-bench"), *layers, *prompt]))
    row: dict[str, Any] = {"build": bench["build_commit"], "weights": bench["model_size"]}
    row["prefill_tokens_s"] = bench["avg_ts"]
    for line in _batches(programs, layers, sizes):
        seconds = line["t_tg"] / line["tg"]
        decoded = {"step_s": seconds, "tokens_s": line["pl"] / seconds}
        row.setdefault(f"decode_{line['pl']}", decoded)
    return row


def _batches(programs: Path, layers: Sequence[str], sizes: Sizes) -> Iterator[dict[str, Any]]:
    tokens = max(sizes.batches) * (sizes.context + STEPS)
    numbers = {"-npp": sizes.context, "-ntg": STEPS, "-c": tokens, "-fa": "on"}
    # The program may exit before its last line is written, so one more size is requested.
    numbers |= {"-b": 2048, "-npl": ",".join(map(str, (*sizes.batches, 1)))}
    given = [str(part) for pair in numbers.items() for part in pair]
    command = [str(programs / "llama-batched-bench"), *layers, *given]
    out = _run([*command, "--output-format", "jsonl"])
    return (json.loads(line) for line in out.splitlines() if line.startswith("{"))


def main() -> None:
    """Build the programs; then measure and print a row for each model and kind."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("sources", type=Path)
    parser.add_argument("models", nargs="+", help="NAME={config.json}")
    parser.add_argument("--sizes", default="{}")
    parser.add_argument("--device", default="cuda", choices=("cuda", "cpu"))
    parser.add_argument("--programs", type=Path, help="a folder that has them already")
    given = parser.parse_args()
    sizes = Sizes(**json.loads(given.sizes))
    sys.path.insert(0, str(given.sources / "gguf-py"))
    with tempfile.TemporaryDirectory() as folder:
        programs = given.programs or build(given.sources, Path(folder) / "build", given.device)
        for name, config in (text.split("=", 1) for text in given.models):
            for kind in KINDS:
                path = Path(folder) / f"{name}-{kind}.gguf"
                write(path, json.loads(config), kind)
                row = {"peer": "llama.cpp", "model": name, "quant": kind, "context": sizes.context}
                row |= measure(programs, path, sizes, given.device)
                path.unlink()
                print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main()
