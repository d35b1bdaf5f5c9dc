"""What a person may type where a model's memory is more than there is: only what helps."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

_SMALL_STEP = {"prefill_chunk": 128, "max_batch": 4}  # rows and sequences of a step
_SMALLER_WEIGHTS = "smaller weights (--quant q4f16_1)"
_LEAST_BITS = "q4"  # schemes whose names begin so: no other has fewer bits a weight


class Made(Protocol):
    """A manifest, or what one would say."""

    @property
    def quantization(self) -> str:
        """The scheme: "q4f16_1"."""

    @property
    def target(self) -> Mapping[str, Any]:
        """Its name, its kind, and more."""

    @property
    def deployment(self) -> Mapping[str, Any]:
        """What memory was planned for."""


def of_weights_and_step(model: Made, *, draft: bool) -> str:
    """A sentence for where not even the weights and a step fit.

    Args:
        model: the one that is to be loaded.
        draft: whether it has a draft model.
    """
    ways = ["Close something"]
    if draft:
        ways.append("leave the draft model out")
    if _can_be_smaller(model):
        ways.append(f"take {_SMALLER_WEIGHTS}")
    if step := _smaller_step(model):
        ways.append(f"plan a smaller step (wherry compile MODEL {step} -o DIR)")
    return f"{', '.join(ways)}, or take a smaller model."


def of_a_context(model: Made, *, draft: bool) -> str:
    """A sentence for where a context is too long; empty if nothing but a shorter one helps.

    Args:
        model: the one that is to be loaded.
        draft: whether it has a draft model.
    """
    ways = []
    if _can_have_int8_cache(model):
        ways.append("--kv-dtype int8")
    if _can_be_smaller(model):
        ways.append(_SMALLER_WEIGHTS)
    if draft:
        ways.append("no draft model")
    return f"More fits with {' or '.join(ways)}." if ways else ""


def of_a_weight(model: Made) -> str:
    """A sentence for where one weight is more than a tensor of the device may be."""
    names = [name for name in ("opencl", "cpu") if name != model.target.get("kind")]
    device = f"another device ({', '.join(f'--target {name}' for name in names)})"
    return f"Take {_SMALLER_WEIGHTS}, or {device}." if _can_be_smaller(model) else f"Take {device}."


def _can_be_smaller(model: Made) -> bool:
    return not model.quantization.startswith(_LEAST_BITS)


def _can_have_int8_cache(model: Made) -> bool:
    """Whether its target knows a cache in int8, and this one has another."""
    on_cpu = model.target.get("kind") in ("llvm", "c")
    return on_cpu and model.deployment.get("kv_dtype") != "int8"


def _smaller_step(model: Made) -> str:
    """Options of a compilation whose step takes less; empty if the model's is as small."""
    larger = {n: small for n, small in _SMALL_STEP.items() if model.deployment.get(n, 0) > small}
    return " ".join(f"--{n.replace('_', '-')} {small}" for n, small in larger.items())
