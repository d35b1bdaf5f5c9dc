"""Trains the tokenizer, a byte-level BPE, on the generated text."""

from __future__ import annotations

from itertools import chain
from pathlib import Path

from corpus import BOS, SPECIAL, documents
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers

CHAT_TEMPLATE = (
    "{{ bos_token }}"
    "{% for message in messages %}"
    "{% if message['role'] in ['system', 'user', 'assistant'] %}"
    "{{ '<|' + message['role'] + '|>' + message['content'] + '<|end|>' }}"
    "{% else %}"
    "{{ raise_exception('The roles are system, user and assistant, not ' + message['role']) }}"
    "{% endif %}"
    "{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|assistant|>' }}{% endif %}"
)

# Text in which each number up to 40 is frequent, so that it becomes one token, with and without a
# space before it.
_NUMBERS = [f"{n}\n {n}\n" * 2000 for n in range(41)]


def train_tokenizer(size: int, seed: int, count: int = 30000) -> Tokenizer:
    """Train a tokenizer with `size` entries on `count` documents.

    A text that is encoded with special tokens begins with one BOS; the chat template writes its
    own.
    """
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=size,
        special_tokens=list(SPECIAL),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    plain = (_without_special(text) for text in documents(seed, count))
    tokenizer.train_from_iterator(chain(plain, _NUMBERS), trainer)
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{BOS} $A",
        pair=f"{BOS} $A $B",
        special_tokens=[(BOS, tokenizer.token_to_id(BOS))],
    )
    return tokenizer


def _without_special(text: str) -> str:
    for token in SPECIAL:
        text = text.replace(token, "\n")
    return text


def load_or_train(path: Path, size: int, seed: int) -> Tokenizer:
    """Return the tokenizer in the file `path`; train and write it first if the file is missing."""
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        train_tokenizer(size, seed).save(str(path))
    return Tokenizer.from_file(str(path))
