"""Tokenizers of all families, trained on the spot."""

# ruff: noqa: RUF001  (the characters that look like others are the point)

from __future__ import annotations

import base64
import json
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import sentencepiece
from sentencepiece import sentencepiece_model_pb2
from tokenizers import (
    AddedToken,
    Regex,
    Tokenizer,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    processors,
    trainers,
)

from .mixed_texts import SENTENCES

# As the models' own tokenizer.json have them.
GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
LLAMA3 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|"
    r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
QWEN2 = LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}")
QWEN3_5 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}|"
    r" ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
O200K = (
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+"
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?|"
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*"
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?|"
    r"\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
TIKTOKEN = (  # as tiktoken writes it: possessive
    r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+|"
    r" ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s"
)
DEEPSEEK = (
    r"\p{N}{1,3}",
    "[一-龥぀-ゟ゠-ヿ]+",
    r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+|"
    r" ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
)
BLOOM = r" ?[^(\s|[.,!?…。，、।۔،])]+"
PATTERNS: dict[str, tuple[str, ...]] = {
    "gpt2": (GPT2,),
    "llama3": (LLAMA3,),
    "qwen2": (QWEN2,),
    "qwen3_5": (QWEN3_5,),
    "o200k": (O200K,),
    "tiktoken": (TIKTOKEN,),
    "deepseek": DEEPSEEK,
    "bloom": (BLOOM,),
}

CORPUS = [s for sentence in SENTENCES for s in (sentence, sentence.lower())] * 3
_SPECIALS = ["<unk>", "<s>", "</s>", "<|im_start|>", "<|im_end|>"]


def _trained(tokenizer: Tokenizer, trainer: Any) -> Tokenizer:
    tokenizer.train_from_iterator(CORPUS, trainer)
    return tokenizer


def byte_level(patterns: tuple[str, ...]) -> Tokenizer:
    tokenizer = Tokenizer(models.BPE())
    splits = [pre_tokenizers.Split(Regex(p), "isolated") for p in patterns]
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [*splits, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=900,
        special_tokens=_SPECIALS,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    return _trained(tokenizer, trainer)


def llama3() -> Tokenizer:
    tokenizer = byte_level((LLAMA3,))
    document = json.loads(tokenizer.to_str())
    document["model"]["ignore_merges"] = True
    document["model"]["merges"] = [m for i, m in enumerate(document["model"]["merges"]) if i % 5]
    tokenizer = Tokenizer.from_str(json.dumps(document))
    bos = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 1)])
    tokenizer.post_processor = processors.Sequence([processors.ByteLevel(trim_offsets=False), bos])
    return tokenizer


def gpt2(*, prefix_space: bool) -> Tokenizer:
    tokenizer = byte_level((GPT2,))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=prefix_space)
    tokenizer.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 1))
    tokenizer.normalizer = normalizers.NFC()
    return tokenizer


def byte_fallback(*, fuse_unk: bool = True, bytes_of: int = 256) -> Tokenizer:
    """Llama 2's; with fewer than all bytes some characters stay unknown."""
    trainer = trainers.BpeTrainer(vocab_size=500, special_tokens=_SPECIALS, show_progress=False)
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(split=False)
    document = json.loads(_trained(tokenizer, trainer).to_str())
    vocab = document["model"]["vocab"]
    for byte in range(bytes_of):
        vocab[f"<0x{byte:02X}>"] = len(vocab)
    document["model"] |= {"byte_fallback": True, "fuse_unk": fuse_unk, "dropout": None}
    document["pre_tokenizer"] = None
    tokenizer = Tokenizer.from_str(json.dumps(document))
    tokenizer.normalizer = normalizers.Sequence(
        [normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]
    )
    tokenizer.decoder = decoders.Sequence(
        [
            decoders.Replace("▁", " "),
            decoders.ByteFallback(),
            decoders.Fuse(),
            decoders.Strip(" ", 1, 0),
        ]
    )
    return tokenizer


def gemma() -> Tokenizer:
    tokenizer = byte_fallback()
    tokenizer.normalizer = normalizers.Replace(" ", "▁")
    tokenizer.pre_tokenizer = pre_tokenizers.Split(" ", "merged_with_previous")
    tokenizer.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()]
    )
    return tokenizer


def end_of_word() -> Tokenizer:
    """CLIP's: the last character of a word is a token of its own kind."""
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>", end_of_word_suffix="</w>"))
    tokenizer.normalizer = normalizers.Sequence(
        [normalizers.NFC(), normalizers.Replace(Regex(r"\s+"), " "), normalizers.Lowercase()]
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.decoder = decoders.BPEDecoder("</w>")
    trainer = trainers.BpeTrainer(
        vocab_size=500, special_tokens=_SPECIALS, end_of_word_suffix="</w>", show_progress=False
    )
    return _trained(tokenizer, trainer)


def continuing() -> Tokenizer:
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>", continuing_subword_prefix="##"))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Punctuation("contiguous")]
    )
    tokenizer.decoder = decoders.WordPiece(cleanup=False)
    trainer = trainers.BpeTrainer(
        vocab_size=500,
        special_tokens=_SPECIALS,
        continuing_subword_prefix="##",
        show_progress=False,
    )
    return _trained(tokenizer, trainer)


@cache
def charsmap(rule: str) -> str:
    """SentencePiece's table of a rule, in base64."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "text").write_text("\n".join(SENTENCES[:2] * 20))
        sentencepiece.SentencePieceTrainer.train(
            input=f"{folder}/text", model_prefix=f"{folder}/m", vocab_size=50,
            normalization_rule_name=rule, minloglevel=2,
        )  # fmt: skip
        proto = sentencepiece_model_pb2.ModelProto()
        proto.ParseFromString((Path(folder) / "m.model").read_bytes())
    return base64.b64encode(proto.normalizer_spec.precompiled_charsmap).decode()


def unigram(
    *, rule: str | None = None, scheme: str = "always", fallback: bool = False, split: bool = True
) -> Tokenizer:
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme=scheme, split=split)
    tokenizer.decoder = decoders.Metaspace(prepend_scheme=scheme)
    trainer = trainers.UnigramTrainer(
        vocab_size=400, special_tokens=_SPECIALS, unk_token="<unk>", show_progress=False
    )
    document = json.loads(_trained(tokenizer, trainer).to_str())
    if fallback:
        document["model"]["byte_fallback"] = True
        document["model"]["vocab"] += [[f"<0x{b:02X}>", -20.0] for b in range(256)]
        tokenizer.decoder = decoders.Sequence([decoders.ByteFallback(), tokenizer.decoder])
        document["decoder"] = json.loads(tokenizer.to_str())["decoder"]
    if rule:
        steps = [
            {"type": "Precompiled", "precompiled_charsmap": charsmap(rule)},
            {"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": " "},
        ]
        document["normalizer"] = {"type": "Sequence", "normalizers": steps}
    tokenizer = Tokenizer.from_str(json.dumps(document))
    tokenizer.post_processor = processors.TemplateProcessing(
        single="$A </s>", special_tokens=[("</s>", tokenizer.token_to_id("</s>"))]
    )
    return tokenizer


def word_piece(*, lowercase: bool) -> Tokenizer:
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]", max_input_chars_per_word=20))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=lowercase)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    trainer = trainers.WordPieceTrainer(
        vocab_size=600, special_tokens=["[UNK]", "[CLS]", "[SEP]"], show_progress=False
    )
    tokenizer = _trained(tokenizer, trainer)
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", 2), ("[CLS]", 1))
    return tokenizer


def word_level() -> Tokenizer:
    tokenizer = Tokenizer(models.WordLevel(unk_token="<unk>"))
    tokenizer.normalizer = normalizers.Sequence(
        [normalizers.Nmt(), normalizers.NFKC(), normalizers.Strip(), normalizers.Lowercase()]
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Whitespace(), pre_tokenizers.Digits(individual_digits=True)]
    )
    trainer = trainers.WordLevelTrainer(special_tokens=_SPECIALS, show_progress=False)
    return _trained(tokenizer, trainer)


def normalized(normalizer: normalizers.Normalizer) -> Tokenizer:
    """Ids are bytes, so that whatever a normalizer does is seen."""
    tokenizer = byte_level((GPT2,))
    tokenizer.normalizer = normalizer
    return tokenizer


def cut(*splits: pre_tokenizers.PreTokenizer) -> Tokenizer:
    """A space before each piece, so that each border is seen."""
    tokenizer = byte_level((GPT2,))
    bytes_of = pre_tokenizers.ByteLevel(add_prefix_space=True, use_regex=False)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([*splits, bytes_of])
    return tokenizer


def precompiled(rule: str) -> Tokenizer:
    document = json.loads(byte_level((GPT2,)).to_str())
    document["normalizer"] = {"type": "Precompiled", "precompiled_charsmap": charsmap(rule)}
    return Tokenizer.from_str(json.dumps(document))


def flags() -> Tokenizer:
    """Added tokens with each combination of flags, behind a normalizer that changes them."""
    tokenizer = byte_level((GPT2,))
    tokenizer.normalizer = normalizers.Sequence([normalizers.NFKC(), normalizers.Lowercase()])
    for number in range(32):
        bits = [bool(number >> i & 1) for i in range(5)]
        token = AddedToken(
            f"<T{number}>", lstrip=bits[0], rstrip=bits[1], single_word=bits[2],
            normalized=bits[3], special=bits[4],
        )  # fmt: skip
        (tokenizer.add_special_tokens if bits[4] else tokenizer.add_tokens)([token])
    tokenizer.add_tokens(
        ["FOX", AddedToken("<T1>x", normalized=False), AddedToken("é", normalized=True)]
    )
    tokenizer.add_tokens([AddedToken("ve", single_word=True, normalized=False)])
    return tokenizer


_NORMALIZERS: dict[str, normalizers.Normalizer] = {
    "nfc": normalizers.NFC(),
    "nfd": normalizers.NFD(),
    "nfkc": normalizers.NFKC(),
    "nfkd_stripped": normalizers.Sequence([normalizers.NFKD(), normalizers.StripAccents()]),
    "stripped": normalizers.StripAccents(),
    "lower": normalizers.Lowercase(),
    "nmt": normalizers.Nmt(),
    "bert": normalizers.BertNormalizer(),
    "bert_cased": normalizers.BertNormalizer(lowercase=False, strip_accents=True),
    "strip": normalizers.Strip(),
    "strip_right": normalizers.Strip(left=False),
    "prepend": normalizers.Prepend("x "),
    "replace": normalizers.Replace(Regex(r"(?<=\w)\s*(?=[A-Z])|\d{2,}?|^\s+|\bthe\b"), "_"),
}
_SPLITS: dict[str, list[pre_tokenizers.PreTokenizer]] = {
    "whitespace": [pre_tokenizers.Whitespace()],
    "whitespace_split": [pre_tokenizers.WhitespaceSplit()],
    "bert": [pre_tokenizers.BertPreTokenizer()],
    "delimiter": [pre_tokenizers.CharDelimiterSplit("e")],
    "fixed_length": [pre_tokenizers.FixedLength(length=3)],
    "digits": [pre_tokenizers.Digits(individual_digits=False)],
    "single_digits": [pre_tokenizers.Digits(individual_digits=True)],
    "metaspace": [pre_tokenizers.Digits(), pre_tokenizers.Metaspace(prepend_scheme="first")],
    **{
        f"punctuation_{b}": [pre_tokenizers.Punctuation(b)]
        for b in ("removed", "isolated", "merged_with_previous", "merged_with_next", "contiguous")
    },
    **{
        f"{b}_{'inverted' if invert else 'split'}": [
            pre_tokenizers.Split(Regex(r"\p{L}+|\s"), b, invert=invert)
        ]
        for b in ("removed", "merged_with_previous", "merged_with_next", "contiguous")
        for invert in (False, True)
    },
    "assertions": [pre_tokenizers.Split(Regex(r"(?<![a-z])[a-z]+?(?=\W|$)|\A.|\B\d"), "isolated")],
    "classes": [
        pre_tokenizers.Split(
            Regex(r"[^\p{Ll}\P{L}&&[^\u00C0-\u00DE]]+|(?>a|ab)c|(?i)STRASSE|[[:space:]\h]{2,3}"),
            "isolated",
        )
    ],
}


def _kind(create: Callable[..., Tokenizer], *given: Any) -> Callable[[], Tokenizer]:
    return lambda: create(*given)


KINDS: dict[str, Callable[[], Tokenizer]] = {
    **{f"bpe_{name}": _kind(byte_level, patterns) for name, patterns in PATTERNS.items()},
    **{f"normal_{name}": _kind(normalized, each) for name, each in _NORMALIZERS.items()},
    **{f"cut_{name}": _kind(cut, *each) for name, each in _SPLITS.items()},
    "normal_nmt_nfkc": _kind(precompiled, "nmt_nfkc"),
    "normal_nmt_nfkc_cf": _kind(precompiled, "nmt_nfkc_cf"),
    "llama3": llama3,
    "gpt2_prefix": lambda: gpt2(prefix_space=True),
    "gpt2": lambda: gpt2(prefix_space=False),
    "llama2": byte_fallback,
    "llama2_some_bytes": lambda: byte_fallback(bytes_of=200),
    "llama2_unknown": lambda: byte_fallback(fuse_unk=False, bytes_of=3),
    "gemma": gemma,
    "end_of_word": end_of_word,
    "continuing": continuing,
    "unigram": unigram,
    "unigram_first": lambda: unigram(scheme="first"),
    "unigram_never": lambda: unigram(scheme="never", fallback=True, split=False),
    "t5": lambda: unigram(rule="nmt_nfkc"),
    "t5_first": lambda: unigram(rule="nmt_nfkc", scheme="first"),
    "albert": lambda: unigram(rule="nmt_nfkc_cf", fallback=True),
    "word_piece_uncased": lambda: word_piece(lowercase=True),
    "word_piece_cased": lambda: word_piece(lowercase=False),
    "word_level": word_level,
    "flags": flags,
}
