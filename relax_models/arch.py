"""The record that every model file ends with, and all the words it needs. No TVM in here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from .config import read_config
from .rope import InverseFrequencies, RopeConfig, inv_freq
from .weight_plan import Shape, WeightPlan, plan_weights
from .weights import (
    Groups,
    Pairs,
    RotatedFirst,
    Word,
    concat,
    constant,
    drop,
    heads,
    rename,
    reorder,
    spare_layers,
    split,
    stack,
    tie,
    transpose,
    unit_rows,
    unpack,
    unused_in,
)

__all__ = [
    "Architecture",
    "Groups",
    "InverseFrequencies",
    "LayerState",
    "Pairs",
    "RopeConfig",
    "RotatedFirst",
    "Shape",
    "StateKind",
    "WeightPlan",
    "Word",
    "concat",
    "constant",
    "drop",
    "heads",
    "inv_freq",
    "paged_kv",
    "plan",
    "read_config",
    "rename",
    "reorder",
    "spare_layers",
    "split",
    "stack",
    "tie",
    "transpose",
    "unit_rows",
    "unpack",
    "unused_in",
]

StateKind = Literal["paged_kv", "recurrent", "none"]


@dataclass(frozen=True, slots=True)
class LayerState:
    """What one layer keeps of a sequence between steps.

    `paged_kv`: K and V of each token, in pages, of the last `window` tokens only if it is not None.
    `recurrent`: one tensor of fixed size. `none`: nothing.
    """

    kind: StateKind = "paged_kv"
    window: int | None = None  # tokens

    def __post_init__(self) -> None:
        assert self.window is None or (self.kind == "paged_kv" and self.window > 0)


def paged_kv(config: Any) -> tuple[LayerState, ...]:
    """Each of `config.num_hidden_layers` layers attends to the tokens of its `window_of`."""
    return tuple(
        LayerState(window=config.window_of(i)) for i in range(int(config.num_hidden_layers))
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Architecture:
    """One model family; the file is found by its name.

    Attributes:
        name: Hugging Face's `model_type`, and the name of the file.
        config: a frozen dataclass that `read_config` fills.
        model: the `nn.Module` class, made with a `config` (TVM is not imported here, hence Any):
            `hidden(batch, cache) -> [m, d]`, the hidden states of the logit rows after the last
            norm; `logits(hidden) -> float32 [m, vocab]`; `lm_head`, which `logits` alone uses, None
            where embeddings are tied.
        weights: how parameters are made of a checkpoint's tensors, see `weights.py`.
        state: for a configuration, what each layer keeps; one record a layer.
        aliases: other values of `model_type` that mean the same, with the same fields.
        base: what the checkpoint's names of all but the head begin with; some checkpoints, stored
            without a head, leave it out.
    """

    name: str
    config: type[Any]
    model: type[Any]
    weights: tuple[Word, ...] = ()
    state: Callable[[Any], tuple[LayerState, ...]] = paged_kv
    aliases: tuple[str, ...] = ()
    base: str = "model"


def plan(
    arch: Architecture,
    parameters: Mapping[str, Shape],
    checkpoint: Mapping[str, Shape],
    config: Any = None,
    *,
    headless: bool = False,
) -> WeightPlan:
    """How each of our parameters is made of the checkpoint's tensors.

    Args:
        arch: whose `weights` are used.
        parameters: our names and shapes, unquantized.
        checkpoint: their names and shapes.
        config: an instance of `arch.config`; `tie` asks it whether weights are tied.
        headless: the model is used without its head.

    Raises:
        ModelError: one, listing every missing, surplus and misshapen tensor.
    """
    words = arch.weights
    if headless:
        words += (drop("lm_head.weight"), drop("lm_head.bias"))
    if not any(name.startswith(f"{arch.base}.") for name in checkpoint):
        words += (rename(f"{arch.base}.*", "*"),)
    return plan_weights(words, parameters, checkpoint, config)
