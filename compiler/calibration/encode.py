"""Encodes the linears of a checkpoint with error feedback, a layer at a time and resumably."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from wherry.base.progress import Progress
from wherry.base.temporary import write_atomically
from wherry.errors import UsageError
from wherry.models.arch import Shape
from wherry.models.weights.plan import ParameterPlan
from wherry.quant.feedback import PAIR_BYTES, VERSION
from wherry.quant.group import GroupQuant
from wherry.quant.mix import Mix
from wherry.quant.scheme import Scheme, find

from ..checkpoint.folder import TOKENIZER
from ..checkpoint.tensors import Checkpoint
from ..encoding import Encoding
from ..library.export import reads_source
from ..load import Described
from ..quality.texts import Text, windows
from .encoded import Encoded
from .program import Captured, run
from .worker import Worker

FOLDER = ".wherry-calibrated"  # encoded weights of a conversion that is running
WINDOW = 512  # most tokens of a window
MOST_TOKENS = 8192  # of a calibration text: activations of all are in memory at once
# The scheme of what the running model looks up, which its encoded values are rounded to.
_LOOKUPS = "q8f32_1"
_KEY = "key"
Stored = Mapping[str, NDArray[Any]]


@dataclass(frozen=True, slots=True)
class Calibration:
    """How a conversion encodes linears by a text.

    Args:
        described: the model; if its folder has no tokenizer.json, the conversion's has one.
        text: the calibration text.
    """

    described: Described
    text: Text

    @property
    def key(self) -> str:
        """Return what determines the encoding besides the checkpoint and the scheme."""
        return f"calibration {VERSION} {self.text.sha256}"

    def encode(
        self,
        out: Path,
        job: str,
        plans: Mapping[str, ParameterPlan],
        checkpoint: Checkpoint,
        encoding: Encoding,
        progress: Progress | None,
    ) -> Encoded:
        """Encode all linears into a folder in `out`; one that another call made is completed.

        Args:
            out: the folder of the conversion.
            job: hash of the conversion; encodings of others are removed.
            plans: the model's parameters by name.
            checkpoint: the source of their weights.
            encoding: how the parameters are stored.
            progress: called with "calibrate", the weights done and the weights in total.

        Raises:
            UsageError: the text has nothing to read.
        """
        folder = out / FOLDER
        key = folder / _KEY
        if not key.is_file() or key.read_text() != job:
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
            write_atomically(key, job)
        encoded = Encoded(folder)
        scheme = find(_LOOKUPS)
        captured = Captured.of(self.described, scheme)
        head = _head(plans, captured, self.described, encoding)
        names = [*captured.weights, *([head] if head else [])]
        if all(map(encoded.has, names)):
            return encoded
        tokenizer = out if (out / TOKENIZER).is_file() else self.described.folder.path
        texts = _limited(windows(self.text, tokenizer, self._window))
        if not texts:
            raise UsageError(
                "The calibration text has fewer than two tokens. Give some thousand words: "
                "--calibration FILE, or the text that comes with Wherry: --calibration builtin"
            )
        worker = Worker(plans, checkpoint, encoding, scheme, encoded, progress, names)
        # Each text twice: with the model's own weights, and with those that are encoded.
        hidden = run(captured, self.described, scheme, 2 * texts, worker.stored, worker.linear)
        if head:
            worker.head(head, hidden, tied=_tied(self.described))
        return encoded

    @property
    def _window(self) -> int:
        return min(WINDOW, int(self.described.config.context))


def refused(
    described: Described, parameters: Mapping[str, Shape], scheme: Scheme, mix: Mix | None
) -> str | None:
    """Return why a model is not encoded with error feedback; None: it is."""
    if not mix and (not isinstance(scheme, GroupQuant) or scheme.bits != 4):
        return f"{scheme.name} has no 4-bit weights"
    if reads_source(described.config):
        return f"{described.arch.name} is an encoder-decoder, and a text has no sources for it"
    return None


def memory_bytes(parameters: Mapping[str, Shape]) -> int:
    """Return about how many bytes the calibration of a model takes by the built-in text."""
    widest = max((shape[-1] for shape in parameters.values() if len(shape) == 2), default=0)
    values = 20 * MOST_TOKENS * widest  # float32, of a layer's inputs and results
    experts = max((prod(shape) for shape in parameters.values() if len(shape) == 3), default=0)
    return PAIR_BYTES * widest**2 + values + experts  # the layer's encoded experts


def _head(
    plans: Mapping[str, ParameterPlan],
    captured: Captured,
    described: Described,
    encoding: Encoding,
) -> str | None:
    """Return the name of the LM head, which the program does not have, or of a tied embedding."""
    inside = {param.name for param in captured.program.mod["forward"].params}
    width = captured.program.embedding_size
    heads = [
        name
        for name, plan in plans.items()
        if (name in inside) == _tied(described)
        and name not in captured.weights
        and plan.shape[1:] == (width,)
        and plan.shape[0] >= described.config.vocab_size
        and all(
            part.scheme.quantizes(name, plan.shape) for part in encoding.parts(name, plan.shape)
        )
    ]
    return heads[0] if len(heads) == 1 else None


def _tied(described: Described) -> bool:
    return bool(getattr(described.config, "tie_word_embeddings", False))


def _limited(texts: list[list[int]]) -> list[list[int]]:
    """Return the first windows, up to MOST_TOKENS tokens."""
    kept: list[list[int]] = []
    for tokens in texts:
        if sum(map(len, kept)) + len(tokens) > MOST_TOKENS:
            break
        kept.append(tokens)
    return kept
