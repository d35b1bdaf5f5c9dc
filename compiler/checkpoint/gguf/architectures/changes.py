"""Changes that undo what llama.cpp's conversion does to the tensors of a checkpoint."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wherry.errors import ModelError
from wherry.models.weights.rules import Order, Pairs

from ..tensors import GgufTensor


@dataclass(frozen=True, slots=True)
class Tiled:
    """Order of value heads [times, key heads, e] after `first` rows; a checkpoint has groups.

    A group has the `times` value heads of one key head, one after another.
    """

    first: int  # rows before, which keep their places
    key_heads: int
    times: int  # value heads of a key head
    head_dim: int

    def source(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the file's row of each row of the checkpoint."""
        head, k = np.divmod(rows - self.first, self.head_dim)
        group, member = np.divmod(head, self.times)
        moved = self.first + (member * self.key_heads + group) * self.head_dim + k
        return np.where(rows < self.first, rows, moved)


def pairs(tensor: GgufTensor, config: Mapping[str, Any]) -> GgufTensor:
    """Rows of q and k: the two halves of a head alternate in the file.

    Raises:
        ModelError: the tensor's rows are not a whole number of heads.
    """
    head = int(config["head_dim"])
    if head < 2 or head % 2 or tensor.shape[0] % head:
        raise ModelError(
            f"{tensor.path}: {tensor.stored} {list(tensor.shape)} are no heads of {head} dimensions"
        )
    return replace(tensor, order=Pairs(head, head))


def minus_one(tensor: GgufTensor, config: Mapping[str, Any]) -> GgufTensor:
    """Weights of a norm: the file has w + 1. Biases are the checkpoint's."""
    return replace(tensor, undo=_less_one) if tensor.stored.endswith(".weight") else tensor


def logarithm(tensor: GgufTensor, config: Mapping[str, Any]) -> GgufTensor:
    """A_log of value heads: the file has -exp(A_log), tiled."""
    return replace(tensor, undo=_log_of_minus, order=_value_heads(config, 1))


def logarithm_in_groups(tensor: GgufTensor, config: Mapping[str, Any]) -> GgufTensor:
    """A_log of value heads in the checkpoint's order: the file has -exp(A_log)."""
    return replace(tensor, undo=_log_of_minus)


def state_rates(tensor: GgufTensor, config: Mapping[str, Any]) -> GgufTensor:
    """A_log [heads] of Mamba-2: the file has -exp(A_log) [heads, 1]."""
    return replace(vector(tensor, config), undo=_log_of_minus)


def heads(tensor: GgufTensor, config: Mapping[str, Any]) -> GgufTensor:
    """A row for each value head, tiled in the file."""
    return replace(tensor, order=_value_heads(config, 1))


def value_rows(tensor: GgufTensor, config: Mapping[str, Any]) -> GgufTensor:
    """Rows of value heads, tiled in the file."""
    return replace(tensor, order=_value_heads(config, int(config["linear_value_head_dim"])))


def qkv_rows(tensor: GgufTensor, config: Mapping[str, Any]) -> GgufTensor:
    """Rows of q, of k and of value heads, the last tiled in the file."""
    first = 2 * int(config["linear_num_key_heads"]) * int(config["linear_key_head_dim"])
    order = _value_heads(config, int(config["linear_value_head_dim"]), first)
    return replace(tensor, order=order)


def qkv_taps(tensor: GgufTensor, config: Mapping[str, Any]) -> GgufTensor:
    """Convolution of q, k and value heads, the last tiled; the file lacks the axis of one."""
    return qkv_rows(taps(tensor, config), config)


def value_columns(tensor: GgufTensor, config: Mapping[str, Any]) -> GgufTensor:
    """Columns of value heads, tiled in the file."""
    return replace(tensor, columns=_value_heads(config, int(config["linear_value_head_dim"])))


def taps(tensor: GgufTensor, config: Mapping[str, Any]) -> GgufTensor:
    """Convolution [channels, taps] of a checkpoint's [channels, 1, taps]."""
    if len(tensor.shape) != 2:
        return tensor
    return replace(tensor, shape=(tensor.shape[0], 1, tensor.shape[1]))


def vector(tensor: GgufTensor, config: Mapping[str, Any]) -> GgufTensor:
    """A checkpoint's vector, which has two axes in the file."""
    return replace(tensor, shape=(math.prod(tensor.shape),))


def one_row(tensor: GgufTensor, config: Mapping[str, Any]) -> GgufTensor:
    """A vector of a checkpoint's matrix of one row."""
    return replace(tensor, shape=(1, *tensor.shape)) if len(tensor.shape) == 1 else tensor


def _value_heads(config: Mapping[str, Any], size: int, first: int = 0) -> Order | None:
    """Return the order of value heads of `size` rows; None: each key head has one."""
    heads, values = (int(config[f"linear_num_{x}_heads"]) for x in ("key", "value"))
    return None if heads == values else Tiled(first, heads, max(values // max(heads, 1), 1), size)


def _less_one(values: NDArray[np.float32]) -> NDArray[np.float32]:
    return values - np.float32(1)


def _log_of_minus(values: NDArray[np.float32]) -> NDArray[np.float32]:
    # A damaged file may have other signs; the conversion reports values that are not finite.
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(np.log(-values), np.float32)


# What many families change alike, by names of tensors in GGUF.
PAIRED = {"attn_q": pairs, "attn_k": pairs}
SHIFTED = dict.fromkeys(
    (
        *("attn_norm", "ffn_norm", "post_attention_norm", "post_ffw_norm"),
        *("attn_q_norm", "attn_k_norm", "output_norm"),
    ),
    minus_one,
)
ONE_ROW = {"ffn_gate_inp_shexp": one_row}
