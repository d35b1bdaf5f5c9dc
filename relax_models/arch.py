"""The record of a model family, with which every family file ends. It does not import TVM."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass
from typing import Any

from .config import read_config
from .layers.rope import InverseFrequencies, RopeConfig, inv_freq
from .weights.plan import Shape, WeightPlan, plan_weights
from .weights.rules import (
    Groups,
    Pairs,
    RotatedFirst,
    WeightRule,
    concat,
    constant,
    drop,
    either,
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
    "Drafts",
    "Groups",
    "InverseFrequencies",
    "Pairs",
    "RopeConfig",
    "RotatedFirst",
    "Shape",
    "WeightPlan",
    "WeightRule",
    "concat",
    "constant",
    "drop",
    "either",
    "heads",
    "inv_freq",
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

# Endings of names in the first BERT checkpoints, which came from TensorFlow -> today's.
_OLDER = {"LayerNorm.gamma": "LayerNorm.weight", "LayerNorm.beta": "LayerNorm.bias"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Drafts:
    """The block of multi-token prediction that comes with a family's checkpoints (`drafts/mtp.py`).

    Only the first block is used, repeatedly, where there are several.
    """

    # Field of config.json and its value by which a configuration has no block that can be used;
    # None: it has one.
    lacks: Callable[[Any], str | None]
    make: Callable[[Any], Any]  # makes the `nn.Module` of a configuration; its parameters: draft.*
    names: Callable[[Any], tuple[WeightRule, ...]]  # the checkpoint's names of the parameters


@dataclass(frozen=True, slots=True, kw_only=True)
class Architecture:
    """One model family; the file is found by its name.

    Attributes:
        name: Hugging Face's `model_type`, and the name of the file.
        config: a frozen dataclass that `read_config` fills.
        model: makes the `nn.Module` of a `config` (TVM is not imported here, hence Any):
            `hidden(batch) -> [m, d]`, the hidden states of the logit rows after the last norm, or
            what an encoder's output makes of them (`encoder.py`); `logits(hidden) -> float32 [m,
            vocab]`; `lm_head`, which `logits` alone uses, None where embeddings are tied.
        weights: the weight map from a checkpoint's tensors to parameters, see `weights/rules.py`.
        aliases: other values of `model_type` that mean the same, with the same fields.
        base: first part of the checkpoint's names, the head's excepted; checkpoints of embedding
            models omit it.
        drafts: the block of multi-token prediction; None: the family has none.
        older_base: what older checkpoints have in its place.
    """

    name: str
    config: type[Any]
    model: Callable[[Any], Any]
    weights: tuple[WeightRule, ...] = ()
    aliases: tuple[str, ...] = ()
    base: str = "model"
    drafts: Drafts | None = None
    older_base: str | None = None


def plan(
    arch: Architecture,
    parameters: Mapping[str, Shape],
    checkpoint: Mapping[str, Shape],
    config: Any = None,
    *,
    headless: bool = False,
) -> WeightPlan:
    """Plan how the checkpoint's tensors become the model's parameters.

    Args:
        arch: the architecture, whose `weights` are applied.
        parameters: parameter names and shapes, unquantized.
        checkpoint: tensor names and shapes of the checkpoint.
        config: an instance of `arch.config`; `tie` asks it whether weights are tied.
        headless: whether the model is used without its LM head.

    Raises:
        ModelError: one, listing every missing, surplus and misshapen tensor.
    """
    rules = arch.weights
    if arch.drafts is not None and any(name.startswith("draft.") for name in parameters):
        rules = (*arch.drafts.names(config), *rules)
    if headless:
        rules += (drop("lm_head.weight"), drop("lm_head.bias"))
    first = _base(arch, checkpoint)
    if first != arch.base:
        rules += (rename(f"{arch.base}.*", f"{first}.*" if first else "*"),)
    names = {_newer(name, checkpoint): name for name in checkpoint}
    shapes = {newer: checkpoint[name] for newer, name in names.items()}
    base = first or arch.base if getattr(config, "bidirectional", False) else None
    return plan_weights(rules, parameters, shapes, config, base=base).renamed(names)


def _base(arch: Architecture, checkpoint: Mapping[str, Shape]) -> str | None:
    """Return the first part of the names of a checkpoint's tensors; None: they have none."""
    for base in (arch.base, arch.older_base):
        if any(name.startswith(f"{base}.") for name in checkpoint):
            return base
    return None


def _newer(name: str, checkpoint: Container[str]) -> str:
    """Return today's name of a tensor, unless the checkpoint has a tensor of that name, too."""
    for older, newer in _OLDER.items():
        older_name = name.removesuffix(older) + newer
        if name.endswith(older) and older_name not in checkpoint:
            return older_name
    return name
