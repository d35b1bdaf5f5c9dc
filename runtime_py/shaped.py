"""Converts JSON responses of C++ and of the npm package to the response classes of engines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from functools import cache
from types import UnionType
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

from .answers import Shape, Timings
from .core.interface import CoreStats

AnyShape = TypeVar("AnyShape", bound=Shape)


def shaped(kind: type[AnyShape], value: Mapping[str, Any]) -> AnyShape:
    """Build a dataclass of answers.py from a JSON object; missing fields get their defaults.

    Raises:
        TypeError: the object has a field that the shape does not have.
    """
    shape: Any = kind  # mypy takes a class with type variables for unhashable
    hints = _hints(shape)
    if kind is Timings:
        value = _with_times_per_token(value)
    return kind(**{name: _field(hints.get(name), item) for name, item in value.items()})


def stats_of(counted: Mapping[str, Any]) -> CoreStats:
    """Convert the core's counters from a JSON object.

    Counters that only browsers have are dropped.
    """
    by_name = {
        "".join(f"_{c.lower()}" if c.isupper() else c for c in name): value
        for name, value in counted.items()
    }
    return CoreStats(**{f.name: by_name[f.name] for f in fields(CoreStats) if f.name in by_name})


@cache
def _hints(kind: Any) -> dict[str, Any]:
    """Return the dataclass in each field, or in its list; None for fields of other types."""
    assert is_dataclass(kind)
    return {name: _shape_in(hint) for name, hint in get_type_hints(kind).items()}


def _shape_in(hint: Any) -> Any:
    if get_origin(hint) in (Union, UnionType):
        return next(filter(None, map(_shape_in, get_args(hint))), None)
    if get_origin(hint) in (list, Sequence):
        inner = _shape_in(get_args(hint)[0])
        return [inner] if inner else None
    return hint if isinstance(hint, type) and issubclass(hint, Shape) else None


def _field(kind: Any, value: Any) -> Any:
    if value is None or kind is None:
        return value
    if isinstance(kind, list):
        return [shaped(kind[0], item) for item in value]
    return shaped(kind, value)


def _with_times_per_token(value: Mapping[str, Any]) -> dict[str, Any]:
    """Add two times of llama.cpp that follow from others; the package omits them."""
    return {
        "prompt_per_token_ms": value["prompt_ms"] / max(value["prompt_n"], 1),
        "predicted_per_token_ms": value["predicted_ms"] / max(value["predicted_n"], 1),
        **value,
    }
