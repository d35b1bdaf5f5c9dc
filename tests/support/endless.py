"""A model whose answers do not end by themselves: for tests of what ends them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import wherry
from wherry.compiler.api import ensure_artifact

_DEMO = Path(wherry.__path__[0]) / "demo"
_CHANGES = {  # a full context takes a minute of attention, and nothing that is written ends it
    "config.json": {"max_position_embeddings": 16384, "eos_token_id": 5},
    "generation_config.json": {"eos_token_id": 5},
    "tokenizer_config.json": {"eos_token": "<|pad|>"},
}


def endless_demo(folder: Path) -> Path:
    """The demo for CPUs with sixteen times its context, ended by its padding alone.

    The demo itself fills its context in a quarter of a second.

    Args:
        folder: where the changed checkpoint goes, as `endless`.
    """
    artifact = folder / "endless"
    shutil.copytree(_DEMO, artifact)
    for name, changes in _CHANGES.items():
        values = json.loads((artifact / name).read_text())
        (artifact / name).write_text(json.dumps(values | changes))
    return Path(ensure_artifact(str(artifact), target="cpu"))
