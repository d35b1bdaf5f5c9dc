"""Random models with a tokenizer, for both servers of a benchmark.

The tokenizer is byte-level BPE. Each word of `wherry.bench` is one token; the other ids are words
that no prompt has, so every sampled token has a text.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import gguf
import numpy as np

from wherry.bench.workload import WORDS

from .make_models import DEFAULT_FOLDER, describe, hf_folder, tensors_for_gguf
from .shapes import SHAPES

END = "<|endoftext|>"
_TEMPLATE = "{% for m in messages %}{{ m.content }}\n{% endfor %}"


def byte_characters() -> list[str]:
    """Return GPT-2's character for each byte: the byte itself if printable, else another one."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = iter(range(256, 512))
    return [chr(b if b in printable else next(others)) for b in range(256)]


def vocabulary(size: int) -> tuple[list[str], list[str]]:
    """Return tokens by id, and merges, in the form of GPT-2's files."""
    tokens, merges = [END, *byte_characters()], []
    space = byte_characters()[ord(" ")]
    known = set(tokens)
    for start in (space, ""):  # earlier merges have priority
        for word in WORDS:
            prefix = start or word[0]
            for letter in word if start else word[1:]:
                if prefix + letter not in known:
                    merges.append(f"{prefix} {letter}")
                    tokens.append(prefix + letter)
                    known.add(prefix + letter)
                prefix += letter
    tokens += [f"{space}w{i}" for i in range(size - len(tokens))]
    return tokens, merges


def readable_folder(folder: Path, shape: str) -> Path:
    """Return the Hugging Face folder of a shape, with a tokenizer.

    The folder is written if it does not exist.
    """
    out = folder / f"{shape}-words"
    if not (out / "tokenizer.json").is_file():
        model = hf_folder(folder, shape)
        out.mkdir(exist_ok=True)
        for path in model.iterdir():
            (out / path.name).unlink(missing_ok=True)
            (out / path.name).hardlink_to(path)
        (out / "tokenizer_config.json").write_text(
            json.dumps(
                {
                    "tokenizer_class": "PreTrainedTokenizerFast",
                    "eos_token": END,
                    "chat_template": _TEMPLATE,
                }
            )
        )
        (out / "tokenizer.json").write_text(json.dumps(_tokenizer(SHAPES[shape]["vocab_size"])))
    return out


def _tokenizer(size: int) -> dict[str, Any]:
    tokens, merges = vocabulary(size)
    level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True}
    return {
        "version": "1.0",
        "added_tokens": [
            {
                "id": 0,
                "content": END,
                "single_word": False,
                "lstrip": False,
                "rstrip": False,
                "normalized": False,
                "special": True,
            }
        ],
        "normalizer": None,
        "pre_tokenizer": level | {"use_regex": True},
        "post_processor": None,
        "decoder": level | {"use_regex": True},
        "model": {
            "type": "BPE",
            "vocab": {token: i for i, token in enumerate(tokens)},
            "merges": merges,
        },
    }


def readable_gguf(folder: Path, shape: str, kind: str) -> Path:
    """Return the GGUF file of a shape, with the same tokenizer; write it if it does not exist."""
    out = folder / f"{shape}-words-{kind}.gguf"
    if not out.is_file():
        config = SHAPES[shape]
        tokens, merges = vocabulary(config["vocab_size"])
        unfinished = out.with_suffix(".tmp")
        writer = gguf.GGUFWriter(unfinished, config["model_type"])
        describe(writer, config)
        writer.add_tokenizer_model("gpt2")
        writer.add_tokenizer_pre("gpt-2")
        writer.add_token_list(tokens)
        types = np.full(len(tokens), gguf.TokenType.NORMAL)
        types[0] = gguf.TokenType.CONTROL
        writer.add_token_types(types.tolist())
        writer.add_token_merges(merges)
        writer.add_eos_token_id(0)
        writer.add_bos_token_id(0)
        writer.add_add_bos_token(False)
        tensors_for_gguf(writer, config, kind)
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()
        unfinished.rename(out)
    return out


def main() -> None:
    """Write the models of all shapes, and print their paths."""
    for shape in SHAPES:
        print(readable_folder(DEFAULT_FOLDER, shape))
        print(readable_gguf(DEFAULT_FOLDER, shape, "q4_0"))


if __name__ == "__main__":
    main()
