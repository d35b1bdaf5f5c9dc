"""A compiled folder whose model says what it is told to, whatever it is asked.

Its one weight is the script: `script[p]` is the token that follows position p of any sequence,
with logit 0 where all others have -1000, so that sampling has no choice.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import tvm
from tokenizers import Tokenizer
from tvm.script import ir as I
from tvm.script import relax as R
from tvm.script import tirx as T

from wherry.artifact import manifest as artifact

VOCAB, CONTEXT, PAGE = 512, 4096, 16


def _metadata_of(name: str) -> dict[str, Any]:
    state = {"kind": "paged_kv", "group": 0, "layers": 1, "shape": [PAGE], "dtype": "int32"}
    param = {"name": "script", "shape": [CONTEXT], "dtype": "int32", "from": ["script"]}
    return {
        "schema": 2,
        "interface": artifact.INTERFACE_HASH,
        "name": name,
        "vocab_size": VOCAB,
        "context": CONTEXT,
        "page_size": PAGE,
        "inputs": ["positions", "pages.0", "logit_rows"],
        "entries": ["forward"],
        "groups": [{"kind": "self", "window": 0}],
        "state": [state],
        "params": [param],
    }


def _module(text: str, pause: int) -> tvm.IRModule:
    @I.ir_module
    class Scripted:
        @T.prim_func(private=True, s_tir=True)
        def say(
            positions_: T.handle,
            logit_rows_: T.handle,
            script: T.Buffer((4096,), "int32"),
            logits_: T.handle,
        ):
            n, m = T.int64(), T.int64()
            positions = T.match_buffer(positions_, (n,), "int32")
            logit_rows = T.match_buffer(logit_rows_, (m,), "int32")
            logits = T.match_buffer(logits_, (m, 512), "float32")
            T.evaluate(T.call_extern("int32", "usleep", pause))
            for j in T.serial(m):
                for v in T.serial(512):
                    logits[j, v] = T.float32(-1000)
                logits[j, script[positions[logit_rows[j]]]] = T.float32(0)

        @R.function
        def forward(
            positions: R.Tensor(("n",), "int32"),
            page_indptr: R.Tensor(("r1",), "int32"),
            page_ids: R.Tensor(("p",), "int32"),
            logit_rows: R.Tensor(("m",), "int32"),
            state: R.Tensor(("pages", 16), "int32"),
            script: R.Tensor((4096,), "int32"),
        ):
            cls = Scripted
            m = T.int64()
            return R.call_tir(
                cls.say, (positions, logit_rows, script), out_ty=R.Tensor((m, 512), "float32")
            )

        @R.function
        def _metadata():
            return R.str(text)

    return Scripted


def build(path: Path, name: str, pause: int = 0) -> Path:
    """Compile the library that all folders of a model's name share.

    Args:
        pause: microseconds by which each step is slower.
    """
    module = _module(json.dumps(_metadata_of(name)), pause)
    tvm.compile(module, target=tvm.target.Target({"kind": "llvm"})).export_library(str(path))
    return path


@dataclass(frozen=True)
class ScriptedText:
    """Write a folder's files besides its library: tokenizer, template, and the answers.

    Attributes:
        prompt: tokens of the prompts after which `said` comes; then comes `eos`, for ever
        max_batch: sequences in one step
    """

    tokenizer: Tokenizer
    template: str
    special: Mapping[str, str]
    eos: int
    said: Sequence[int]
    prompt: int
    max_batch: int = 4


def write(folder: Path, library: Path, name: str, text: ScriptedText) -> Path:
    """Fill `folder`, which is made."""
    folder.mkdir(parents=True)
    os.link(library, folder / "model.so")
    text.tokenizer.save(str(folder / "tokenizer.json"))
    config = {**text.special, "chat_template": text.template}
    (folder / "tokenizer_config.json").write_text(json.dumps(config))
    (folder / "generation_config.json").write_text(json.dumps({"eos_token_id": text.eos}))
    script = np.full(CONTEXT, text.eos, "int32")
    begin = text.prompt - 1  # the prompt's last token
    script[begin : begin + len(text.said)] = text.said
    _write_weights(folder, script)
    files = {path.name: artifact.record(path) for path in folder.iterdir()}
    manifest = artifact.Manifest(
        schema=artifact.SCHEMA_VERSION,
        key=name,
        interface=artifact.INTERFACE_HASH,
        wherry="0.1.0",
        tvm="0.27.0.post1",
        name=name,
        architecture={"name": "scripted", "config": {}},
        quantization="none",
        target={"name": "cpu", "kind": "llvm"},
        deployment={"context": CONTEXT, "max_batch": text.max_batch},
        memory={},
        capabilities=(),
        library="model.so",
        files=files,
    )
    (folder / artifact.MANIFEST).write_text(manifest.to_json())
    return folder


def _write_weights(folder: Path, script: np.ndarray) -> None:
    record = {"name": "script", "shape": list(script.shape), "dtype": "int32", "format": "raw"}
    record |= {"nbytes": script.nbytes, "byteOffset": 0}
    shard = {"dataPath": "params_shard_0.bin", "format": "raw-shard", "nbytes": script.nbytes}
    (folder / "params_shard_0.bin").write_bytes(script.tobytes())
    index = {"metadata": {}, "records": [{**shard, "records": [record]}]}
    (folder / artifact.INDEX).write_text(json.dumps(index))
