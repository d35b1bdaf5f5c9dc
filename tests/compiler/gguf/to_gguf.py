"""Converts folders to GGUF with llama.cpp's own program: to_gguf.py SOURCES FOLDER...

Each folder gets a model.gguf, and an mmproj.gguf if the model sees, or a model.txt with the reason
why not. The program knows vocabularies by hashes of real tokenizers; a random model gets one of
single tokens.
"""

from __future__ import annotations

import json
import sys
import traceback
from pathlib import Path

sources, *folders = map(Path, sys.argv[1:])
sys.path[:0] = [str(sources / "gguf-py"), str(sources)]  # its own `gguf`, which may be newer

from conversion import base, get_model_class  # noqa: E402


def set_vocab(self) -> None:
    size = self.hparams["vocab_size"]
    self.gguf_writer.add_tokenizer_model("llama")
    config = json.loads((self.dir_model / "config.json").read_text())
    image = config.get("image_token_id")
    name = "<|image_pad|>" if config["model_type"].startswith("qwen") else "<image>"
    tokens = [name if i == image else f"[{i}]" for i in range(size)]
    self.gguf_writer.add_token_list(tokens)
    self.gguf_writer.add_token_scores([0.0] * size)
    self.gguf_writer.add_token_types([1] * size)


for folder in folders:
    try:
        config = base.ModelBase.load_hparams(folder, False)
        kind = get_model_class(base.get_model_architecture(config, base.ModelType.TEXT))
        # Ministral's class has an instance of one of those within it.
        for own in (kind, *(own for own in vars(kind).values() if isinstance(own, type))):
            own.set_vocab = set_vocab
        kind.no_mtp = not config.get("mtp_num_hidden_layers")
        floats = base.gguf.LlamaFileType.ALL_F32
        kind(folder, floats, folder / "model.gguf").write()
        if "vision_config" in config:
            tower = get_model_class(config["architectures"][0], mmproj=True)
            tower(folder, floats, folder / "mmproj.gguf").write()
    except Exception:
        (folder / "model.gguf").unlink(missing_ok=True)
        (folder / "model.txt").write_text(traceback.format_exc())
