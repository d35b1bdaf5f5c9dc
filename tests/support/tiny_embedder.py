"""A tiny random Qwen3 in the folders of sentence-transformers, and what torch makes of texts."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import tokenizers
import torch
from safetensors.torch import save_file
from tokenizers import models, pre_tokenizers, processors

from .tiny_models import save

WORDS = 300  # the vocabulary has 320
PROMPT = "w1 w2 w3 "  # of queries
YES, NO = 7, 9
TEMPLATE = (
    "{% for m in messages %}{% if m.role == 'system' %}w10 {{ m.content }} "
    "{% elif m.role == 'query' %}w11 {{ m.content }} {% else %}w12 {{ m.content }} "
    "{% endif %}{% endfor %}w13"
)


@dataclass(frozen=True)
class Embedder:
    """The folder, and its model in torch."""

    folder: Path
    model: torch.nn.Module
    tokenizer: tokenizers.Tokenizer

    def hidden(self, ids: list[int]) -> np.ndarray:
        """The last token's hidden state after the last norm, [d]."""
        with torch.no_grad():
            return self.model.base_model(torch.tensor([ids]))[0][0, -1].numpy()

    def vector(self, text: str) -> np.ndarray:
        """As sentence-transformers has it: last token, normalised, [d]."""
        hidden = self.hidden(self.tokenizer.encode(text).ids)
        return hidden / np.linalg.norm(hidden)

    def probability(self, text: str) -> float:
        """Of yes, against no, after a text."""
        ids = self.tokenizer.encode(text, add_special_tokens=False).ids
        with torch.no_grad():
            logits = self.model(torch.tensor([ids])).logits[0, -1]
        return float(torch.softmax(logits[[YES, NO]], 0)[0])


def words(seed: int, count: int) -> str:
    """A text of the given number of tokens."""
    return " ".join(f"w{i}" for i in np.random.default_rng(seed).integers(14, WORDS, count))


def make(folder: Path, modules: tuple[str, ...] = (), **config: Any) -> Embedder:
    """Save the model; with `modules` ("Pooling", "Normalize", "LogitScore") as their files say.

    An embedding model is stored as Qwen3-Embedding is: its config says Qwen3ForCausalLM, and the
    tensors have neither a head nor the prefix "model.".
    """
    model = save(folder, "qwen3", head_dim=32, **config)
    if "Pooling" in modules:
        state = model.base_model.state_dict()
        save_file({n: t.contiguous() for n, t in state.items()}, folder / "model.safetensors")
    tokenizer = _tokenizer(folder, ends="LogitScore" not in modules)
    if modules:
        _write_modules(folder, modules)
    if "LogitScore" in modules:
        (folder / "chat_template.jinja").write_text(TEMPLATE)
    return Embedder(folder, model, tokenizer)


def _tokenizer(folder: Path, *, ends: bool) -> tokenizers.Tokenizer:
    vocab = {f"w{i}": i for i in range(WORDS)} | {"</s>": WORDS}
    tokenizer = tokenizers.Tokenizer(models.WordLevel(vocab, unk_token="w0"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer.add_special_tokens(["</s>"])
    if ends:
        tokenizer.post_processor = processors.TemplateProcessing(
            single="$A </s>", special_tokens=[("</s>", WORDS)]
        )
    tokenizer.save(str(folder / "tokenizer.json"))
    (folder / "tokenizer_config.json").write_text(json.dumps({"eos_token": "</s>"}))
    return tokenizer


def _write_modules(folder: Path, names: tuple[str, ...]) -> None:
    home = "sentence_transformers.models"
    listed = [{"idx": 0, "name": "0", "path": "", "type": f"{home}.Transformer"}]
    for i, name in enumerate(names, 1):
        path = f"{i}_{name}"
        listed.append({"idx": i, "name": str(i), "path": path, "type": f"{home}.{name}"})
        (folder / path).mkdir(exist_ok=True)
    (folder / "modules.json").write_text(json.dumps(listed))
    if "Pooling" in names:
        modes = {"cls_token": False, "mean_tokens": False, "max_tokens": False}
        pooling = {f"pooling_mode_{name}": on for name, on in modes.items()}
        pooling |= {"word_embedding_dimension": 64, "pooling_mode_lasttoken": True}
        (folder / "1_Pooling" / "config.json").write_text(json.dumps(pooling))
        prompts = {"prompts": {"query": PROMPT, "document": ""}, "default_prompt_name": None}
        (folder / "config_sentence_transformers.json").write_text(json.dumps(prompts))
    if "LogitScore" in names:
        tokens = {"true_token_id": YES, "false_token_id": NO}
        (folder / "1_LogitScore" / "config.json").write_text(json.dumps(tokens))
