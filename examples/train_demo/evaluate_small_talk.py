"""Evaluates whether the model has one of the rules' replies to small talk in held-out wordings."""

from __future__ import annotations

from evaluate import Results
from generation import Sampling, replies
from model import Llama
from smalltalk import held_out_small_talk
from themes import pattern
from tokenizers import Tokenizer

SENSIBLE = "a reply that fits"


def fits(reply: str, beat: str) -> bool:
    """Tell whether a reply is one that the rules have for the user's words, word by word."""
    return any(pattern(beat).fullmatch(reply.strip() + end) for end in ("", " "))


def small_talk(model: Llama, tokenizer: Tokenizer, sampling: Sampling | None = None) -> Results:
    """Return the number of replies that fit, of all, and the failures."""
    model.eval()
    questions = held_out_small_talk()
    said = replies(model, tokenizer, [user for user, _ in questions], sampling=sampling)
    failures = [
        (user, reply, "")
        for (user, beat), reply in zip(questions, said, strict=True)
        if not fits(reply, beat)
    ]
    return {SENSIBLE: (len(questions) - len(failures), len(questions), failures)}
