"""Base class of operations' records: JSON form, and checks of fields."""

from __future__ import annotations

import json
from dataclasses import asdict, fields
from typing import TYPE_CHECKING, Any, Literal

from .blocks import FORMATS

if TYPE_CHECKING:
    from typing_extensions import Self

# How weights are stored: floats, integers with a scale per group, or a block format of `blocks`.
Scheme = str
FloatName = Literal["float16", "float32"]

_SCHEMES = ("f32", "f16", "q4", "q8", *FORMATS)
_INTEGERS = ("q4", "q8")
# Integers whose groups, with a zero point or minimum each, are no format of `blocks` (a whole row):
# no target has kernels.
AFFINE = "affine"
_FLOATS = ("float16", "float32")


class Record:
    """The static parameters of an operation; its JSON form is an object with exactly its fields."""

    __slots__ = ()

    def to_json(self) -> str:
        """Return the record as a line of JSON with sorted keys: equal records, equal strings."""
        return json.dumps(asdict(self), sort_keys=True)  # type: ignore[call-overload]

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Read what `to_json` wrote; lists become tuples.

        Raises:
            ValueError: fields are missing or unknown, or the record rejects a value.
        """
        raw: dict[str, Any] = json.loads(text)
        names = {f.name for f in fields(cls)}  # type: ignore[arg-type]
        if names != set(raw):
            raise ValueError(
                f"{cls.__name__}: fields {sorted(raw)} found, {sorted(names)} expected"
            )
        return cls(**{k: tuple(v) if isinstance(v, list) else v for k, v in raw.items()})


def check_positive(record: Any, *names: str) -> None:
    """Raise ValueError for fields that are not positive."""
    bad = {name: getattr(record, name) for name in names if getattr(record, name) <= 0}
    if bad:
        raise ValueError(f"{type(record).__name__}: {bad} must be positive")


def check_floats(record: Any, *names: str) -> None:
    """Raise ValueError for fields that are no float dtype."""
    bad = {name: getattr(record, name) for name in names if getattr(record, name) not in _FLOATS}
    if bad:
        raise ValueError(f"{type(record).__name__}: {bad} must be one of {_FLOATS}")


def check_weight(scheme: str, scale_dtype: str | None, group: int) -> None:
    """Raise ValueError if a scheme, its scales' dtype and its group contradict each other."""
    if scheme == AFFINE and scale_dtype in _FLOATS and group > 0:
        return
    if scheme not in _SCHEMES:
        raise ValueError(
            f"scheme {scheme!r} is not one of {_SCHEMES}; a new one is a row of ops/blocks.py"
        )
    if scheme in _INTEGERS and (scale_dtype not in _FLOATS or group != 32):
        raise ValueError(
            f"{scheme} needs scale_dtype in {_FLOATS} and group 32, "
            f"found {scale_dtype!r} and {group}"
        )
    if scheme in FORMATS:
        own = (FORMATS[scheme].floats, FORMATS[scheme].group)
        if (scale_dtype, group) != own:
            raise ValueError(f"{scheme} needs {own}, found {(scale_dtype, group)}")
    elif scheme not in _INTEGERS and scale_dtype is not None:
        raise ValueError(f"scheme {scheme} has no scales, found scale_dtype {scale_dtype!r}")
