"""Reads Gemma's own quantization-aware training (`quant_method: gemma`, transformers 5.23).

Layout of a linear [out, in] with 2, 4 or 8 bits, and of a table of embeddings:

    weight, embedding_quantized      int8 [out, in], or uint8 [out, in * bits / 8], low bits first
    weight_scale, embedding_scale    float [out, groups]

    w[o, i] = (q[o, i] - 2^(bits - 1)) * scale[o, i // (in / groups)]    without the offset in int8

config.json has `num_bits`, and `module_quant_configs`: patterns of module names with other numbers
of bits, of which the first that is found in a name counts. Scales of activations have no effect on
weights.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wherry.errors import ModelError

from .bits import unpack
from .matrix import AffineRows
from .pieces import SCALES, AffineModule, Pieces

# Suffixes of the numbers and their scales: of linears, and of embeddings.
_KINDS = (("weight", "weight_scale"), ("embedding_quantized", "embedding_scale"))
_ACTIVATIONS = ("input_activation_scale", "output_activation_scale")
_MOST_REPEATS = 4  # in a pattern; a search takes a power of a name's length


@dataclass(frozen=True, slots=True, kw_only=True)
class GemmaMatrix(AffineModule):
    """A matrix of symmetric integers."""

    numbers: str  # names of the tensors
    scale: str

    @property
    def kind(self) -> str:
        """See `Matrix.kind`."""
        return f"Gemma QAT {self.bits}-bit"

    def scales(self) -> tuple[NDArray[np.float32], NDArray[Any]]:
        """See `AffineMatrix.scales`."""
        scale = self.checkpoint.read(self.scale)
        return scale, np.full(scale.shape, 2 ** (self.bits - 1), np.uint8)

    def rows(self, start: int, stop: int) -> AffineRows:
        """See `AffineMatrix.rows`."""
        raw = self.checkpoint.read_raw(self.numbers, start, stop)
        if self.bits == 8:
            q = raw.view(np.uint8) ^ np.uint8(128)  # adds 128
        else:
            padded = np.pad(raw, ((0, 0), (0, -raw.shape[1] % 4)))
            q = unpack(padded.view("<u4"), self.bits, self.shape[1])
        scale = self.checkpoint.read(self.scale, start, stop)
        return AffineRows(q, scale, np.full(scale.shape, 2 ** (self.bits - 1), np.uint8))

    def floats(self, start: int, stop: int) -> NDArray[np.float32]:
        """See `Matrix.floats`."""
        return self.rows(start, stop).floats(self.groups())


def read_gemma(pieces: Pieces) -> None:
    """Take the linears and embeddings of a Gemma of quantization-aware training.

    Raises:
        ModelError: the settings are not those of the format.
    """
    settings = _Bits.of(pieces)
    for suffix, scale in _KINDS:
        for module in pieces.modules(scale):
            _take(pieces, module, module + suffix, module + scale, settings)
            pieces.drop(*(module + name for name in _ACTIVATIONS))


def _take(pieces: Pieces, module: str, name: str, scale: str, settings: _Bits) -> None:
    numbers = pieces.take(name, ("I8", "U8"), (None, None))
    if numbers is None:
        return
    bits = 8 if numbers.dtype == "I8" else settings.of_module(module.removesuffix("."))
    if (bits == 8) != (numbers.dtype == "I8"):
        pieces.wrong(f"{name} is {numbers.dtype}, and config.json says that it has {bits} bits")
        return
    out, columns = numbers.shape[0], numbers.shape[1] * 8 // bits
    scales = pieces.take(scale, SCALES, (out, None))
    if scales is None:
        return
    if not (group := pieces.group(scale, scales.shape[1], columns)):
        return
    pieces.matrices[f"{module}weight"] = GemmaMatrix(
        checkpoint=pieces.checkpoint,
        module=module,
        shape=(out, columns),
        bits=bits,
        group=group,
        scale_dtype=scales.dtype,
        numbers=name,
        scale=scale,
    )


@dataclass(frozen=True, slots=True)
class _Bits:
    """The numbers of bits of modules."""

    usual: int
    others: tuple[tuple[re.Pattern[str], int], ...]

    def of_module(self, name: str) -> int:
        """Return the number of bits of a module."""
        return next((bits for pattern, bits in self.others if pattern.search(name)), self.usual)

    @staticmethod
    def of(pieces: Pieces) -> _Bits:
        """Read config.json's settings.

        Raises:
            ModelError: they have another form.
        """
        given = pieces.settings.get("module_quant_configs") or {}
        usual = pieces.settings.get("num_bits", 4)
        bits, others = [usual], []
        try:
            for pattern, own in dict(given).items():
                bits.append(own.get("num_bits", usual))
                others.append((_pattern(pattern), bits[-1]))
        except (TypeError, ValueError, AttributeError, re.error) as e:
            raise _wrong(pieces, f"module_quant_configs {repr(given)[:200]} ({e})") from e
        if any(type(n) is not int or n not in (2, 4, 8) for n in bits):
            raise _wrong(pieces, f"num_bits {repr(bits)[:200]}; they are 2, 4 or 8")
        return _Bits(usual, tuple(others))


def _pattern(text: str) -> re.Pattern[str]:
    """Compile a pattern of module names that cannot take long.

    Raises:
        ValueError: it repeats groups, or has many repetitions.
    """
    repeats = len(re.findall(r"[*+{]", text))
    if len(text) > 200 or repeats > _MOST_REPEATS or re.search(r"\)[*+?{]", text):
        raise ValueError(f"a pattern has at most {_MOST_REPEATS} repetitions, and none of a group")
    return re.compile(text)


def _wrong(pieces: Pieces, what: str) -> ModelError:
    return ModelError(
        f"{pieces.checkpoint.folder}/config.json has {what}. Download it again, or use the "
        "original model, and --quant."
    )
