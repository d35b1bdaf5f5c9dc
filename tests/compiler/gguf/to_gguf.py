"""Converts a folder to GGUF with llama.cpp's own program: to_gguf.py SOURCES FOLDER FILE.

Its vocabularies are known by hashes of real tokenizers; a random model gets one of single letters.
"""

from __future__ import annotations

import sys
from pathlib import Path

sources, folder, out = map(Path, sys.argv[1:])
sys.path[:0] = [str(sources / "gguf-py"), str(sources)]

from conversion import base, get_model_class  # noqa: E402


def set_vocab(self) -> None:
    size = self.hparams["vocab_size"]
    tokens = [f"[{i}]" for i in range(size)]
    self.gguf_writer.add_tokenizer_model("llama")
    self.gguf_writer.add_token_list(tokens)
    self.gguf_writer.add_token_scores([0.0] * size)
    self.gguf_writer.add_token_types([1] * size)


config = base.ModelBase.load_hparams(folder, False)
kind = get_model_class(config["architectures"][0])
kind.set_vocab = set_vocab
kind.prepare_metadata = lambda self, vocab_only: kind.mro()[1].prepare_metadata(self, vocab_only)
kind(folder, base.gguf.LlamaFileType.ALL_F32, out).write()
