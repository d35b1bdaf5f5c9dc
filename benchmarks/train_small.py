"""Trains a small model of some families on this repository's own text, to measure encodings with.

    python benchmarks/train_small.py qwen3 --minutes 8 -o DIR

Random models have no quality to lose. The demo's tokenizer (2,048 tokens) reads the pages and the
Python sources; the result is an ordinary Hugging Face folder in float32.
"""

from __future__ import annotations

import argparse
import math
import shutil
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers
from tokenizers import Tokenizer

REPO = Path(__file__).resolve().parent.parent
DEMO = REPO / "src" / "wherry" / "demo"
ROWS, LENGTH = 8, 128  # sequences of a step, tokens of a sequence
PEAK = 3e-3  # learning rate
COMMON: dict[str, Any] = {
    "vocab_size": 2048,
    "hidden_size": 256,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 64,
    "max_position_embeddings": 1024,
    "tie_word_embeddings": True,
    "bos_token_id": 0,
    "eos_token_id": 1,
    "pad_token_id": 5,
}
EXPERTS: dict[str, Any] = {"num_experts": 8, "num_experts_per_tok": 2, "moe_intermediate_size": 256}
LATENT: dict[str, Any] = {
    "n_routed_experts": 8,
    "num_experts_per_tok": 2,
    "n_shared_experts": 1,
    "moe_intermediate_size": 256,
    "first_k_dense_replace": 1,
    "n_group": 1,
    "topk_group": 1,
    "q_lora_rank": None,
    "kv_lora_rank": 128,
    "qk_nope_head_dim": 64,
    "qk_rope_head_dim": 32,
    "v_head_dim": 64,
    "num_key_value_heads": 4,
}
FAMILIES: dict[str, dict[str, Any]] = {
    "qwen3": {"intermediate_size": 768, "num_hidden_layers": 6},
    "qwen3_moe": {"intermediate_size": 256, "num_hidden_layers": 4, **EXPERTS},
    "deepseek_v3": {"intermediate_size": 512, "num_hidden_layers": 4, **LATENT},
    "lfm2": {
        "intermediate_size": 768,
        "num_hidden_layers": 6,
        "layer_types": ["conv", "conv", "full_attention"] * 2,
        "block_auto_adjust_ff_dim": False,
    },
}


def text() -> str:
    """Return the text to train on."""
    folders = ("docs", "compiler", "passes", "quant", "relax_models", "runtime_py", "targets")
    paths = [p for f in folders for s in ("*.md", "*.py") for p in sorted((REPO / f).rglob(s))]
    return "\n\n".join(path.read_text(encoding="utf-8") for path in paths)


def train(family: str, minutes: float, seed: int = 0) -> Any:
    """Return a model of a family after some minutes of training."""
    torch.manual_seed(seed)
    config = transformers.AutoConfig.for_model(family, **{**COMMON, **FAMILIES[family]})
    causal: Any = transformers.AutoModelForCausalLM
    model = causal.from_config(config).float().train()
    tokens = np.array(Tokenizer.from_file(str(DEMO / "tokenizer.json")).encode(text()).ids)
    print(f"{sum(p.numel() for p in model.parameters()):,} weights, {len(tokens):,} tokens")
    optimizer = torch.optim.AdamW(model.parameters(), PEAK, (0.9, 0.95), weight_decay=0.1)
    rng, began, step = np.random.default_rng(seed), time.monotonic(), 0
    while (done := (time.monotonic() - began) / (60 * minutes)) < 1:
        rate = PEAK * min(1.0, (step + 1) / 20) * (0.05 + 0.95 * (1 + math.cos(math.pi * done)) / 2)
        for group in optimizer.param_groups:
            group["lr"] = rate
        starts = rng.integers(0, len(tokens) - LENGTH, ROWS)
        batch = torch.from_numpy(np.stack([tokens[s : s + LENGTH] for s in starts]))
        loss = model(input_ids=batch, labels=batch).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        step += 1
        if step % 20 == 0:
            print(f"step {step}: loss {loss.item():.3f}, {done:.0%}", flush=True)
    return model.eval()


def main() -> None:
    """Train a model and save it."""
    parser = argparse.ArgumentParser(description="Train a small model on this repository's text.")
    parser.add_argument("family", choices=sorted(FAMILIES))
    parser.add_argument("--minutes", type=float, default=8.0)
    parser.add_argument("-o", "--output", type=Path, required=True)
    args = parser.parse_args()
    train(args.family, args.minutes).save_pretrained(args.output)
    for name in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(DEMO / name, args.output / name)


if __name__ == "__main__":
    main()
