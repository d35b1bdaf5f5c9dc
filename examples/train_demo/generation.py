"""Generates the model's replies to user turns: the most likely ones, or sampled from a seed."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

import torch
from corpus import ASSISTANT, BOS, END, USER
from model import Llama, Past
from tokenizers import Tokenizer
from torch import Tensor


@dataclass(frozen=True)
class Sampling:
    """Parameters of sampling.

    `generation_config.json` of the exported model has the same values.
    """

    seed: int
    temperature: float = 0.7
    top_p: float = 0.9


def replies(
    model: Llama,
    tokenizer: Tokenizer,
    users: list[str],
    limit: int = 80,
    sampling: Sampling | None = None,
) -> list[str]:
    """Return a reply of at most `limit` tokens to each user turn; the most likely one by default.

    Prompts of equal length run together.
    """
    torch.manual_seed(sampling.seed if sampling else 0)
    prompts = [
        tokenizer.encode(f"{BOS}{USER}{u}{END}{ASSISTANT}", add_special_tokens=False).ids
        for u in users
    ]
    groups: dict[int, list[int]] = defaultdict(list)
    for i, ids in enumerate(prompts):
        groups[len(ids)].append(i)
    result = [""] * len(users)
    end = tokenizer.token_to_id(END)
    for members in groups.values():
        ids = torch.tensor([prompts[i] for i in members], device=model.embed.weight.device)
        rows = continued(model, ids, end, limit, sampling).tolist()
        for i, row in zip(members, rows, strict=True):
            cut = row[: row.index(end)] if end in row else row
            result[i] = tokenizer.decode(cut, skip_special_tokens=True)
    return result


@torch.no_grad()
def continued(
    model: Llama, ids: Tensor, end: int, limit: int, sampling: Sampling | None = None
) -> Tensor:
    """Return the tokens that follow `ids`, [b, s] int64 -> [b, n] int64, n <= limit.

    After a token `end`, all further tokens of its row are `end`.
    """
    past, new = Past(), []
    done = torch.zeros(len(ids), dtype=torch.bool, device=ids.device)
    for _ in range(limit):
        logits = model(ids, past)[:, -1].float()
        following = drawn(logits, sampling) if sampling else logits.argmax(-1)
        following[done] = end
        new.append(following)
        done |= following == end
        if done.all():
            break
        ids = following[:, None]
    return torch.stack(new, dim=1)


def drawn(logits: Tensor, sampling: Sampling) -> Tensor:
    """Sample tokens from logits, [b, v] float32 -> [b] int64.

    Only the fewest most likely tokens whose probabilities make up top_p are sampled.
    """
    values, order = (logits / sampling.temperature).softmax(-1).sort(dim=-1, descending=True)
    values[values.cumsum(-1) - values >= sampling.top_p] = 0
    return order.gather(1, torch.multinomial(values, 1)).squeeze(1)
