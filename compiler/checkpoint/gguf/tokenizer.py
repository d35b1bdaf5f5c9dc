"""Builds a tokenizer of the library `tokenizers` from a GGUF file's vocabulary.

What is not in GGUF is as llama.cpp has it (src/llama-vocab.cpp), or the models' own tokenizer.json.
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
from .vocabulary import Kind, Vocabulary

_SPACE = "\u2581"  # stands for a space in SentencePiece's tokens
_PART = "##"  # begins a token of WordPiece that continues a word


def build(vocabulary: Vocabulary) -> Tokenizer:
    """The tokenizer.

    Raises:
        ModelError: its kind or the splitting of its text is not known, or it contradicts itself.
    """
    if vocabulary.model not in _BUILDERS:
        raise ModelError(
            f"The file has a tokenizer of the kind {shown(vocabulary.model)}. "
            f"Of GGUF are read: {', '.join(_BUILDERS)}."
        )
    try:
        made = _BUILDERS[vocabulary.model](vocabulary)
        _add_tokens(made, vocabulary)
    except ModelError:
        raise
    except BaseException as e:  # the library's bare exceptions and panics, which are no Exception
        if not isinstance(e, Exception) and type(e).__name__ != "PanicException":
            raise
        raise ModelError(f"No tokenizer can be made of the file's vocabulary: {e}") from e
    return made


def _bpe(vocabulary: Vocabulary) -> Tokenizer:
    """Byte-level BPE, or of characters where the vocabulary has spaces as SentencePiece does."""
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
        raise ModelError("The file has no tokenizer.ggml.merges: its tokenizer is not whole.")
    if rule.as_bytes:
        model = models.BPE(vocab=ids, merges=pairs, ignore_merges=rule.ignore_merges)
    else:
        model = _of_characters(vocabulary, ids, pairs)
    made = Tokenizer(model)
    _split(made, rule)
    _process(made, vocabulary, bos=rule.adds_bos, eos=False)
    return made


def _split(made: Tokenizer, rule: PreTokenizer) -> None:
    """Set normalizer, pre-tokenizer and decoder."""
    cuts = [pre_tokenizers.Split(Regex(p), "isolated") for p in rule.patterns]
    if rule.as_bytes:
        last = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
        made.pre_tokenizer = pre_tokenizers.Sequence([*cuts, last])
        made.decoder = decoders.ByteLevel()
        if rule.composed:
            made.normalizer = normalizers.NFC()
        return
    made.normalizer = normalizers.Replace(" ", _SPACE)
    made.pre_tokenizer = pre_tokenizers.Sequence(cuts)
    made.decoder = _of_pieces(prefix=False)


def _spm(vocabulary: Vocabulary) -> Tokenizer:
    """SentencePiece's BPE: of two tokens those are joined whose union has the best score."""
    if vocabulary.scores is None:
        raise ModelError("The file has no tokenizer.ggml.scores: its tokenizer is not whole.")
    ids = _ids(vocabulary)
    made = Tokenizer(_of_characters(vocabulary, ids, _merges(vocabulary, ids)))
    prefix = vocabulary.flags.get("add_space_prefix", True)
    before = [normalizers.Prepend(_SPACE)] if prefix else []
    made.normalizer = normalizers.Sequence([*before, normalizers.Replace(" ", _SPACE)])
    made.decoder = _of_pieces(prefix)
    _process(made, vocabulary, bos=True, eos=False)
    return made


def _of_characters(
    vocabulary: Vocabulary, ids: dict[str, int], merges: list[tuple[str, str]]
) -> models.BPE:
    """BPE over characters; those without a token are bytes, if the vocabulary has those."""
    unknown = vocabulary.text("unk")
    has_bytes = bool((vocabulary.kinds == Kind.BYTE).any()) or "<0x00>" in ids
    return models.BPE(
        vocab=ids, merges=merges, unk_token=unknown, fuse_unk=True, byte_fallback=has_bytes
    )


def _merges(vocabulary: Vocabulary, ids: Mapping[str, int]) -> list[tuple[str, str]]:
    """All pairs of tokens whose union is one, the best score first."""
    scores = vocabulary.scores
    assert scores is not None
    usable = np.isin(vocabulary.kinds, (Kind.NORMAL, Kind.USER_DEFINED, Kind.UNUSED))
    found = []
    for i, token in enumerate(vocabulary.tokens):
        if len(token) < 2 or not usable[i]:
            continue
        for cut in range(1, len(token)):
            left, right = token[:cut], token[cut:]
            if left in ids and right in ids:
                found.append((-scores[i], i, ids[left], ids[right], left, right))
    return [(left, right) for *_, left, right in sorted(found)]


def _word_piece(vocabulary: Vocabulary) -> Tokenizer:
    """BERT's; GGUF marks where words begin, tokenizer.json where they go on."""
    special = np.isin(vocabulary.kinds, (Kind.CONTROL, Kind.UNKNOWN))
    ids = {}
    for i, token in enumerate(vocabulary.tokens):
        plain = special[i] or (token.startswith("[") and token.endswith("]"))
        begins = token.startswith(_SPACE)
        ids[token if plain else token[1:] if begins else _PART + token] = i
    unknown = vocabulary.text("unk") or "[UNK]"
    made = Tokenizer(models.WordPiece(vocab=ids, unk_token=unknown))
    lower = vocabulary.flags.get("normalizer.lowercase", True)
    made.normalizer = normalizers.BertNormalizer(lowercase=lower)
    made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    made.decoder = decoders.WordPiece(prefix=_PART)
    _process(made, vocabulary, bos=True, eos=True, roles=("cls", "sep"))
    return made


_BUILDERS: Mapping[str, Callable[[Vocabulary], Tokenizer]] = {
    "gpt2": _bpe,
    "gemma4": _bpe,
    "llama": _spm,
    "bert": _word_piece,
}


def _ids(vocabulary: Vocabulary) -> dict[str, int]:
    return {token: i for i, token in enumerate(vocabulary.tokens)}


def _pair(merge: str) -> tuple[str, str]:
    """Cut at the first space behind the first character, which may be one."""
    at = merge.find(" ", 1)
    if at < 0:
        raise ModelError(f"tokenizer.ggml.merges has {shown(merge)}, which is not a pair.")
    return merge[:at], merge[at + 1 :]


def _of_pieces(prefix: bool) -> tokenizers.decoders.Decoder:
    steps = [decoders.Replace(_SPACE, " "), decoders.ByteFallback(), decoders.Fuse()]
    return decoders.Sequence([*steps, *([decoders.Strip(" ", 1, 0)] if prefix else [])])


def _process(
    made: Tokenizer,
    vocabulary: Vocabulary,
    *,
    bos: bool,
    eos: bool,
    roles: tuple[str, str] = ("bos", "eos"),
) -> None:
    """Add the tokens at the beginning and the end of a text; `bos`, `eos`: the defaults."""
    flags = vocabulary.flags
    wanted = (flags.get("add_bos_token", bos), flags.get("add_eos_token", eos))
    first, last = (
        vocabulary.roles.get(role) if add else None for role, add in zip(roles, wanted, strict=True)
    )
    used = {vocabulary.tokens[i]: i for i in (first, last) if i is not None}
    if not used:
        return
    begin, end = ([vocabulary.tokens[i]] if i is not None else [] for i in (first, last))
    made.post_processor = processors.TemplateProcessing(
        single=[*begin, "$A", *end],
        pair=[*begin, "$A", *end, *begin, "$B:1", *end],
        special_tokens=list(used.items()),
    )


def _add_tokens(made: Tokenizer, vocabulary: Vocabulary) -> None:
    """Name the tokens that are found in a text before it is split."""
    tokens, kinds = vocabulary.tokens, vocabulary.kinds
    special = np.flatnonzero(np.isin(kinds, (Kind.CONTROL, Kind.UNKNOWN)))
    ended = [i for i in vocabulary.ends if kinds[i] == Kind.USER_DEFINED]
    given = np.flatnonzero(kinds == Kind.USER_DEFINED)
    made.add_special_tokens(
        [AddedToken(tokens[i], special=True, normalized=False) for i in (*special, *ended)]
    )
    made.add_tokens([AddedToken(tokens[i], normalized=False) for i in given if i not in ended])
