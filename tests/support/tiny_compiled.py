"""The tiny library of the core's own tests as a compiled folder, with a tokenizer of 16 words."""

from __future__ import annotations

import importlib.util
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

from wherry.artifact import manifest as artifact

ROOT = Path(__file__).parents[2]


def compile_tiny(folder: Path) -> Callable[[list[int], int], list[int]]:
    """Fill `folder`; a function that says which n tokens have to follow a prompt, greedily."""
    tiny = _library()
    tiny.build(folder / "model.so", artifact.INTERFACE_HASH)
    weights = tiny.make_weights(0)
    tiny.write_weights(folder, weights)
    _write_tokenizer(folder, tiny.VOCAB)
    _write_manifest(folder, tiny)
    return lambda prompt, n: tiny.greedy(weights, prompt, n)


def _library() -> Any:
    """The library of the core's own tests."""
    path = ROOT / "tests" / "engine" / "tiny_library.py"
    spec = importlib.util.spec_from_file_location("tiny_library", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # the parser of TVMScript looks its source up
    spec.loader.exec_module(module)
    return module


def _write_tokenizer(folder: Path, vocab: int) -> None:
    tokenizer = Tokenizer(models.WordLevel({f"t{i}": i for i in range(vocab)}, unk_token="t0"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer.decoder = decoders.WordPiece(prefix="##", cleanup=False)
    tokenizer.add_special_tokens([AddedToken("t0", special=True)])
    tokenizer.save(str(folder / "tokenizer.json"))
    (folder / "tokenizer_config.json").write_text(json.dumps({"chat_template": "t1 t2"}))
    (folder / "generation_config.json").write_text('{"eos_token_id": []}')


def _write_manifest(folder: Path, tiny: Any) -> None:
    names = [p.name for p in folder.iterdir()]
    manifest = artifact.Manifest(
        schema=artifact.SCHEMA_VERSION,
        key="tiny",
        interface=artifact.INTERFACE_HASH,
        wherry="0.1.0",
        tvm="0.27.0.post1",
        name="tiny",
        architecture={"name": "tiny", "config": {}},
        quantization="none",
        target={"name": "cpu", "kind": "llvm"},
        deployment={"context": tiny.CONTEXT, "max_batch": 4},
        memory={},
        capabilities=(),
        library="model.so",
        files={n: artifact.record(folder / n) for n in names},
    )
    (folder / artifact.MANIFEST).write_text(manifest.to_json())
