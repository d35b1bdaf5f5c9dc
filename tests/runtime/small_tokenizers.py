"""Tokenizers of the families that models have, small and made on the spot."""

from __future__ import annotations

from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers
from tokenizers.processors import TemplateProcessing

SPECIALS = ["<unk>", "<s>", "</s>", "<|user|>", "<|assistant|>"]
_WORDS = ["the", "cat", "sat", "Once", "upon", "time", "über", "日本", "stop", "END", "a"]


def byte_level() -> Tokenizer:
    """GPT-2's kind: every byte has a character; some words are merged."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocab = {c: i for i, c in enumerate([*SPECIALS, *alphabet])}
    merges = []
    for word in [w for base in _WORDS for w in (base, " " + base)]:
        chars = pre_tokenizers.ByteLevel(add_prefix_space=False).pre_tokenize_str(word)[0][0]
        left = chars[0]
        for right in chars[1:]:
            if left + right not in vocab:
                vocab[left + right] = len(vocab)
                merges.append((left, right))
            left += right
    tokenizer = Tokenizer(models.BPE(vocab=vocab, merges=merges))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.decoder = decoders.ByteLevel()
    return _finish(tokenizer, bos=False)


def byte_fallback(*, strip: bool = True) -> Tokenizer:
    """SentencePiece's kind in Llama: U+2581 for spaces, unknown characters as bytes."""
    tokens = [*SPECIALS, *(f"<0x{b:02X}>" for b in range(256)), "▁"]
    tokens += sorted(set("".join(_WORDS)))
    vocab = {t: i for i, t in enumerate(tokens)}
    merges = []
    for word in [w for base in _WORDS for w in ("▁" + base, base)]:
        left = word[0]
        for right in word[1:]:
            if left + right not in vocab:
                vocab[left + right] = len(vocab)
                merges.append((left, right))
            left += right
    tokenizer = Tokenizer(
        models.BPE(vocab=vocab, merges=merges, unk_token="<unk>", byte_fallback=True, fuse_unk=True)
    )
    tokenizer.normalizer = normalizers.Sequence(
        [normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]
        if strip
        else [normalizers.Replace(" ", "▁")]
    )
    steps = [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()]
    tokenizer.decoder = decoders.Sequence([*steps, decoders.Strip(" ", 1, 0)] if strip else steps)
    return _finish(tokenizer, bos=True)


def metaspace() -> Tokenizer:
    """SentencePiece's kind in T5: the Metaspace decoder, no bytes."""
    tokens = [*SPECIALS, *sorted({"▁", *"".join(_WORDS)}), *("▁" + w for w in _WORDS)]
    merges = []
    vocab = {t: i for i, t in enumerate(dict.fromkeys(tokens))}
    for word in _WORDS:
        left = "▁"
        for right in word:
            if left + right not in vocab:
                vocab[left + right] = len(vocab)
            merges.append((left, right))
            left += right
    tokenizer = Tokenizer(models.BPE(vocab=vocab, merges=merges, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Metaspace()
    return _finish(tokenizer, bos=False)


def word_piece() -> Tokenizer:
    """BERT's kind: continuing pieces begin with ##."""
    letters = sorted(set("".join(_WORDS)))
    tokens = [*SPECIALS, *letters, *("##" + c for c in letters), *_WORDS, ".", ",", "'", "n't"]
    vocab = {t: i for i, t in enumerate(dict.fromkeys(tokens))}
    tokenizer = Tokenizer(models.WordPiece(vocab=vocab, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    return _finish(tokenizer, bos=False)


def _finish(tokenizer: Tokenizer, *, bos: bool) -> Tokenizer:
    tokenizer.add_special_tokens([AddedToken(t, special=True) for t in SPECIALS])
    if bos:
        tokenizer.post_processor = TemplateProcessing(
            single="<s> $A", special_tokens=[("<s>", tokenizer.token_to_id("<s>"))]
        )
    return tokenizer
