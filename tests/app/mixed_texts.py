"""Texts for tests of tokenizers: all scripts, and rare characters."""

# ruff: noqa: RUF001  (the characters that look like others are the point)

from __future__ import annotations

import random
from collections.abc import Iterator

SENTENCES = [
    "The quick brown fox jumps over the lazy dog, doesn't it? I'LL say: it's 12345 o'clock.",
    "Once upon a time there was a tokenizer; it had 1,000,000 tokens and MORE.",
    "Der Übermut der Größe: Straße, Äpfel, naïve café, Ångström; ein e\u0301 und ein n\u0303.",
    "日本語の文章です。これはテストです。漢字とカタカナとひらがな、１２３。",
    "한국어 문장입니다. 토크나이저를 시험합니다.",
    "Это предложение на русском языке. ЗАГЛАВНЫЕ буквы и строчные.",
    "هذه جملة باللغة العربية، وفيها أرقام ١٢٣.",
    "यह हिन्दी का वाक्य है। क्षत्रिय ज्ञान।",
    "def f(x):\n    return x ** 2  # comment\n\n\tif x != 0:\r\n\t\tprint('x')\n",
    "🎉 emoji 👩‍👩‍👧 🇯🇵 ❤️ and ﬁ ligatures ﬂ ½ ™ Ⅷ ㌀ 𝔘𝔫𝔦",
]
_RANGES = [
    (0x20, 0x7E), (0x00, 0x1F), (0x7F, 0xA0), (0xA0, 0x24F), (0x250, 0x36F), (0x370, 0x52F),
    (0x590, 0x6FF), (0x900, 0xDFF), (0xE00, 0x10FF), (0x1100, 0x11FF), (0x1E00, 0x1FFF),
    (0x2000, 0x206F), (0x2070, 0x2BFF), (0x3000, 0x30FF), (0x4E00, 0x9FFF), (0xA640, 0xA9FF),
    (0xAC00, 0xD7A3), (0xE000, 0xE010), (0xF900, 0xFFFD), (0x10000, 0x1FFFF), (0x1F300, 0x1F6FF),
    (0x20000, 0x2FA1F), (0xE0000, 0x10FFFF), (0x300, 0x345), (0x30, 0x39), (0x41, 0x5A),
]  # fmt: skip
_WORDS = [
    *(w for s in SENTENCES for w in s.split()), " ", "  ", "   ", "\n", "\r\n", "\n\n", "\t",
    "\u3000",
    "\u00a0", " \n ", "'s", "'LL", "'ſ", "'re", "\u200d", "\ufe0f", "👨‍👩‍👧‍👦", "🇩🇪🇫🇷",
    "e\u0301\u0323",
    "A\u030a", "ﬀ", "İ", "ẞ", "K", "ǅ", "①", "٣", "१२", "ⅷ", "½", "▁", "▁▁", "<0x41>", "##a", "Ġ",
    "<s>", "</s>", "<unk>", "[UNK]", "[SEP]", "<|im_start|>", "<|im_end|>", "\x00", "\ufeff",
    "\ufffd",
    "ᄀ", "ᅡ", "ᆨ", "각", "\u1161\u11a8", "a" * 30, "1234567", "...", "!!!\n", "--", "don't",
    "CamelCase",
]  # fmt: skip


def random_text(rng: random.Random, extra: list[str]) -> str:
    """Mix words of many scripts, runs of blanks, and random characters."""
    parts = []
    for _ in range(rng.randrange(1, 24)):
        kind = rng.random()
        if kind < 0.55:
            parts.append(rng.choice(_WORDS))
        elif kind < 0.65 and extra:
            parts.append(rng.choice(extra))
        elif kind < 0.72:
            parts.append(rng.choice(" \n\t\u3000") * rng.randrange(1, 9))
        elif kind < 0.78:
            parts.append(str(rng.randrange(10 ** rng.randrange(1, 12))))
        else:
            low, high = rng.choice(_RANGES)
            parts += [chr(rng.randint(low, high)) for _ in range(rng.randrange(1, 5))]
        if rng.random() < 0.4:
            parts.append(" ")
    return "".join(parts)


def characters(step: int = 1, offset: int = 0) -> Iterator[str]:
    """All code points in context, some hundred a text."""
    codes = [*range(0xD800), *range(0xE000, 0x110000)][offset::step]
    for at in range(0, len(codes), 200):
        yield " ".join(f"a{c}b" if c != " " else c for c in map(chr, codes[at : at + 200]))
