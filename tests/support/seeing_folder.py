"""A tiny random SmolVLM, as on the hub."""

from __future__ import annotations

import json
from pathlib import Path

import torch
import transformers
from tokenizers import AddedToken

from ..runtime import small_tokenizers
from ..runtime.vision_model import LISTS, SETTINGS, SPECIALS
from .tiny_models import COMMON, randomise


def seeing_folder(folder: Path) -> Path:
    """Write the model's files; returns the folder."""
    backend = small_tokenizers.byte_level()
    backend.add_special_tokens([AddedToken(name, special=True) for name in SPECIALS])
    backend.save(str(folder / "tokenizer.json"))
    (folder / "tokenizer_config.json").write_text(json.dumps({"eos_token": "</s>"}))
    (folder / "chat_template.jinja").write_text(LISTS)
    (folder / "preprocessor_config.json").write_text(json.dumps(SETTINGS["processor"]))
    torch.manual_seed(4)
    config = transformers.AutoConfig.for_model(
        "smolvlm",
        text_config={"model_type": "llama", **COMMON, "vocab_size": 400},
        vision_config={
            "hidden_size": 48,
            "intermediate_size": 80,
            "num_hidden_layers": 2,
            "num_attention_heads": 3,
            **SETTINGS["vision_config"],
        },
        scale_factor=SETTINGS["scale_factor"],
        image_token_id=backend.token_to_id("<image>"),
        tie_word_embeddings=False,
    )
    model = transformers.AutoModelForImageTextToText.from_config(config).float().eval()
    randomise(model, 0)
    model.save_pretrained(folder)
    return folder
