"""Reads generation_config.json: the sampling parameters that a model's authors chose."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from wherry.errors import ModelError, listing

from ..text.tokenizer import read_json, shortened

NAME = "generation_config.json"


def _number(fits: Callable[[float], bool]) -> Callable[[Any], bool]:
    def check(value: Any) -> bool:
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        return is_number and fits(value)  # NaN fails here, because it is outside of every range

    return check


# The fields that are read, each with a check of its value and a description; null counts as absent.
_FIELDS: Mapping[str, tuple[Callable[[Any], bool], str]] = {
    "do_sample": (lambda v: isinstance(v, bool), "true or false"),
    "temperature": (_number(lambda v: 0 <= v <= 100), "a number from 0 to 100"),
    "top_p": (_number(lambda v: 0 < v <= 1), "a number above 0, up to 1"),
    "top_k": (lambda v: type(v) is int and -1 <= v < 2**31, "a whole number from -1"),
    "min_p": (_number(lambda v: 0 <= v < 1), "a number from 0, below 1"),
    "repetition_penalty": (_number(lambda v: 0 < v <= 100), "a number above 0, up to 100"),
}


def read(folder: Path) -> dict[str, Any]:
    """Return the sampling defaults in a model folder's generation_config.json; {} without the file.

    Raises:
        ModelError: it is not JSON, or has invalid fields; the message lists all of them.
    """
    path = folder / NAME
    config = {name: value for name, value in read_json(path).items() if value is not None}
    problems = [
        f"{name}: found {shortened(config[name])}, expected {expected}"
        for name, (fits, expected) in _FIELDS.items()
        if name in config and not fits(config[name])
    ]
    if problems:
        raise ModelError(
            f"{path} cannot be used:\n{listing(problems)}\nCorrect it in the model's folder."
        )
    return config


def decoder_start(defaults: Mapping[str, Any], config: Mapping[str, Any]) -> tuple[int, ...]:
    """Return the tokens that the decoder of an encoder-decoder begins with; () if none is named.

    That is decoder_start_token_id, or the padding token, as T5's authors have it, and what
    forced_bos_token_id makes of the first token of an output.

    Args:
        defaults: content of generation_config.json, which takes precedence.
        config: content of config.json.
    """
    given = {**config, **defaults}
    start = given.get("decoder_start_token_id")
    start = given.get("pad_token_id") if start is None else start
    tokens = (start, given.get("forced_bos_token_id"))
    return tuple(token for token in tokens if type(token) is int and token >= 0)
