"""Exports the trained model as an ordinary Hugging Face folder, and checks it with transformers."""

from __future__ import annotations

import json
from pathlib import Path

import torch
from corpus import BOS, END, PAD
from model import Llama, ModelConfig, hf_state
from safetensors.torch import save_file
from tokenizers import Tokenizer
from vocabulary import CHAT_TEMPLATE


def export(model: Llama, tokenizer: Tokenizer, folder: Path) -> None:
    """Write config, generation config, float16 weights and tokenizer to `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    bos, end, pad = (tokenizer.token_to_id(token) for token in (BOS, END, PAD))
    weights = {
        name: tensor.half().cpu().contiguous()
        for name, tensor in hf_state(model.state_dict()).items()
    }
    path = folder / "model.safetensors"
    save_file(weights, path, metadata={"format": "pt"})
    path.chmod(0o644)
    tokenizer.save(str(folder / "tokenizer.json"))
    _write(folder / "config.json", model.config.to_hf(bos, end, pad))
    _write(
        folder / "generation_config.json",
        {
            "bos_token_id": bos,
            "eos_token_id": end,
            "pad_token_id": pad,
            "do_sample": True,
            "temperature": 0.7,
            "top_p": 0.9,
        },
    )
    _write(
        folder / "tokenizer_config.json",
        {
            "tokenizer_class": "PreTrainedTokenizerFast",
            "bos_token": BOS,
            "eos_token": END,
            "pad_token": PAD,
            "clean_up_tokenization_spaces": False,
            "model_max_length": model.config.max_position_embeddings,
            "chat_template": CHAT_TEMPLATE,
        },
    )


def _write(path: Path, content: dict[str, object]) -> None:
    path.write_text(json.dumps(content, indent=2) + "\n")


@torch.no_grad()
def check(model: Llama, folder: Path) -> float:
    """Compare with the folder's model in transformers; return the largest difference of logits.

    Both sides compute in float32 with the float16 weights. A difference above 0.05 is a
    RuntimeError.
    """
    from transformers import AutoModelForCausalLM, AutoTokenizer

    reference = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    tokenizer = AutoTokenizer.from_pretrained(folder)
    rebuilt = Llama(ModelConfig())
    rebuilt.load_state_dict(
        {name: tensor.half().float().cpu() for name, tensor in model.state_dict().items()}
    )
    messages = [
        {"role": "system", "content": "Be kind."},
        {"role": "user", "content": "Tell me a story about a fox."},
    ]
    text = tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
    ids = torch.tensor([tokenizer(text, add_special_tokens=False)["input_ids"]])
    assert (
        ids[0, 0] == tokenizer.bos_token_id
        and tokenizer("x")["input_ids"][0] == tokenizer.bos_token_id
    )
    difference = (rebuilt(ids) - reference(ids).logits).abs().max().item()
    if difference > 0.05:
        raise RuntimeError(
            f"the exported model differs from the trained one: the logits differ by {difference}"
        )
    return difference
