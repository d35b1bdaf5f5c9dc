r"""Table of the rules that split text before BPE, by their names in `tokenizer.ggml.pre`.

The names come from llama.cpp's src/llama-vocab.cpp. The patterns come from the models'
tokenizer.json, or from llama.cpp where no pattern is published. A rule applies its patterns in
turn to the pieces of the previous one; text between two matches is a piece, too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

_SUFFIXES = "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
_WORDS = r"[^\r\n\p{L}\p{N}]?\p{L}+"
_SPACES = r"\s*[\r\n]+|\s+(?!\S)|\s+"
_MARKS = r" ?[^\s\p{L}\p{N}]+[\r\n]*"
# Character classes of `_cased`: letters that may be upper case, letters that may be lower case.
_UPPER, _LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
_GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
_QWEN2 = rf"{_SUFFIXES}|{_WORDS}|\p{{N}}|{_MARKS}|{_SPACES}"
_LLAMA3 = rf"{_SUFFIXES}|{_WORDS}|\p{{N}}{{1,3}}|{_MARKS}|{_SPACES}"
_KANA = "[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+"
_ASCII = r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+"
_DEEPSEEK3 = (
    rf"{_ASCII}|[^\r\n\p{{L}}\p{{P}}\p{{S}}]?[\p{{L}}\p{{M}}]+| ?[\p{{P}}\p{{S}}]+[\r\n]*|{_SPACES}"
)
_BLOOM = " ?[^(\\s|.,!?\u2026\u3002\uff0c\u3001\u0964\u06d4\u060c)]+"
_NEWLINES = r"[^\n]+|[\n]+"
# Matches groups of three digits, counted from the right end of a number.
_TRIPLES = r"\p{N}{1,3}(?=(?:\p{N}{3})*(?!\p{N}))"
_LETTERS = (  # letters of scripts with two cases, as listed in DeepSeek's first tokenizer
    "[A-Za-z\u00b5\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u01ba\u01bc-\u01bf\u01c4-\u0293"
    "\u0295-\u02af\u0370-\u0373\u0376\u0377\u037b-\u037d\u037f\u0386\u0388-\u038a\u038c"
    "\u038e-\u03a1\u03a3-\u03f5\u03f7-\u0481\u048a-\u052f\u0531-\u0556\u10a0-\u10c5"
    "\u13a0-\u13f5\u13f8-\u13fd\u1c90-\u1cba\u1cbd-\u1cbf\u1d00-\u1d2b\u1d6b-\u1d77"
    "\u1d79-\u1d9a\u1e00-\u1f15\u1f18-\u1f1d\u1f20-\u1f45\u1f48-\u1f4d\u1f50-\u1f57\u1f59"
    "\u1f5b\u1f5d\u1f5f-\u1f7d\u1f80-\u1fb4\u1fb6-\u1fbc\u1fbe\u1fc2-\u1fc4\u1fc6-\u1fcc"
    "\u1fd0-\u1fd3\u1fd6-\u1fdb\u1fe0-\u1fec\u1ff2-\u1ff4\u1ff6-\u1ffc\u2102\u2107"
    "\u210a-\u2113\u2115\u2119-\u211d\u2124\u2126\u2128\u212a-\u212d\u212f-\u2134\u2139"
    "\u213c-\u213f\u2145-\u2149\u214e\u2183\u2184\u2c00-\u2c7b\u2c7e-\u2ce4\u2ceb-\u2cee"
    "\u2cf2\u2cf3\ua640-\ua66d\ua680-\ua69b\ua722-\ua76f\ua771-\ua787\ua78b-\ua78e"
    "\uab70-\uabbf\ufb00-\ufb06\ufb13-\ufb17\uff21-\uff3a\uff41-\uff5a\U00010400-\U0001044f"
    "\U000104b0-\U000104d3\U000104d8-\U000104fb\U00010c80-\U00010cb2\U00010cc0-\U00010cf2"
    "\U000118a0-\U000118df\U0001e900-\U0001e943]"
)


def _cased(digits: str, upper: str = _UPPER, lower: str = _LOWER, *, suffixes: bool = True) -> str:
    """Return a pattern that also cuts words before a capital: "camelCase" -> "camel", "Case".

    Args:
        digits: pattern of numbers.
        upper: character class of the beginning of a word.
        lower: character class of the rest of a word.
        suffixes: whether an English contraction such as "'re" belongs to the word before it.
    """
    after = f"{_SUFFIXES}?" if suffixes else ""
    first = r"[^\r\n\p{L}\p{N}]?"
    return (
        rf"{first}{upper}*{lower}+{after}|{first}{upper}+{lower}*{after}|"
        rf"{digits}| ?[^\s\p{{L}}\p{{N}}]+[\r\n/]*|{_SPACES}"
    )


def _without(characters: str, name: str) -> str:
    """Return a character class without the characters of the Unicode property `name`."""
    return rf"{characters[:-1]}&&[^\p{{{name}}}]]"


@dataclass(frozen=True, slots=True)
class PreTokenizer:
    """A rule that splits text before BPE, and the tokenizer settings that go with it."""

    patterns: tuple[str, ...]
    ignore_merges: bool = False  # whether a word that is a token is used without merges
    adds_bos: bool = False  # whether texts begin with BOS if the file does not specify it
    # Whether tokens are bytes in GPT-2's alphabet; otherwise they are characters, and U+2581
    # stands for a space.
    as_bytes: bool = True
    composed: bool = False  # whether texts are normalized to NFC


_DIGITS_GPT2 = (r"\p{N}", _GPT2)
# Llama.cpp's rule for files without `tokenizer.ggml.pre`, which date from 2023 and early 2024.
_DEFAULT = (r"[\p{P}\$\+<=>\^~\|]+", _GPT2, r"\p{N}+", "[0-9][0-9][0-9]")
_TABLE: tuple[tuple[str, PreTokenizer], ...] = (
    ("default", PreTokenizer(_DEFAULT)),
    (
        "llama3 llama-v3 llama-bpe falcon3 falcon-h1 pixtral midm-2.0 lfm2 jina-v5-nano",
        PreTokenizer((_LLAMA3,), ignore_merges=True, adds_bos=True),
    ),
    ("dbrx smaug-bpe chatglm-bpe", PreTokenizer((_LLAMA3,))),
    ("glm4 glm5", PreTokenizer((_LLAMA3,), ignore_merges=True)),
    (
        "minicpm5",
        PreTokenizer(
            (r"\p{N}{1,3}", rf"{_SUFFIXES}|{_WORDS}|\p{{N}}+|{_MARKS}|{_SPACES}"),
            ignore_merges=True,
        ),
    ),
    (
        "jais-2",
        PreTokenizer(
            (
                rf"{_SUFFIXES}|{_WORDS}|\p{{N}}{{1,3}}|{_MARKS}|\s*[\r\n]+|"
                + "|".join(rf"\s{{{2**i}}}(?!\S)" for i in range(9, 1, -1))
                + r"|\s{1,2}(?!\S)|\s{1}",
            )
        ),
    ),
    (
        "deepseek-llm",
        PreTokenizer(
            (
                "[\r\n]",
                rf"\s?{_LETTERS}+",
                "\\s?[!-/:-~\uff01-\uff0f\uff1a-\uff5e\u2018-\u201f\u3000-\u3002]+",
                r"\s+$",
                "[\u4e00-\u9fa5\u0800-\u4e00\uac00-\ud7ff]+",
                r"\p{N}+",
            )
        ),
    ),
    (
        "deepseek-coder",
        PreTokenizer(
            (
                "[\r\n]",
                r"\s?\p{L}+",
                r"\s?\p{P}+",
                "[\u4e00-\u9fa5\u0800-\u4e00\uac00-\ud7ff]+",
                r"\p{N}",
            )
        ),
    ),
    (
        "deepseek-v3 hunyuan-dense joyai-llm hy_v4",
        PreTokenizer((r"\p{N}{1,3}", _KANA, _DEEPSEEK3)),
    ),
    (
        "spark2_5",
        PreTokenizer(
            (
                r"\p{N}{1,3}",
                _KANA,
                rf"{_ASCII}|[^\r\n\p{{L}}\p{{P}}\p{{S}}]?[\p{{L}}\p{{M}}]+| ?[\p{{P}}\p{{S}}]+|"
                r"[\r\n]|\s+(?!\S)|\s+",
                r"\p{N}",
            )
        ),
    ),
    (
        "youtu",
        PreTokenizer(
            (
                "[\uac00-\ud7a3\u3131-\u318e]+|[\uff01\u2026\u201c\u201d\u2018\u2019\u2014\uff1a\uff1b\uff0c\u3001-\u303f\ufe30-\ufe4f]+|[\u3105-\u312f]+|"
                + _KANA,
                _cased(r"\p{N}"),
            ),
            ignore_merges=True,
        ),
    ),
    (
        "falcon",
        PreTokenizer((r"[\p{P}\$\+<=>\^~\|`]+", _GPT2, "[0-9][0-9][0-9]")),
    ),
    (
        "starcoder refact command-r smollm codeshell exaone minerva-7b mellum2",
        PreTokenizer(_DIGITS_GPT2),
    ),
    (
        "gpt-2 phi-2 jina-es jina-de gigachat jina-v2-es jina-v2-de a.x-4.0 mellum modern-bert "
        "jina-v1-en jina-v2-code roberta-bpe jais trillion granite-docling exaone4",
        PreTokenizer((_GPT2,)),
    ),
    ("mpt olmo", PreTokenizer((_GPT2,), composed=True)),  # the tokenizer of GPT-NeoX
    ("qwen2 deepseek-r1-qwen kormo f2llmv2 megrez", PreTokenizer((_QWEN2,), composed=True)),
    ("stablelm2 hunyuan solar-open grok-2", PreTokenizer((_QWEN2,))),
    (
        "qwen35",
        PreTokenizer(
            (
                rf"{_SUFFIXES}|[^\r\n\p{{L}}\p{{N}}]?[\p{{L}}\p{{M}}]+|\p{{N}}|"
                rf" ?[^\s\p{{L}}\p{{M}}\p{{N}}]+[\r\n]*|{_SPACES}",
            ),
        ),
    ),
    ("poro-chat bloom gpt3-finnish", PreTokenizer((_BLOOM,))),
    ("viking", PreTokenizer((_BLOOM, r"\p{N}"))),
    (
        "tekken",
        PreTokenizer((_cased(r"\p{N}", suffixes=False),), ignore_merges=True, adds_bos=True),
    ),
    (
        "chameleon",
        PreTokenizer(
            (
                "<sentinel:[0-9]+>",
                "(IMGIMG)((A|B|C|D|E|F|G|H|I){1,4})Z",
                r"([\t\n]|    |  )",
                r"\p{N}",
                r"[\p{P}!-/:-@\[-`{-~]",
                _GPT2,
            ),
            adds_bos=True,
        ),
    ),
    ("gpt-4o llama4 kanana2 talkie minimax-m2", PreTokenizer((_cased(r"\p{N}{1,3}"),))),
    (
        "granite-embed-multi-97m",
        PreTokenizer((_cased(r"\p{N}{1,3}"),), ignore_merges=True),
    ),
    ("tiny_aya cohere2moe", PreTokenizer((_TRIPLES, _cased(r"\p{N}{1,3}")))),
    (
        "kimi-k2",
        PreTokenizer(
            (
                r"[\p{Han}]+|"
                + _cased(r"\p{N}{1,3}", _without(_UPPER, "Han"), _without(_LOWER, "Han")).replace(
                    r"[\r\n/]*", r"[\r\n]*"
                ),
            )
        ),
    ),
    ("superbpe", PreTokenizer((r"\p{N}+", r"(?=(\d{3})+(?!\d))"))),
    (
        "bailingmoe bailingmoe2 llada-moe",
        PreTokenizer(
            (
                r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}|"
                r" ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+",
            )
        ),
    ),
    (
        "seed-coder",
        PreTokenizer((rf"{_SUFFIXES}|{_WORDS}|\p{{N}}{{1}}| ?[^\s\p{{L}}\p{{N}}\r\n]+|{_SPACES}",)),
    ),
    ("ufakzeka", PreTokenizer((rf"{_WORDS}|\p{{N}}|{_MARKS}|{_SPACES}",))),
    (
        "afmoe",
        PreTokenizer(
            (
                _TRIPLES,
                "[\u4e00-\u9fff\u3400-\u4dbf\uf900-\ufaff\u3040-\u309f\u30a0-\u30ff\uff65-\uff9f\u2f00-\u2fdf\u0e40-\u0e7f\u0e80-\u0eff"
                "\u1780-\u17ff\u1000-\u109f\uaa60-\uaa7f\ua9e0-\ua9ff\uac00-\ud7af\u1100-\u11ff]+",
                _DEEPSEEK3,
            )
        ),
    ),
    ("laguna", PreTokenizer((_NEWLINES, _QWEN2))),
    (
        "exaone-moe",
        PreTokenizer(
            (
                rf"{_SUFFIXES}|[^\r\n\p{{L}}\p{{N}}]?(?:\p{{L}}\p{{M}}*(?: \p{{L}}\p{{M}}*)*)+|"
                r"\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]?|\s*[\r\n]|\s+(?!\S)|\s+",
            )
        ),
    ),
    (
        "gemma4 granite-embed-multi-311m",
        PreTokenizer((_NEWLINES,), adds_bos=True, as_bytes=False),
    ),
    ("sarvam-moe", PreTokenizer((_NEWLINES,), as_bytes=False)),
    ("whitespace", PreTokenizer((r"\S+",), as_bytes=False)),
)
PRE_TOKENIZERS: Mapping[str, PreTokenizer] = {
    name: rule for names, rule in _TABLE for name in names.split()
}
