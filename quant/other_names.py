"""Maps names of other projects' quantization schemes to the closest supported scheme."""

from __future__ import annotations

import re
from collections.abc import Iterable
from difflib import get_close_matches

_BFLOAT16 = (
    "q0f16 is the scheme for checkpoints in bfloat16. float16 has three bits more: it holds every "
    "bfloat16 weight between 2^-14 and 65504 exactly (a larger one is an error that names it), and "
    "activations eight times finer; sums are float32."
)
_HALVES = "Floats of 16 bits are float16 here, which suits checkpoints in bfloat16, too."
_OTHERS = "That is another program's layout; the nearest here has {bits} bits in groups of 32."
_CALIBRATED = (
    "To run a checkpoint of that format, give it as MODEL without --quant: it keeps its bits. The "
    "schemes of this list are made from float weights."
)
_MIXES = (
    "llama.cpp's mixes of types are auto:BITS here: types chosen for the model at hand, with that "
    "number of bits per weight on average."
)
# Rows (pattern of a whole name in lower case, scheme to suggest, reason); the first match counts.
_KNOWN = (
    (r"q0bf16|bf16|bfloat16", "q0f16", _BFLOAT16),
    (r"q8bf16_\w+", "q8f16_1", _HALVES),
    (r"q[34]bf16_\w+", "q4f16_1", _HALVES),
    (r"q2_k_[slm]+|iq2_\w+", "auto:3.2", _MIXES),
    (r"q3_k_x?[slm]+|iq3_\w+", "auto:3.9", _MIXES),
    (r"q4_k_[sm]", "auto:4.8", _MIXES),
    (r"q5_k_[sm]", "auto:5.7", _MIXES),
    (r".*(awq|gptq|bitsandbytes|bnb|exl[23]|hqq|gguf).*", "q4f16_1", _CALIBRATED),
    (r"q8f16_\w+|q[68]_\w+|e[45]m[23]\w*|fp8\w*|w8a(8|16)|8(-?bit)?", "q8f16_1", _OTHERS),
    (r"(u?i|u?int)?8(-?bit)?", "q8f16_1", _OTHERS),
    (
        r"q[34]f16_\w+|[it]?q[1-5]_\w+|(mx|nv)?fp4|nf4|w4a16|(u?i|u?int)?4(-?bit)?",
        "q4f16_1",
        _OTHERS,
    ),
    (r"q[34]f32_\w+", "q4f32_1", _OTHERS),
    (r"q8f32_\w+", "q8f32_1", _OTHERS),
    (r"none|half|fp16|f16|float16", "q0f16", ""),
    (r"full|fp32|f32|float32", "q0f32", ""),
)


def advice(name: str, schemes: Iterable[str]) -> tuple[str | None, str]:
    """Return the scheme to suggest instead of an unknown name, or None, and the reason, or "".

    Args:
        name: the unknown name, such as "q0bf16", "Q4_K_M" or "awq".
        schemes: the names of all supported schemes.
    """
    text, names = name.strip().lower(), list(schemes)
    if text in names:
        return text, "Names are in lower case."
    for pattern, scheme, why in _KNOWN:
        if re.fullmatch(pattern, text):
            return scheme, why.format(bits=scheme[1])
    return next(iter(get_close_matches(text, names, n=1, cutoff=0.5)), None), ""
