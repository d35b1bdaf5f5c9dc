"""Builds a tokenizer of the library `tokenizers` from a GGUF file's vocabulary.

Settings that GGUF does not store follow llama.cpp (src/llama-vocab.cpp) or the models' own
tokenizer.json.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import tokenizers
from tokenizers import (
    AddedToken,
    Regex,
    Tokenizer,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    processors,
)

from wherry.errors import ModelError, shown

from .pre_tokenizers import PRE_TOKENIZERS, PreTokenizer
from .vocabulary import GgufVocabulary, Kind

_SPACE = "\u2581"  # character that represents a space in SentencePiece's tokens
_PART = "##"  # prefix of WordPiece tokens that continue a word


def build(vocabulary: GgufVocabulary) -> Tokenizer:
    """Return the tokenizer of a vocabulary.

    Raises:
        ModelError: the tokenizer's model or its rule for splitting text is not supported, or the
            vocabulary is inconsistent.
    """
    if vocabulary.model not in _BUILDERS:
        raise ModelError(
            f"The file has a tokenizer of the kind {shown(vocabulary.model)}. "
            f"Of GGUF are read: {', '.join(_BUILDERS)}."
        )
    try:
        tokenizer = _BUILDERS[vocabulary.model](vocabulary)
        _add_tokens(tokenizer, vocabulary)
    except ModelError:
        raise
    except BaseException as e:  # the library's Rust panics do not derive from Exception
        if not isinstance(e, Exception) and type(e).__name__ != "PanicException":
            raise
        raise ModelError(f"No tokenizer can be built from the file's vocabulary: {e}") from e
    return tokenizer


def _bpe(vocabulary: GgufVocabulary) -> Tokenizer:
    """Return a tokenizer with byte-level BPE, or with BPE over characters.

    The pre-tokenization rule that the vocabulary names decides between them.
    """
    name = "gemma4" if vocabulary.model == "gemma4" else vocabulary.pre
    if name not in PRE_TOKENIZERS:
        raise ModelError(
            f"The file splits text by the rule {shown(name)} (tokenizer.ggml.pre), which is not "
            f"known: another rule would give other tokens. Known are: "
            f"{', '.join(sorted(PRE_TOKENIZERS))}."
        )
    rule = PRE_TOKENIZERS[name]
    ids = _ids(vocabulary)
    pairs = [_pair(merge) for merge in vocabulary.merges]
    if not pairs:
        raise ModelError("The file has no tokenizer.ggml.merges: its tokenizer is incomplete.")
    if rule.as_bytes:
        model = models.BPE(vocab=ids, merges=pairs, ignore_merges=rule.ignore_merges)
    else:
        model = _of_characters(vocabulary, ids, pairs)
    tokenizer = Tokenizer(model)
    set_split(tokenizer, rule)
    _process(tokenizer, vocabulary, bos=rule.adds_bos, eos=False)
    return tokenizer


def set_split(tokenizer: Tokenizer, rule: PreTokenizer) -> None:
    """Set the normalizer, pre-tokenizer and decoder of `tokenizer` according to a rule."""
    cuts = [pre_tokenizers.Split(Regex(p), "isolated") for p in rule.patterns]
    if rule.as_bytes:
        last = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
        tokenizer.pre_tokenizer = pre_tokenizers.Sequence([*cuts, last])
        tokenizer.decoder = decoders.ByteLevel()
        if rule.composed:
            tokenizer.normalizer = normalizers.NFC()
        return
    tokenizer.normalizer = normalizers.Replace(" ", _SPACE)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(cuts)
    tokenizer.decoder = _of_pieces(prefix=False)


def _spm(vocabulary: GgufVocabulary) -> Tokenizer:
    """Return a tokenizer with SentencePiece's BPE.

    Each step merges the two adjacent tokens whose concatenation has the highest score.
    """
    if vocabulary.scores is None:
        raise ModelError("The file has no tokenizer.ggml.scores: its tokenizer is incomplete.")
    ids = _ids(vocabulary)
    tokenizer = Tokenizer(_of_characters(vocabulary, ids, _merges(vocabulary, ids)))
    prefix = vocabulary.flags.get("add_space_prefix", True)
    before = [normalizers.Prepend(_SPACE)] if prefix else []
    tokenizer.normalizer = normalizers.Sequence([*before, normalizers.Replace(" ", _SPACE)])
    tokenizer.decoder = _of_pieces(prefix)
    _process(tokenizer, vocabulary, bos=True, eos=False)
    return tokenizer


def _of_characters(
    vocabulary: GgufVocabulary, ids: dict[str, int], merges: list[tuple[str, str]]
) -> models.BPE:
    """Return BPE over characters.

    A character without a token falls back to its UTF-8 bytes if the vocabulary has byte tokens.
    """
    unknown = vocabulary.text("unk")
    has_bytes = bool((vocabulary.kinds == Kind.BYTE).any()) or "<0x00>" in ids
    return models.BPE(
        vocab=ids, merges=merges, unk_token=unknown, fuse_unk=True, byte_fallback=has_bytes
    )


def _merges(vocabulary: GgufVocabulary, ids: Mapping[str, int]) -> list[tuple[str, str]]:
    """Return the pairs of tokens that concatenate to a token, by descending score of the result."""
    scores = vocabulary.scores
    assert scores is not None
    usable = np.isin(vocabulary.kinds, (Kind.NORMAL, Kind.USER_DEFINED, Kind.UNUSED))
    ranked = []
    for i, token in enumerate(vocabulary.tokens):
        if len(token) < 2 or not usable[i]:
            continue
        for cut in range(1, len(token)):
            left, right = token[:cut], token[cut:]
            if left in ids and right in ids:
                ranked.append((-scores[i], i, ids[left], ids[right], left, right))
    return [(left, right) for *_, left, right in sorted(ranked)]


def _word_piece(vocabulary: GgufVocabulary) -> Tokenizer:
    """Return BERT's WordPiece tokenizer.

    GGUF marks tokens that begin a word, tokenizer.json those that continue one.
    """
    special = np.isin(vocabulary.kinds, (Kind.CONTROL, Kind.UNKNOWN))
    ids = {}
    for i, token in enumerate(vocabulary.tokens):
        plain = special[i] or (token.startswith("[") and token.endswith("]"))
        begins = token.startswith(_SPACE)
        ids[token if plain else token[1:] if begins else _PART + token] = i
    unknown = vocabulary.text("unk") or "[UNK]"
    tokenizer = Tokenizer(models.WordPiece(vocab=ids, unk_token=unknown))
    lower = vocabulary.flags.get("normalizer.lowercase", True)
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=lower)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece(prefix=_PART)
    _process(tokenizer, vocabulary, bos=True, eos=True, roles=("cls", "sep"))
    return tokenizer


# Functions that build a tokenizer, by the value of `tokenizer.ggml.model`.
_BUILDERS: Mapping[str, Callable[[GgufVocabulary], Tokenizer]] = {
    "gpt2": _bpe,
    "gemma4": _bpe,
    "llama": _spm,
    "bert": _word_piece,
}


def _ids(vocabulary: GgufVocabulary) -> dict[str, int]:
    """Return the id of each token."""
    return {token: i for i, token in enumerate(vocabulary.tokens)}


def _pair(merge: str) -> tuple[str, str]:
    """Split a merge at its first space; a space as the first character belongs to the left token.

    Raises:
        ModelError: there is no such space.
    """
    at = merge.find(" ", 1)
    if at < 0:
        raise ModelError(f"tokenizer.ggml.merges has {shown(merge)}, which is not a pair.")
    return merge[:at], merge[at + 1 :]


def _of_pieces(prefix: bool) -> tokenizers.decoders.Decoder:
    """Return a decoder of SentencePiece's tokens; `prefix`: strip the space that encoding adds."""
    steps = [decoders.Replace(_SPACE, " "), decoders.ByteFallback(), decoders.Fuse()]
    return decoders.Sequence([*steps, *([decoders.Strip(" ", 1, 0)] if prefix else [])])


def _process(
    tokenizer: Tokenizer,
    vocabulary: GgufVocabulary,
    *,
    bos: bool,
    eos: bool,
    roles: tuple[str, str] = ("bos", "eos"),
) -> None:
    """Set the post-processor, which adds special tokens around a text.

    Args:
        tokenizer: the tokenizer to change.
        vocabulary: its flags decide which tokens are added.
        bos: whether to add the first token if the vocabulary has no flag for it.
        eos: whether to add the last token if the vocabulary has no flag for it.
        roles: the roles of the first and the last token.
    """
    flags = vocabulary.flags
    added = (flags.get("add_bos_token", bos), flags.get("add_eos_token", eos))
    first, last = (
        vocabulary.roles.get(role) if add else None for role, add in zip(roles, added, strict=True)
    )
    used = {vocabulary.tokens[i]: i for i in (first, last) if i is not None}
    if not used:
        return
    begin, end = ([vocabulary.tokens[i]] if i is not None else [] for i in (first, last))
    tokenizer.post_processor = processors.TemplateProcessing(
        single=[*begin, "$A", *end],
        pair=[*begin, "$A", *end, *begin, "$B:1", *end],
        special_tokens=list(used.items()),
    )


def _add_tokens(tokenizer: Tokenizer, vocabulary: GgufVocabulary) -> None:
    """Register special and user-defined tokens, which are matched before the text is split."""
    tokens, kinds = vocabulary.tokens, vocabulary.kinds
    special = np.flatnonzero(np.isin(kinds, (Kind.CONTROL, Kind.UNKNOWN)))
    ended = [i for i in vocabulary.ends if kinds[i] == Kind.USER_DEFINED]
    given = np.flatnonzero(kinds == Kind.USER_DEFINED)
    tokenizer.add_special_tokens(
        [AddedToken(tokens[i], special=True, normalized=False) for i in (*special, *ended)]
    )
    tokenizer.add_tokens([AddedToken(tokens[i], normalized=False) for i in given if i not in ended])
