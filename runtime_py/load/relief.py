"""Advice for a model that exceeds the memory; it names only options that help."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

_SMALL_STEP = {"prefill_chunk": 128, "max_batch": 4}  # prompt tokens and sequences of a small step
_SMALLER_WEIGHTS = "smaller weights (--quant q4f16_1)"
_LEAST_BITS = "q4"  # prefix of the names of the schemes with the fewest bits for each weight


class ModelFacts(Protocol):
    """The facts about a model that the advice needs; a manifest has them, or its forecast."""

    @property
    def quantization(self) -> str:
        """Return the name of the quantization scheme, such as "q4f16_1"."""

    @property
    def target(self) -> Mapping[str, Any]:
        """Return the target's name, kind and other properties."""

    @property
    def deployment(self) -> Mapping[str, Any]:
        """Return the sizes (context, batch, prefill chunk) that memory was planned for."""


def of_weights_and_step(model: ModelFacts, *, draft: bool) -> str:
    """Return advice if the weights and the buffers of a step exceed the memory.

    Args:
        model: the model to load.
        draft: whether a draft model is loaded with it.
    """
    ways = ["Close something"]
    if draft:
        ways.append("leave the draft model out")
    if _can_be_smaller(model):
        ways.append(f"take {_SMALLER_WEIGHTS}")
    if step := _smaller_step(model):
        ways.append(f"plan a smaller step (wherry compile MODEL {step} -o DIR)")
    return f"{', '.join(ways)}, or take a smaller model."


def of_a_context(model: ModelFacts, *, draft: bool) -> str:
    """Return advice if a context is too long; "" if only a shorter context helps.

    Args:
        model: the model to load.
        draft: whether a draft model is loaded with it.
    """
    ways = []
    if cache := _smaller_cache(model):
        ways.append(f"--kv-dtype {cache}")
    if _can_be_smaller(model):
        ways.append(_SMALLER_WEIGHTS)
    if draft:
        ways.append("no draft model")
    return f"More fits with {' or '.join(ways)}." if ways else ""


def of_a_weight(model: ModelFacts) -> str:
    """Return advice if one weight exceeds the largest tensor that the device allows."""
    names = [name for name in ("opencl", "cpu") if name != model.target.get("kind")]
    device = f"another device ({', '.join(f'--target {name}' for name in names)})"
    return f"Take {_SMALLER_WEIGHTS}, or {device}." if _can_be_smaller(model) else f"Take {device}."


def _can_be_smaller(model: ModelFacts) -> bool:
    return not model.quantization.startswith(_LEAST_BITS)


def _smaller_cache(model: ModelFacts) -> str | None:
    """Return the next smaller dtype of the KV cache if there is one."""
    smaller = {"int8": "int4", "int4": None}
    return smaller.get(str(model.deployment.get("kv_dtype")), "int8")


def _smaller_step(model: ModelFacts) -> str:
    """Return compile options for a smaller step.

    Empty if the model's step is already that small.
    """
    larger = {n: small for n, small in _SMALL_STEP.items() if model.deployment.get(n, 0) > small}
    return " ".join(f"--{n.replace('_', '-')} {small}" for n, small in larger.items())
