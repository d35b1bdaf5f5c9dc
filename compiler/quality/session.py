"""Runs a compiled model in TVM's virtual machine for the logits of every token of a text."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import tvm
from numpy.typing import NDArray
from tvm import relax

from wherry.artifact.manifest import Manifest
from wherry.artifact.variants import library_for
from wherry.errors import ToolchainError, UsageError
from wherry.machine.tvm_runtime import WITHOUT_RUNTIME
from wherry.passes.recurrent_state import SLOTS

from ..library.opened import open_library
from ..weight_cache import StoredTensors

WINDOW = 512  # most tokens of a window: one sequence of this length has memory for its KV cache


class Session:
    """A compiled model with memory for one sequence.

    Memory: the packed weights, one stored tensor while they are loaded, a step, and the KV cache of
    `window` tokens.

    Args:
        folder: the compiled folder.
        manifest: its manifest.

    Raises:
        UsageError: the model has no next-token distributions.
        ToolchainError: the target does not run on this machine.
    """

    def __init__(self, folder: Path, manifest: Manifest) -> None:
        self._device = _device(manifest)
        self._vm = relax.VirtualMachine(
            open_library(folder / library_for(manifest)), _with_host(self._device)
        )
        self._metadata: dict[str, Any] = json.loads(str(self._vm["_metadata"]()))
        if "forward" not in self._metadata["entries"]:
            raise UsageError(
                f"{manifest.name} computes embeddings, no distributions of next tokens: there is "
                "no quality card for it."
            )
        if "encode" in self._metadata["entries"]:
            raise UsageError(
                f"{manifest.name} is an encoder-decoder: its next tokens depend on a source, which "
                "a text alone does not have. There is no quality card for it."
            )
        self.vocab_size = int(self._metadata["vocab_size"])
        self.window = min(WINDOW, int(self._metadata["context"]))
        self._rows = min(int(self._metadata["logit_rows"]), int(self._metadata["prefill_chunk"]))
        self._pages = -(-self.window // int(self._metadata["page_size"]))
        self._state = self._zeros()
        self._params = list(self._load(StoredTensors(folder)))

    def _zeros(self) -> list[Any]:
        """Return the state of a sequence without tokens: pages, and slots of recurrent state."""
        counts = {"paged_kv": self._pages, "recurrent": 1}
        return [
            tvm.runtime.tensor(
                np.zeros((counts[own["kind"]], *own["shape"]), own["dtype"]), self._device
            )
            for own in self._metadata["state"]
            for _ in range(own["layers"])
        ]

    def _load(self, stored: StoredTensors) -> Iterator[Any]:
        """Yield the parameters of `forward`, packed; at most one stored tensor is in memory."""
        for entry in self._metadata["params"]:
            sources = [
                tvm.runtime.tensor(_rows(stored, name), self._device) for name in entry["from"]
            ]
            if "pack" not in entry:
                yield sources[0]
                continue
            packed = self._vm[entry["pack"]](*sources)
            yield packed[entry["index"]] if "index" in entry else packed

    def logits(self, tokens: Sequence[int]) -> Iterator[NDArray[np.float32]]:
        """Yield the logits [rows, vocab] of consecutive tokens of a new sequence.

        Args:
            tokens: at most `window` ids.
        """
        assert len(tokens) <= self.window, "the KV cache has no room for more"
        if (
            SLOTS in self._metadata["inputs"]
        ):  # pages need no reset: a step reads what it has written
            self._state = self._zeros()
        for start in range(0, len(tokens), self._rows):
            yield self._step(tokens[start : start + self._rows], start)

    def _step(self, tokens: Sequence[int], start: int) -> NDArray[np.float32]:
        """Run one step with `tokens` at the positions from `start`; return [len(tokens), vocab]."""
        n, size = len(tokens), int(self._metadata["page_size"])
        used = -(-(start + n) // size)
        tables = []
        for group in self._metadata["groups"]:
            # Pages that lie wholly behind a window are not read.
            window = int(group["window"])
            behind = max(start + 1 - window, 0) // size if window else 0
            tables += [[0, used], [-1] * behind + list(range(behind, used))]
        rows = list(range(n))
        slots = [[0]] if SLOTS in self._metadata["inputs"] else []
        arrays = [tokens, range(start, start + n), [0] * n, [0, n], *tables, *slots, rows]
        inputs = [tvm.runtime.tensor(np.array(a, np.int32), self._device) for a in arrays]
        logits: NDArray[np.float32] = self._vm["forward"](
            *inputs, *self._state, *self._params
        ).numpy()
        return logits


def _rows(stored: StoredTensors, name: str) -> NDArray[Any]:
    """Return a stored tensor, or rows of one: "lm_head.q_weight[0:76032]"."""
    tensor, _, rows = name.partition("[")
    if not rows:
        return stored.read(tensor)
    first, _, stop = rows.removesuffix("]").partition(":")
    return stored.read(tensor)[int(first) : int(stop)]


def _device(manifest: Manifest) -> Any:
    kind = str(manifest.target.get("kind", "llvm"))
    if kind in ("llvm", "c"):
        return tvm.cpu()
    if kind in WITHOUT_RUNTIME:
        raise _not_here(manifest.target)
    device = tvm.device(kind, 0)
    if not device.exist:
        raise _not_here(manifest.target)
    return device


def _not_here(target: Mapping[str, Any]) -> ToolchainError:
    return ToolchainError(
        f"A model for {target['name']} does not run on this machine, so its quality cannot be "
        "measured here. The same weights on the CPU have about the same: "
        "wherry quality MODEL --target cpu"
    )


def _with_host(device: Any) -> list[Any]:
    """Return the devices of the virtual machine, which computes shapes on the host."""
    return [device] if device == tvm.cpu() else [device, tvm.cpu()]
