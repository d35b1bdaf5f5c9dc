"""Writes random models of published shapes for both engines: `python -m benchmarks.make_models`.

Random weights cost the same time as real ones. Two steps of a real conversion to GGUF are left out,
because they change neither sizes nor costs: the permutation of Q's and K's rows for llama's RoPE,
and RoPE frequency factors.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gguf
import numpy as np
from safetensors.numpy import save_file

from .drive_llama import run_child
from .shapes import LARGE, SHAPES, weight_shapes

DEFAULT_FOLDER = Path.home() / ".cache" / "wherry-benchmarks"
ARCHS = {"gemma3_text": "gemma3"}  # names of architectures in llama.cpp, where they differ
TO_GGUF = Path(__file__).parents[1] / "tests" / "compiler" / "gguf" / "to_gguf.py"
GGUF_TYPES = {"q4_0": "Q4_0", "q8_0": "Q8_0", "f16": "F16", "f32": "F32"}


def tensors(config: dict[str, Any], seed: int = 0) -> Iterator[tuple[str, np.ndarray]]:
    """Yield random float16 weights: norms near 1, the rest with standard deviation 0.02."""
    rng = np.random.default_rng(seed)
    # The first expert's weights, which all experts of a layer share.
    first: dict[str, np.ndarray] = {}
    for name, shape in weight_shapes(config).items():
        of_all = re.sub(r"experts\.\d+", "experts", name)
        if of_all in first:
            yield name, first[of_all]
            continue
        centre, width = (1.0, 0.05) if len(shape) == 1 else (0.0, 0.02)
        values = rng.standard_normal(shape, dtype=np.float32)
        tensor = (centre + width * values).astype(np.float16)
        if of_all != name:
            first[of_all] = tensor
        yield name, tensor


def hf_folder(folder: Path, shape: str) -> Path:
    """Return the Hugging Face folder of a shape; write it if it does not exist."""
    out = folder / shape
    if not (out / "config.json").is_file():
        out.mkdir(parents=True, exist_ok=True)
        save_file(dict(tensors(SHAPES[shape])), out / "model.safetensors")
        (out / "config.json").write_text(json.dumps(SHAPES[shape], indent=1))
    return out


def gguf_file(folder: Path, shape: str, kind: str) -> Path:
    """Return the GGUF file of a shape; write it if it does not exist.

    Matrices have the type `kind`, norms are float32. Published q4_0 files often store the embedding
    as Q6_K; here both engines read the same number of bits.
    """
    out = folder / f"{shape}-{kind}.gguf"
    if not out.is_file():
        unfinished = out.with_suffix(".tmp")
        _write_gguf(unfinished, SHAPES[shape], kind)
        unfinished.rename(out)
    return out


def quantized_file(folder: Path, shape: str, kind: str) -> Path:
    """Return a shape's GGUF file of llama.cpp's mix `kind`, such as Q4_K_M; write it if need be.

    Raises:
        SystemExit: LLAMA_QUANTIZE does not name llama.cpp's program of that name.
    """
    out = folder / f"{shape}-{kind}.gguf"
    if not out.is_file():
        if not (program := os.environ.get("LLAMA_QUANTIZE")):
            raise SystemExit("Set LLAMA_QUANTIZE: see benchmarks/README.md.")
        unfinished = out.with_suffix(".tmp")
        given = converted if SHAPES[shape]["model_type"] == "qwen3_5_text" else gguf_file
        run_child([program, str(given(folder, shape, "f16")), str(unfinished), kind])
        unfinished.rename(out)
    return out


def converted(folder: Path, shape: str, _kind: str) -> Path:
    """Return a hybrid's GGUF file in float32, which llama.cpp's own program writes.

    Raises:
        SystemExit: WHERRY_LLAMA_CPP does not name llama.cpp's sources.
    """
    out = hf_folder(folder, shape) / "model.gguf"
    if not out.is_file():
        if not (sources := os.environ.get("WHERRY_LLAMA_CPP")):
            raise SystemExit("Set WHERRY_LLAMA_CPP: see benchmarks/README.md.")
        run_child([sys.executable, str(TO_GGUF), sources, str(out.parent)])
        assert out.is_file(), out.with_suffix(".txt").read_text()
    return out


def _write_gguf(path: Path, config: dict[str, Any], kind: str) -> None:
    writer = gguf.GGUFWriter(path, arch(config))
    describe(writer, config)
    _add_tokens(writer, config["vocab_size"])
    tensors_for_gguf(writer, config, kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def _add_tokens(writer: gguf.GGUFWriter, count: int) -> None:
    """Write a vocabulary of bytes and fillers: requests have token ids, but a file needs texts."""
    special = ["<unk>", "<s>", "</s>"]
    tokens = special + [f"<0x{byte:02X}>" for byte in range(256)]
    kinds = [gguf.TokenType.UNKNOWN, gguf.TokenType.CONTROL, gguf.TokenType.CONTROL]
    kinds += [gguf.TokenType.BYTE] * 256
    writer.add_tokenizer_model("llama")
    writer.add_token_list(tokens + [f"filler{i}" for i in range(len(tokens), count)])
    writer.add_token_types(kinds + [gguf.TokenType.NORMAL] * (count - len(tokens)))
    writer.add_token_scores([-float(i) for i in range(count)])


def tensors_for_gguf(writer: gguf.GGUFWriter, config: dict[str, Any], kind: str) -> None:
    """Add all weights to the writer; matrices have the type `kind`, norms are float32."""
    stored = gguf.GGMLQuantizationType[GGUF_TYPES[kind]]
    names = gguf.get_tensor_name_map(
        gguf.MODEL_ARCH[arch(config).upper()], config["num_hidden_layers"]
    )
    for name, values in tensors(config):
        if ".experts." in name:
            _add_experts(writer, config, names, name, values, stored)
            continue
        short = names.get_name(name, try_suffixes=(".weight",))
        assert short is not None, name
        wide = values.astype(np.float32)
        if values.ndim == 1 or name.endswith("mlp.gate.weight"):
            writer.add_tensor(short, wide)
        else:
            writer.add_tensor(short, gguf.quants.quantize(wide, stored), raw_dtype=stored)


def arch(config: dict[str, Any]) -> str:
    """Return the architecture's name in the Python package gguf."""
    return ARCHS.get(config["model_type"], str(config["model_type"]).replace("_", ""))


def _add_experts(
    writer: gguf.GGUFWriter,
    config: dict[str, Any],
    names: gguf.TensorNameMap,
    name: str,
    values: np.ndarray,
    stored: gguf.GGMLQuantizationType,
) -> None:
    """Add the weights of all experts, which are equal, when the first expert's come."""
    if ".experts.0." not in name:
        return
    short = names.get_name(name.replace(".experts.0.", ".experts."), try_suffixes=(".weight",))
    assert short is not None, name
    one = gguf.quants.quantize(values.astype(np.float32), stored)
    every = np.ascontiguousarray(np.broadcast_to(one, (config["num_experts"], *one.shape)))
    writer.add_tensor(short, every, raw_dtype=stored)


def describe(writer: gguf.GGUFWriter, config: dict[str, Any]) -> None:
    """Write the metadata: all fields but tensors and tokens."""
    writer.add_context_length(config["max_position_embeddings"])
    writer.add_embedding_length(config["hidden_size"])
    writer.add_block_count(config["num_hidden_layers"])
    writer.add_feed_forward_length(config["intermediate_size"])
    writer.add_head_count(config["num_attention_heads"])
    writer.add_head_count_kv(config["num_key_value_heads"])
    writer.add_key_length(config["head_dim"])
    writer.add_value_length(config["head_dim"])
    writer.add_rope_dimension_count(config["head_dim"])
    writer.add_rope_freq_base(config["rope_theta"])
    writer.add_layer_norm_rms_eps(config["rms_norm_eps"])
    writer.add_vocab_size(config["vocab_size"])
    if experts := config.get("num_experts"):
        writer.add_expert_count(experts)
        writer.add_expert_used_count(config["num_experts_per_tok"])
        writer.add_expert_feed_forward_length(config["moe_intermediate_size"])
    if config.get("sliding_window"):
        writer.add_sliding_window(config["sliding_window"])


def main() -> None:
    """Write the models of the named shapes, or of all shapes."""
    parser = argparse.ArgumentParser(description="Write random models of published shapes.")
    usual = [shape for shape in SHAPES if shape not in LARGE]
    parser.add_argument("shapes", nargs="*", default=usual, help=", ".join(SHAPES))
    parser.add_argument("--folder", type=Path, default=DEFAULT_FOLDER)
    parser.add_argument("--gguf", nargs="*", default=["q4_0"], choices=list(GGUF_TYPES))
    arguments = parser.parse_args()
    if unknown := [s for s in arguments.shapes if s not in SHAPES]:
        parser.error(f"unknown shapes {unknown}; known are {', '.join(SHAPES)}")
    for shape in arguments.shapes:
        print(hf_folder(arguments.folder, shape))
        for kind in arguments.gguf:
            print(gguf_file(arguments.folder, shape, kind))


if __name__ == "__main__":
    main()
