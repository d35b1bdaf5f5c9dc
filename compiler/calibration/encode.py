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
from wherry.quant.blocks import BlockQuant
from wherry.quant.feedback import PAIR_BYTES, VERSION, Feedback
from wherry.quant.group import GroupQuant
from wherry.quant.mix import Mix
from wherry.quant.plan import Rows
from wherry.quant.scheme import EXACT, Encoder, Scheme, find, store

from ..allocation import TIED_SHARE
from ..checkpoint.tensors import Checkpoint
from ..encoding import Encoding
from ..library.export import reads_source
from ..load import Described
from ..quality.texts import Text, windows
from ..tokenizer_files import TOKENIZER
from .program import Captured, run

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
        tokenizer = out if (out / TOKENIZER).is_file() else self.tokenizer
        texts = _limited(windows(self.text, tokenizer, self._window))
        if not texts:
            raise UsageError(
                "The calibration text has fewer than two tokens. Give some thousand words: "
                "--calibration FILE, or the text that comes with Wherry: --calibration builtin"
            )
        worker = _Worker(plans, checkpoint, encoding, scheme, encoded, progress, names)
        # Each text twice: with the model's own weights, and with those that are encoded.
        hidden = run(captured, self.described, scheme, 2 * texts, worker.stored, worker.linear)
        if head:
            exact, own = np.split(hidden, 2)
            tied = _tied(self.described)
            worker.encode(
                head,
                lambda: Feedback(own, None, TIED_SHARE) if tied else Feedback(own, exact),
            )
        return encoded

    @property
    def _window(self) -> int:
        return min(WINDOW, int(self.described.config.context))


def refused(
    described: Described, parameters: Mapping[str, Shape], scheme: Scheme, mix: Mix | None
) -> str | None:
    """Return why a model is not encoded with error feedback; None: it is.

    Experts are left to the search: their Hessians need the tokens that the router sends to each,
    and all their weights at once.
    """
    if not mix and (not isinstance(scheme, GroupQuant) or scheme.bits != 4):
        return f"{scheme.name} has no 4-bit weights"
    if reads_source(described.config):
        return f"{described.arch.name} is an encoder-decoder, and a text has no sources for it"
    if any(len(shape) == 3 for shape in parameters.values()):
        kinds = "experts, latent attention, convolutions"
        return f"{described.arch.name} has weights of three axes ({kinds})"
    return None


def memory_bytes(parameters: Mapping[str, Shape]) -> int:
    """Return about how many bytes the calibration of a model takes by the built-in text."""
    widest = max((shape[-1] for shape in parameters.values() if len(shape) == 2), default=0)
    values = 20 * MOST_TOKENS * widest  # float32, of a layer's inputs and results
    return PAIR_BYTES * widest**2 + values


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
        """Return the stored arrays of a parameter by their full names."""
        with np.load(self._path(name), allow_pickle=False) as found:
            return {stored: found[stored] for stored in found.files}

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
    encoding: Encoding
    lookups: Encoder  # the scheme of the tensors that `stored` returns
    encoded: Encoded
    progress: Progress | None
    names: list[str]
    done: int = 0  # weights
    last: tuple[str, dict[str, NDArray[Any]]] = ("", {})  # the last parameter that `stored` read

    def _parts(self, name: str) -> tuple[Rows, ...]:
        return self.encoding.parts(name, self.plans[name].shape)

    def linear(self, name: str, x: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return x w^T for inputs x [2 n, in] -> [2 n, out].

        The first half are inputs in the float model, for the weight itself; the second are those
        that encoded weights have computed, for the encoded weight.
        """
        exact, own = np.split(x, 2)
        y = np.empty((len(x), self.plans[name].shape[0]), np.float32)
        exact_y, own_y = np.split(y, 2)
        done = 0
        for _, rows in self.encoding.rows(self.plans[name], self.checkpoint):
            exact_y[:, done : done + len(rows)] = exact @ rows.T
            done += len(rows)
        arrays = self.encode(name, lambda: Feedback(own, exact))
        done = 0
        for part in self._parts(name):
            stored = _of(part, arrays)
            for start in range(0, part.rows, step := max(1, (1 << 22) // x.shape[1])):
                block = {suffix: array[start : start + step] for suffix, array in stored.items()}
                w = part.scheme.decode(block, x.shape[1])
                own_y[:, done : done + len(w)] = own @ w.T
                done += len(w)
        return y

    def encode(self, name: str, feedback: Callable[[], Feedback]) -> Stored:
        """Return the stored arrays, by their names, of an encoded weight."""
        if self.encoded.has(name):
            arrays: Stored = self.encoded.read(name)
        else:
            arrays = self._encoded(name, feedback())
            self.encoded.write(name, arrays)
        self.done += prod(self.plans[name].shape)
        if self.progress:
            total = sum(prod(self.plans[n].shape) for n in self.names)
            self.progress("calibrate", self.done, total)
        return arrays

    def _encoded(self, name: str, feedback: Feedback) -> dict[str, NDArray[Any]]:
        found: dict[str, list[NDArray[Any]]] = {}
        for part, rows in self.encoding.rows(self.plans[name], self.checkpoint):
            scheme, prefix = part.scheme, part.name.removesuffix("weight")
            assert isinstance(scheme, GroupQuant | BlockQuant), "all that are encoded have grids"
            for suffix, array in feedback.encode(scheme.grid, rows).items():
                found.setdefault(prefix + suffix, []).append(array)
        return {stored: np.concatenate(each) for stored, each in found.items()}

    def stored(self, name: str) -> NDArray[Any]:
        """Return a stored tensor, in `lookups`, of a parameter that no linear reads.

        Its values are those that search encodes.
        """
        if name not in self.last[1]:
            owner = self._owner(name)
            plan = self.plans[owner]
            parts = [
                store(self._looked_up(owner), owner, _searched(part, rows), plan.shape)
                for part, rows in self.encoding.rows(plan, self.checkpoint)
            ]
            self.last = (
                owner,
                {
                    n: np.concatenate([p[n] for p in parts]) if plan.shape else parts[0][n]
                    for n in parts[0]
                },
            )
        return self.last[1][name]

    def _looked_up(self, owner: str) -> Encoder:
        return EXACT if owner in self.encoding.exact else self.lookups

    def _owner(self, name: str) -> str:
        """Return the parameter that a stored tensor belongs to."""
        for owner, plan in self.plans.items():
            tensors = self._looked_up(owner).stored(owner, plan.shape)
            if any(tensor.name == name for tensor in tensors):
                return owner
        raise AssertionError(f"no parameter stores {name}")


def _of(part: Rows, arrays: Stored) -> dict[str, NDArray[Any]]:
    """Return the arrays of a part by name suffix."""
    prefix = part.name.removesuffix("weight")
    return {n.removeprefix(prefix): a for n, a in arrays.items() if n.startswith(prefix)}


def _searched(part: Rows, rows: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return rows as they are after they were encoded by search."""
    scheme = part.scheme
    if not scheme.quantizes(part.name, rows.shape):
        return rows
    assert isinstance(scheme, GroupQuant | BlockQuant), "all that are encoded have grids"
    return scheme.decode(scheme.encode(rows), rows.shape[-1])


def _head(
    plans: Mapping[str, ParameterPlan],
    captured: Captured,
    described: Described,
    encoding: Encoding,
) -> str | None:
    """Return the name of the LM head, which the program does not have, or of a tied embedding."""
    inside = {param.name for param in captured.program.mod["forward"].params}
    width = captured.program.embedding_size
    found = [
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
    return found[0] if len(found) == 1 else None


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
