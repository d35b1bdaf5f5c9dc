"""Parts of a complete config.json and of an image processor's settings that towers read alike."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from wherry.errors import ModelError, shown

from ..layers.activations import NAMES, Activation


def part_of(config: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """Return an object of config.json, such as vision_config; absent or null, it is empty.

    Raises:
        ModelError: it is no object.
    """
    part = config.get(name) or {}
    if not isinstance(part, Mapping):
        raise ModelError(f"config.json: {name} is {shown(part)}, not an object")
    return part


def positive(config: Mapping[str, Any], name: str, default: int) -> int:
    """Return a field of config.json, or its default.

    Raises:
        ModelError: it is no positive integer.
    """
    number = config.get(name, default)
    if type(number) is not int or not 1 <= number < 2**20:
        raise ModelError(
            f"config.json: {name} is {shown(number)}, not an integer from 1 to 1048575"
        )
    return number


def flag(config: Mapping[str, Any], name: str, default: bool) -> bool:
    """Return a field of config.json, or its default.

    Raises:
        ModelError: it is neither true nor false.
    """
    value = config.get(name, default)
    if type(value) is not bool:
        raise ModelError(f"config.json: {name} is {shown(value)}, not true or false")
    return value


def activation(config: Mapping[str, Any], name: str) -> Activation:
    """Return the activation that a field of config.json names; absent, it is GELU.

    Raises:
        ModelError: it is not known.
    """
    given = config.get(name, "gelu")
    if given not in NAMES:
        raise ModelError(f"config.json: {name} is {shown(given)}, known are {', '.join(NAMES)}")
    return NAMES[given]


def require(config: Mapping[str, Any], accepted: Mapping[str, tuple[Any, ...]]) -> None:
    """Check fields of config.json; the first of the accepted values is the default.

    Raises:
        ModelError: a field has another value.
    """
    for name, values in accepted.items():
        if (value := config.get(name, values[0])) not in values:
            raise ModelError(
                f"config.json: {name} is {shown(value)}, supported is "
                f"{' or '.join(map(repr, values))}"
            )


def with_defaults(defaults: Mapping[str, Any]) -> Callable[[Mapping[str, Any]], dict[str, Any]]:
    """Return the function from an image processor's settings to all that have an effect."""

    def processor(given: Mapping[str, Any]) -> dict[str, Any]:
        known = {name: given[name] for name in defaults if given.get(name) is not None}
        return {**defaults, **known}

    return processor
