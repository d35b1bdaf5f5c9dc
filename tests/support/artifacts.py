"""A compiled folder for tests that run nothing of it, and changes to a manifest that fit."""

from __future__ import annotations

import dataclasses
import json
import platform
from collections.abc import Callable
from pathlib import Path
from typing import Any

from wherry.artifact import manifest as artifact
from wherry.base.temporary import write_atomically

CONTENT = {
    "model.so": b"library",
    "tensor-cache.json": b'{"records": []}',
    "params_shard_0.bin": b"weights",
}


def write(folder: Path, **changes: Any) -> artifact.Manifest:
    """A folder whose library and weights are texts; `changes` are fields of its manifest."""
    for name, content in CONTENT.items():
        (folder / name).write_bytes(content)
    manifest = artifact.Manifest(
        schema=artifact.SCHEMA_VERSION,
        key="k",
        interface=artifact.INTERFACE_HASH,
        wherry="0.1.0",
        tvm="0.27.0.post1",
        name="small",
        architecture={"name": "llama", "config": {}},
        quantization="q4f16_1",
        target={"name": "cpu", "kind": "llvm", "host": f"{platform.machine()}-linux-gnu"},
        deployment={"context": 512, "max_batch": 8, "prefill_chunk": 256, "page_size": 16}
        | {"longest": 2048, "kv_dtype": "float32", "activations": "int8"},
        memory={},
        capabilities=("completion",),
        library="model.so",
        files={p.name: artifact.record(p) for p in folder.iterdir() if p.name != artifact.MANIFEST},
    )
    manifest = dataclasses.replace(manifest, **changes)
    write_atomically(folder / artifact.MANIFEST, manifest.to_json())
    return manifest


def edit(folder: Path, change: Callable[[dict[str, Any]], Any]) -> None:
    """Change the manifest, and its digest with it."""
    path = folder / artifact.MANIFEST
    raw = json.loads(path.read_text())
    change(raw)
    path.write_text(json.dumps(raw | {"digest": artifact.digest(raw)}))
