"""Translates Ollama's `options` to fields of Wherry's requests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ....errors import RequestError
from ..shapes.fields import SamplingFields

# Maps Ollama's names of options to Wherry's; Wherry's own names are accepted, too.
_NAMES = {
    **{name: name for name in SamplingFields.model_fields},
    "seed": "seed",
    "stop": "stop",
    "max_drafts": "max_drafts",
    "num_predict": "max_tokens",
    "repeat_penalty": "repetition_penalty",
}
# options for which a negative value means none: no limit, a random seed
_MEANS_NONE = {"num_predict", "seed"}
_TAKEN = {"num_ctx", "repeat_last_n"}


def translated(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the request fields that correspond to Ollama's options.

    `num_predict` 0 means no limit, as in Ollama; `repeat_last_n` 0 means no penalty, and other
    values have no effect, because the penalty covers all of prompt and output.
    """
    fields: dict[str, Any] = {}
    for name, value in options.items():
        if name not in _NAMES or value is None:
            continue
        least = 1 if name == "num_predict" else 0
        if name in _MEANS_NONE and isinstance(value, int) and value < least:
            continue
        fields[_NAMES[name]] = value
    if options.get("repeat_last_n") == 0:
        fields["repetition_penalty"] = 1.0
    return fields


def context_of(options: Mapping[str, Any]) -> int | None:
    """Return `num_ctx`, the tokens of prompt and output together; None: the model's context.

    Raises:
        RequestError: `num_ctx` is no number.
    """
    requested = options.get("num_ctx")
    if requested is None or (type(requested) is int and requested > 0):
        return requested
    raise RequestError(
        f"options.num_ctx is {str(requested)[:100]!r}; it takes a whole number from 1",
        param="options.num_ctx",
    )


def without_effect(options: Mapping[str, Any], context: int | None) -> list[str]:
    """Return the names of options that have no effect.

    Args:
        options: the client's options.
        context: the model's context in tokens, to which `num_ctx` is limited; None: unknown.
    """
    names = [
        n for n, v in options.items() if v is not None and n not in _NAMES | dict.fromkeys(_TAKEN)
    ]
    requested = options.get("num_ctx")
    if requested is not None and context is not None and requested > context:
        names.append("num_ctx")
    if options.get("repeat_last_n") not in (None, 0, -1):
        names.append("repeat_last_n")
    return sorted(f"options.{name}" for name in names)
