"""The bytes of each token of a tokenizer, in the form that grammars need."""

from __future__ import annotations

from ..errors import RequestError
from ..text.tokenizer import Tokenizer

SPECIAL = b"\xff"  # prefix that marks a special token, before its name; no text contains this byte


def grammar_tokens(tokenizer: Tokenizer, vocab_size: int) -> list[bytes]:
    """List the bytes of each id; b"" for ids without a text.

    Args:
        tokenizer: the tokenizer of the model.
        vocab_size: number of logits, which may exceed the tokenizer's ids.

    Raises:
        RequestError: the decoder of the tokenizer does not work token by token.
    """
    text = tokenizer.token_bytes
    if text is None:
        raise RequestError(
            "Structured output needs a tokenizer whose tokens are bytes (byte-level BPE, or "
            "SentencePiece with byte fallback); this model's is of another kind",
            code="unsupported_tokenizer",
        )
    return [_bytes(tokenizer, i, text(i)) for i in range(vocab_size)]


def _bytes(tokenizer: Tokenizer, token: int, text: bytes) -> bytes:
    if token in tokenizer.special_ids:
        return SPECIAL + (tokenizer.backend.id_to_token(token) or "").encode()
    return b"" if SPECIAL in text and len(text) > 1 else text
