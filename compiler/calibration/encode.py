"""Encodes the linears of a checkpoint with error feedback, a layer at a time and resumably."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wherry.base.progress import Progress
from wherry.base.temporary import write_atomically
from wherry.errors import UsageError
from wherry.models.arch import Shape
from wherry.models.weight_plan import ParameterPlan
from wherry.quant.feedback import VERSION, Feedback
from wherry.quant.group import GroupQuant
from wherry.quant.scheme import Encoder, Scheme, store

from ..checkpoint.assemble import blocks
from ..checkpoint.tensors import Checkpoint
from ..load import Described
from ..quality.texts import Text, windows
from ..tokenizer_files import TOKENIZER
from .program import Captured, run

FOLDER = ".wherry-calibrated"  # encoded weights of a conversion that is running
WINDOW = 512  # most tokens of a window
MOST_TOKENS = 8192  # of a calibration text: activations of all are in memory at once
_KEY = "key"
Stored = Mapping[str, NDArray[Any]]


@dataclass(frozen=True, slots=True)
class Calibration:
    """How a conversion encodes linears by a text.

    Args:
        described: the model.
        text: the calibration text.
        tokenizer: the source's folder; if it has no tokenizer.json, the conversion's has one.
    """

    described: Described
    text: Text
    tokenizer: Path

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
        scheme_of: Callable[[str], Encoder],
        progress: Progress | None,
    ) -> Encoded:
        """Encode all linears into a folder in `out`; one that another call made is completed.

        Args:
            out: the folder of the conversion.
            job: hash of the conversion; encodings of others are removed.
            plans: the model's parameters by name.
            checkpoint: the source of their weights.
            scheme_of: returns the scheme of a parameter.
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
        scheme = next(s for s in map(scheme_of, plans) if isinstance(s, GroupQuant))
        captured = Captured.of(self.described, scheme)
        head = _head(plans, captured, scheme_of)
        names = [*captured.weights, *([head] if head else [])]
        if all(map(encoded.has, names)):
            return encoded
        tokenizer = out if (out / TOKENIZER).is_file() else self.tokenizer
        texts = _limited(windows(self.text, tokenizer, self._window))
        if not texts:
            raise UsageError(
                "The calibration text has fewer than two tokens. Give some thousand words: "
                "--calibration FILE, or the text that comes with Wherry: --calibration builtin"
            )
        worker = _Worker(plans, checkpoint, scheme_of, encoded, progress, names)
        hidden = run(captured, self.described, scheme, texts, worker.stored, worker.linear)
        if head:
            worker.encode(head, hidden)
        return encoded

    @property
    def _window(self) -> int:
        return min(WINDOW, int(self.described.config.context))


def refused(described: Described, parameters: Mapping[str, Shape], scheme: Scheme) -> str | None:
    """Return why a model is not encoded with error feedback; None: it is.

    Experts are left to the search: their Hessians need the tokens that the router sends to each,
    and all their weights at once.
    """
    if not isinstance(scheme, GroupQuant) or scheme.bits != 4:
        return f"{scheme.name} has no 4-bit weights"
    if any(len(shape) == 3 for shape in parameters.values()):
        return f"{described.arch.name} has weights of three axes (experts, or latent attention)"
    return None


class Encoded:
    """Encoded weights in a folder, one file each.

    Args:
        folder: the folder, which exists.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def _path(self, name: str) -> Path:
        return self._folder / f"{hashlib.sha256(name.encode()).hexdigest()[:24]}.npz"

    def has(self, name: str) -> bool:
        """Return whether a parameter has been encoded."""
        return self._path(name).is_file()

    def read(self, name: str) -> dict[str, NDArray[Any]]:
        """Return the arrays of a parameter by name suffix, as `Scheme.encode` does."""
        with np.load(self._path(name), allow_pickle=False) as found:
            return {suffix: found[suffix] for suffix in found.files}

    def write(self, name: str, arrays: Stored) -> None:
        """Store the arrays of a parameter."""
        path = self._path(name)
        partial = path.with_suffix(".partial")
        named: dict[str, Any] = dict(arrays)
        with partial.open("wb") as f:
            np.savez(f, **named)
        partial.replace(path)

    def remove(self) -> None:
        """Remove the folder, when the shards have its content."""
        shutil.rmtree(self._folder, ignore_errors=True)


@dataclass(slots=True)
class _Worker:
    """Encodes a weight when its inputs are known, and computes its results."""

    plans: Mapping[str, ParameterPlan]
    checkpoint: Checkpoint
    scheme_of: Callable[[str], Encoder]
    encoded: Encoded
    progress: Progress | None
    names: list[str]
    done: int = 0  # weights
    last: tuple[str, dict[str, NDArray[Any]]] = ("", {})  # the last parameter that `stored` read

    def linear(self, name: str, x: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return x w^T for the encoded weight: x [n, in] -> [n, out]."""
        arrays = self.encode(name, x)
        scheme, rows = self.scheme_of(name), self.plans[name].shape[0]
        y = np.empty((len(x), rows), np.float32)
        step = max(1, (1 << 22) // x.shape[1])
        for start in range(0, rows, step):
            part = {suffix: array[start : start + step] for suffix, array in arrays.items()}
            y[:, start : start + step] = x @ scheme.decode(part, x.shape[1]).T
        return y

    def encode(self, name: str, x: NDArray[np.float32]) -> Stored:
        """Return the encoded arrays of a weight whose inputs are x [n, in]."""
        if self.encoded.has(name):
            arrays = self.encoded.read(name)
        else:
            arrays = self._encoded(name, x)
            self.encoded.write(name, arrays)
        self.done += prod(self.plans[name].shape)
        if self.progress:
            total = sum(prod(self.plans[n].shape) for n in self.names)
            self.progress("calibrate", self.done, total)
        return arrays

    def _encoded(self, name: str, x: NDArray[np.float32]) -> dict[str, NDArray[Any]]:
        feedback = Feedback(x.T @ x)
        scheme = self.scheme_of(name)
        assert isinstance(scheme, GroupQuant), "`refused` lets no other scheme pass"
        parts = [
            feedback.encode(scheme, rows) for _, rows in blocks(self.plans[name], self.checkpoint)
        ]
        return {suffix: np.concatenate([part[suffix] for part in parts]) for suffix in parts[0]}

    def stored(self, name: str) -> NDArray[Any]:
        """Return a stored tensor of a parameter that no linear reads, encoded by search."""
        if name not in self.last[1]:
            owner = self._owner(name)
            plan, scheme = self.plans[owner], self.scheme_of(owner)
            parts = [
                store(scheme, owner, rows, plan.shape) for _, rows in blocks(plan, self.checkpoint)
            ]
            self.last = (
                owner,
                {
                    n: np.concatenate([p[n] for p in parts]) if plan.shape else parts[0][n]
                    for n in parts[0]
                },
            )
        return self.last[1][name]

    def _owner(self, name: str) -> str:
        """Return the parameter that a stored tensor belongs to."""
        for owner, plan in self.plans.items():
            tensors = self.scheme_of(owner).stored(owner, plan.shape)
            if any(tensor.name == name for tensor in tensors):
                return owner
        raise AssertionError(f"no parameter stores {name}")


def _head(
    plans: Mapping[str, ParameterPlan], captured: Captured, scheme_of: Callable[[str], Encoder]
) -> str | None:
    """Return the name of an untied LM head, the one matrix that the program does not have."""
    inside = {param.name for param in captured.program.mod["forward"].params}
    found = [
        name
        for name, plan in plans.items()
        if name not in inside
        and scheme_of(name).quantizes(name, plan.shape)
        and plan.shape[-1] == captured.program.embedding_size
    ]
    return found[0] if len(found) == 1 else None


def _limited(texts: list[list[int]]) -> list[list[int]]:
    """Return the first windows, up to MOST_TOKENS tokens."""
    kept: list[list[int]] = []
    for tokens in texts:
        if sum(map(len, kept)) + len(tokens) > MOST_TOKENS:
            break
        kept.append(tokens)
    return kept
