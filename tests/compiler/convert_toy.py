"""A small architecture and checkpoint; run as a program, converts it and can kill itself."""

import argparse
import json
import os
import signal
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import tokenizers
from safetensors.numpy import save_file

from wherry.models.arch import Architecture, RopeConfig, concat, drop, rename, tie


@dataclass(frozen=True, slots=True, kw_only=True)
class ToyConfig:
    hidden_size: int
    num_hidden_layers: int
    vocab_size: int
    rope: RopeConfig
    tie_word_embeddings: bool = False


ARCH = Architecture(
    name="toy",
    config=ToyConfig,
    model=object,
    weights=(
        concat("qkv_proj.weight", "q_proj.weight", "k_proj.weight", "v_proj.weight"),
        tie("lm_head.weight", "model.embed.weight"),
        rename("model.embed.weight", "model.wte.weight"),
        drop("rotary_emb.inv_freq"),
    ),
)


def parameters(d, layers, vocab):
    shapes = {"model.embed.weight": (vocab, d)}
    for i in range(layers):
        shapes[f"model.layers.{i}.qkv_proj.weight"] = (2 * d, d)
        shapes[f"model.layers.{i}.qkv_proj.bias"] = (2 * d,)
        shapes[f"model.layers.{i}.norm.weight"] = (d,)
    shapes["lm_head.weight"] = (vocab, d)
    return shapes


def checkpoint(d, layers, vocab, seed=0):
    rng = np.random.default_rng(seed)

    def make(*shape):
        return rng.standard_normal(shape, dtype=np.float32) * np.float32(0.05)

    tensors = {"model.wte.weight": make(vocab, d), "lm_head.weight": make(vocab, d)}
    for i in range(layers):
        for name, rows in (("q", d), ("k", d // 2), ("v", d - d // 2)):
            tensors[f"model.layers.{i}.{name}_proj.weight"] = make(rows, d)
        tensors[f"model.layers.{i}.qkv_proj.bias"] = make(2 * d)
        tensors[f"model.layers.{i}.norm.weight"] = make(d)
        tensors[f"model.layers.{i}.rotary_emb.inv_freq"] = make(4)
    return tensors


def write_folder(folder: Path, tensors, *, d, layers, vocab, shards=1, **config):
    folder.mkdir(parents=True, exist_ok=True)
    hf = {"model_type": "toy", "hidden_size": d, "num_hidden_layers": layers, "vocab_size": vocab}
    (folder / "config.json").write_text(json.dumps(hf | config))
    tokenizers.Tokenizer(tokenizers.models.BPE()).save(str(folder / "tokenizer.json"))
    (folder / "chat_template.jinja").write_text("{{ messages }}")
    (folder / "README.md").write_text("not copied")
    if shards == 1:
        save_file(tensors, folder / "model.safetensors")
        return folder
    names = list(tensors)
    weight_map = {}
    for i in range(shards):
        file = f"model-{i + 1:05}-of-{shards:05}.safetensors"
        part = {n: tensors[n] for n in names[i::shards]}
        save_file(part, folder / file)
        weight_map |= dict.fromkeys(part, file)
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": weight_map}))
    return folder


def weights(source, parameters, arch=ARCH, **others):
    """What `convert` takes of a folder."""
    from wherry.compiler.checkpoint.folder import read_folder
    from wherry.compiler.convert import ModelWeights
    from wherry.compiler.load import Described
    from wherry.models.arch import read_config

    folder = read_folder(source)
    described = Described(arch, read_config(arch.config, folder.raw), folder)
    return ModelWeights(described=described, parameters=parameters, **others)


def die():
    os.kill(os.getpid(), signal.SIGKILL)


def main(argv):
    from wherry.compiler import convert, weight_cache

    parser = argparse.ArgumentParser()
    parser.add_argument("source", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--scheme", default="q4f16_1")
    parser.add_argument("--size", type=int, nargs=3)
    parser.add_argument("--shard-bytes", type=int)
    parser.add_argument("--kill-at-block", type=int)
    parser.add_argument("--kill-at-rename", type=int)
    parser.add_argument("--memory", action="store_true")
    args = parser.parse_args(argv)
    if args.shard_bytes:
        convert.lay_out.__defaults__ = (args.shard_bytes,)
    blocks = renames = 0

    def progress(what, done, total):
        nonlocal blocks
        assert what == "convert" and 0 < done <= total
        blocks += 1
        if blocks == args.kill_at_block:
            die()

    def replace(self, target, real=Path.replace):
        nonlocal renames
        renames += 1
        if renames == args.kill_at_rename:
            die()
        return real(self, target)

    Path.replace = replace
    assert weight_cache.lay_out is convert.lay_out
    if args.memory:
        from resource import RUSAGE_SELF, getrusage

        before = getrusage(RUSAGE_SELF).ru_maxrss
    convert.convert(
        weights(args.source, parameters(*args.size), scheme=args.scheme),
        args.out,
        progress=progress,
    )
    peak = (getrusage(RUSAGE_SELF).ru_maxrss - before) * 1024 if args.memory else 0
    print(json.dumps({"blocks": blocks, "renames": renames, "peak": peak}))


if __name__ == "__main__":
    main(sys.argv[1:])
